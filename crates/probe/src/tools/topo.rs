//! `nvidia-smi topo -m`, `-mp` and `-p2p`.

use model::Observation;
use model::observation::topology::{Level, Matrix, MatrixKind, MatrixRow, NicColumn, P2pMatrix};
use model::observation::{Completeness, Tool};

use super::Kind;
use crate::command::Command;
use crate::parser::{At, Parser};
use crate::text::{is_name, keep};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::NvidiaSmiTopo,
    programs: &["nvidia-smi"],
    command: |command| command.has("topo") && !p2p_command(command),
    starts: |line, next| {
        header(line).is_some_and(|h| !h.gpus.is_empty()) && !p2p_row(next) && !rocm_row(next)
            || (row_start(line) && !p2p_row(line))
    },
    open: |command| Box::new(Topo::new(command, false)),
};

pub(crate) const P2P: Kind = Kind {
    tool: Tool::NvidiaSmiTopoP2p,
    programs: &["nvidia-smi"],
    command: p2p_command,
    starts: |line, next| {
        (header(line).is_some_and(|h| !h.gpus.is_empty()) && p2p_row(next)) || p2p_row(line)
    },
    open: |command| Box::new(Topo::new(command, true)),
};

fn p2p_command(command: &Command) -> bool {
    command.has("topo") && (command.has("-p2p") || command.has("--p2pstatus"))
}

/// Columns that are kept; larger machines do not exist.
const MAX_COLUMNS: usize = 512;

struct Header {
    gpus: Vec<String>,
    nics: Vec<String>,
    cpu: bool,
    numa: bool,
    gpu_numa: bool,
}

/// `GPU12`, as title of a column or row.
fn gpu_label(word: &str) -> bool {
    word.strip_prefix("GPU")
        .is_some_and(|n| !n.is_empty() && n.len() <= 4 && n.chars().all(|c| c.is_ascii_digit()))
}

fn nic_label(word: &str) -> bool {
    word.strip_prefix("NIC")
        .is_some_and(|n| !n.is_empty() && n.len() <= 4 && n.chars().all(|c| c.is_ascii_digit()))
}

/// `NIC11NIC12` is two titles.
fn unglue(word: &str) -> Vec<&str> {
    let mut cuts: Vec<usize> = ["NIC", "GPU"]
        .iter()
        .flat_map(|p| word.match_indices(p).map(|(at, _)| at))
        .collect();
    cuts.sort_unstable();
    if cuts.len() < 2 || cuts.first() != Some(&0) {
        return vec![word];
    }
    let parts: Vec<&str> = cuts
        .iter()
        .zip(cuts.iter().skip(1).copied().chain([word.len()]))
        .filter_map(|(from, to)| word.get(*from..to))
        .collect();
    if parts.iter().all(|p| gpu_label(p) || nic_label(p)) {
        parts
    } else {
        vec![word]
    }
}

/// The line of column titles.
fn header(line: &str) -> Option<Header> {
    // A row has its own title first, then a cell.
    let (titles, tail) = match line.find("CPU Affinity") {
        Some(at) => (line.get(..at)?, line.get(at..)?),
        None => (line, ""),
    };
    let words: Vec<&str> = titles.split_whitespace().flat_map(unglue).collect();
    let first = words.first()?;
    if !(gpu_label(first) || nic_label(first)) || words.len() > MAX_COLUMNS {
        return None;
    }
    let gpus: Vec<String> = words
        .iter()
        .take_while(|w| gpu_label(w))
        .map(|w| (*w).to_owned())
        .collect();
    let nics: Vec<String> = words.iter().skip(gpus.len()).map(|w| keep(w)).collect();
    // Every other word is a device name, not a level.
    if nics.iter().any(|n| !is_name(n) || level(n).is_some()) {
        return None;
    }
    if words.len() == 1 && tail.is_empty() {
        return None;
    }
    Some(Header {
        gpus,
        nics,
        cpu: !tail.is_empty(),
        numa: tail.matches("NUMA").count() >= 1,
        gpu_numa: tail.contains("GPU NUMA"),
    })
}

