//! Names and limits of the format.

use serde::{Deserialize, Serialize};

/// The name that a manifest begins with.
pub const FORMAT: &str = "check-interconnect-bundle";

/// The version that is written. Older ones are read; newer ones are refused, since what they mean is not known.
pub const VERSION: u32 = 1;

/// The first entry.
pub(crate) const MANIFEST: &str = "manifest.json";
/// What surrounds the workers.
pub(crate) const CLUSTER: &str = "cluster.json";
/// What declares the workers, and the files that were read.
pub(crate) const DECLARED: &str = "declared.json";
/// Transfers that were measured.
pub(crate) const TRANSFERS: &str = "transfers.json";
/// Folder of the workers.
pub(crate) const WORKERS: &str = "workers/";

/// Workers that a bundle can have.
pub(crate) const MAX_WORKERS: usize = 100_000;
/// Bytes of one entry. A worker that was looked into has some hundred thousand.
pub(crate) const MAX_ENTRY: u64 = 64 * 1024 * 1024;
/// Bytes of the empty blocks that end an archive; tools fill up to 10 KiB.
pub(crate) const MAX_REST: u64 = 64 * 1024;
/// Bytes of all entries.
pub(crate) const MAX_TOTAL: u64 = 8 * 1024 * 1024 * 1024;

/// What a bundle says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// The program and its version.
    pub made_by: String,
    /// What was asked for, as given.
    pub scope: Vec<String>,
    /// How many workers are in it.
    pub workers: usize,
}

/// What declares the workers, and the files that were read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeclaredEntry {
    pub(crate) declared: Vec<checks::Declared>,
    pub(crate) inputs: Vec<model::Input>,
}

/// The name of a worker's entry.
pub(crate) fn worker(number: usize) -> String {
    format!("{WORKERS}{number:05}.json")
}
