//! A handle to one node, with aliases already followed.

use std::borrow::Cow;
use std::ops::Range;

use crate::locate;
use crate::mapping::{self, Entries};
use crate::schema;
use crate::tree::{Document, Meta, NONE, Property, Rare, Shape};

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A missing value, `~` or `null`, or an alias that leads nowhere.
    Null,
    /// A text, number or boolean.
    Scalar,
    /// Keys with values.
    Mapping,
    /// A list.
    Sequence,
}

/// How a node is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// A scalar without quotes.
    Plain,
    /// `'text'`
    SingleQuoted,
    /// `"text"`
    DoubleQuoted,
    /// `|`
    Literal,
    /// `>`
    Folded,
    /// A mapping or sequence by indentation.
    Block,
    /// A mapping or sequence in brackets.
    Flow,
}

/// A node of a document. Copying it is free; it is never an alias itself.
#[derive(Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document<'d>,
    /// Slot of the node, after following aliases; `NONE` for an alias that leads nowhere.
    id: u32,
    /// Slot of the alias through which the node was reached, or `NONE`.
    alias: u32,
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {:?}", self.kind(), self.span())
    }
}

/// Two handles are equal when they lead to the same node of the same document.
impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self.document, other.document)
            && self.id == other.id
            && (self.id != NONE || self.alias == other.alias)
    }
}

impl Eq for Node<'_> {}

impl<'d> Node<'d> {
    pub(crate) fn new(document: &'d Document<'d>, id: u32) -> Self {
        let slot = document.slot(id);
        if slot.meta.shape() == Shape::Alias {
            // A target is never an alias, so one step is enough.
            return Self {
                document,
                id: slot.data,
                alias: id,
            };
        }
        Self {
            document,
            id,
            alias: NONE,
        }
    }

    /// The document that holds the node.
    pub fn document(self) -> &'d Document<'d> {
        self.document
    }

    /// A number that tells the nodes of one document apart, and grows in document order. All ways
    /// to reach a node through aliases give the same number.
    pub fn id(self) -> u32 {
        self.id
    }

    /// What the node is.
    pub fn kind(self) -> Kind {
        if self.id == NONE {
            return Kind::Null;
        }
        let meta = self.document.slot(self.id).meta;
        match meta.shape() {
            Shape::Mapping => Kind::Mapping,
            Shape::Sequence => Kind::Sequence,
            Shape::Scalar if !meta.has(Meta::NULL) => Kind::Scalar,
            Shape::Scalar | Shape::Alias => Kind::Null,
        }
    }

    /// Whether the node is a missing value, `~` or `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Whether the node is a mapping.
    pub fn is_mapping(self) -> bool {
        self.kind() == Kind::Mapping
    }

    /// Whether the node is a sequence.
    pub fn is_sequence(self) -> bool {
        self.kind() == Kind::Sequence
    }

    /// Whether the node is a scalar other than null.
    pub fn is_scalar(self) -> bool {
        self.kind() == Kind::Scalar
    }

    /// How the node is written.
    pub fn style(self) -> Style {
        if self.id == NONE {
            return Style::Plain;
        }
        self.document.slot(self.id).meta.style()
    }

    /// The bytes of the node as written: with quotes and brackets, without anchor, tag and the
    /// header of a block scalar. A block scalar starts after the indentation of its first line
    /// with content and ends before the line break after its last one; a block collection ends
    /// with its last node. For a node reached through an alias it is the span of the target, or
    /// of the alias itself where that leads nowhere.
    pub fn span(self) -> Range<u32> {
        if self.id == NONE {
            return self.alias_span().unwrap_or(0..0);
        }
        let slot = self.document.slot(self.id);
        match slot.meta.shape() {
            Shape::Scalar => {
                let mut end = slot.data;
                if matches!(slot.meta.style(), Style::Literal | Style::Folded) {
                    let text = self.document.slice(slot.start..slot.data);
                    let kept = text.trim_end_matches(['\n', '\r', ' ', '\t']).len();
                    end = slot
                        .start
                        .saturating_add(u32::try_from(kept).unwrap_or(u32::MAX))
                        .min(slot.data);
                }
                slot.start..end
            }
            Shape::Mapping | Shape::Sequence => {
                let end = self.document.slot(self.id.saturating_add(1)).data;
                slot.start..end.max(slot.start)
            }
            Shape::Alias => slot.start..slot.start,
        }
    }

