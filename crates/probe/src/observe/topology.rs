//! How near GPUs and RDMA devices are, from their places in the tree of PCI bridges; where `nvidia-smi` is absent.

use model::observation::Observation;
use model::observation::topology::{Level, Matrix, MatrixKind, MatrixRow, NicColumn};

use super::facts::{Facts, origin};
use crate::text::pci_address;

const DEVICES: &str = "/sys/bus/pci/devices";

/// One end of a path.
struct End {
    label: String,
    path: String,
    numa: Option<i32>,
}

pub(super) fn read(facts: &Facts<'_>, seen: &mut Observation) {
    let gpus: Vec<End> = seen
        .gpu
        .gpus
        .iter()
        .filter_map(|gpu| end(facts, gpu.pci.value()?, gpu.numa_node.value().copied()))
        .zip(0..)
        .map(|(end, at)| End {
            label: format!("GPU{at}"),
            ..end
        })
        .collect();
    let nics: Vec<End> = seen
        .rdma
        .devices
        .iter()
        .filter_map(|(name, device)| {
            let end = end(
                facts,
                device.pci.value()?,
                device.numa_node.value().copied(),
            )?;
            Some(End {
                label: name.clone(),
                ..end
            })
        })
        .collect();
    if gpus.is_empty() || nics.is_empty() {
        return;
    }
    let all: Vec<&End> = gpus.iter().chain(&nics).collect();
    let row = |from: &End| MatrixRow {
        line: 0,
        label: from.label.clone(),
        cells: all.iter().map(|to| level(from, to)).collect(),
        cpu_affinity: None,
        numa_affinity: from.numa.map(|n| n.to_string()),
        gpu_numa_id: None,
    };
    seen.topology.matrices.push(Matrix {
        origin: origin(DEVICES),
        kind: MatrixKind::PcieOnly,
        gpus: gpus.iter().map(|gpu| gpu.label.clone()).collect(),
        nics: nics
            .iter()
            .map(|nic| NicColumn {
                label: nic.label.clone(),
                device: Some(nic.label.clone()),
            })
            .collect(),
        gpu_rows: gpus.iter().map(row).collect(),
        nic_rows: nics.iter().map(row).collect(),
        header: true,
        cut: false,
    });
}

fn end(facts: &Facts<'_>, address: &str, numa: Option<i32>) -> Option<End> {
    let path = facts
        .link(&format!("{DEVICES}/{}", address.to_ascii_lowercase()))?
        .to_owned();
    Some(End {
        label: String::new(),
        path,
        numa: numa.filter(|node| *node >= 0),
    })
}

/// The words of `nvidia-smi topo -m`, by the bridges between two devices.
fn level(from: &End, to: &End) -> Level {
    if from.path == to.path {
        return Level::Itself;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (parts(&from.path), parts(&to.path));
    let common = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let shared_bridges = a
        .iter()
        .take(common)
        .filter(|part| pci_address(part).is_some())
        .count();
    let host_bridge = a.iter().take(common).any(|part| part.starts_with("pci"));
    if shared_bridges > 0 {
        // Functions of one card have no bridge between them; below one switch there are two, one above each.
        let between = |parts: &[&str]| parts.len().saturating_sub(common).saturating_sub(1);
        return if between(&a) <= 1 && between(&b) <= 1 {
            Level::Pix
        } else {
            Level::Pxb
        };
    }
    match (host_bridge, from.numa, to.numa) {
        (true, _, _) => Level::Phb,
        (false, Some(x), Some(y)) if x == y => Level::Node,
        (false, None, _) | (false, _, None) => Level::Other("unknown".to_owned()),
        _ => Level::Sys,
    }
}

fn parts(path: &str) -> Vec<&str> {
    path.trim_start_matches("/sys/devices/")
        .split('/')
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, numa: i32) -> End {
        End {
            label: String::new(),
            path: format!("/sys/devices/{path}"),
            numa: Some(numa).filter(|n| *n >= 0),
        }
    }

    #[test]
    fn levels() {
        let gpu = at(
            "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0",
            0,
        );
        for (other, level_is) in [
            (
                at(
                    "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0",
                    0,
                ),
                Level::Pix,
            ),
            (
                at(
                    "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:1a:00.0/0000:1b:00.0/0000:1c:00.0",
                    0,
                ),
                Level::Pxb,
            ),
            (at("pci0000:15/0000:15:02.0/0000:20:00.0", 0), Level::Phb),
            (at("pci0000:37/0000:37:01.0/0000:38:00.0", 0), Level::Node),
            (at("pci0000:97/0000:97:01.0/0000:98:00.0", 1), Level::Sys),
            (
                at("pci0000:97/0000:97:01.0/0000:98:00.0", -1),
                Level::Other("unknown".into()),
            ),
        ] {
            assert_eq!(level(&gpu, &other), level_is, "{}", other.path);
        }
    }
}
