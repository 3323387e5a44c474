//! Which network card serves which GPU: what `node --topology` prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One picture of GPUs and network cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyMap {
    /// The file and line of the matrix, or what else it was worked out from.
    pub from: String,
    /// Network cards, in the order of the matrix.
    pub nics: Vec<String>,
    /// GPUs, in order.
    pub gpus: Vec<GpuServed>,
    /// Cards that are nearest to none of these GPUs; empty where a row is missing, since it could be its card.
    pub near_none: Vec<String>,
    /// A row is missing or ends early: what is not there is unknown.
    pub cut: bool,
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuServed {
    /// `GPU0`.
    pub gpu: String,
    /// NUMA nodes as printed.
    pub numa: Option<String>,
    /// The best level of all cards: `PIX`; none where its row is not whole.
    pub level: Option<String>,
    /// The cards at that level.
    pub nearest: Option<Vec<String>>,
    /// The path to each card, as far as the row goes.
    pub paths: Vec<NicPath>,
}

/// The path between a GPU and a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NicPath {
    /// Device name where it is known, else the title of the column.
    pub nic: String,
    /// `PIX`, `PXB`, `PHB`, `NODE`, `SYS`.
    pub path: String,
}
