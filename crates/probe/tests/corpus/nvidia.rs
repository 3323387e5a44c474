//! Named values of the tools of NVIDIA, and of gpud.

use std::collections::BTreeMap;

use model::observation::gpu::LinkState;
use model::observation::topology::{Level, Matrix, MatrixRow};
use serde_json::{Map, Value, json};

use super::Read;

pub(crate) fn project(tool: &str, key: &str, form: &Value, read: &Read) -> Option<Value> {
    match tool {
        "nvidia-smi-topo" => topo(key, form, read),
        "nvidia-smi-topo-p2p" => p2p(key, form, read),
        "nvidia-smi-nvlink" | "dcgmi-nvlink" => nvlink(tool, key, read),
        _ => fabric(key, read),
    }
}

/// `names` joined, or a list of them.
fn names(matrix: &Matrix, gpu: &str) -> Vec<String> {
    matrix.nearest(gpu).map_or_else(Vec::new, |(_, near)| {
        near.iter().map(|n| n.name().to_owned()).collect()
    })
}

/// Levels between GPUs, without the device itself, each once.
fn between(matrix: &Matrix) -> Vec<Level> {
    let mut all: Vec<Level> = Vec::new();
    for row in &matrix.gpu_rows {
        for cell in row.cells.iter().take(matrix.gpus.len()) {
            if *cell != Level::Itself && !all.contains(cell) {
                all.push(cell.clone());
            }
        }
    }
    all.sort();
    all
}

fn nics_at(matrix: &Matrix, level: &Level) -> Vec<String> {
    let mut all = Vec::new();
    for nic in &matrix.nics {
        if matrix
            .gpu_rows
            .iter()
            .any(|row| matrix.to_nic(&row.label, &nic.label) == Some(level))
        {
            all.push(nic.name().to_owned());
        }
    }
    all
}

fn per_row(form: &Value, rows: &[MatrixRow], show: impl Fn(&MatrixRow) -> Value) -> Value {
    match form {
        Value::Array(_) => Value::Array(rows.iter().map(&show).filter(|v| !v.is_null()).collect()),
        Value::Object(_) => Value::Object(
            rows.iter()
                .map(|row| (row.label.clone(), show(row)))
                .filter(|(_, v)| !v.is_null())
                .collect(),
        ),
        // One value for all rows.
        _ => {
            let mut all: Vec<Value> = rows.iter().map(show).collect();
            all.dedup();
            if all.len() == 1 {
                all.remove(0)
            } else {
                Value::Array(all)
            }
        }
    }
}

fn number_or_text(text: &str) -> Value {
    text.parse::<u64>()
        .map_or_else(|_| json!(text), |n| json!(n))
}

/// The best level of all GPUs: one word where all agree or the best is asked for.
fn level(matrix: &Matrix, form: &Value) -> Option<Value> {
    let best: Vec<(String, Level)> = matrix
        .gpu_rows
        .iter()
        .filter_map(|row| Some((row.label.clone(), matrix.nearest(&row.label)?.0)))
        .collect();
    Some(if form.is_object() {
        Value::Object(
            best.iter()
                .map(|(g, l)| (g.clone(), json!(l.word())))
                .collect(),
        )
    } else {
        json!(best.iter().map(|(_, l)| l).min()?.word())
    })
}

