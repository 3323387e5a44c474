//! Byte offsets to lines and columns.

use std::ops::Range;

/// Distance between two remembered positions. A lookup reads at most two such blocks.
const BLOCK: usize = 4096;

/// What is known at the start of a block.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Line breaks before the block.
    lines: u32,
    /// Characters between the last of them and the block.
    column: u32,
}

/// Turns offsets into lines and columns, both from 1; columns count characters.
///
/// Lines end with `\n`; a `\r` before it belongs to neither line's text. The index takes 8 bytes
/// for 4 KiB of text, and no lookup depends on the length of a line.
#[derive(Clone, Debug)]
pub struct LineIndex<'s> {
    source: &'s str,
    marks: Vec<Mark>,
}

impl<'s> LineIndex<'s> {
    /// Goes once through the text.
    pub fn new(source: &'s str) -> Self {
        let mut marks = Vec::with_capacity(source.len() / BLOCK + 1);
        let mut mark = Mark {
            lines: 0,
            column: 0,
        };
        for block in source.as_bytes().chunks(BLOCK) {
            marks.push(mark);
            advance(&mut mark, block);
        }
        Self { source, marks }
    }

    /// Line and column of a byte offset; the end of the text for an offset beyond it.
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let bytes = self.source.as_bytes();
        let offset = (offset as usize).min(bytes.len());
        let at = (offset / BLOCK).min(self.marks.len().saturating_sub(1));
        let Some(mark) = self.marks.get(at) else {
            return (1, 1);
        };
        let mut mark = *mark;
        advance(&mut mark, bytes.get(at * BLOCK..offset).unwrap_or_default());
        (mark.lines.saturating_add(1), mark.column.saturating_add(1))
    }

    /// Number of lines; a text that ends with a line break has an empty last line.
    pub fn line_count(&self) -> u32 {
        self.line_column(u32::MAX).0
    }

    /// The bytes of a line without its line break; empty at the end for a line beyond the last.
    pub fn line_range(&self, line: u32) -> Range<u32> {
        let bytes = self.source.as_bytes();
        let line = line.max(1);
        let start = self.line_start(line);
        let next = self.line_start(line.saturating_add(1));
        let mut text = bytes.get(start..next).unwrap_or_default();
        text = text.strip_suffix(b"\n").unwrap_or(text);
        text = text.strip_suffix(b"\r").unwrap_or(text);
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        narrow(start)..narrow(start + text.len())
    }

    fn line_start(&self, line: u32) -> usize {
        let bytes = self.source.as_bytes();
        let breaks = line.saturating_sub(1);
        if breaks == 0 {
            return 0;
        }
        // The break is in the last block that has fewer breaks before it.
        let after = self.marks.partition_point(|mark| mark.lines < breaks);
        let at = after.saturating_sub(1);
        let seen = self.marks.get(at).map_or(0, |mark| mark.lines);
        let block = bytes.get(at * BLOCK..).unwrap_or_default();
        let wanted = breaks.saturating_sub(seen).saturating_sub(1) as usize;
        block
            .iter()
            .enumerate()
            .take(BLOCK)
            .filter(|(_, byte)| **byte == b'\n')
            .nth(wanted)
            .map_or(bytes.len(), |(position, _)| at * BLOCK + position + 1)
    }
}

fn advance(mark: &mut Mark, bytes: &[u8]) {
    let breaks = count_breaks(bytes);
    let tail = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => {
            mark.column = 0;
            bytes.get(last + 1..).unwrap_or_default()
        }
        None => bytes,
    };
    mark.lines = mark.lines.saturating_add(breaks);
    mark.column = mark.column.saturating_add(count_characters(tail));
}

/// Number of `\n`.
#[expect(
    clippy::naive_bytecount,
    reason = "the compiler makes vector code of it"
)]
pub(crate) fn count_breaks(bytes: &[u8]) -> u32 {
    let count = bytes.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Number of characters: of bytes that do not continue one.
pub(crate) fn count_characters(bytes: &[u8]) -> u32 {
    let count = bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns() {
        let source = "a\r\nb\u{e4}c\n\nlast";
        let index = LineIndex::new(source);
        assert_eq!(index.line_column(0), (1, 1));
        assert_eq!(index.line_column(3), (2, 1));
        assert_eq!(index.line_column(6), (2, 3), "columns count characters");
        assert_eq!(index.line_column(8), (3, 1));
        assert_eq!(index.line_column(9), (4, 1));
        assert_eq!(index.line_column(999), (4, 5));
        assert_eq!(index.line_count(), 4);
        assert_eq!(index.line_range(1), 0..1);
        assert_eq!(index.line_range(2), 3..7);
        assert_eq!(index.line_range(3), 8..8);
        assert_eq!(index.line_range(4), 9..13);
        assert_eq!(index.line_range(5), 13..13);
        assert_eq!(index.line_range(0), 0..1);
    }

    #[test]
    fn empty_text() {
        let index = LineIndex::new("");
        assert_eq!(index.line_column(0), (1, 1));
        assert_eq!(index.line_range(1), 0..0);
        assert_eq!(index.line_count(), 1);
    }

    #[test]
    fn agrees_with_a_plain_count_over_many_blocks() {
        let mut source = String::new();
        for n in 0..3000 {
            source.push_str(&"\u{20ac}x".repeat(n % 7));
            source.push('\n');
        }
        source.push_str(&"y".repeat(3 * BLOCK));
        source.push_str("\nend");
        let index = LineIndex::new(&source);
        let (mut line, mut column) = (1, 1);
        for (offset, c) in source.char_indices() {
            assert_eq!(
                index.line_column(u32::try_from(offset).unwrap()),
                (line, column)
            );
            if c == '\n' {
                line += 1;
                column = 1;
            } else {
                column += 1;
            }
        }
        for (n, text) in source.split('\n').enumerate() {
            let range = index.line_range(u32::try_from(n + 1).unwrap());
            let range = range.start as usize..range.end as usize;
            assert_eq!(source.get(range), Some(text));
        }
    }
}
