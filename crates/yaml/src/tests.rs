//! The crate as its users see it.

use std::fmt::Write as _;
use std::ops::Range;

use super::*;

fn one(source: &str) -> Document<'_> {
    let stream = parse(source, &Limits::default());
    assert!(stream.errors.is_empty(), "{source:?}: {:?}", stream.errors);
    assert_eq!(stream.documents.len(), 1, "{source:?}");
    stream.documents.into_iter().next().unwrap()
}

fn error(source: &str) -> SyntaxError {
    let stream = parse(source, &Limits::default());
    assert_eq!(stream.errors.len(), 1, "{source:?}: {:?}", stream.errors);
    stream.errors.into_iter().next().unwrap()
}

fn text<'d>(document: &Document<'d>, span: Range<u32>) -> &'d str {
    let range = span.start as usize..span.end as usize;
    document.source().get(range).unwrap()
}

fn written(node: Node<'_>) -> &str {
    text(node.document(), node.span())
}

/// Keys and values as short text.
fn entries(node: Node<'_>) -> String {
    let list: Vec<String> = node
        .entries()
        .map(|(key, value)| format!("{}={}", key.raw(), value.raw()))
        .collect();
    list.join(" ")
}

#[test]
fn mapping_with_all_scalar_styles() {
    let source = "plain: a b\nsingle: 'it''s'\ndouble: \"t\\tx\"\nempty: ''\nlit: |\n  x\n  y\nfold: >-\n  p\n  q\nnothing:\ntilde: ~\n";
    let document = one(source);
    let root = document.root();
    assert_eq!(root.kind(), Kind::Mapping);
    assert_eq!(root.style(), Style::Block);
    let get = |key: &str| root.get(key).unwrap();
    let values = [
        ("plain", Style::Plain, "a b", "a b"),
        ("single", Style::SingleQuoted, "it's", "'it''s'"),
        ("double", Style::DoubleQuoted, "t\tx", "\"t\\tx\""),
        ("empty", Style::SingleQuoted, "", "''"),
        ("lit", Style::Literal, "x\ny\n", "x\n  y"),
        ("fold", Style::Folded, "p q", "p\n  q"),
    ];
    for (key, style, value, span) in values {
        let node = get(key);
        assert_eq!(node.style(), style, "{key}");
        assert_eq!(node.as_str().as_deref(), Some(value), "{key}");
        assert_eq!(written(node), span, "{key}");
        assert_eq!(node.kind(), Kind::Scalar, "{key}");
    }
    for (key, raw) in [("nothing", ""), ("tilde", "~")] {
        let node = get(key);
        assert_eq!(node.kind(), Kind::Null, "{key}");
        assert_eq!(node.as_str(), None, "{key}");
        assert_eq!(node.raw(), raw, "{key}");
        assert_eq!(written(node), raw, "{key}");
    }
    assert!(root.get("absent").is_none());
    assert!(get("plain").get("x").is_none());
    assert_eq!(root.entries().count(), 8);
    assert_eq!(written(root), source.trim_end());
    assert_eq!(root.entry("tilde").unwrap().0.span(), 93..98);
}

#[test]
fn sequences_and_paths() {
    let source =
        "spec:\n  containers:\n  - name: a\n    args: [x, 'y', {k: 1}]\n  - name: b\nlast: z\n";
    let document = one(source);
    let root = document.root();
    let list = root.get_path(&["spec", "containers"]).unwrap();
    assert_eq!(list.kind(), Kind::Sequence);
    assert_eq!(list.items().count(), 2);
    let name = root.get_path(&["spec", "containers", "1", "name"]).unwrap();
    assert_eq!(name.text(), Some("b"));
    let args = list.item(0).unwrap().get("args").unwrap();
    assert_eq!(args.style(), Style::Flow);
    assert_eq!(written(args), "[x, 'y', {k: 1}]");
    assert_eq!(written(args.item(2).unwrap()), "{k: 1}");
    assert_eq!(
        written(list.item(0).unwrap()),
        "name: a\n    args: [x, 'y', {k: 1}]"
    );
    assert_eq!(
        written(list),
        "name: a\n    args: [x, 'y', {k: 1}]\n  - name: b"
    );
    assert!(args.get("k").is_none());
    assert!(root.get_path(&["spec", "containers", "7"]).is_none());
    let at = u32::try_from(source.find("k: 1").unwrap()).unwrap();
    assert_eq!(written(document.node_at(at).unwrap()), "k");
    assert_eq!(written(document.node_at(at + 1).unwrap()), "{k: 1}");
    assert!(document.node_at(9999).is_none());
}

