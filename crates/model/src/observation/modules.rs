//! Kernel modules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fact::{Fact, Origin, merge_fields};

/// Kernel modules, and the signs of GPUDirect that they leave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Modules {
    /// By name with `_`, such as `nvidia_peermem`.
    pub modules: BTreeMap<String, Module>,
    /// Who listed modules.
    pub listings: Vec<ModuleListing>,
    /// Peer memory clients that are registered: `nv_mem`; empty: none, or the kernel has no such interface.
    pub peer_memory_clients: Fact<Vec<String>>,
}

merge_fields!(Modules {
    modules,
    listings,
    peer_memory_clients
});

/// One module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    /// Whether it is loaded.
    pub loaded: Fact<bool>,
    /// Only the used-by list of another module names it.
    pub only_in_used_by: Fact<bool>,
    /// Use count; 0 is normal for `nvidia_peermem`.
    pub use_count: Fact<u32>,
    /// Modules that use it.
    pub used_by: Fact<Vec<String>>,
    /// Its version.
    pub version: Fact<String>,
}

merge_fields!(Module {
    loaded,
    only_in_used_by,
    use_count,
    used_by,
    version
});

/// One list of modules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleListing {
    /// Where.
    pub origin: Origin,
    /// How many lines.
    pub count: u32,
    /// It can be taken as the whole list: it has its header or is long, and every module that a used-by list
    /// names is in it. A module that a whole list lacks is not loaded (or built in).
    pub whole: bool,
}

/// What is known about a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Loaded.
    Loaded,
    /// A whole list lacks it.
    Absent,
    /// No list that could tell.
    Unknown,
}

impl Modules {
    /// Whether a module is loaded; the name with `_`.
    pub fn presence(&self, name: &str) -> Presence {
        match self.modules.get(name).and_then(|m| m.loaded.value()) {
            Some(true) => Presence::Loaded,
            Some(false) => Presence::Absent,
            None if self.listings.iter().any(|list| list.whole) => Presence::Absent,
            None => Presence::Unknown,
        }
    }
}
