//! Going through all nodes, without falling for aliases that multiply.

use std::collections::HashSet;

use crate::node::{Items, Kind, Node};

/// What to do after a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Go on into the node.
    Enter,
    /// Leave out what is in the node.
    Skip,
    /// End the walk.
    Stop,
}

/// One node on the way.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'d> {
    /// The node.
    pub node: Node<'d>,
    /// The mapping or sequence that holds it; none for the root.
    pub parent: Option<Node<'d>>,
    /// Its key, when the parent is a mapping and this is a value.
    pub key: Option<Node<'d>>,
    /// Its position in the parent: of the item, or of the pair.
    pub index: usize,
    /// Number of containers around it.
    pub depth: usize,
    /// Whether it is a key.
    pub is_key: bool,
}

/// An open container.
struct Level<'d> {
    node: Node<'d>,
    children: Items<'d>,
    key: Option<Node<'d>>,
    index: usize,
}

/// Visits a node and everything in it, in document order: keys and values as written (`<<` is a
/// key like any other), items, and what aliases lead to. A container that several aliases lead to
/// is entered once, and at most `budget` nodes are visited. Returns false when the budget ran out.
pub fn walk<'d>(root: Node<'d>, budget: u64, f: &mut dyn FnMut(Visit<'d>) -> Step) -> bool {
    let mut left = budget;
    let mut entered: HashSet<u32> = HashSet::new();
    let mut levels: Vec<Level<'d>> = Vec::new();
    let mut visit = Visit {
        node: root,
        parent: None,
        key: None,
        index: 0,
        depth: 0,
        is_key: false,
    };
    loop {
        if left == 0 {
            return false;
        }
        left -= 1;
        let node = visit.node;
        match f(visit) {
            Step::Stop => return true,
            Step::Skip => {}
            Step::Enter => {
                let container = matches!(node.kind(), Kind::Mapping | Kind::Sequence);
                // Only an anchored node can be met twice. What lies in the root's own range comes
                // before the aliases that lead to it, so the set catches it as well.
                if container && (node.anchor().is_none() || entered.insert(node.id())) {
                    levels.push(Level {
                        node,
                        children: node.children(),
                        key: None,
                        index: 0,
                    });
                }
            }
        }
        loop {
            let depth = levels.len();
            let Some(level) = levels.last_mut() else {
                return true;
            };
            let Some(child) = level.children.next() else {
                levels.pop();
                continue;
            };
            visit = Visit {
                node: child,
                parent: Some(level.node),
                key: None,
                index: level.index,
                depth,
                is_key: false,
            };
            if level.node.kind() == Kind::Sequence {
                level.index += 1;
            } else if let Some(key) = level.key.take() {
                visit.key = Some(key);
                level.index += 1;
            } else {
                visit.is_key = true;
                level.key = Some(child);
            }
            break;
        }
    }
}
