//! The fabric part of gpud: a table, or JSON with JSON inside a string.

use model::observation::gpu::Gpu;
use model::observation::{Completeness, Tool};
use model::{Observation, Reason};
use serde_json::Value;

use super::Kind;
use super::json::{Collector, number, string};
use crate::parser::{At, Parser};
use crate::text::{keep, small};

pub(crate) const TABLE: Kind = Kind {
    tool: Tool::GpudTable,
    programs: &[],
    command: |_| false,
    starts: |line, next| {
        row(line).is_some_and(|(key, _)| key == "GPU UUID")
            || (line.trim().starts_with("+-")
                && row(next).is_some_and(|(key, _)| key == "GPU UUID"))
    },
    open: |_| Box::new(Table { gpu: None }),
};

pub(crate) const JSON: Kind = Kind {
    tool: Tool::GpudJson,
    programs: &["gpud"],
    command: |_| true,
    starts: |line, next| {
        let text = line.trim_start();
        text.starts_with(['{', '[', '"'])
            && [line, next].iter().any(|l| {
                l.contains("fabric_state")
                    || l.contains("fabric_manager_active")
                    || l.contains("\"extra_info\"")
            })
    },
    open: |_| {
        Box::new(Json {
            collector: Collector::default(),
        })
    },
};

struct Table {
    gpu: Option<Gpu>,
}

/// `| GPU UUID | GPU-… |`
fn row(line: &str) -> Option<(&str, &str)> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let (key, value) = inner.split_once('|')?;
    (!value.contains('|')).then(|| (key.trim(), value.trim()))
}

/// One named value of a GPU's fabric.
fn fabric(gpu: &mut Gpu, key: &str, value: &str, at: At<'_>) {
    let origin = at.origin();
    let fabric = &mut gpu.fabric;
    match key {
        "gpu uuid" => gpu.uuid.see(keep(value), origin),
        "clique id" => {
            if let Some(clique) = small(value) {
                fabric.clique.see(clique, origin);
            }
        }
        "cluster uuid" => {
            if value.is_empty() || value == "N/A" {
                fabric
                    .cluster_uuid
                    .miss(Reason::NotApplicable, "no cluster is told");
            } else {
                fabric.cluster_uuid.see(keep(value), origin);
            }
        }
        "state" => fabric.state.see(keep(value), origin),
        "status" => fabric.status.see(keep(value), origin),
        "health summary" | "summary" => fabric.health_summary.see(keep(value), origin),
        "bandwidth" => fabric.bandwidth.see(keep(value), origin),
        _ => fabric
            .health
            .entry(keep(key))
            .or_default()
            .see(keep(value), origin),
    }
}

impl Parser for Table {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let text = line.trim();
        if text.starts_with("+-") {
            return true;
        }
        let Some((key, value)) = row(line) else {
            return false;
        };
        if key == "GPU UUID"
            && let Some(gpu) = self.gpu.take()
        {
            out.gpu.gpus.add(gpu);
        }
        let gpu = self.gpu.get_or_insert_with(Gpu::default);
        if gpu.fabric.health.len() < 64 {
            fabric(gpu, &key.to_ascii_lowercase(), value, at);
        }
        true
    }

    fn finish(&mut self, _: At<'_>, out: &mut Observation) -> Completeness {
        if let Some(gpu) = self.gpu.take() {
            let cut = !gpu.fabric.state.is_seen();
            out.gpu.gpus.add(gpu);
            if cut {
                return Completeness::Cut("the table ends before the state".to_owned());
            }
        }
        Completeness::Whole
    }
}

struct Json {
    collector: Collector,
}

impl Parser for Json {
    fn take(&mut self, line: &str, _: At<'_>, _: &mut Observation) -> bool {
        self.collector.take(line)
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        match self.collector.parse() {
            Ok(Some(value)) => {
                walk(&value, at, out, 0);
                Completeness::Whole
            }
            Ok(None) => Completeness::Whole,
            Err(why) => Completeness::Cut(why),
        }
    }
}

/// Finds fabric states anywhere in the value, also in strings that are JSON themselves.
fn walk(value: &Value, at: At<'_>, out: &mut Observation, depth: u32) {
    if depth > 32 {
        return;
    }
    let deeper = depth.saturating_add(1);
    match value {
        Value::String(text) if text.trim_start().starts_with('{') => {
            if let Ok(inner) = serde_json::from_str::<Value>(text) {
                walk(&inner, at, out, deeper);
            }
        }
        Value::Array(list) => list.iter().for_each(|v| walk(v, at, out, deeper)),
        Value::Object(map) => {
            if let Some(active) = map.get("fabric_manager_active").and_then(Value::as_bool) {
                out.gpu.fabric_manager.see(active, at.origin());
            }
            let supported = map.get("fabric_state_supported").and_then(Value::as_bool);
            if let Some(states) = map.get("fabric_states").and_then(Value::as_array) {
                for state in states.iter().take(1024) {
                    gpu(state, supported, at, out);
                }
            }
            for (key, inner) in map {
                if key != "fabric_states" {
                    walk(inner, at, out, deeper);
                }
            }
        }
        _ => {}
    }
}

fn gpu(state: &Value, supported: Option<bool>, at: At<'_>, out: &mut Observation) {
    let mut gpu = Gpu::default();
    if let Some(supported) = supported {
        gpu.fabric.supported.see(supported, at.origin());
    }
    if let Some(clique) = number(state, "clique_id") {
        gpu.fabric.clique.see(clique, at.origin());
    }
    for (key, name) in [
        ("gpu_uuid", "gpu uuid"),
        ("cluster_uuid", "cluster uuid"),
        ("state", "state"),
        ("status", "status"),
    ] {
        if let Some(value) = string(state, key) {
            fabric(&mut gpu, name, value, at);
        }
    }
    match state.get("summary").or_else(|| state.get("health_summary")) {
        Some(Value::String(summary)) => fabric(&mut gpu, "summary", summary, at),
        Some(Value::Object(map)) => {
            if let Some(Value::String(summary)) = map.get("summary") {
                fabric(&mut gpu, "summary", summary, at);
            }
        }
        _ => {}
    }
    if let Some(Value::Object(map)) = state.get("health") {
        for (key, value) in map.iter().take(32) {
            if let Value::String(value) = value {
                fabric(&mut gpu, &key.replace('_', " "), value, at);
            }
        }
    }
    out.gpu.gpus.add(gpu);
}
