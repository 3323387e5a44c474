//! Where the decoded text of a scalar stands in the source, for many look-ups in one scalar.

use std::cell::OnceCell;
use std::ops::Range;

use yaml::{Node, Style};

/// Start of a line: in the decoded text and in the source.
type Line = (usize, u32);

/// The lines of a literal block; other scalars are asked each time.
pub(crate) struct ScalarMap<'d> {
    node: Node<'d>,
    lines: OnceCell<Option<Vec<Line>>>,
}

impl<'d> ScalarMap<'d> {
    pub(crate) fn new(node: Node<'d>) -> Self {
        Self {
            node,
            lines: OnceCell::new(),
        }
    }

    /// The scalar.
    pub(crate) fn node(&self) -> Node<'d> {
        self.node
    }

    /// The source range of a range of the decoded text.
    pub(crate) fn locate(&self, part: Range<usize>) -> Range<u32> {
        let Some(lines) = self.lines.get_or_init(|| lines(self.node)) else {
            return self.node.locate(part);
        };
        let start = offset(lines, part.start);
        // A range that goes on behind a line break ends where that line does.
        let end = offset(lines, part.end).max(start);
        start..end
    }
}

fn offset(lines: &[Line], at: usize) -> u32 {
    let after = lines.partition_point(|(decoded, _)| *decoded <= at);
    lines
        .get(after.saturating_sub(1))
        .map_or(0, |(decoded, source)| {
            source.saturating_add(u32::try_from(at - decoded).unwrap_or(0))
        })
}

/// Pairs the lines of a literal block with those of its source. `None` where they do not pair.
fn lines(node: Node<'_>) -> Option<Vec<Line>> {
    if node.style() != Style::Literal {
        return None;
    }
    let text = node.text()?;
    let source = node.document().source();
    let mut at = node.span().start as usize;
    let mut decoded = 0;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let rest = source.get(at..)?;
        let end = at + rest.find('\n').unwrap_or(rest.len());
        let raw = source.get(at..end)?;
        let raw = raw.strip_suffix('\r').unwrap_or(raw);
        // The indentation is in front; what is left has to be the line.
        let body = if raw.ends_with(line) {
            line.len()
        } else if line.is_empty() {
            0
        } else {
            return None;
        };
        lines.push((decoded, u32::try_from(at + raw.len() - body).ok()?));
        decoded += line.len() + 1;
        if end >= source.len() {
            break;
        }
        at = end + 1;
    }
    (decoded > text.len()).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word of a scalar, by the map and by the node itself.
    fn agree(source: &str) -> usize {
        let stream = yaml::parse(source, &yaml::Limits::default());
        let node = stream.documents[0].root().get("a").unwrap();
        let map = ScalarMap::new(node);
        let text = node.text().unwrap();
        let mut compared = 0;
        let mut from = 0;
        for word in text.split(char::is_whitespace) {
            if !word.is_empty() {
                let range = from..from + word.len();
                let located = map.locate(range.clone());
                assert_eq!(located, node.locate(range), "{word} of {source:?}");
                compared += 1;
            }
            from += word.len() + 1;
        }
        compared
    }

    #[test]
    fn the_map_agrees_with_the_node() {
        assert_eq!(agree("a: |\n  one two\n\n    three\n  four\nb: 1\n"), 4);
        assert_eq!(agree("a: |-\r\n  one\r\n   two \r\n"), 2);
        assert_eq!(agree("a: |2\n    one\n  two"), 2);
        assert_eq!(agree("a: >\n  one\n  two\n"), 2);
        assert_eq!(agree("a: \"one two\"\n"), 2);
        assert_eq!(agree("b:\n  - x\na: |\n  \u{00e4}\u{00f6} one\n"), 2);
    }
}