    /// Where `*name` was written, if the node was reached through an alias.
    pub fn alias_span(self) -> Option<Range<u32>> {
        if self.alias == NONE {
            return None;
        }
        let slot = self.document.slot(self.alias);
        Some(slot.start..slot.start.saturating_add(slot.meta.alias_length()))
    }

    /// Where the node stands for a reader: at its alias, if there is one, else its own span.
    pub fn written_span(self) -> Range<u32> {
        self.alias_span().unwrap_or_else(|| self.span())
    }

    /// Name of the node's anchor, without `&`.
    pub fn anchor(self) -> Option<&'d str> {
        let text = self.property(Meta::ANCHORED, |rare| &rare.anchors)?;
        Some(text.strip_prefix('&').unwrap_or(text))
    }

    /// The node's tag as written, such as `!!str`.
    pub fn tag(self) -> Option<&'d str> {
        self.property(Meta::TAGGED, |rare| &rare.tags)
    }

    fn property(self, flag: u32, table: impl Fn(&Rare) -> &Vec<Property>) -> Option<&'d str> {
        if self.id == NONE || !self.document.slot(self.id).meta.has(flag) {
            return None;
        }
        let table = table(self.document.rare.as_deref()?);
        let at = table
            .binary_search_by_key(&self.id, |entry| entry.node)
            .ok()?;
        let entry = table.get(at)?;
        Some(self.document.slice(entry.start..entry.end))
    }

    /// The decoded value of a scalar. None for mappings, sequences and nulls; a quoted empty
    /// string is `Some("")`.
    pub fn as_str(self) -> Option<Cow<'d, str>> {
        self.text().map(Cow::Borrowed)
    }

    /// The same as [`Self::as_str`], always borrowed from the document.
    pub fn text(self) -> Option<&'d str> {
        (self.kind() == Kind::Scalar).then(|| self.document.scalar(self.id))
    }

    /// The text of a scalar, also for nulls (`~`, or empty where nothing is written); empty for
    /// mappings and sequences.
    pub fn raw(self) -> Cow<'d, str> {
        Cow::Borrowed(self.raw_text())
    }

    /// The same as [`Self::raw`], always borrowed from the document.
    pub fn raw_text(self) -> &'d str {
        if self.id != NONE && self.document.slot(self.id).meta.shape() == Shape::Scalar {
            self.document.scalar(self.id)
        } else {
            ""
        }
    }

    /// The text of a scalar that the core schema may read as something else than a string.
    fn plain(self) -> Option<&'d str> {
        if self.id == NONE {
            return None;
        }
        let meta = self.document.slot(self.id).meta;
        let plain = meta.shape() == Shape::Scalar
            && meta.style() == Style::Plain
            && !meta.has(Meta::STRING);
        plain.then(|| self.document.scalar(self.id))
    }

    /// Whether the node is a boolean by the core schema: an unquoted true or false.
    pub fn is_bool(self) -> bool {
        self.as_bool().is_some()
    }

    /// The boolean by the core schema.
    pub fn as_bool(self) -> Option<bool> {
        schema::boolean(self.plain()?)
    }

    /// Whether YAML 1.1 decoders, Kubernetes' among them, read the unquoted text as a boolean:
    /// true and false, but also yes, no, on, off, y and n.
    pub fn is_legacy_bool(self) -> bool {
        self.plain().is_some_and(schema::legacy_boolean)
    }

    /// The integer: an unquoted core-schema integer, or quoted decimal digits.
    pub fn as_i64(self) -> Option<i64> {
        match self.plain() {
            Some(text) => schema::integer(text),
            None => schema::decimal(self.text()?),
        }
    }

    /// Whether the node is an unquoted number.
    pub fn is_number(self) -> bool {
        self.plain().is_some_and(schema::is_number)
    }

    /// Whether the node is an unquoted number, boolean or null by the core schema.
    pub fn is_plain_non_string(self) -> bool {
        self.plain().is_some_and(|text| {
            schema::is_null(text) || schema::boolean(text).is_some() || schema::is_number(text)
        })
    }

    /// The value of a key. Of keys written twice the last one counts, as in Kubernetes' decoder.
    /// Keys of the mappings that `<<` merges in are found too, after the mapping's own keys and
    /// as far as [`crate::MERGE_BUDGET`] goes.
    pub fn get(self, key: &str) -> Option<Self> {
        self.entry(key).map(|(_, value)| value)
    }

    /// The key and value that [`Self::get`] finds.
    pub fn entry(self, key: &str) -> Option<(Self, Self)> {
        mapping::find(self, key)
    }

    /// The value at a path of keys. A number leads into a sequence.
    pub fn get_path(self, path: &[&str]) -> Option<Self> {
        let mut node = self;
        for step in path {
            node = if node.kind() == Kind::Sequence {
                node.item(step.parse().ok()?)?
            } else {
                node.get(step)?
            };
        }
        Some(node)
    }

    /// One item of a sequence.
    pub fn item(self, index: usize) -> Option<Self> {
        self.items().nth(index)
    }

    /// Keys and values of a mapping in order, as written, without following `<<`.
    pub fn pairs(self) -> Pairs<'d> {
        Pairs {
            children: self.children_of(Shape::Mapping),
        }
    }

    /// Keys and values of a mapping: its own in order, then those that `<<` merges in and that it
    /// does not have itself. The `<<` keys are left out.
    pub fn entries(self) -> Entries<'d> {
        Entries::new(self)
    }

    /// The items of a sequence.
    pub fn items(self) -> Items<'d> {
        self.children_of(Shape::Sequence)
    }

    /// All direct children: the items, or keys and values by turns.
    pub fn children(self) -> Items<'d> {
        if self.kind() == Kind::Mapping {
            self.children_of(Shape::Mapping)
        } else {
            self.items()
        }
    }

    fn children_of(self, shape: Shape) -> Items<'d> {
        let fits = self.id != NONE && self.document.slot(self.id).meta.shape() == shape;
        let (next, end) = if fits {
            (self.id.saturating_add(2), self.document.after(self.id))
        } else {
            (0, 0)
        };
        Items {
            document: self.document,
            next,
            end,
        }
    }

    /// The source bytes of a byte range of the decoded value. Exact for all styles as long as the
    /// range keeps to character boundaries; a range that the text does not have gives the nearest
    /// one that it has.
    pub fn locate(self, range: Range<usize>) -> Range<u32> {
        if self.id == NONE || self.document.slot(self.id).meta.shape() != Shape::Scalar {
            return self.span();
        }
        locate::locate(self.document, self.id, range)
    }
}

/// The items of a sequence, or the children of any container.
#[derive(Clone)]
pub struct Items<'d> {
    document: &'d Document<'d>,
    next: u32,
    end: u32,
}

impl<'d> Iterator for Items<'d> {
    type Item = Node<'d>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let node = Node::new(self.document, self.next);
        self.next = self.document.after(self.next);
        Some(node)
    }
}

/// The keys and values of a mapping as written.
#[derive(Clone)]
pub struct Pairs<'d> {
    children: Items<'d>,
}

impl<'d> Iterator for Pairs<'d> {
    type Item = (Node<'d>, Node<'d>);

    fn next(&mut self) -> Option<Self::Item> {
        // The last key of a broken document may lack its value.
        Some((self.children.next()?, self.children.next()?))
    }
}
