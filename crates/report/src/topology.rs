//! `node --topology`: GPUs as rows, network cards as columns.

use std::fmt::Write as _;

use model::topology::TopologyMap;

use crate::escape;

/// Cards of a row from which on the matrix is turned: one line for each GPU.
const WIDEST: usize = 16;

/// The maps as text.
pub fn text(maps: &[TopologyMap], ascii: bool) -> String {
    let mut out = String::new();
    for map in maps {
        if !out.is_empty() {
            out.push('\n');
        }
        one(map, ascii, &mut out);
    }
    if maps.is_empty() {
        out.push_str(
            "no matrix of GPUs and network cards was read; nvidia-smi topo -m prints one\n",
        );
    }
    out
}

/// The maps as JSON, an object of its own.
pub fn json(maps: &[TopologyMap]) -> String {
    crate::json_text(&serde_json::json!({ "topology": maps }))
}

fn one(map: &TopologyMap, ascii: bool, out: &mut String) {
    let name = |text: &str| escape::name(text, ascii).into_owned();
    line(
        out,
        &format!("GPUs and network cards, from {}", name(&map.from)),
    );
    if map.nics.is_empty() {
        line(out, "  no network card in it");
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    let wide = map.nics.len() > WIDEST;
    let mut head = vec![
        String::new(),
        "nearest".to_owned(),
        "over".to_owned(),
        "NUMA".to_owned(),
    ];
    if !wide {
        head.extend(map.nics.iter().map(|n| name(n)));
    }
    rows.push(head);
    for gpu in &map.gpus {
        let nearest = match &gpu.nearest {
            Some(nics) if nics.len() == map.nics.len() && nics.len() > 2 => "all".to_owned(),
            Some(nics) => nics.iter().map(|n| name(n)).collect::<Vec<_>>().join(","),
            None => "unknown".to_owned(),
        };
        let mut row = vec![
            name(&gpu.gpu),
            nearest,
            gpu.level.as_deref().map_or_else(|| "-".to_owned(), name),
            gpu.numa.as_deref().map_or_else(|| "-".to_owned(), name),
        ];
        if !wide {
            row.extend(map.nics.iter().map(|nic| {
                gpu.paths
                    .iter()
                    .find(|p| p.nic == *nic)
                    .map_or_else(|| "-".to_owned(), |p| name(&p.path))
            }));
        }
        rows.push(row);
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|c| {
            rows.iter()
                .filter_map(|r| r.get(c))
                .map(|w| w.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for row in &rows {
        let mut text = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            let _infallible = write!(text, " {cell:<width$} ");
        }
        line(out, text.trim_end());
    }
    if !map.near_none.is_empty() {
        let names: Vec<String> = map.near_none.iter().map(|n| name(n)).collect();
        line(
            out,
            &format!("  nearest to none of these GPUs: {}", names.join(", ")),
        );
    }
    if map.cut {
        line(
            out,
            "  a part of the matrix is missing: what is not here is unknown",
        );
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
