//! Protocol tables of UCX, in both layouts.

use std::borrow::Cow;
use std::collections::VecDeque;

use model::Observation;
use model::observation::Origin;
use model::observation::log::{Lane, Process, ProtocolRow, ProtocolTable, Scope, TableLayout};

use super::lanes::{lane, title};
use crate::text::keep;

/// Processes whose tables are built at the same time.
const MAX_OPEN: usize = 64;
/// Rows of one table that are kept.
const MAX_ROWS: usize = 256;

/// The tables that are being built, one per process: their lines can be mixed.
#[derive(Default)]
pub(super) struct Tables {
    open: VecDeque<(Process, Building)>,
}

#[derive(Default)]
struct Building {
    table: Option<ProtocolTable>,
    /// The first title row of the new layout.
    title: Option<(String, Origin)>,
}

/// The part of a line that is a row or a rule of a table. What stands behind it (quotes, the end of a JSON record)
/// is left out.
pub(super) fn content(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let text = text.strip_prefix('#').map_or(text, str::trim);
    // Terminals and documents draw tables with characters of their own.
    let text = if !text.is_ascii() && text.chars().any(|c| ('\u{2500}'..='\u{257f}').contains(&c)) {
        Cow::Owned(text.chars().map(plain).collect())
    } else {
        Cow::Borrowed(text)
    };
    let first = text.chars().next()?;
    if !matches!(first, '|' | '+') {
        return None;
    }
    let end = text.rfind(first)?.checked_add(1)?;
    let whole = end == text.len() || text.get(end..)?.starts_with(['"', '\\', '\'']);
    let part = text.get(..end)?;
    let row = part.len() >= 2 && first == '|';
    let rule = part.starts_with("+-") && part.chars().all(|c| matches!(c, '+' | '-'));
    if !(whole && (row || rule)) {
        return None;
    }
    Some(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..end)?),
        Cow::Owned(text) => Cow::Owned(text.get(..end)?.to_owned()),
    })
}

fn plain(c: char) -> char {
    match c {
        '│' | '┃' | '║' => '|',
        '─' | '━' | '═' => '-',
        '\u{2500}'..='\u{257f}' => '+',
        c => c,
    }
}

/// Whether a line can have a row or a rule in it.
pub(super) fn can_be(text: &str) -> bool {
    !text.is_ascii() || text.as_bytes().contains(&b'|') || text.contains("+-")
}

/// The title of a table.
pub(super) fn is_title(row: &str) -> bool {
    row.starts_with('|') && row.contains(" cfg#")
}

/// A part of a table stands in this line, whatever stands around it.
pub(super) fn shows(text: &str) -> bool {
    text.contains("remote memory write by ucp_put")
        || text.contains("remote memory read by ucp_get")
        || (text.contains(['|', '│', '¦']) && text.contains(" cfg#") && !text.contains('('))
}

impl Tables {
    /// Whether a table of this process is being built.
    pub(super) fn building(&self, process: &Process) -> bool {
        self.open
            .iter()
            .any(|(who, b)| who == process && (b.table.is_some() || b.title.is_some()))
    }

    fn of(&mut self, process: &Process, out: &mut Observation) -> Option<&mut Building> {
        if !self.open.iter().any(|(who, _)| who == process) {
            if self.open.len() >= MAX_OPEN
                && let Some((_, mut old)) = self.open.pop_front()
            {
                old.close(true, out);
            }
            self.open.push_back((process.clone(), Building::default()));
        }
        self.open
            .iter_mut()
            .find(|(who, _)| who == process)
            .map(|(_, building)| building)
    }

    /// Takes one row or rule.
    pub(super) fn row(
        &mut self,
        row: &str,
        origin: Origin,
        process: &Process,
        out: &mut Observation,
    ) -> bool {
        let Some(building) = self.of(process, out) else {
            return false;
        };
        if row.starts_with('+') {
            if building.table.as_ref().is_some_and(|t| !t.rows.is_empty()) {
                building.close(false, out);
            }
            return true;
        }
        let inner = row.trim_start_matches('|').trim_end_matches('|');
        let cells: Vec<&str> = inner.split('|').take(8).map(str::trim).collect();
        match cells.as_slice() {
            [one] => {
                match building.title.take() {
                    None => {
                        building.close(true, out);
                        if one.contains("cfg#") {
                            building.title = Some((keep(one), origin));
                        }
                    }
                    Some((name, at)) => {
                        building.begin(&name, one, TableLayout::New, at, process);
                    }
                }
                true
            }
            [name, words] => {
                building.close(true, out);
                if name.contains("cfg#") {
                    building.begin(name, words, TableLayout::Old, origin, process);
                }
                true
            }
            [range, ..] if *range == "Range" => true,
            [range, how, config] => {
                building.add(range, how, config, origin, process);
                true
            }
            _ => {
                building.close(true, out);
                true
            }
        }
    }

