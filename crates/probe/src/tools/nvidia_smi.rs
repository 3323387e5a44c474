//! `nvidia-smi -q` (or its `Fabric` part) and the table of `nvidia-smi`.

use model::Observation;
use model::Reason;
use model::observation::gpu::{Gpu, ToolError};
use model::observation::{Completeness, Tool};

use super::{Kind, MAX_ERRORS};
use crate::parser::{At, Parser};
use crate::text::{keep, key_value, pci_address, small};

pub(crate) const QUERY: Kind = Kind {
    tool: Tool::NvidiaSmiQuery,
    programs: &["nvidia-smi"],
    command: |command| command.has("-q") || command.has("--query"),
    starts: |line, _| {
        let text = line.trim();
        text == "Fabric"
            || text.contains("NVSMI LOG")
            || key_value(text).is_some_and(|(key, _)| matches!(key, "CliqueId" | "ClusterUUID"))
    },
    open: |_| {
        Box::new(Query {
            gpu: Gpu::default(),
            touched: false,
            block: Block::Other,
            last: None,
            cut: false,
            indent: 0,
        })
    },
};

pub(crate) const TABLE: Kind = Kind {
    tool: Tool::NvidiaSmi,
    programs: &["nvidia-smi"],
    command: |_| true,
    starts: |line, _| {
        line.contains("| NVIDIA-SMI ") || failure(line) || fabric_manager(line).is_some()
    },
    open: |_| Box::new(Table),
};

/// Keeps what the tool says in place of an answer.
pub(super) fn error(text: &str, at: At<'_>, out: &mut Observation) {
    if out.gpu.errors.len() < MAX_ERRORS {
        out.gpu.errors.push(ToolError {
            origin: at.origin(),
            text: keep(text),
        });
    }
}

fn failure(line: &str) -> bool {
    let text = line.trim();
    text.starts_with("NVIDIA-SMI has failed")
        || text.starts_with("Failed to initialize NVML")
        || text.starts_with("No devices were found")
        || text.starts_with("Unable to determine the device handle")
        || text.starts_with("Failed to run topology matrix")
}

