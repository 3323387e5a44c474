//! Bundles: everything that was observed of a deployment in one file, to be judged anywhere.
//!
//! A bundle is a gzip-compressed tar archive of JSON files, for whoever wants to look (`tar tzf`, `jq`):
//!
//! | entry | holds |
//! |---|---|
//! | `manifest.json` | the format's name and version, who made it, how many workers; always first |
//! | `cluster.json` | nodes, what kept the run from pods, pods that were passed over, how it was asked |
//! | `declared.json` | recipes and objects that declare the workers |
//! | `transfers.json` | transfers that were measured between them |
//! | `workers/00000.json` … | one worker each: its pod, its settings, what was seen inside, or why nothing was |
//!
//! It holds facts, in the words of this program, and no output of tools: what was not on the list of what may be read
//! never came out of a pod, and cannot be in here.
//!
//! Reading trusts nothing: entries are read in memory and never written anywhere, links and odd names are refused, sizes
//! are bounded before anything is unpacked.

mod format;
mod read;
mod write;

pub use format::{FORMAT, Manifest, VERSION};
pub use read::{Error, read};
pub use write::write;