fn topo(key: &str, form: &Value, read: &Read) -> Option<Value> {
    let matrix = read.seen.topology.matrices.first()?;
    let rows = &matrix.gpu_rows;
    Some(match key {
        "gpus" => json!(matrix.gpus.len()),
        "nics" => json!(matrix.nics.len()),
        "gpu_rows" => json!(rows.len()),
        "nic_rows" => json!(matrix.nic_rows.len()),
        "truncated" => json!(matrix.cut && read.cut()),
        "gpu_gpu" => {
            // One GPU that is off NVLink is told by another value.
            let all = between(matrix);
            let nvlink: Vec<&Level> = all
                .iter()
                .filter(|l| matches!(l, Level::NvLink(_)))
                .collect();
            match (nvlink.as_slice(), all.as_slice()) {
                ([one], _) => json!(one.word()),
                (_, [one]) => json!(one.word()),
                _ => json!(all.iter().map(Level::word).collect::<Vec<_>>()),
            }
        }
        "nvlink_shown" => json!(
            between(matrix)
                .iter()
                .any(|l| matches!(l, Level::NvLink(_)))
        ),
        "off_nvlink" => json!(
            rows.iter()
                .filter(|row| !row.cells.iter().any(|c| matches!(c, Level::NvLink(_))))
                .map(|row| &row.label)
                .collect::<Vec<_>>()
        ),
        "nvlink" if form.is_string() => {
            // Without titles: the one word that the cells of NVLink have.
            let mut words: Vec<String> = rows
                .iter()
                .flat_map(|r| &r.cells)
                .filter(|c| matches!(c, Level::NvLink(_)))
                .map(Level::word)
                .collect();
            words.dedup();
            json!(words.first().filter(|_| words.len() == 1)?)
        }
        "nvlink" => {
            let mut map = Map::new();
            for (at, gpu) in matrix.gpus.iter().enumerate() {
                for other in matrix.gpus.iter().skip(at + 1) {
                    map.insert(
                        format!("{gpu}-{other}"),
                        json!(matrix.between(gpu, other)?.word()),
                    );
                }
            }
            Value::Object(map)
        }
        "level" | "best_level" => level(matrix, form)?,
        "near" if form == "all" => {
            let every = rows
                .iter()
                .all(|row| names(matrix, &row.label).len() == matrix.nics.len());
            json!(if every { "all" } else { "some" })
        }
        // Some rows of the table name a few GPUs only.
        "near" => Value::Object(
            form.as_object()?
                .keys()
                .map(|gpu| (gpu.clone(), json!(names(matrix, gpu).join(","))))
                .collect(),
        ),
        "best" => Value::Object(
            rows.iter()
                .map(|row| (row.label.clone(), json!(names(matrix, &row.label))))
                .collect(),
        ),
        "no_near_gpu" => {
            let near: Vec<String> = rows
                .iter()
                .flat_map(|row| names(matrix, &row.label))
                .collect();
            json!(
                matrix
                    .nics
                    .iter()
                    .map(model::observation::topology::NicColumn::name)
                    .filter(|n| !near.iter().any(|x| x == n))
                    .collect::<Vec<_>>()
            )
        }
        "numa" if form.is_null() => {
            json!(rows.iter().find_map(|r| r.numa_affinity.clone()))
        }
        "numa" => per_row(form, rows, |row| {
            row.numa_affinity
                .as_deref()
                .map_or(Value::Null, number_or_text)
        }),
        "cpu_affinity" | "cpus" => per_row(form, rows, |row| json!(row.cpu_affinity)),
        "gpu_numa_id" => per_row(form, rows, |row| {
            row.gpu_numa_id
                .as_deref()
                .map_or(Value::Null, number_or_text)
        }),
        "ulimit_soft" => match read.seen.limits.open_files_soft.value()? {
            model::observation::limits::Limit::Value(n) => json!(n),
            model::observation::limits::Limit::Unlimited => json!("unlimited"),
        },
        "devices" => json!(
            matrix
                .nics
                .iter()
                .map(|n| n.device.as_deref())
                .collect::<Vec<_>>()
        ),
        // On Grace the memory of a GPU is a NUMA node of its own.
        "grace" => json!(rows.iter().all(|r| {
            r.gpu_numa_id
                .as_deref()
                .is_some_and(|id| id.parse::<u32>().is_ok())
        })),
        "command" => json!(read.command()?),
        "nic_names_in_header" => json!(
            matrix
                .nics
                .iter()
                .all(|n| n.device.as_deref() == Some(&n.label))
        ),
        "same_card" | "pix_pairs" => {
            let mut pairs = Vec::new();
            let start = matrix.gpus.len();
            for (at, row) in matrix
                .nic_rows
                .iter()
                .chain(&matrix.gpu_rows)
                .filter(|r| matrix.nics.iter().any(|n| n.label == r.label))
                .enumerate()
            {
                for (other, cell) in row.cells.iter().skip(start).enumerate().skip(at + 1) {
                    if *cell == Level::Pix {
                        pairs.push(if key == "same_card" {
                            json!([row.label, matrix.nics[other].label])
                        } else {
                            json!(format!("{at}-{other}"))
                        });
                    }
                }
            }
            json!(pairs)
        }
        "gpus_per_nic" => {
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            for row in rows {
                for nic in names(matrix, &row.label) {
                    *counts.entry(nic).or_default() += 1;
                }
            }
            json!(counts.values().max()?)
        }
        "node" => json!(nics_at(matrix, &Level::Node)),
        "sys" => json!(nics_at(matrix, &Level::Sys)),
        "rows" => json!(rows.iter().map(|r| &r.label).collect::<Vec<_>>()),
        "header" => json!(matrix.header),
        "cells_per_row" => per_row(&Value::Null, rows, |r| json!(r.cells.len())),
        // Cells are counted from 1.
        "cell_base" => json!(1),
        "pxb_cell" => Value::Object(
            rows.iter()
                .filter_map(|r| {
                    let at = r.cells.iter().position(|c| *c == Level::Pxb)?;
                    Some((r.label.clone(), json!(at + 1)))
                })
                .collect(),
        ),
        _ => return None,
    })
}