#[test]
fn pairs_inside_flow_sequences() {
    let document = one("[a: b, [c, d]: e, ? f : g, h]\n");
    let root = document.root();
    let spans: Vec<&str> = root.items().map(written).collect();
    assert_eq!(spans, ["a: b", "[c, d]: e", "? f : g", "h"]);
    assert_eq!(root.item(0).unwrap().get("a").unwrap().text(), Some("b"));
}

#[test]
fn types_of_plain_scalars() {
    let document = one(
        "i: 8080\nq: '8080'\nb: true\nqb: 'true'\nf: 1.5\nn: null\ns: text\ny: yes\nt: !!str 12\nx: ! 12\nh: 0x10\nqh: '0x10'\ne: !!str\nc: !custom\n",
    );
    let get = |key: &str| document.root().get(key).unwrap();
    assert_eq!(get("i").as_i64(), Some(8080));
    assert_eq!(get("q").as_i64(), Some(8080));
    assert_eq!(get("h").as_i64(), Some(16));
    assert_eq!(get("qh").as_i64(), None);
    assert_eq!(get("s").as_i64(), None);
    assert_eq!(get("b").as_bool(), Some(true));
    assert!(!get("qb").is_bool());
    assert!(!get("y").is_bool());
    assert!(get("y").is_legacy_bool());
    for key in ["i", "b", "f", "n", "h"] {
        assert!(get(key).is_plain_non_string(), "{key}");
    }
    for key in ["q", "qb", "s", "y", "t", "x", "e"] {
        assert!(!get(key).is_plain_non_string(), "{key}");
    }
    assert_eq!(get("t").tag(), Some("!!str"));
    assert_eq!(get("t").text(), Some("12"));
    assert_eq!(get("e").text(), Some(""));
    assert_eq!(get("c").kind(), Kind::Null);
    assert_eq!(get("c").tag(), Some("!custom"));
    assert_eq!(get("s").tag(), None);
}

#[test]
fn keys_of_all_kinds() {
    let document = one("1: a\ntrue: b\n? [x, y]\n: c\n? |\n  block\n: d\n~: e\n'q': f\n? g\n");
    let root = document.root();
    assert_eq!(root.get("1").unwrap().text(), Some("a"));
    assert_eq!(root.get("true").unwrap().text(), Some("b"));
    assert_eq!(root.get("block\n").unwrap().text(), Some("d"));
    assert_eq!(root.get("~").unwrap().text(), Some("e"));
    assert_eq!(root.get("q").unwrap().text(), Some("f"));
    assert!(root.get("g").unwrap().is_null());
    let (key, value) = root.pairs().nth(2).unwrap();
    assert_eq!(written(key), "[x, y]");
    assert_eq!(value.text(), Some("c"));
}

#[test]
fn aliases_are_followed() {
    let source = "a: &base\n  k: v\nb: *base\nc: &s text\nd: [*s, *s]\n*s : key\n";
    let document = one(source);
    let root = document.root();
    let b = root.get("b").unwrap();
    assert_eq!(b.kind(), Kind::Mapping);
    assert_eq!(b, root.get("a").unwrap());
    assert_eq!(b.get("k").unwrap().text(), Some("v"));
    assert_eq!(text(&document, b.alias_span().unwrap()), "*base");
    assert_eq!(written(b), "k: v");
    assert_eq!(b.anchor(), Some("base"));
    assert_eq!(root.get("a").unwrap().alias_span(), None);
    assert_eq!(root.get("d").unwrap().item(1).unwrap().text(), Some("text"));
    assert_eq!(written(root.get("d").unwrap()), "[*s, *s]");
    assert_eq!(root.get("text").unwrap().text(), Some("key"));
}

