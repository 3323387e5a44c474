//! How near GPUs and network cards are to each other.

use serde::{Deserialize, Serialize};

use super::fact::{Origin, merge_fields};

/// Every matrix that was read; several are not joined, because their columns may differ.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// Paths between GPUs and network cards.
    pub matrices: Vec<Matrix>,
    /// Peer access between GPUs.
    pub p2p: Vec<P2pMatrix>,
}

merge_fields!(Topology { matrices, p2p });

/// What a cell of the matrix says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The device itself.
    Itself,
    /// So many NVLinks.
    NvLink(u32),
    /// At most one PCIe bridge between.
    Pix,
    /// Several PCIe bridges, not the host bridge.
    Pxb,
    /// The PCIe host bridge.
    Phb,
    /// Another host bridge of the same NUMA node.
    Node,
    /// Across the link between NUMA nodes (`SOC` of old drivers as well).
    Sys,
    /// A word that is not known.
    Other(String),
}

impl Level {
    /// The word of the tool: `PIX`, `NV18`.
    pub fn word(&self) -> String {
        match self {
            Self::Itself => "X".to_owned(),
            Self::NvLink(n) => format!("NV{n}"),
            Self::Pix => "PIX".to_owned(),
            Self::Pxb => "PXB".to_owned(),
            Self::Phb => "PHB".to_owned(),
            Self::Node => "NODE".to_owned(),
            Self::Sys => "SYS".to_owned(),
            Self::Other(word) => word.clone(),
        }
    }
}

/// What the matrix can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatrixKind {
    /// `topo -m`, as the text itself shows: it has NVLink cells, or its command line is there.
    WithNvLink,
    /// `topo -mp`, or paths computed from sysfs: never has NVLink cells.
    PcieOnly,
    /// No NVLink cell and no command line: either of the two.
    Unknown,
}

/// A column that stands for a network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicColumn {
    /// Its title: `NIC0`, or a device name on old drivers.
    pub label: String,
    /// The device, from the legend or the title.
    pub device: Option<String>,
}

impl NicColumn {
    /// The device name where it is known, else the title.
    pub fn name(&self) -> &str {
        self.device.as_deref().unwrap_or(&self.label)
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// 1-based line of the text; 0 where it was not text.
    pub line: u32,
    /// `GPU0`, `NIC3`.
    pub label: String,
    /// One per column, as far as the row goes.
    pub cells: Vec<Level>,
    /// `0-47,96-143`; empty where the cell is blank, `None` where the column is not there or was cut.
    pub cpu_affinity: Option<String>,
    /// `0`, `0,3-9`; `None` where the column is not there or was cut, empty where blank.
    pub numa_affinity: Option<String>,
    /// `N/A`, `2`.
    pub gpu_numa_id: Option<String>,
}

/// One matrix of GPUs and network cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    /// Where.
    pub origin: Origin,
    /// What it can show.
    pub kind: MatrixKind,
    /// GPU column titles; empty where the header is lost.
    pub gpus: Vec<String>,
    /// Network card columns.
    pub nics: Vec<NicColumn>,
    /// Rows of GPUs, as far as they are there.
    pub gpu_rows: Vec<MatrixRow>,
    /// Rows of network cards.
    pub nic_rows: Vec<MatrixRow>,
    /// Whether the line of column titles is there; without it cells have no names.
    pub header: bool,
    /// Some row of a GPU is missing, or ends early.
    pub cut: bool,
}

impl Matrix {
    /// GPUs that the header names and whose row is not there: nothing is known about them.
    pub fn missing_rows(&self) -> impl Iterator<Item = &str> {
        self.gpus
            .iter()
            .filter(|gpu| !self.gpu_rows.iter().any(|row| row.label == **gpu))
            .map(String::as_str)
    }

    /// Row of a GPU.
    pub fn gpu_row(&self, gpu: &str) -> Option<&MatrixRow> {
        self.gpu_rows.iter().find(|row| row.label == gpu)
    }

    /// Path between two GPUs.
    pub fn between(&self, gpu: &str, other: &str) -> Option<&Level> {
        let at = self.gpus.iter().position(|g| g == other)?;
        self.gpu_row(gpu)?.cells.get(at)
    }

    /// Path between a GPU and a network card, by title or device name.
    pub fn to_nic(&self, gpu: &str, nic: &str) -> Option<&Level> {
        let at = self
            .nics
            .iter()
            .position(|n| n.label == nic || n.device.as_deref() == Some(nic))?;
        self.gpu_row(gpu)?
            .cells
            .get(self.gpus.len().saturating_add(at))
    }

    /// The nearest network cards of a GPU with their common level; `None` without a complete row or without
    /// network cards.
    pub fn nearest(&self, gpu: &str) -> Option<(Level, Vec<&NicColumn>)> {
        let cells = self.gpu_row(gpu)?.cells.get(self.gpus.len()..)?;
        if cells.len() < self.nics.len() {
            return None;
        }
        let best = cells
            .iter()
            .filter(|level| !matches!(level, Level::Other(_) | Level::Itself))
            .min()?
            .clone();
        let near = self
            .nics
            .iter()
            .zip(cells)
            .filter(|(_, level)| **level == best)
            .map(|(nic, _)| nic)
            .collect();
        Some((best, near))
    }
}

/// Peer access between GPUs (`topo -p2p`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct P2pMatrix {
    /// Where.
    pub origin: Origin,
    /// What was asked for, where the command line is there: `r`, `w`, `n`, `a`, `p`.
    pub asked: Option<String>,
    /// GPU column titles.
    pub gpus: Vec<String>,
    /// Row title and one word per column: `OK`, `CNS`, `GNS`, `TNS`, `NS`, `DR`, `U`, `X`.
    pub rows: Vec<(String, Vec<String>)>,
    /// A row is missing, or ends early.
    pub cut: bool,
}
