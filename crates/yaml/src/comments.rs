//! Comments, found in the text between the nodes.
//!
//! Between two scalars there are only white space, indicators, anchors, tags and comments; a `#`
//! at the start of a line or after white space can only start a comment there.

use std::ops::Range;

use crate::tree::{Document, Shape};

/// One comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment<'d> {
    /// Its bytes from `#` to the end of the line.
    pub span: Range<u32>,
    /// The text after `#`.
    pub text: &'d str,
    /// Whether nothing else stands on its line; otherwise it trails something.
    pub own_line: bool,
}

/// The comments of a document in order.
pub struct Comments<'d> {
    document: &'d Document<'d>,
    position: usize,
}

impl<'d> Comments<'d> {
    pub(crate) fn new(document: &'d Document<'d>) -> Self {
        Self {
            document,
            position: document.range.start as usize,
        }
    }

    /// The end of the scalar that holds a byte, if one does.
    fn scalar_end(&self, offset: usize) -> Option<usize> {
        let slots = &self.document.slots;
        let after = slots.partition_point(|slot| slot.start as usize <= offset);
        let slot = slots.get(after.checked_sub(1)?)?;
        let inside = slot.meta.shape() == Shape::Scalar && offset < slot.data as usize;
        inside.then_some(slot.data as usize)
    }
}

impl<'d> Iterator for Comments<'d> {
    type Item = Comment<'d>;

    fn next(&mut self) -> Option<Self::Item> {
        let source = self.document.source;
        let end = self.document.range.end as usize;
        loop {
            let rest = source.get(self.position..end)?;
            let at = self.position + rest.find('#')?;
            if let Some(past) = self.scalar_end(at) {
                self.position = past;
                continue;
            }
            let before = source.get(..at)?;
            if !(before.is_empty() || before.ends_with([' ', '\t', '\n', '\r', '\u{feff}'])) {
                self.position = at + 1;
                continue;
            }
            let line = before.rsplit('\n').next().unwrap_or("");
            let text = source.get(at + 1..)?.split('\n').next().unwrap_or("");
            self.position = at + 1 + text.len();
            let text = text.strip_suffix('\r').unwrap_or(text);
            let start = u32::try_from(at).ok()?;
            let stop = u32::try_from(at + 1 + text.len()).ok()?;
            return Some(Comment {
                span: start..stop,
                text,
                own_line: line.trim_matches([' ', '\t', '\u{feff}']).is_empty(),
            });
        }
    }
}
