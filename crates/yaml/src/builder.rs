//! Grows the tree of one document, node by node.

use granit_parser::{ScalarStyle, Span, StructureStyle, Tag};

use crate::error::ErrorKind;
use crate::node::Style;
use crate::reader::Limits;
use crate::schema;
use crate::tree::{
    AliasProblem, Decoded, Document, Meta, NONE, Property, Rare, Shape, Slot, inner,
};

/// Why a document is not read on.
pub(crate) struct Refusal {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

/// A container whose end has not come yet.
struct Open {
    slot: u32,
    flow: bool,
}

pub(crate) struct Builder<'s> {
    document: Document<'s>,
    open: Vec<Open>,
    /// End of the text of the last node.
    last_end: u32,
    last_node: u32,
    /// Number of the first anchor; the parser counts on from document to document.
    first_anchor: usize,
    max_depth: usize,
    max_nodes: usize,
}

impl<'s> Builder<'s> {
    pub(crate) fn new(document: Document<'s>, limits: &Limits) -> Self {
        Self {
            last_end: document.range.start,
            document,
            open: Vec::new(),
            last_node: 0,
            first_anchor: 0,
            max_depth: limits.max_depth as usize,
            max_nodes: limits.max_nodes as usize,
        }
    }

    /// Where the document starts.
    pub(crate) fn start(&self) -> u32 {
        self.document.range.start
    }

    /// Whether the innermost open container is in brackets.
    pub(crate) fn in_flow(&self) -> bool {
        self.open.last().is_some_and(|open| open.flow)
    }

