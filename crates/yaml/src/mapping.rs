//! Looking up keys, with `<<` merge keys.
//!
//! An alias inside its own target reads as null, so the nodes form no cycle. What is left to
//! guard against is size: many mappings that each merge a large one.

use std::collections::HashSet;

use crate::node::{Kind, Node, Pairs, Style};

/// How many keys of merged mappings one lookup or listing goes through.
pub const MERGE_BUDGET: usize = 10_000;

/// Whether a key is the merge key: a plain `<<`.
pub(crate) fn is_merge(key: Node<'_>) -> bool {
    key.raw_text() == "<<" && key.style() == Style::Plain
}

pub(crate) fn find<'d>(node: Node<'d>, key: &str) -> Option<(Node<'d>, Node<'d>)> {
    let mut found = None;
    let mut merges = false;
    for (name, value) in node.pairs() {
        if is_merge(name) {
            merges = true;
        } else if matches(name, key) {
            found = Some((name, value));
        }
    }
    if found.is_some() || !merges {
        return found;
    }
    let mut sources = Sources::new(node);
    while let Some(source) = sources.next() {
        for (name, value) in source.pairs() {
            if !sources.spend() {
                return found;
            }
            if matches(name, key) && !is_merge(name) {
                found = Some((name, value));
            }
        }
        if found.is_some() {
            return found;
        }
    }
    None
}

fn matches(name: Node<'_>, key: &str) -> bool {
    matches!(name.kind(), Kind::Scalar | Kind::Null) && name.raw_text() == key
}

/// The mappings that a mapping merges in, the one that wins first.
struct Sources<'d> {
    /// What is still to be looked at, the next one last.
    waiting: Vec<Node<'d>>,
    /// Looking at a mapping twice finds nothing new.
    seen: HashSet<u32>,
    budget: usize,
}

impl<'d> Sources<'d> {
    fn new(node: Node<'d>) -> Self {
        let mut sources = Self {
            waiting: Vec::new(),
            seen: HashSet::from([node.id()]),
            budget: MERGE_BUDGET,
        };
        sources.push_merges(node);
        sources
    }

    /// Takes one key from the budget.
    fn spend(&mut self) -> bool {
        self.budget = self.budget.saturating_sub(1);
        self.budget > 0
    }

    fn push_merges(&mut self, node: Node<'d>) {
        let first = self.waiting.len();
        for (key, value) in node.pairs() {
            if !is_merge(key) {
                continue;
            }
            match value.kind() {
                Kind::Mapping => self.waiting.push(value),
                Kind::Sequence => {
                    for item in value.items().filter(|item| item.is_mapping()) {
                        if !self.spend() {
                            break;
                        }
                        self.waiting.push(item);
                    }
                }
                Kind::Null | Kind::Scalar => {}
            }
        }
        if let Some(added) = self.waiting.get_mut(first..) {
            added.reverse();
        }
    }

    fn next(&mut self) -> Option<Node<'d>> {
        loop {
            let node = self.waiting.pop()?;
            if self.budget > 0 && self.seen.insert(node.id()) {
                self.push_merges(node);
                return Some(node);
            }
        }
    }
}

/// Keys and values of a mapping with those merged in; see [`Node::entries`].
pub struct Entries<'d> {
    node: Node<'d>,
    own: Pairs<'d>,
    merges: bool,
    merged: std::vec::IntoIter<(Node<'d>, Node<'d>)>,
}

impl<'d> Entries<'d> {
    pub(crate) fn new(node: Node<'d>) -> Self {
        Self {
            node,
            own: node.pairs(),
            merges: false,
            merged: Vec::new().into_iter(),
        }
    }
}

impl<'d> Iterator for Entries<'d> {
    type Item = (Node<'d>, Node<'d>);

    fn next(&mut self) -> Option<Self::Item> {
        for (key, value) in self.own.by_ref() {
            if is_merge(key) {
                self.merges = true;
            } else {
                return Some((key, value));
            }
        }
        if std::mem::take(&mut self.merges) {
            self.merged = merged(self.node).into_iter();
        }
        self.merged.next()
    }
}

fn merged(node: Node<'_>) -> Vec<(Node<'_>, Node<'_>)> {
    let mut taken: HashSet<&str> = node.pairs().map(|(key, _)| key.raw_text()).collect();
    let mut list = Vec::new();
    let mut sources = Sources::new(node);
    while let Some(source) = sources.next() {
        // Within one mapping the last of two equal keys counts, so a key is closed only after it.
        let first = list.len();
        for (key, value) in source.pairs() {
            if !sources.spend() {
                break;
            }
            if !is_merge(key) && !taken.contains(key.raw_text()) {
                list.push((key, value));
            }
        }
        for (key, _) in list.get(first..).unwrap_or_default() {
            taken.insert(key.raw_text());
        }
    }
    list
}