fn p2p(key: &str, form: &Value, read: &Read) -> Option<Value> {
    let matrix = read.seen.topology.p2p.first()?;
    let mut pairs: BTreeMap<String, String> = BTreeMap::new();
    for (at, (label, cells)) in matrix.rows.iter().enumerate() {
        for (other, cell) in cells.iter().enumerate().skip(at + 1) {
            pairs.insert(format!("{label}-{}", matrix.gpus[other]), cell.clone());
        }
    }
    Some(match key {
        "gpus" => json!(matrix.gpus.len()),
        "pairs" if form.is_string() => {
            let mut words: Vec<&String> = pairs.values().collect();
            words.dedup();
            json!(words.first().filter(|_| words.len() == 1)?)
        }
        "pairs" => json!(pairs),
        "pairs_ok" => json!(pairs.values().filter(|w| *w == "OK").count()),
        "pairs_not_ok" => json!(pairs.values().filter(|w| *w != "OK").count()),
        _ => return None,
    })
}

fn nvlink(tool: &str, key: &str, read: &Read) -> Option<Value> {
    let gpus = &read.seen.gpu.gpus;
    Some(match key {
        "gpus" => json!(
            gpus.iter()
                .map(|gpu| {
                    let at = |state: LinkState| -> Vec<u32> {
                        gpu.links
                            .iter()
                            .filter(|(_, l)| l.state.value() == Some(&state))
                            .map(|(n, _)| *n)
                            .collect()
                    };
                    let index = gpu.index.value().unwrap();
                    if tool == "dcgmi-nvlink" {
                        return json!({"id": index, "links": gpu.links.len(),
                            "up": at(LinkState::Up).len(), "down": at(LinkState::Down).len()});
                    }
                    let name = gpu.name.value().unwrap();
                    if gpu.all_links_inactive.value() == Some(&true) {
                        return json!({"index": index, "name": name, "links": null, "all_inactive": true});
                    }
                    let speed = gpu.links.values().find_map(|l| l.mb_per_s.value()).unwrap();
                    json!({"index": index, "name": name, "links": gpu.links.len(),
                        "active": at(LinkState::Up), "inactive": at(LinkState::Down),
                        "gb_s": *speed as f64 / 1000.0})
                })
                .collect::<Vec<_>>()
        ),
        "nvswitches" => json!(read.seen.gpu.nvswitches.value()?),
        "cut" => json!(read.cut()),
        "nvml" => {
            let message = gpus.iter().find_map(|g| g.nvlink_message.value())?;
            json!(message.trim_start_matches("NVML: "))
        }
        _ => return None,
    })
}

fn fabric(key: &str, read: &Read) -> Option<Value> {
    let gpu = read.seen.gpu.gpus.iter().next()?;
    let fabric = &gpu.fabric;
    Some(match key {
        "gpu_uuid" => json!(gpu.uuid.value()?),
        "state" => json!(fabric.state.value()?),
        "status" => json!(fabric.status.value()?),
        "clique" => json!(fabric.clique.value()),
        "cluster_uuid" => json!(fabric.cluster_uuid.value()),
        "health_summary" => json!(fabric.health_summary.value()),
        "bandwidth" => json!(fabric.bandwidth.value()?),
        "incorrect_configuration" => json!(fabric.health.get("Incorrect Configuration")?.value()?),
        "cut" => json!(read.cut()),
        "fabric_manager_active" => json!(read.seen.gpu.fabric_manager.value()?),
        "fabric_state_supported" => json!(fabric.supported.value()?),
        _ => return None,
    })
}