    /// Closes what is still open and gives the document, unless nothing is written in it.
    pub(crate) fn finish(mut self) -> Option<Document<'s>> {
        while let Some(open) = self.open.pop() {
            self.close(open.slot);
        }
        let mut document = self.document;
        let root = document.slots.first()?;
        let nothing = document.slots.len() == 1
            && document.rare.is_none()
            && root.meta.has(Meta::NULL)
            && root.start == root.data;
        if nothing {
            return None;
        }
        // A kept document should not hold twice what it needs.
        document.slots.shrink_to_fit();
        document.decoded.shrink_to_fit();
        document.text.shrink_to_fit();
        Some(document)
    }

    pub(crate) fn scalar(
        &mut self,
        value: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<(), Refusal> {
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted => Style::SingleQuoted,
            ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
            ScalarStyle::Literal => Style::Literal,
            ScalarStyle::Folded => Style::Folded,
        };
        let start = byte(span.start.byte_offset());
        let end = byte(span.end.byte_offset()).max(start);
        // The parser gives "~" where nothing is written.
        let value = if style == Style::Plain && start == end {
            ""
        } else {
            value
        };
        let mut flags = 0;
        if let Some(tag) = tag {
            // `!` alone means that the looks do not count: a string.
            if tag.is_yaml_core_schema_tag("str") || tag.original() == "!" {
                flags |= Meta::STRING;
            }
        }
        if style == Style::Plain && flags == 0 && schema::is_null(value) {
            flags |= Meta::NULL;
        }
        let mut slot = Slot {
            start,
            data: end,
            meta: Meta::new(Shape::Scalar, style, flags),
        };
        let differs = self.document.slice(inner(slot)) != value;
        if differs {
            slot.meta.set(Meta::DECODED);
        }
        let id = self.push(slot)?;
        self.last_end = end;
        if differs {
            let Ok(start) = u32::try_from(self.document.text.len()) else {
                return Err(Refusal {
                    kind: ErrorKind::TooLarge,
                    message: "found more than 4 GiB of decoded text, expected less".to_owned(),
                });
            };
            self.document.decoded.push(Decoded { node: id, start });
            self.document.text.push_str(value);
        }
        if tag.is_some() {
            self.tag(id, span);
        }
        Ok(())
    }

    pub(crate) fn open(
        &mut self,
        shape: Shape,
        style: StructureStyle,
        tagged: bool,
        span: &Span,
    ) -> Result<(), Refusal> {
        if self.open.len() >= self.max_depth {
            return Err(Refusal {
                kind: ErrorKind::TooDeep,
                message: format!(
                    "found more than {} levels of nesting, expected no more",
                    self.max_depth
                ),
            });
        }
        let flow = style == StructureStyle::Flow;
        let style = if flow { Style::Flow } else { Style::Block };
        let slot = Slot {
            start: byte(span.start.byte_offset()),
            data: 0,
            meta: Meta::new(shape, style, 0),
        };
        let id = self.push(slot)?;
        self.document.slots.push(Slot {
            start: slot.start,
            data: slot.start,
            // Never looked at: a walk goes over it together with the first one.
            meta: Meta::new(Shape::Scalar, Style::Plain, Meta::NULL),
        });
        self.last_end = byte(span.end.byte_offset());
        self.open.push(Open { slot: id, flow });
        if tagged {
            self.tag(id, span);
        }
        Ok(())
    }

    pub(crate) fn close_last(&mut self, span: &Span) {
        let Some(open) = self.open.pop() else {
            return;
        };
        let start = byte(span.start.byte_offset());
        let end = byte(span.end.byte_offset());
        // A pair in a sequence, as in `[a: b]`, has no bracket of its own.
        if open.flow && matches!(self.document.slice(start..end), "]" | "}") {
            self.last_end = end;
        }
        self.close(open.slot);
    }

    fn close(&mut self, id: u32) {
        let after = u32::try_from(self.document.slots.len()).unwrap_or(NONE);
        if let Some(slot) = self.document.slots.get_mut(id as usize) {
            slot.data = after;
        }
        if let Some(second) = self.document.slots.get_mut(id as usize + 1) {
            second.data = self.last_end.max(second.start);
        }
    }

    /// An alias of an anchor that the parser knows, or of none.
    pub(crate) fn alias(&mut self, anchor: Option<usize>, span: &Span) -> Result<(), Refusal> {
        let start = byte(span.start.byte_offset());
        let end = byte(span.end.byte_offset()).max(start);
        let target = anchor.and_then(|number| {
            let at = number.checked_sub(self.first_anchor)?;
            Some(self.document.rare.as_ref()?.anchors.get(at)?.node)
        });
        // Inside its own target an alias would make a cycle.
        let recursive = target.is_some_and(|id| self.open.iter().any(|open| open.slot == id));
        if target.is_none() || recursive {
            let rare = rare(&mut self.document);
            let list = if recursive {
                &mut rare.recursive
            } else {
                &mut rare.unresolved
            };
            list.push(AliasProblem { span: start..end });
        }
        self.push(Slot {
            start,
            data: target.filter(|_| !recursive).unwrap_or(NONE),
            meta: Meta::alias(end - start),
        })?;
        self.last_end = end;
        Ok(())
    }

    /// The anchor of the node that came last.
    pub(crate) fn anchor(&mut self, number: usize, span: &Span) {
        let node = self.last_node;
        if let Some(slot) = self.document.slots.get_mut(node as usize) {
            slot.meta.set(Meta::ANCHORED);
        }
        let anchors = &mut rare(&mut self.document).anchors;
        if anchors.is_empty() {
            self.first_anchor = number;
        }
        anchors.push(Property {
            node,
            start: byte(span.start.byte_offset()),
            end: byte(span.end.byte_offset()),
        });
    }

    fn tag(&mut self, node: u32, span: &Span) {
        let Some(tag) = span.tag_span() else {
            return;
        };
        if let Some(slot) = self.document.slots.get_mut(node as usize) {
            slot.meta.set(Meta::TAGGED);
        }
        rare(&mut self.document).tags.push(Property {
            node,
            start: byte(tag.start.byte_offset()),
            end: byte(tag.end.byte_offset()),
        });
    }

    fn push(&mut self, slot: Slot) -> Result<u32, Refusal> {
        let count = self.document.slots.len();
        let id = u32::try_from(count).unwrap_or(NONE);
        if count >= self.max_nodes || id == NONE {
            return Err(Refusal {
                kind: ErrorKind::TooManyNodes,
                message: format!(
                    "found more than {} values, expected no more",
                    self.max_nodes
                ),
            });
        }
        self.document.slots.push(slot);
        self.last_node = id;
        Ok(id)
    }
}

fn rare<'a>(document: &'a mut Document<'_>) -> &'a mut Rare {
    document.rare.get_or_insert_with(Box::default)
}

/// A text input always has byte offsets, and the text was checked to be small enough.
pub(crate) fn byte(offset: Option<usize>) -> u32 {
    offset.and_then(|at| u32::try_from(at).ok()).unwrap_or(NONE)
}