fn level(word: &str) -> Option<Level> {
    Some(match word {
        "X" => Level::Itself,
        "PIX" => Level::Pix,
        "PXB" => Level::Pxb,
        "PHB" => Level::Phb,
        "NODE" => Level::Node,
        "SYS" | "SOC" => Level::Sys,
        "C2C" | "N/A" => return None,
        _ => {
            let digits = word.strip_prefix("NV")?;
            if digits.is_empty() || digits.len() > 3 || !digits.chars().all(|c| c.is_ascii_digit())
            {
                return None;
            }
            Level::NvLink(digits.parse().ok()?)
        }
    })
}

fn p2p_word(word: &str) -> bool {
    matches!(word, "OK" | "CNS" | "GNS" | "TNS" | "NS" | "DR" | "U")
}

/// A row of GPUs or network cards with at least one level.
fn row_start(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next().is_some_and(|w| gpu_label(w) || nic_label(w))
        && words.next().is_some_and(|w| level(w).is_some())
        && words
            .next()
            .is_none_or(|w| level(w).is_some() || w.contains('-'))
}

/// A row of `rocm-smi --showtopo`, which has the same titles: `GPU0   0   XGMI`.
fn rocm_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next().is_some_and(gpu_label)
        && (words.clone().any(|w| matches!(w, "XGMI" | "PCIE"))
            || words.next().is_some_and(|w| w.parse::<u32>().is_ok()))
}

fn p2p_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    if !words.next().is_some_and(gpu_label) {
        return false;
    }
    let mut any = false;
    for word in words {
        if p2p_word(word) {
            any = true;
        } else if word != "X" {
            return false;
        }
    }
    any
}

struct Topo {
    p2p: bool,
    pcie_only: Option<bool>,
    asked: Option<String>,
    header: Option<Header>,
    rows: Vec<MatrixRow>,
    p2p_rows: Vec<(String, Vec<String>)>,
    legend: Vec<(String, String)>,
    in_legend: bool,
    first_line: Option<u32>,
    width: usize,
    /// A terminal broke its lines: what stands in which column is not known.
    wrapped: bool,
}

impl Topo {
    fn new(command: Option<&Command>, p2p: bool) -> Self {
        let topo = command.filter(|c| c.has("topo"));
        let pcie_only = topo.and_then(|c| {
            if c.has("-mp") || c.has("--matrix_pci") {
                Some(true)
            } else if c.has("-m") || c.has("--matrix") {
                Some(false)
            } else {
                None
            }
        });
        Self {
            p2p,
            pcie_only,
            asked: topo
                .and_then(|c| c.option("-p2p").or_else(|| c.option("--p2pstatus")))
                .map(keep),
            header: None,
            rows: Vec::new(),
            p2p_rows: Vec::new(),
            legend: Vec::new(),
            in_legend: false,
            first_line: None,
            width: 0,
            wrapped: false,
        }
    }

    /// The rest of a line that a narrow terminal broke: titles or cells without a row's own title.
    fn continues(&self, text: &str) -> bool {
        if self.p2p || self.header.is_none() || self.in_legend {
            return false;
        }
        let first = text.split_whitespace().next().unwrap_or_default();
        if self.rows.is_empty() {
            let titles = header(text).is_some() && first != "GPU0" && !row_start(text);
            let tail = text.ends_with("GPU NUMA ID") || text.ends_with("Affinity");
            return titles || tail;
        }
        let cells = level(first).is_some() && !text.contains('=');
        cells
            || (self.wrapped
                && (text == "N/A" || text.ends_with("N/A"))
                && !gpu_label(first)
                && !nic_label(first))
    }