#[test]
fn aliases_that_lead_nowhere() {
    let document = one("a: &a [*a]\nb: *nope\nc: &m {k: *m}\n");
    let root = document.root();
    assert!(root.get("a").unwrap().item(0).unwrap().is_null());
    let b = root.get("b").unwrap();
    assert!(b.is_null());
    assert_eq!(b.as_str(), None);
    assert_eq!(b.raw(), "");
    assert_eq!(b.entries().count() + b.items().count(), 0);
    assert_eq!(text(&document, b.alias_span().unwrap()), "*nope");
    let unresolved: Vec<_> = document.unresolved_aliases().to_vec();
    assert_eq!(unresolved, [AliasProblem { span: 14..19 }]);
    let recursive: Vec<&str> = document
        .recursive_aliases()
        .iter()
        .map(|problem| text(&document, problem.span.clone()))
        .collect();
    assert_eq!(recursive, ["*a", "*m"]);
}

#[test]
fn anchors_do_not_outlive_their_document() {
    let stream = parse(
        "a: &x 1\nb: *x\n---\na: &y 2\nb: *y\nc: *x\n",
        &Limits::default(),
    );
    let second = stream.documents.get(1).unwrap();
    assert_eq!(second.root().get("b").unwrap().text(), Some("2"));
    assert_eq!(second.unresolved_aliases().len(), 1);
    assert_eq!(
        stream.documents[0].root().get("b").unwrap().text(),
        Some("1")
    );
}

#[test]
fn a_redefined_anchor_counts_from_there_on() {
    let document = one("[&x 1, *x, &x 2, *x]\n");
    let values: Vec<_> = document.root().items().map(Node::raw).collect();
    assert_eq!(values, ["1", "1", "2", "2"]);
}

#[test]
fn merge_keys() {
    let document = one(
        "base: &base {a: 1, b: 2}\nmore: &more {<<: *base, b: 3, c: 4}\none: {<<: *base, a: 9}\nmany: {x: 0, <<: [*more, *base], c: 5}\nlast: {<<: *more, <<: {z: 1}}\nquoted: {'<<': *base}\n",
    );
    let root = document.root();
    let get = |key: &str| root.get(key).unwrap();
    assert_eq!(get("one").get("a").unwrap().text(), Some("9"));
    assert_eq!(get("one").get("b").unwrap().text(), Some("2"));
    assert_eq!(get("more").get("a").unwrap().text(), Some("1"));
    assert_eq!(get("many").get("b").unwrap().text(), Some("3"));
    assert_eq!(entries(get("one")), "a=9 b=2");
    assert_eq!(entries(get("many")), "x=0 c=5 b=3 a=1");
    assert_eq!(get("last").get("z").unwrap().text(), Some("1"));
    assert_eq!(get("quoted").get("a"), None);
    assert!(get("quoted").get("<<").is_some());
    assert!(get("one").get("<<").is_none());
    assert!(document.duplicate_keys().is_empty());
}

#[test]
fn merge_keys_in_circles_and_bombs() {
    let document = one("a: &a\n  <<: *a\n  k: v\n");
    assert_eq!(document.root().get("a").unwrap().get("x"), None);
    assert_eq!(entries(document.root().get("a").unwrap()), "k=v");

    let mut source = String::from("m0: &m0 {k: v}\n");
    for n in 1..60 {
        let p = n - 1;
        writeln!(source, "m{n}: &m{n} {{<<: [*m{p}, *m{p}, *m{p}]}}").unwrap();
    }
    let document = one(&source);
    let last = document.root().get("m59").unwrap();
    assert_eq!(last.get("k").unwrap().text(), Some("v"));
    assert_eq!(last.get("absent"), None);
    assert_eq!(entries(last), "k=v");
}

