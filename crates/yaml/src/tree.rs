//! The arena that holds one document.

use std::ops::Range;
use std::sync::OnceLock;

use crate::comments::Comments;
use crate::duplicates::{self, DuplicateKey};
use crate::node::{Node, Style};

/// Stands for "no node".
pub(crate) const NONE: u32 = u32::MAX;

/// One place in the arena: 12 bytes.
///
/// Slots are in document order (pre-order), so a container's first child follows it directly and
/// no child or sibling links are needed. A scalar takes one slot, a container two:
///
/// | slot      | `start`          | `data`                        |
/// |-----------|------------------|-------------------------------|
/// | scalar    | first byte       | end of its text               |
/// | alias     | first byte       | slot of its target, or `NONE` |
/// | container | first byte       | slot after its last descendant|
/// | its 2nd   | first byte again | end of its text               |
///
/// `start` never decreases along the arena, so a byte offset is found by binary search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) start: u32,
    pub(crate) data: u32,
    pub(crate) meta: Meta,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Scalar,
    Mapping,
    Sequence,
    Alias,
}

/// Shape, style and flags of a slot, and the length of an alias, in 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta(u32);

impl Meta {
    /// A plain scalar that the core schema reads as null.
    pub(crate) const NULL: u32 = 1 << 5;
    /// A scalar whose value differs from its source text and lies in the side table.
    pub(crate) const DECODED: u32 = 1 << 6;
    /// A node with a tag.
    pub(crate) const TAGGED: u32 = 1 << 7;
    /// A node with an anchor.
    pub(crate) const ANCHORED: u32 = 1 << 8;
    /// A scalar whose tag (`!!str` or `!`) makes it a string whatever it looks like.
    pub(crate) const STRING: u32 = 1 << 9;
    /// The alias length starts at this bit.
    const LENGTH_SHIFT: u32 = 10;
    /// Aliases longer than this are cut; nobody writes one of four million bytes.
    const LENGTH_MAX: u32 = (1 << (32 - Self::LENGTH_SHIFT)) - 1;

    pub(crate) fn new(shape: Shape, style: Style, flags: u32) -> Self {
        let shape = match shape {
            Shape::Scalar => 0,
            Shape::Mapping => 1,
            Shape::Sequence => 2,
            Shape::Alias => 3,
        };
        let style = match style {
            Style::Plain => 0,
            Style::SingleQuoted => 1,
            Style::DoubleQuoted => 2,
            Style::Literal => 3,
            Style::Folded => 4,
            Style::Block => 5,
            Style::Flow => 6,
        };
        Self(shape | (style << 2) | flags)
    }

    pub(crate) fn alias(length: u32) -> Self {
        let Self(base) = Self::new(Shape::Alias, Style::Plain, 0);
        Self(base | (length.min(Self::LENGTH_MAX) << Self::LENGTH_SHIFT))
    }

    pub(crate) fn shape(self) -> Shape {
        match self.0 & 3 {
            0 => Shape::Scalar,
            1 => Shape::Mapping,
            2 => Shape::Sequence,
            _ => Shape::Alias,
        }
    }

    pub(crate) fn style(self) -> Style {
        match (self.0 >> 2) & 7 {
            0 => Style::Plain,
            1 => Style::SingleQuoted,
            2 => Style::DoubleQuoted,
            3 => Style::Literal,
            4 => Style::Folded,
            5 => Style::Block,
            _ => Style::Flow,
        }
    }

    pub(crate) fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u32) {
        self.0 |= flag;
    }

    pub(crate) fn alias_length(self) -> u32 {
        self.0 >> Self::LENGTH_SHIFT
    }
}

impl Slot {
    /// What a lookup outside the arena answers: an empty null.
    pub(crate) const VOID: Self = Self {
        start: 0,
        data: 0,
        meta: Meta(Meta::NULL),
    };
}

/// A span that belongs to a node and lies elsewhere: its anchor name or its tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Property {
    pub(crate) node: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Where a decoded value starts in [`Document::text`]; it ends where the next one starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded {
    pub(crate) node: u32,
    pub(crate) start: u32,
}

/// Tables that most documents do not need.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    pub(crate) anchors: Vec<Property>,
    pub(crate) tags: Vec<Property>,
    pub(crate) unresolved: Vec<AliasProblem>,
    pub(crate) recursive: Vec<AliasProblem>,
}

/// An alias that leads nowhere; its node reads as null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasProblem {
    /// Where `*name` is written.
    pub span: Range<u32>,
}

