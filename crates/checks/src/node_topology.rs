//! Which network card serves which GPU, and over what path: a picture of its own, without judgement.

use std::collections::BTreeMap;

use model::observation::Observation;
use model::observation::topology::{Level, Matrix, NicColumn};
use model::topology::{GpuServed, NicPath, TopologyMap};

use crate::node::gpu_nic_affinity::{near_none, nearest};

/// One map for each matrix that was read; paths by PCI address where there is none.
pub fn topology(seen: &Observation) -> Vec<TopologyMap> {
    let maps: Vec<TopologyMap> = seen
        .topology
        .matrices
        .iter()
        .filter(|m| m.header && !m.gpus.is_empty())
        .map(of_matrix)
        .collect();
    if maps.is_empty() {
        of_numa(seen).into_iter().collect()
    } else {
        maps
    }
}

fn of_matrix(matrix: &Matrix) -> TopologyMap {
    let near = nearest(matrix);
    let gpus = matrix
        .gpus
        .iter()
        .map(|gpu| GpuServed {
            gpu: gpu.clone(),
            numa: matrix
                .gpu_row(gpu)
                .and_then(|r| r.numa_affinity.clone())
                .filter(|n| !n.is_empty()),
            nearest: near
                .iter()
                .find(|n| n.gpu == gpu)
                .map(|n| n.nics.iter().map(|nic| nic.name().to_owned()).collect()),
            level: near.iter().find(|n| n.gpu == gpu).map(|n| n.level.word()),
            paths: matrix
                .nics
                .iter()
                .filter_map(|nic| {
                    let path = matrix.to_nic(gpu, &nic.label).map(Level::word)?;
                    Some(NicPath {
                        nic: nic.name().to_owned(),
                        path,
                    })
                })
                .collect(),
        })
        .collect();
    TopologyMap {
        from: matrix.origin.to_string(),
        nics: matrix
            .nics
            .iter()
            .map(NicColumn::name)
            .map(str::to_owned)
            .collect(),
        gpus,
        // A card can be the nearest of a GPU whose row is missing.
        near_none: if near.len() < matrix.gpus.len() {
            Vec::new()
        } else {
            near_none(matrix, &near)
                .into_iter()
                .map(str::to_owned)
                .collect()
        },
        cut: matrix.cut,
    }
}

/// Without a matrix: the same NUMA node is `NODE`, another one `SYS`, and nothing finer is known.
fn of_numa(seen: &Observation) -> Option<TopologyMap> {
    let nics: BTreeMap<&str, i32> = seen
        .rdma
        .devices
        .iter()
        .filter_map(|(name, d)| Some((name.as_str(), *d.numa_node.value().filter(|n| **n >= 0)?)))
        .collect();
    let gpus: Vec<(String, i32)> = seen
        .gpu
        .gpus
        .iter()
        .filter_map(|g| {
            let numa = *g.numa_node.value().filter(|n| **n >= 0)?;
            Some((crate::node::words::label(g), numa))
        })
        .collect();
    if nics.is_empty() || gpus.is_empty() {
        return None;
    }
    let path = |gpu: i32, nic: i32| if gpu == nic { "NODE" } else { "SYS" };
    let served: Vec<GpuServed> = gpus
        .iter()
        .map(|(gpu, numa)| {
            let same: Vec<String> = nics
                .iter()
                .filter(|(_, n)| *n == numa)
                .map(|(name, _)| (*name).to_owned())
                .collect();
            let all = || nics.keys().map(|n| (*n).to_owned()).collect();
            GpuServed {
                gpu: gpu.clone(),
                numa: Some(numa.to_string()),
                level: Some(if same.is_empty() { "SYS" } else { "NODE" }.to_owned()),
                nearest: Some(if same.is_empty() { all() } else { same }),
                paths: nics
                    .iter()
                    .map(|(name, n)| NicPath {
                        nic: (*name).to_owned(),
                        path: path(*numa, *n).to_owned(),
                    })
                    .collect(),
            }
        })
        .collect();
    Some(TopologyMap {
        from: "NUMA nodes of PCI devices".to_owned(),
        near_none: nics
            .iter()
            .filter(|(_, n)| !gpus.iter().any(|(_, g)| g == *n))
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        nics: nics.keys().map(|n| (*n).to_owned()).collect(),
        gpus: served,
        cut: false,
    })
}