#[test]
fn alias_bombs_end() {
    let mut source = String::from("a0: &a0 [x]\n");
    for n in 1..10 {
        let list = vec![format!("*a{}", n - 1); 10].join(", ");
        writeln!(source, "a{n}: &a{n} [{list}]").unwrap();
    }
    let document = one(&source);
    let mut count = 0_u32;
    let complete = walk(document.root(), 100_000, &mut |_| {
        count += 1;
        Step::Enter
    });
    assert!(complete);
    assert_eq!(count, 1 + 10 + 10 + 1 + 90);
    // From one list alone, everything below it is still reached once.
    let mut count = 0_u32;
    assert!(walk(
        document.root().get("a9").unwrap(),
        100_000,
        &mut |_| {
            count += 1;
            Step::Enter
        }
    ));
    assert_eq!(count, 1 + 90 + 1);
    assert!(!walk(document.root(), 50, &mut |_| Step::Enter));
}

#[test]
fn walk_tells_where_it_is() {
    let document = one("a: [x, {k: v}]\nb: y\n");
    let mut seen = Vec::new();
    walk(document.root(), 100, &mut |visit| {
        if !visit.is_key && visit.node.is_scalar() {
            let key = visit.key.map_or("-", Node::raw_text);
            seen.push(format!(
                "{key}/{}/{}/{}",
                visit.index,
                visit.depth,
                visit.node.raw()
            ));
        }
        Step::Enter
    });
    assert_eq!(seen, ["-/0/2/x", "k/0/3/v", "b/1/1/y"]);
    let mut count = 0;
    walk(document.root(), 100, &mut |visit| {
        count += 1;
        if visit.node.is_sequence() {
            Step::Skip
        } else {
            Step::Enter
        }
    });
    assert_eq!(count, 5);
    count = 0;
    walk(document.root(), 100, &mut |_| {
        count += 1;
        Step::Stop
    });
    assert_eq!(count, 1);
}

#[test]
fn duplicate_keys_and_the_last_wins() {
    let document = one("a: 1\n'a': 2\nb: {c: 1, d: 2, c: 3}\n? [a]\n: 4\n? [a]\n: 5\n");
    let found: Vec<(&str, Range<u32>)> = document
        .duplicate_keys()
        .iter()
        .map(|duplicate| {
            (
                text(&document, duplicate.key.clone()),
                duplicate.first.clone(),
            )
        })
        .collect();
    assert_eq!(found, [("'a'", 0..1), ("c", 16..17)]);
    assert_eq!(document.root().get("a").unwrap().text(), Some("2"));

    let mut source = String::new();
    for n in 0..5000 {
        writeln!(source, "key{n}: {n}").unwrap();
    }
    source.push_str("key77: again\nkey77: more\n");
    let document = one(&source);
    assert_eq!(document.duplicate_keys().len(), 2);
    for duplicate in document.duplicate_keys() {
        assert_eq!(text(&document, duplicate.key.clone()), "key77");
        let first = source.find("key77:").unwrap();
        assert_eq!(duplicate.first.start as usize, first);
    }
}

#[test]
fn documents_and_markers() {
    let source = "# head\n---\na: 1\n...\n# between\n---\n# nothing here\n---\n%notadirective: x\n";
    let stream = parse(source, &Limits::default());
    assert_eq!(stream.documents.len(), 1, "{:?}", stream.errors);

    let source = "a: 1\n--- # two\nb: 2\n...\n%YAML 1.2\n---\nc: 3\n---\n---\n# only a comment\n";
    let stream = parse(source, &Limits::default());
    assert!(stream.errors.is_empty(), "{:?}", stream.errors);
    let starts: Vec<_> = stream
        .documents
        .iter()
        .map(|document| {
            (
                document.index,
                document.start_line,
                document.root().pairs().count(),
            )
        })
        .collect();
    assert_eq!(starts, [(0, 1, 1), (1, 2, 1), (2, 6, 1)]);
    assert!(parse("", &Limits::default()).documents.is_empty());
    assert!(
        parse("# a\n\n# b\n", &Limits::default())
            .documents
            .is_empty()
    );
    assert!(parse("---\n...\n", &Limits::default()).documents.is_empty());
    let stream = parse("--- ~\n--- text\n", &Limits::default());
    assert_eq!(stream.documents.len(), 2);
    assert_eq!(stream.documents[1].root().text(), Some("text"));
}