/// `Active: active (running) since …` of the fabric manager, or `nvidia-fabricmanager.service … running`.
fn fabric_manager(line: &str) -> Option<bool> {
    if !line.contains("nvidia-fabricmanager.service") {
        return None;
    }
    if line.contains("running") {
        Some(true)
    } else if line.contains("failed") || line.contains(" dead") {
        Some(false)
    } else {
        None
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Block {
    Fabric,
    Health,
    Pci,
    Other,
}

struct Query {
    gpu: Gpu,
    touched: bool,
    block: Block,
    last: Option<String>,
    cut: bool,
    /// Blanks before the title of the fabric block.
    indent: usize,
}

const HEALTH_ROWS: &[&str] = &[
    "Route Recovery in progress",
    "Route Unhealthy",
    "Access Timeout Recovery",
    "Incorrect Configuration",
    "Route Recovery",
    "Degraded Bandwidth",
];

impl Query {
    fn flush(&mut self, out: &mut Observation) {
        let fabric = &self.gpu.fabric;
        let state = fabric.state.is_seen();
        // A state has a cluster below it, and a bandwidth more rows of health.
        self.cut |= (state && fabric.cluster_uuid.is_untouched())
            || (fabric.status.is_seen() && !state)
            || (fabric.bandwidth.is_seen() && fabric.health.is_empty());
        if std::mem::take(&mut self.touched) {
            out.gpu.gpus.add(std::mem::take(&mut self.gpu));
        }
        self.block = Block::Other;
    }

    fn fabric(&mut self, key: &str, value: &str, at: At<'_>) -> bool {
        let fabric = &mut self.gpu.fabric;
        let origin = at.origin();
        match key {
            "State" => fabric.state.see(keep(value), origin),
            "Status" => fabric.status.see(keep(value), origin),
            "CliqueId" | "Clique ID" | "CliqueID" => match small(value) {
                Some(clique) => fabric.clique.see(clique, origin),
                None => fabric
                    .clique
                    .miss(Reason::NotApplicable, "the driver prints no clique"),
            },
            "ClusterUUID" | "Cluster UUID" => {
                if value == "N/A" {
                    fabric
                        .cluster_uuid
                        .miss(Reason::NotApplicable, "the driver prints no cluster");
                } else {
                    fabric.cluster_uuid.see(keep(value), origin);
                }
            }
            "Summary" | "Health Summary" => fabric.health_summary.see(keep(value), origin),
            "Bandwidth" => fabric.bandwidth.see(keep(value), origin),
            key if HEALTH_ROWS.contains(&key) => {
                fabric
                    .health
                    .entry(keep(key))
                    .or_default()
                    .see(keep(value), origin);
            }
            _ => return false,
        }
        self.touched = true;
        true
    }
}

fn indent(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).count()
}

/// `GPU 00000000:18:00.0`
fn gpu_heading(text: &str) -> Option<String> {
    pci_address(text.strip_prefix("GPU ")?)
}

impl Parser for Query {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let text = line.trim();
        if let Some(pci) = gpu_heading(text) {
            self.flush(out);
            self.gpu.pci.see(pci, at.origin());
            self.touched = true;
            return true;
        }
        if text == "--" {
            // Between two matches of a filter stand different GPUs.
            self.flush(out);
            return true;
        }
        if text.contains("NVSMI LOG") {
            return true;
        }
        if text == "Fabric" {
            if self.gpu.fabric.state.is_seen() {
                self.flush(out);
            }
            self.block = Block::Fabric;
            self.indent = indent(line);
            return true;
        }
        if text == "Health" && self.block == Block::Fabric {
            self.block = Block::Health;
            return true;
        }
        let Some((key, value)) = key_value(text) else {
            let heading = !text.is_empty() && text.len() < 60 && !text.contains("  ");
            if heading && matches!(self.block, Block::Fabric | Block::Health) {
                self.block = Block::Other;
            }
            if heading && text == "PCI" {
                self.block = Block::Pci;
            }
            return heading
                && (self.touched || self.last.is_some())
                && line.starts_with([' ', '\t']);
        };
        self.last = Some(keep(key));
        let in_fabric = matches!(self.block, Block::Fabric | Block::Health);
        let fabric_only = matches!(key, "CliqueId" | "ClusterUUID");
        if (in_fabric || fabric_only) && self.fabric(key, value, at) {
            return true;
        }
        if in_fabric {
            // A row of a newer driver stands within the block; the next part of the listing does not.
            if indent(line) > self.indent {
                return true;
            }
            self.block = Block::Other;
        }
        let origin = at.origin();
        match key {
            "Driver Version" => out.gpu.driver_version.see(keep(value), origin),
            "CUDA Version" => out.gpu.cuda_version.see(keep(value), origin),
            "Product Name" => {
                self.gpu.name.see(keep(value), origin);
                self.touched = true;
            }
            "GPU UUID" => {
                self.gpu.uuid.see(keep(value), origin);
                self.touched = true;
            }
            "Minor Number" => {
                if let Some(minor) = small(value) {
                    self.gpu.minor.see(minor, origin);
                }
            }
            "Bus Id" => {
                if let Some(pci) = pci_address(value) {
                    self.gpu.pci.see(pci, origin);
                }
            }
            // A GPU that was passed through is in a guest. `None` stands for bare metal and for much else.
            "Virtualization Mode" if value.trim().eq_ignore_ascii_case("pass-through") => {
                out.host.virtual_machine.see(true, origin);
            }
            "GPU Virtualization Mode" | "Virtualization Mode" => {}
            _ => {
                // A line of the long listing; anything else is none of ours.
                return line.contains(" : ");
            }
        }
        true
    }

    fn finish(&mut self, _: At<'_>, out: &mut Observation) -> Completeness {
        self.flush(out);
        if self.cut {
            Completeness::Cut("the fabric block of a GPU begins or ends early".to_owned())
        } else {
            Completeness::Whole
        }
    }
}

struct Table;

/// `| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |`
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    rest.split_whitespace().next().filter(|w| *w != "|")
}

impl Parser for Table {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if failure(line) {
            error(line, at, out);
            return true;
        }
        if let Some(runs) = fabric_manager(line) {
            out.gpu.fabric_manager.see(runs, at.origin());
            return true;
        }
        if line.contains("| NVIDIA-SMI ") {
            if let Some(version) = after(line, "Driver Version:") {
                out.gpu.driver_version.see(keep(version), at.origin());
            }
            if let Some(version) = after(line, "CUDA Version:") {
                out.gpu.cuda_version.see(keep(version), at.origin());
            }
            return true;
        }
        let text = line.trim();
        // `|   0  NVIDIA H100 80GB HBM3          On  | 00000000:18:00.0 Off |`
        let mut columns = text.trim_matches('|').split('|');
        let mut words = columns.next().unwrap_or_default().split_whitespace();
        let index = words.next().and_then(|w| w.parse::<u32>().ok());
        let pci = columns
            .next()
            .and_then(|c| c.split_whitespace().next())
            .and_then(pci_address);
        if let (Some(index), Some(pci)) = (index, pci) {
            let mut name: Vec<&str> = words.collect();
            if name
                .last()
                .is_some_and(|w| matches!(*w, "On" | "Off" | "N/A"))
            {
                name.pop();
            }
            let mut gpu = Gpu::default();
            gpu.index.see(index, at.origin());
            gpu.pci.see(pci, at.origin());
            gpu.name.see(keep(&name.join(" ")), at.origin());
            out.gpu.gpus.add(gpu);
            return true;
        }
        (text.starts_with('|') || text.starts_with('+')) && !text.contains("GPU UUID")
    }
}
