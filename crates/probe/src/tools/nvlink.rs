//! `nvidia-smi nvlink -s` and `nvidia-smi -L`: both print a line per GPU.

use model::Observation;
use model::observation::gpu::{Gpu, LinkState};
use model::observation::{Completeness, Tool};

use super::Kind;
use crate::parser::{At, Parser};
use crate::text::{keep, thousandths};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::NvidiaSmiNvlink,
    programs: &["nvidia-smi"],
    command: |command| command.has("nvlink") || command.has("-L") || command.has("--list-gpus"),
    starts: |line, _| gpu_line(line).is_some() || link_line(line).is_some(),
    open: |_| Box::new(Nvlink { gpu: None }),
};

struct Nvlink {
    gpu: Option<Gpu>,
}

/// Links of one GPU that are kept.
const MAX_LINKS: usize = 256;

/// `GPU 2: NVIDIA B200 (UUID: GPU-…)`
fn gpu_line(line: &str) -> Option<(u32, &str, Option<&str>)> {
    let rest = line.trim().strip_prefix("GPU ")?;
    let (index, rest) = rest.split_once(':')?;
    let index = index.trim().parse().ok()?;
    let (name, uuid) = match rest.split_once("(UUID:") {
        Some((name, uuid)) => (name, Some(uuid.trim().trim_end_matches(')'))),
        None => (rest, None),
    };
    let uuid = uuid.filter(|u| u.starts_with("GPU-"));
    (uuid.is_some() || name.contains("NVIDIA") || name.contains("Tesla")).then_some((
        index,
        name.trim(),
        uuid,
    ))
}

/// `Link 3: <inactive>`
fn link_line(line: &str) -> Option<(u32, &str)> {
    let rest = line.trim().strip_prefix("Link ")?;
    let (index, rest) = rest.split_once(':')?;
    let index = index.trim().parse().ok()?;
    let value = rest.trim();
    let good = value.contains("GB/s")
        || value.to_ascii_lowercase().contains("active")
        || value.contains("Disabled");
    good.then_some((index, value))
}

impl Nvlink {
    fn flush(&mut self, out: &mut Observation) {
        if let Some(gpu) = self.gpu.take() {
            out.gpu.gpus.add(gpu);
        }
    }
}

impl Parser for Nvlink {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let text = line.trim();
        if let Some((index, name, uuid)) = gpu_line(line) {
            self.flush(out);
            let mut gpu = Gpu::default();
            gpu.index.see(index, at.origin());
            if !name.is_empty() {
                gpu.name.see(keep(name), at.origin());
            }
            if let Some(uuid) = uuid {
                gpu.uuid.see(keep(uuid), at.origin());
            }
            self.gpu = Some(gpu);
            return true;
        }
        if let Some((index, value)) = link_line(line) {
            // Links before the first GPU belong to one that is cut off.
            let gpu = self.gpu.get_or_insert_with(Gpu::default);
            if gpu.links.len() < MAX_LINKS || gpu.links.contains_key(&index) {
                let link = gpu.links.entry(index).or_default();
                let lower = value.to_ascii_lowercase();
                let state = if lower.contains("inactive") {
                    LinkState::Down
                } else if lower.contains("disabled") {
                    LinkState::Disabled
                } else {
                    LinkState::Up
                };
                link.state.see(state, at.origin());
                if let Some(speed) = thousandths(value) {
                    link.mb_per_s.see(speed, at.origin());
                }
            }
            return true;
        }
        if text.starts_with("NVML:") || text.contains("Unable to retrieve N") {
            let lower = text.to_ascii_lowercase();
            if let Some(gpu) = &mut self.gpu {
                gpu.nvlink_message.see(keep(text), at.origin());
                if lower.contains("inactive") {
                    gpu.all_links_inactive.see(true, at.origin());
                }
            } else {
                super::nvidia_smi::error(text, at, out);
            }
            return true;
        }
        if text.starts_with("MIG ")
            && let Some((_, uuid)) = text.split_once("(UUID:")
            && let Some(gpu) = &mut self.gpu
        {
            let mut all = gpu.mig.value().cloned().unwrap_or_default();
            if all.len() < MAX_LINKS {
                all.push(keep(uuid.trim().trim_end_matches(')')));
            }
            gpu.mig = model::Fact::seen(all, at.origin());
            return true;
        }
        false
    }

    fn finish(&mut self, _: At<'_>, out: &mut Observation) -> Completeness {
        let headless = self.gpu.as_ref().is_some_and(|g| !g.index.is_seen());
        self.flush(out);
        if headless {
            Completeness::Cut("links stand before the first GPU".to_owned())
        } else {
            Completeness::Whole
        }
    }
}