    /// One row: exactly as many cells as there are columns, then affinities.
    fn row(&self, line: &str, number: u32) -> Option<MatrixRow> {
        let trimmed = line.trim_start();
        let label_end = trimmed.find(char::is_whitespace)?;
        let (label, mut rest) = trimmed.split_at_checked(label_end)?;
        let columns = self
            .header
            .as_ref()
            .map_or(MAX_COLUMNS, |h| h.gpus.len().saturating_add(h.nics.len()));
        let mut cells = Vec::new();
        while cells.len() < columns {
            let start = rest.trim_start();
            let end = start.find(char::is_whitespace).unwrap_or(start.len());
            let (word, after) = start.split_at_checked(end)?;
            let cell = match level(word) {
                Some(cell) => cell,
                // A word of a newer driver, within the columns that the header names.
                None if self.header.is_some()
                    && !word.is_empty()
                    && word
                        .chars()
                        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()) =>
                {
                    Level::Other(keep(word))
                }
                None => break,
            };
            cells.push(cell);
            rest = after;
        }
        if cells.is_empty() {
            return None;
        }
        let (cpu, numa, gpu_numa) = self.tail(rest, cells.len() == columns);
        Some(MatrixRow {
            line: number,
            label: label.to_owned(),
            cells,
            cpu_affinity: cpu,
            numa_affinity: numa,
            gpu_numa_id: gpu_numa,
        })
    }

    /// Affinities after the cells. A blank CPU cell shows as an empty field between tabs only.
    fn tail(&self, rest: &str, complete: bool) -> (Option<String>, Option<String>, Option<String>) {
        let wants = match &self.header {
            Some(header) => usize::from(header.cpu)
                .saturating_add(usize::from(header.numa))
                .saturating_add(usize::from(header.gpu_numa)),
            None => 3,
        };
        let tabs = rest.contains('\t');
        let fields: Vec<&str> = if tabs {
            rest.split('\t').skip(1).map(str::trim).collect()
        } else {
            rest.split_whitespace().collect()
        };
        let full: Vec<&str> = fields.iter().copied().filter(|f| !f.is_empty()).collect();
        if wants == 0 || full.is_empty() || (self.header.is_some() && !complete) {
            return (None, None, None);
        }
        let some = |text: Option<&&str>| text.map(|t| keep(t));
        if full.len() >= wants || wants == 1 {
            let mut all = full.iter();
            let cpu = some(all.next());
            let numa = if wants >= 2 { some(all.next()) } else { None };
            let gpu = if wants >= 3 { some(all.next()) } else { None };
            return (cpu, numa, gpu);
        }
        // One is blank: the first, if its field is empty or it does not look like a CPU list.
        let cpu_blank = if tabs {
            fields.first().is_some_and(|f| f.is_empty())
        } else {
            full.first().is_some_and(|f| !f.contains(['-', ',']))
        };
        let mut all = full.iter();
        let cpu = if cpu_blank {
            Some(String::new())
        } else {
            some(all.next())
        };
        let numa = match all.next() {
            Some(word) if *word != "N/A" => Some(keep(word)),
            Some(_) => return (cpu, Some(String::new()), Some("N/A".to_owned())),
            None => None,
        };
        (cpu, numa, if wants >= 3 { some(all.next()) } else { None })
    }
}

