//! `dcgmi nvlink --link-status`.

use model::Observation;
use model::observation::gpu::{Gpu, LinkState};
use model::observation::{Completeness, Tool};

use super::Kind;
use crate::parser::{At, Parser};
use crate::text::small;

pub(crate) const KIND: Kind = Kind {
    tool: Tool::DcgmiNvlink,
    programs: &["dcgmi"],
    command: |command| command.has("nvlink"),
    starts: |line, _| line.contains("NvLink Link Status") || gpu_line(line).is_some(),
    open: |_| Box::new(Dcgmi::default()),
};

#[derive(Default)]
struct Dcgmi {
    gpu: Option<Gpu>,
    links: u32,
    in_switches: bool,
    switches: u32,
    told: bool,
    any: bool,
}

/// `gpuId 0:`
fn gpu_line(line: &str) -> Option<u32> {
    line.trim()
        .strip_prefix("gpuId ")?
        .strip_suffix(':')?
        .trim()
        .parse()
        .ok()
}

fn letters(line: &str) -> Option<Vec<LinkState>> {
    let states: Option<Vec<LinkState>> = line
        .split_whitespace()
        .take(512)
        .map(|word| match word {
            "U" => Some(LinkState::Up),
            "D" => Some(LinkState::Down),
            "X" => Some(LinkState::Disabled),
            "_" => Some(LinkState::NotSupported),
            _ => None,
        })
        .collect();
    states.filter(|s| !s.is_empty())
}

impl Dcgmi {
    fn flush(&mut self, out: &mut Observation) {
        self.links = 0;
        if let Some(gpu) = self.gpu.take() {
            out.gpu.gpus.add(gpu);
        }
    }
}

impl Parser for Dcgmi {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let text = line.trim();
        if let Some(index) = gpu_line(text) {
            self.flush(out);
            self.in_switches = false;
            self.any = true;
            let mut gpu = Gpu::default();
            gpu.index.see(index, at.origin());
            self.gpu = Some(gpu);
            return true;
        }
        if text == "NvSwitches:" {
            self.flush(out);
            self.in_switches = true;
            return true;
        }
        if text == "No NvSwitches found." {
            self.told = true;
            return true;
        }
        if self.in_switches && text.strip_prefix("physicalId ").and_then(small).is_some() {
            self.told = true;
            self.switches = self.switches.saturating_add(1);
            return true;
        }
        if let Some(states) = letters(text) {
            if let Some(gpu) = &mut self.gpu {
                for state in states {
                    gpu.links
                        .entry(self.links)
                        .or_default()
                        .state
                        .see(state, at.origin());
                    self.links = self.links.saturating_add(1).min(4096);
                }
            }
            return true;
        }
        text == "GPUs:"
            || text.contains("NvLink Link Status")
            || text.starts_with("Key:")
            || (text.starts_with("+-") && text.ends_with("-+"))
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        self.flush(out);
        if self.told {
            out.gpu.nvswitches.see(self.switches, at.origin());
        }
        if self.any {
            Completeness::Whole
        } else {
            Completeness::Cut("no GPU follows".to_owned())
        }
    }
}
