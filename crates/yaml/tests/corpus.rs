//! Real manifests: the tree says what the parser's events say, and every span leads to its text.

use std::borrow::Cow;
use std::path::Path;

use granit_parser::{Event, Parser};
use yaml::{Kind, Limits, Node, Parsed, Step, Style};

const RECIPES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/recipes"
);

#[test]
#[expect(clippy::print_stderr, reason = "says why nothing was checked")]
fn recipes() {
    let Ok(entries) = std::fs::read_dir(Path::new(RECIPES)) else {
        eprintln!("skipped: no corpus at {RECIPES}");
        return;
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (mut files, mut scalars, mut broken) = (0, 0, 0);
    for path in paths {
        let name = path.display().to_string();
        let Ok(source) = std::fs::read_to_string(&path) else {
            continue;
        };
        files += 1;
        let slice = |span: std::ops::Range<u32>| {
            source
                .get(span.start as usize..span.end as usize)
                .unwrap_or_else(|| panic!("{name}: {span:?}"))
        };

        // The scalars of the documents before the first error, from the events alone.
        let options = granit_parser::options! {
            emit_unresolved_aliases: true,
            emit_comments: false,
            block_scalar_eof_without_line_feed: true,
        };
        let mut expected: Vec<String> = Vec::new();
        let mut whole = true;
        for next in Parser::new_from_str_with_options(&source, options) {
            match next {
                Ok((Event::Scalar(value, ..), _)) => expected.push(value.into_owned()),
                Ok(_) => {}
                Err(_) => {
                    whole = false;
                    break;
                }
            }
        }

        let mut found: Vec<String> = Vec::new();
        yaml::parse_each(&source, &Limits::default(), &mut |parsed| {
            let document = match parsed {
                Parsed::Document(document) => document,
                Parsed::Broken { partial, .. } => {
                    broken += 1;
                    let Some(partial) = partial else {
                        return;
                    };
                    partial
                }
            };
            let mut last = 0;
            yaml::walk(document.root(), u64::MAX, &mut |visit| {
                let node: Node<'_> = visit.node;
                if node.alias_span().is_some() {
                    assert!(slice(node.alias_span().unwrap()).starts_with('*'), "{name}");
                    return Step::Skip;
                }
                let span = node.span();
                assert!(span.start >= last, "{name}: {node:?} after {last}");
                last = span.start;
                if matches!(node.kind(), Kind::Mapping | Kind::Sequence) {
                    return Step::Enter;
                }
                scalars += 1;
                let text = slice(span.clone());
                // The events have "~" where nothing is written.
                let nothing = node.kind() == Kind::Null && text.is_empty();
                found.push(if nothing {
                    "~".to_owned()
                } else {
                    node.raw().into_owned()
                });
                let value = node.raw();
                let single = !text.contains('\n');
                if node.style() == Style::Plain && single {
                    assert_eq!(text, value, "{name}");
                }
                let located = node.locate(0..value.len());
                assert!(
                    span.start <= located.start && located.end <= span.end.max(located.start) + 400,
                    "{name}: {span:?} {located:?}"
                );
                if single && matches!(value, Cow::Borrowed(_)) {
                    let inner = text
                        .strip_prefix(['"', '\''])
                        .and_then(|text| text.strip_suffix(['"', '\'']))
                        .unwrap_or(text);
                    if node.style() == Style::Plain || inner == value {
                        assert_eq!(slice(located), value.as_ref(), "{name}");
                    }
                }
                // Each line of a literal block is found where it stands.
                if node.style() == Style::Literal {
                    let mut at = 0;
                    for line in value.split('\n') {
                        let place = node.locate(at..at + line.len());
                        assert_eq!(slice(place), line, "{name}");
                        at += line.len() + 1;
                    }
                }
                // Words of folded values as well.
                if node.style() != Style::DoubleQuoted {
                    for word in value.split_whitespace().filter(|word| !word.contains('\'')) {
                        let at = word.as_ptr().addr() - value.as_ptr().addr();
                        assert_eq!(slice(node.locate(at..at + word.len())), word, "{name}");
                    }
                }
                Step::Enter
            });
            for comment in document.comments() {
                assert!(slice(comment.span).starts_with('#'), "{name}");
            }
        });
        if whole {
            assert_eq!(found, expected, "{name}");
        } else {
            let common = found.get(..expected.len().min(found.len())).unwrap();
            assert_eq!(common, expected.get(..common.len()).unwrap(), "{name}");
        }
    }
    eprintln!("{files} files, {scalars} scalars, {broken} broken documents");
    assert!(files > 0 && scalars > 0);
}