#[test]
fn a_broken_document_leaves_the_others() {
    let source = "a: 1\n---\nb: 2\nc: [x, y\n---\nd: 3\n";
    let stream = parse(source, &Limits::default());
    let indexes: Vec<_> = stream.documents.iter().map(|d| d.index).collect();
    assert_eq!(indexes, [0, 2]);
    assert_eq!(
        stream.documents[1].root().get("d").unwrap().text(),
        Some("3")
    );
    let error = &stream.errors[0];
    assert_eq!(error.kind, ErrorKind::UnclosedBracket);
    assert_eq!((error.line, error.column, error.offset), (4, 4, 17));
    assert_eq!(error.document_index, 1);
    let partial = &stream.partials[0];
    assert_eq!(partial.root().get("b").unwrap().text(), Some("2"));
    // The parser gives a value only after it knows what follows.
    let list = partial.root().get("c").unwrap();
    assert_eq!(list.items().count(), 1);
    assert_eq!(written(list), "[x");
}

#[test]
fn a_partial_document_may_end_with_a_key() {
    let stream = parse("a: 1\nb: 'x\n", &Limits::default());
    let partial = &stream.partials[0];
    assert_eq!(entries(partial.root()), "a=1");
    assert_eq!(written(partial.root()), "a: 1\nb");
    assert!(partial.duplicate_keys().is_empty());
}

#[test]
fn unclosed_quotes_are_at_the_opening_quote() {
    for (source, quote) in [
        ("a: 1\nb: 'x\nc: y\n", '\''),
        ("a: 1\nb: \"x\n---\nc: y\n", '"'),
    ] {
        let error = error(source);
        assert_eq!(error.kind, ErrorKind::UnclosedQuote, "{source:?}");
        assert_eq!((error.line, error.column, error.offset), (2, 4, 8));
        assert!(error.message.contains(quote), "{}", error.message);
    }
}

#[test]
fn tabs_as_indentation() {
    for (source, place) in [
        ("a:\n\tb: 1\n", (2, 1)),
        ("a:\n  b: 1\n\tc: 2\n", (3, 1)),
        ("a:\n  b: 1\n \tc: 2\n", (3, 2)),
        ("- a\n-\n\t- b\n", (3, 1)),
        ("a:\n  b: 1\n\n\tc: 2\n", (4, 1)),
        ("a: 1\n\tb: 2\n", (2, 1)),
    ] {
        let error = error(source);
        assert_eq!(error.kind, ErrorKind::Tab, "{source:?} {error:?}");
        assert_eq!((error.line, error.column), place, "{source:?}");
    }
    // Harmless ones.
    let document = one("{\n\t\"a\":\t[\n\t\t1,\n\t\t2\n\t]\n}\n");
    assert_eq!(document.root().get("a").unwrap().items().count(), 2);
    assert_eq!(
        one("a:\tb\t# c\n").root().get("a").unwrap().text(),
        Some("b")
    );
    let error = error("{\n\t\"a\": 1\n\t\"b\": 2\n}\n");
    assert_eq!(error.kind, ErrorKind::Syntax);
    assert_eq!((error.line, error.column), (3, 5));
}

#[test]
fn messages_are_fragments() {
    for source in [
        "a: b\n c: d\n",
        "a: 1\nbad\nb: 2\n",
        "@x\n",
        "a: 'x'y\n",
        "{a: 1 b: 2}\n",
        "[a b: c: d]\n",
        "a: b\0c\n",
        "a: \"\\q\"\n",
        "a: 1\n- b\n",
        "%YAML 3.0\n---\na\n",
        "a: !x!y z\n",
        "- a\nb: c\n",
        "a: |x\n  b\n",
        "]\n",
        "[\u{1}}\n",
    ] {
        let error = error(source);
        assert_eq!(error.kind, ErrorKind::Syntax, "{source:?} {error:?}");
        let first = error.message.chars().next().unwrap();
        assert!(!first.is_uppercase(), "{source:?}: {}", error.message);
        assert!(
            !error.message.ends_with('.'),
            "{source:?}: {}",
            error.message
        );
    }
    let error = error("a: \u{e4}b\0c\n");
    assert_eq!((error.line, error.column, error.offset), (1, 6, 6));
    assert_eq!(
        error.message,
        "found the character U+0000, expected a key or a value"
    );
    assert_eq!(error.to_string(), format!("1:6: {}", error.message));
}