/// One YAML document.
#[derive(Debug)]
pub struct Document<'s> {
    /// Position among the documents of the stream that are not empty, from 0.
    pub index: usize,
    /// Line on which the document starts (that of `---` where there is one), from 1.
    pub start_line: u32,
    pub(crate) range: Range<u32>,
    pub(crate) source: &'s str,
    pub(crate) slots: Vec<Slot>,
    pub(crate) decoded: Vec<Decoded>,
    pub(crate) text: String,
    pub(crate) rare: Option<Box<Rare>>,
    pub(crate) duplicates: OnceLock<Vec<DuplicateKey>>,
}

impl<'s> Document<'s> {
    pub(crate) fn new(source: &'s str, index: usize, start: u32, start_line: u32) -> Self {
        Self {
            index,
            start_line,
            range: start..start,
            source,
            slots: Vec::new(),
            decoded: Vec::new(),
            text: String::new(),
            rare: None,
            duplicates: OnceLock::new(),
        }
    }

    /// The top node.
    pub fn root(&self) -> Node<'_> {
        Node::new(self, 0)
    }

    /// The text of the whole stream, to which all spans refer.
    pub fn source(&self) -> &'s str {
        self.source
    }

    /// The bytes that belong to the document, with the comments and markers around it.
    pub fn range(&self) -> Range<u32> {
        self.range.clone()
    }

    /// Number of arena slots, as a measure of the document's size.
    pub fn node_count(&self) -> usize {
        self.slots.len()
    }

    /// Keys that are written more than once in one mapping; found at the first call.
    pub fn duplicate_keys(&self) -> &[DuplicateKey] {
        self.duplicates.get_or_init(|| duplicates::find(self))
    }

    /// Aliases of anchors that do not exist before them.
    pub fn unresolved_aliases(&self) -> &[AliasProblem] {
        self.rare.as_ref().map_or(&[], |rare| &rare.unresolved)
    }

    /// Aliases inside the very node that they refer to.
    pub fn recursive_aliases(&self) -> &[AliasProblem] {
        self.rare.as_ref().map_or(&[], |rare| &rare.recursive)
    }

    /// The comments in the document's range, in order.
    pub fn comments(&self) -> Comments<'_> {
        Comments::new(self)
    }

    /// The innermost written scalar, alias or container around a byte offset.
    pub fn node_at(&self, offset: u32) -> Option<Node<'_>> {
        let mut found = None;
        let mut next = Some(Node::new(self, 0));
        while let Some(node) = next {
            let span = node.alias_span().unwrap_or_else(|| node.span());
            if !span.contains(&offset) {
                break;
            }
            found = Some(node);
            if node.alias_span().is_some() {
                break;
            }
            next = node.children().find(|child| {
                child
                    .alias_span()
                    .unwrap_or_else(|| child.span())
                    .contains(&offset)
            });
        }
        found
    }

    pub(crate) fn slot(&self, id: u32) -> Slot {
        self.slots.get(id as usize).copied().unwrap_or(Slot::VOID)
    }

    /// The slot after a node and all that is in it.
    pub(crate) fn after(&self, id: u32) -> u32 {
        let slot = self.slot(id);
        match slot.meta.shape() {
            Shape::Scalar | Shape::Alias => id.saturating_add(1),
            // A container that is still open has no end yet; never go backwards.
            Shape::Mapping | Shape::Sequence => slot.data.max(id.saturating_add(2)),
        }
    }

    pub(crate) fn slice(&self, range: Range<u32>) -> &str {
        self.source
            .get(range.start as usize..range.end as usize)
            .unwrap_or("")
    }

    /// The value of a scalar slot.
    pub(crate) fn scalar(&self, id: u32) -> &str {
        let slot = self.slot(id);
        if slot.meta.has(Meta::DECODED) {
            let Ok(at) = self.decoded.binary_search_by_key(&id, |entry| entry.node) else {
                return "";
            };
            let start = self.decoded.get(at).map_or(0, |entry| entry.start as usize);
            let end = self
                .decoded
                .get(at + 1)
                .map_or(self.text.len(), |entry| entry.start as usize);
            return self.text.get(start..end).unwrap_or("");
        }
        self.slice(inner(slot))
    }
}

/// The source range of a scalar without its quotes.
pub(crate) fn inner(slot: Slot) -> Range<u32> {
    match slot.meta.style() {
        Style::SingleQuoted | Style::DoubleQuoted => {
            let start = slot.start.saturating_add(1);
            start..slot.data.saturating_sub(1).max(start)
        }
        _ => slot.start..slot.data,
    }
}
