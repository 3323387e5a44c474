//! `lsmod` and `/proc/modules`.

use std::collections::BTreeSet;

use model::Observation;
use model::observation::modules::ModuleListing;
use model::observation::{Completeness, Tool};

use super::Kind;
use crate::parser::{At, Parser};
use crate::text::{is_name, keep};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::Lsmod,
    programs: &["lsmod", "cat"],
    command: |command| command.program == "lsmod" || command.has("/proc/modules"),
    starts: |line, next| {
        is_header(line)
            || proc_row(line).is_some()
            || (row(line).is_some_and(|r| known(r.name) || r.users.iter().any(|u| known(u)))
                && (next.trim().is_empty() || row(next).is_some()))
    },
    open: |command| {
        Box::new(Modules {
            filtered: command.is_some_and(|c| c.filtered),
            commanded: command.is_some_and(|c| !c.filtered),
            ..Modules::default()
        })
    },
};

#[derive(Default)]
struct Modules {
    filtered: bool,
    commanded: bool,
    header: bool,
    proc: bool,
    count: u32,
    rows: BTreeSet<String>,
    users: BTreeSet<String>,
}

struct Row<'a> {
    name: &'a str,
    uses: Option<u32>,
    users: Vec<&'a str>,
}

/// Modules that are kept.
const MAX_MODULES: usize = 4096;

fn is_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words == ["Module", "Size", "Used", "by"]
}

fn known(name: &str) -> bool {
    [
        "nvidia",
        "mlx5_",
        "mlx4_",
        "ib_",
        "rdma_",
        "nv_peer_mem",
        "gdrdrv",
        "efa",
        "bnxt_re",
        "irdma",
        "amdgpu",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

/// `nvidia_peermem   16384  0` and `ib_core  442368  9 rdma_cm,ib_ipoib`.
fn row(line: &str) -> Option<Row<'_>> {
    let mut words = line.split_whitespace();
    let name = words
        .next()
        .filter(|w| is_name(w) || w.starts_with(|c: char| c.is_ascii_digit()))?;
    words.next()?.parse::<u64>().ok()?;
    let uses = words.next()?.parse::<i64>().ok()?;
    let users = words.next().unwrap_or("");
    if words.next().is_some() || line.contains(':') {
        return None;
    }
    let users: Vec<&str> = users
        .split(',')
        .filter(|u| !u.is_empty() && *u != "-")
        .collect();
    users
        .iter()
        .all(|u| is_name(u) || u.starts_with("[permanent"))
        .then(|| Row {
            name,
            uses: u32::try_from(uses).ok(),
            users,
        })
}

/// `nvidia_peermem 16384 0 - Live 0x0000000000000000 (POE)`
fn proc_row(line: &str) -> Option<Row<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, size, uses, users, state, address, ..] = words.as_slice() else {
        return None;
    };
    size.parse::<u64>().ok()?;
    if !matches!(*state, "Live" | "Loading" | "Unloading") || !address.starts_with("0x") {
        return None;
    }
    Some(Row {
        name,
        uses: uses.parse().ok(),
        users: users
            .split(',')
            .filter(|u| !u.is_empty() && *u != "-")
            .collect(),
    })
}

impl Parser for Modules {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if is_header(line) {
            self.header = true;
            return true;
        }
        let row = match proc_row(line) {
            Some(row) => {
                self.proc = true;
                row
            }
            None => match row(line) {
                Some(row) => row,
                None => return false,
            },
        };
        self.count = self.count.saturating_add(1);
        let modules = &mut out.modules.modules;
        if modules.len() < MAX_MODULES || modules.contains_key(row.name) {
            let module = modules.entry(row.name.to_owned()).or_default();
            module.loaded.see(true, at.origin());
            module.only_in_used_by.see(false, at.origin());
            if let Some(uses) = row.uses {
                module.use_count.see(uses, at.origin());
            }
            module
                .used_by
                .see(row.users.iter().map(|u| keep(u)).collect(), at.origin());
            self.rows.insert(row.name.to_owned());
        }
        for user in row.users {
            if !is_name(user) || self.users.len() >= MAX_MODULES {
                continue;
            }
            self.users.insert(user.to_owned());
            let modules = &mut out.modules.modules;
            if modules.len() < MAX_MODULES || modules.contains_key(user) {
                let module = modules.entry(user.to_owned()).or_default();
                if !module.loaded.is_seen() {
                    module.loaded.see(true, at.origin());
                    module.only_in_used_by.see(true, at.origin());
                }
            }
        }
        true
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        // Without its header a list may be filtered, and one whose users are not all listed surely is.
        let closed = self.users.is_subset(&self.rows);
        let whole = !self.filtered
            && closed
            && (self.header || (self.proc && (self.commanded || self.count >= 10)));
        out.modules.listings.push(ModuleListing {
            origin: at.origin(),
            count: self.count,
            whole,
        });
        if whole || self.count == 0 {
            Completeness::Whole
        } else {
            Completeness::Cut(
                "it is filtered: it has no title line or lacks modules that it names".to_owned(),
            )
        }
    }
}