#[test]
fn byte_order_mark_and_crlf() {
    let document = one("\u{feff}a: b\r\nc: |\r\n  x\r\n  y\r\nd: e\r\n");
    let root = document.root();
    assert_eq!(root.get("a").unwrap().span(), 6..7);
    assert_eq!(root.get("c").unwrap().text(), Some("x\ny\n"));
    assert_eq!(written(root.get("c").unwrap()), "x\r\n  y");
    assert_eq!(root.get("d").unwrap().text(), Some("e"));
}

#[test]
fn block_scalar_headers() {
    let source = "strip: |-\n  x\n\nkeep: |+\n  x\n\nindent: |2\n    x\n  y\nboth: >1-\n  x\n y\nempty: |\nend: |\n  x";
    let document = one(source);
    let get = |key: &str| document.root().get(key).unwrap();
    for (key, value, span) in [
        ("strip", "x", "x"),
        ("keep", "x\n\n", "x"),
        ("indent", "  x\ny\n", "  x\n  y"),
        ("both", " x\ny", " x\n y"),
        ("empty", "", ""),
        ("end", "x", "x"),
    ] {
        assert_eq!(get(key).text(), Some(value), "{key}");
        assert_eq!(written(get(key)), span, "{key}");
        let whole = get(key).locate(0..value.trim_end().len());
        assert_eq!(text(&document, whole), span, "{key}");
    }
}

#[test]
fn multi_line_scalars() {
    let document = one("a: x\n  y\n\n  z\nb: 'p\n  q'\nc: \"r\\\n  s\"\n");
    let get = |key: &str| document.root().get(key).unwrap();
    assert_eq!(get("a").text(), Some("x y\nz"));
    assert_eq!(get("b").text(), Some("p q"));
    assert_eq!(get("c").text(), Some("rs"));
    assert_eq!(written(get("a")), "x\n  y\n\n  z");
}

#[test]
fn comments_with_places() {
    let source = "\u{feff}# head\n---\na: 'x # no' # yes\nb: x#no\n# own\nc: | # header\n  # no\n  y\n # after\nd: !t#x v#w #z\r\n\ne: [1, # one\n  2]\n# tail";
    let document = one(source);
    let comments: Vec<_> = document
        .comments()
        .map(|comment| (comment.text, comment.own_line))
        .collect();
    assert_eq!(
        comments,
        [
            (" head", true),
            (" yes", false),
            (" own", true),
            (" header", false),
            (" after", true),
            ("z", false),
            (" one", false),
            (" tail", true),
        ]
    );
    for comment in document.comments() {
        assert_eq!(text(&document, comment.span), format!("#{}", comment.text));
    }
}

#[test]
fn many_comment_lines_in_a_row() {
    let mut source = String::from("a:\n");
    for n in 0..500 {
        writeln!(source, "# line {n}").unwrap();
    }
    source.push_str("  b: c\n");
    assert_eq!(one(&source).comments().count(), 500);
}

#[test]
fn comments_belong_to_one_document_each() {
    let source = "# a\na: 1 # b\n---\n# c\nb: 2\n---\n# d\n---\nc: 'x\n# e\n---\n# f\nd: 1\n# g\n";
    let mut found = Vec::new();
    parse_each(source, &Limits::default(), &mut |parsed| {
        let (Parsed::Document(document)
        | Parsed::Broken {
            partial: Some(document),
            ..
        }) = parsed
        else {
            panic!("{parsed:?}");
        };
        found.push(
            document
                .comments()
                .map(|c| c.text.to_owned())
                .collect::<String>(),
        );
    });
    assert_eq!(found, [" a b", " c d", "", " e f g"]);
}