    /// Ends all.
    pub(super) fn finish(&mut self, out: &mut Observation) {
        while let Some((_, mut building)) = self.open.pop_front() {
            building.close(true, out);
        }
    }
}

impl Building {
    fn begin(
        &mut self,
        name: &str,
        words: &str,
        layout: TableLayout,
        origin: Origin,
        process: &Process,
    ) {
        let (context, scope, config) = match title(name) {
            Some((context, scope, config, _)) => {
                (Some(context).filter(|c| !c.is_empty()), scope, config)
            }
            None => (None, Scope::Unknown, None),
        };
        let (from_memory, to_memory) = memory(words);
        self.table = Some(ProtocolTable {
            origin,
            layout,
            title: keep(name),
            context,
            scope,
            config,
            operation: operation(words),
            description: keep(words),
            from_memory,
            to_memory,
            rows: Vec::new(),
            cut: false,
            process: process.clone(),
        });
    }

    fn add(&mut self, range: &str, how: &str, config: &str, origin: Origin, process: &Process) {
        let table = self.table.get_or_insert_with(|| ProtocolTable {
            origin,
            layout: TableLayout::Old,
            title: String::new(),
            context: None,
            scope: Scope::Unknown,
            config: None,
            operation: String::new(),
            description: String::new(),
            from_memory: None,
            to_memory: None,
            rows: Vec::new(),
            // Its title is not here.
            cut: true,
            process: process.clone(),
        });
        let lanes: Vec<Lane> = lanes(config);
        if range.is_empty() {
            // A long configuration goes on in the next line.
            if let Some(last) = table.rows.last_mut()
                && last.config.len() < 4096
            {
                last.config.push(' ');
                last.config.push_str(&keep(config));
                for lane in lanes {
                    if !last.lanes.contains(&lane) {
                        last.lanes.push(lane);
                    }
                }
            }
            return;
        }
        if table.rows.len() >= MAX_ROWS {
            return;
        }
        let (first, last) = range.split_once("..").unwrap_or((range, range));
        table.rows.push(ProtocolRow {
            range: (keep(first), keep(last)),
            from_bytes: bytes(first),
            to_bytes: bytes(last),
            how: keep(how),
            config: keep(config),
            lanes,
        });
    }

    fn close(&mut self, cut: bool, out: &mut Observation) {
        self.title = None;
        if let Some(mut table) = self.table.take() {
            table.cut |= cut;
            out.log.add_table(table);
        }
    }
}

/// `put`, `get`, `active message`, … from `remote memory write by ucp_put*(multi) from host memory to host`.
fn operation(words: &str) -> String {
    for (call, name) in [
        ("ucp_put", "put"),
        ("ucp_get", "get"),
        ("ucp_tag_send", "tagged send"),
        ("ucp_am_send", "active message"),
        ("ucp_stream_send", "stream send"),
    ] {
        if words.contains(call) {
            return name.to_owned();
        }
    }
    keep(words.split(" by ").next().unwrap_or(words))
}

/// Where it reads from and writes to: `from host memory to cuda`, `into host memory from cuda`.
fn memory(words: &str) -> (Option<String>, Option<String>) {
    let after = |key: &str| {
        let (_, rest) = words.split_once(key)?;
        rest.split_whitespace().next().map(keep)
    };
    (after(" from "), after(" into ").or_else(|| after(" to ")))
}

fn lanes(config: &str) -> Vec<Lane> {
    let mut found: Vec<Lane> = Vec::new();
    for lane in config.split_whitespace().take(128).filter_map(lane) {
        if !found.contains(&lane) {
            found.push(lane);
        }
    }
    found
}

/// `2K` is 2048, `inf` is none.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    let scale = match unit {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}