impl Parser for Topo {
    fn take(&mut self, line: &str, at: At<'_>, _: &mut Observation) -> bool {
        let text = line.trim();
        if self.continues(text) {
            self.wrapped = true;
            return true;
        }
        if let Some(found) = header(line)
            && !row_start(line)
        {
            if self.header.is_some() || !self.rows.is_empty() || !self.p2p_rows.is_empty() {
                return false;
            }
            self.header = Some(found);
            self.first_line.get_or_insert(at.line);
            return true;
        }
        let label = text.split_whitespace().next().unwrap_or_default();
        let named = gpu_label(label)
            || nic_label(label)
            || self
                .header
                .as_ref()
                .is_some_and(|h| h.nics.iter().any(|n| n == label));
        if self.p2p {
            if gpu_label(label) && self.p2p_rows.len() < MAX_COLUMNS {
                let cells: Vec<String> = text
                    .split_whitespace()
                    .skip(1)
                    .take(MAX_COLUMNS)
                    .map(keep)
                    .collect();
                if cells.iter().all(|c| p2p_word(c) || c == "X") {
                    self.first_line.get_or_insert(at.line);
                    self.p2p_rows.push((label.to_owned(), cells));
                    return true;
                }
            }
        } else if named
            && !text.contains(':')
            && self.rows.len() < MAX_COLUMNS
            && let Some(row) = self.row(line, at.line)
        {
            self.first_line.get_or_insert(at.line);
            self.width = self.width.max(row.cells.len());
            self.rows.push(row);
            return true;
        }
        if text.starts_with("---") && text.chars().all(|c| c == '-') {
            return self.header.is_some();
        }
        if text == "Legend:" || text == "NIC Legend:" {
            self.in_legend = text.starts_with("NIC");
            return true;
        }
        if self.first_line.is_some() {
            // `X    = Self`
            if let Some((word, _)) = text.split_once(" = ")
                && word.trim().len() <= 4
            {
                return true;
            }
            if let Some((nic, name)) = text.split_once(':')
                && nic_label(nic.trim())
                && is_name(name.trim())
                && self.legend.len() < MAX_COLUMNS
            {
                self.legend.push((nic.trim().to_owned(), keep(name)));
                return true;
            }
        }
        false
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        let mut origin = at.origin();
        origin.line = self.first_line.or(origin.line);
        if self.p2p {
            return self.finish_p2p(origin, out);
        }
        if self.header.is_none() && self.rows.is_empty() {
            return Completeness::Cut("no matrix follows".to_owned());
        }
        let nvlink = self
            .rows
            .iter()
            .flat_map(|r| &r.cells)
            .any(|c| matches!(c, Level::NvLink(_)));
        let kind = match (nvlink, self.pcie_only) {
            (true, _) | (false, Some(false)) => MatrixKind::WithNvLink,
            (false, Some(true)) => MatrixKind::PcieOnly,
            (false, None) => MatrixKind::Unknown,
        };
        let header = self.header.take();
        let titled = header.is_some();
        let wants_tail = header.as_ref().is_some_and(|h| h.cpu);
        let (gpus, nics) = header.map_or_else(Default::default, |h| (h.gpus, h.nics));
        let (gpu_rows, nic_rows): (Vec<_>, Vec<_>) = std::mem::take(&mut self.rows)
            .into_iter()
            .partition(|row| gpu_label(&row.label));
        // Rows and legend may name network cards that the titles lack: then the rows lack their cells too.
        let mut nics = nics;
        let untitled: Vec<String> = nic_rows
            .iter()
            .map(|row| &row.label)
            .chain(self.legend.iter().map(|(nic, _)| nic))
            .filter(|label| nic_label(label))
            .cloned()
            .collect();
        if titled && (nics.is_empty() || nics.iter().any(|n| nic_label(n))) {
            for label in untitled {
                if !nics.contains(&label) {
                    nics.push(label);
                }
            }
        }
        let nics: Vec<NicColumn> = nics
            .into_iter()
            .map(|label| NicColumn {
                device: if nic_label(&label) {
                    self.legend
                        .iter()
                        .find(|(nic, _)| *nic == label)
                        .map(|(_, name)| name.clone())
                } else {
                    Some(label.clone())
                },
                label,
            })
            .collect();
        let columns = gpus.len().saturating_add(nics.len());
        let short = gpu_rows
            .iter()
            .find(|row| row.cells.len() < columns)
            .map(|row| row.label.clone());
        // A last row without affinities, where the rows before have them.
        let blunt = gpu_rows
            .last()
            .filter(|row| wants_tail && row.cpu_affinity.is_none() && row.numa_affinity.is_none())
            .filter(|_| gpu_rows.iter().any(|row| row.numa_affinity.is_some()))
            .map(|row| row.label.clone());
        let mut matrix = Matrix {
            origin,
            kind,
            gpus,
            nics,
            gpu_rows,
            nic_rows,
            header: titled,
            cut: false,
        };
        let missing: Vec<&str> = matrix.missing_rows().collect();
        let why = if !titled {
            Some("the line of column titles is missing".to_owned())
        } else if self.wrapped {
            Some("its lines were broken by a narrow terminal: save it with `> FILE`".to_owned())
        } else if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
            Some(format!(
                "the titles name {} GPUs, rows of {} are missing ({first} to {last})",
                matrix.gpus.len(),
                missing.len()
            ))
        } else {
            short
                .or(blunt)
                .map(|row| format!("the row of {row} ends early"))
        };
        matrix.cut = why.is_some();
        out.topology.matrices.push(matrix);
        why.map_or(Completeness::Whole, Completeness::Cut)
    }
}

impl Topo {
    fn finish_p2p(
        &mut self,
        origin: model::observation::Origin,
        out: &mut Observation,
    ) -> Completeness {
        let gpus = self.header.take().map(|h| h.gpus).unwrap_or_default();
        let rows = std::mem::take(&mut self.p2p_rows);
        if gpus.is_empty() && rows.is_empty() {
            return Completeness::Cut("no matrix follows".to_owned());
        }
        let cut = rows.len() < gpus.len() || rows.iter().any(|(_, cells)| cells.len() < gpus.len());
        out.topology.p2p.push(P2pMatrix {
            origin,
            asked: self.asked.clone(),
            gpus,
            rows,
            cut,
        });
        if cut {
            Completeness::Cut("rows are missing or end early".to_owned())
        } else {
            Completeness::Whole
        }
    }
}