#[test]
fn limits_on_depth() {
    let deep = |open: &str, close: &str, n: usize| open.repeat(n) + &close.repeat(n);
    assert_eq!(error(&deep("[", "", 20_000)).kind, ErrorKind::TooDeep);
    assert_eq!(error(&deep("[", "]", 1001)).kind, ErrorKind::TooDeep);
    assert_eq!(error(&deep("- ", "", 20_000)).kind, ErrorKind::TooDeep);
    assert_eq!(error(&deep("{a: ", "}", 20_000)).kind, ErrorKind::TooDeep);
    assert_eq!(one(&deep("[", "]", 1000)).node_count(), 2000);
    one(&(deep("- ", "", 200) + "x"));
    let mut nested = String::new();
    for n in 0..200 {
        nested.push_str(&" ".repeat(n));
        nested.push_str("k:\n");
    }
    let document = one(&nested);
    assert!(document.root().get_path(&["k"; 200]).is_some());
    let limits = Limits {
        max_depth: 2,
        ..Limits::default()
    };
    let stream = parse("[[[]]]\n---\n[[]]\n", &limits);
    assert_eq!(stream.errors[0].kind, ErrorKind::TooDeep);
    assert_eq!(stream.errors[0].column, 3);
    assert_eq!(stream.documents.len(), 1);
}

#[test]
fn limits_on_nodes_and_documents() {
    let limits = Limits {
        max_nodes: 4,
        max_documents: 2,
        ..Limits::default()
    };
    let stream = parse("[a, b, c]\n---\n[a, b]\n---\nx\n", &limits);
    let kinds: Vec<_> = stream.errors.iter().map(|error| error.kind).collect();
    assert_eq!(
        kinds,
        [ErrorKind::TooManyNodes, ErrorKind::TooManyDocuments]
    );
    assert_eq!(stream.errors[1].line, 4);
    assert_eq!(stream.documents.len(), 1);
    assert_eq!(stream.partials[0].root().items().count(), 2);
}

#[test]
fn binary_text_is_a_clean_error() {
    let source = String::from_utf8_lossy(&[0x7f, b'E', b'L', b'F', 0, 1, 2, 0xff, 0]).into_owned();
    let stream = parse(&source, &Limits::default());
    assert!(!stream.errors.is_empty());
    for byte in 0..=127_u8 {
        let source = format!("a: {}\n{0}: b\n--- {0}{0}\n", char::from(byte));
        parse(&source, &Limits::default());
    }
}

/// Every prefix of a text with everything in it, so that every state of the reader is cut off.
#[test]
fn prefixes_never_panic() {
    let source = "%YAML 1.2\n---\n&a a: !!map {b: [*a, \"x\\u00e4\", 'y'], ? c : d}\nlit: |2-\n   x\n  y\nf: >+\n  p\n\n  q\n\nm: {<<: *a}\n- bad\n---\n? [k]\n: \"v\n  w\"\n...\n# end\n--- |\n z\n";
    for end in 0..=source.len() {
        let prefix = source.get(..end).unwrap();
        for cut in [
            prefix.to_owned(),
            prefix.replace('\n', "\r\n"),
            prefix.replace(' ', "\t"),
        ] {
            let mut nodes = 0;
            parse_each(&cut, &Limits::default(), &mut |parsed| {
                let (Parsed::Document(document)
                | Parsed::Broken {
                    partial: Some(document),
                    ..
                }) = parsed
                else {
                    return;
                };
                walk(document.root(), 10_000, &mut |visit| {
                    let node = visit.node;
                    nodes += 1;
                    let span = node.span();
                    assert!(cut.get(span.start as usize..span.end as usize).is_some());
                    let located = node.locate(0..node.raw().len());
                    assert!(
                        cut.get(located.start as usize..located.end as usize)
                            .is_some()
                    );
                    node.entries().for_each(drop);
                    let _ = (node.anchor(), node.tag(), node.as_i64(), node.get("b"));
                    Step::Enter
                });
                document.comments().for_each(drop);
                let _ = document.duplicate_keys();
            });
        }
    }
}
