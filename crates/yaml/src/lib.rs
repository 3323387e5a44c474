//! YAML, and JSON with it, as a compact tree that remembers where every value stands.
//!
//! The tree is made for a linter of Kubernetes manifests: each node keeps its byte span, aliases
//! are followed but never expanded, and one broken document does not hide the others.

mod builder;
mod comments;
mod duplicates;
mod error;
mod lines;
mod locate;
mod mapping;
mod messages;
mod node;
mod reader;
mod schema;
mod tree;
mod walk;

pub use comments::{Comment, Comments};
pub use duplicates::{DuplicateKey, MAX_DUPLICATES};
pub use error::{ErrorKind, SyntaxError};
pub use lines::LineIndex;
pub use mapping::{Entries, MERGE_BUDGET};
pub use node::{Items, Kind, Node, Pairs, Style};
pub use reader::{Limits, Parsed, Stream, parse, parse_each};
pub use tree::{AliasProblem, Document};
pub use walk::{Step, Visit, walk};

#[cfg(test)]
mod tests;
