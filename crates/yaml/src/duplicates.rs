//! Keys written more than once in one mapping.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;

use crate::mapping::is_merge;
use crate::node::{Kind, Node};
use crate::tree::{Document, Shape};

/// At most so many duplicates are listed for one document, to keep memory in proportion.
pub const MAX_DUPLICATES: usize = 10_000;

/// Mappings up to this size are compared pair by pair.
const SMALL: usize = 12;

/// A key that its mapping has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The repeated key.
    pub key: Range<u32>,
    /// The first key with the same text.
    pub first: Range<u32>,
}

/// A key with its hash. Scalars of one slot each, so a slot number leads back to the node.
struct Key {
    hash: u32,
    slot: u32,
}

pub(crate) fn find(document: &Document<'_>) -> Vec<DuplicateKey> {
    let mut found = Vec::new();
    let mut keys: Vec<Key> = Vec::new();
    // A random seed keeps crafted keys from colliding.
    let state = RandomState::new();
    let mut id = 0;
    let end = u32::try_from(document.slots.len()).unwrap_or(u32::MAX);
    while id < end && found.len() < MAX_DUPLICATES {
        let shape = document.slot(id).meta.shape();
        if shape == Shape::Mapping {
            keys.clear();
            let mut slot = id.saturating_add(2);
            let after = document.after(id);
            while slot < after {
                let node = Node::new(document, slot);
                if matches!(node.kind(), Kind::Scalar | Kind::Null) && !is_merge(node) {
                    keys.push(Key { hash: 0, slot });
                }
                slot = document.after(document.after(slot));
            }
            compare(document, &state, &mut keys, &mut found);
        }
        id = id.saturating_add(match shape {
            Shape::Mapping | Shape::Sequence => 2,
            Shape::Scalar | Shape::Alias => 1,
        });
    }
    found
}

fn compare(
    document: &Document<'_>,
    state: &RandomState,
    keys: &mut [Key],
    found: &mut Vec<DuplicateKey>,
) {
    let text = |key: &Key| Node::new(document, key.slot).raw_text();
    let mut report = |key: &Key, first: &Key| {
        if found.len() < MAX_DUPLICATES {
            found.push(DuplicateKey {
                key: Node::new(document, key.slot).written_span(),
                first: Node::new(document, first.slot).written_span(),
            });
        }
    };
    if keys.len() <= SMALL {
        for (at, key) in keys.iter().enumerate() {
            let mut earlier = keys.iter().take(at);
            if let Some(first) = earlier.find(|other| text(other) == text(key)) {
                report(key, first);
            }
        }
        return;
    }
    for key in keys.iter_mut() {
        // Half of the hash is enough to sort by; equal halves are compared as text.
        let hash = state.hash_one(Node::new(document, key.slot).raw_text());
        key.hash = u32::try_from(hash >> 32).unwrap_or(0);
    }
    keys.sort_unstable_by_key(|key| (key.hash, key.slot));
    for run in keys.chunk_by(|a, b| a.hash == b.hash) {
        let mut distinct: Vec<&Key> = Vec::new();
        if run.len() < 2 {
            continue;
        }
        for key in run {
            match distinct.iter().find(|other| text(other) == text(key)) {
                Some(first) => report(key, first),
                None => distinct.push(key),
            }
        }
    }
}
