//! `ulimit`, and `/proc/PID/limits`.

use model::Observation;
use model::observation::limits::Limit;
use model::observation::{Completeness, Tool};

use super::Kind;
use crate::command::Command;
use crate::parser::{At, Parser};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::Ulimit,
    programs: &["ulimit", "cat", "grep"],
    command: |command| {
        (command.program == "ulimit" && (!asked(command).is_empty() || command.has("-a")))
            || command
                .arguments
                .iter()
                .any(|a| a.starts_with("/proc/") && a.ends_with("/limits"))
    },
    starts: |line, _| {
        let text = line.trim();
        text.starts_with("Max locked memory")
            || text.starts_with("max locked memory")
            || (text.starts_with("Limit ") && text.contains("Soft Limit"))
            || sglang(text).is_some()
    },
    open: |command| {
        Box::new(Ulimit {
            asks: command.map(asked).unwrap_or_default(),
        })
    },
};

struct Ulimit {
    /// What each bare number answers, in order.
    asks: Vec<Ask>,
}

#[derive(Clone, Copy)]
struct Ask {
    memlock: bool,
    hard: bool,
}

/// `ulimit -l; ulimit -Hl` asks for two numbers.
fn asked(command: &Command) -> Vec<Ask> {
    command
        .text
        .split("ulimit")
        .skip(1)
        .take(16)
        .filter_map(|part| {
            let mut words = part
                .split([' ', ';', '|', '\'', '"', '&'])
                .filter(|w| !w.is_empty());
            let options = words.next()?;
            if !options.starts_with('-') || options.contains('a') {
                return None;
            }
            // `ulimit -l 64` sets, it does not ask.
            if words.next().is_some_and(|w| w.parse::<u64>().is_ok()) {
                return None;
            }
            let memlock = options.contains('l');
            (memlock || options.contains('n')).then(|| Ask {
                memlock,
                hard: options.contains('H'),
            })
        })
        .collect()
}

/// Open files, as `sglang.check_env` prints them: `ulimit soft: 1000000`.
fn sglang(text: &str) -> Option<Limit> {
    limit(text.strip_prefix("ulimit soft:")?, 1)
}

fn limit(text: &str, scale: u64) -> Option<Limit> {
    let text = text.trim();
    if text == "unlimited" {
        return Some(Limit::Unlimited);
    }
    Some(Limit::Value(
        text.parse::<u64>().ok()?.saturating_mul(scale),
    ))
}

impl Parser for Ulimit {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let text = line.trim();
        let limits = &mut out.limits;
        let origin = at.origin();
        if let Some(limit) = sglang(text) {
            limits.open_files_soft.see(limit, origin);
            return true;
        }
        // `/proc/PID/limits`: bytes.
        for (name, scale) in [("Max locked memory", true), ("Max open files", false)] {
            if let Some(rest) = text.strip_prefix(name) {
                let mut words = rest.split_whitespace();
                let (soft, hard) = (words.next(), words.next());
                let (soft, hard) = (
                    soft.and_then(|w| limit(w, 1)),
                    hard.and_then(|w| limit(w, 1)),
                );
                let (to_soft, to_hard) = if scale {
                    (&mut limits.memlock_soft, &mut limits.memlock_hard)
                } else {
                    (&mut limits.open_files_soft, &mut limits.open_files_hard)
                };
                if let Some(soft) = soft {
                    to_soft.see(soft, origin.clone());
                }
                if let Some(hard) = hard {
                    to_hard.see(hard, origin.clone());
                }
                return true;
            }
        }
        // `ulimit -a`: the unit stands in brackets.
        if let Some(value) = text.rsplit_once(')').map(|(_, v)| v) {
            if text.starts_with("max locked memory") {
                let scale = if text.contains("kbytes") { 1024 } else { 1 };
                if let Some(limit) = limit(value, scale) {
                    limits.memlock_soft.see(limit, origin);
                }
                return true;
            }
            if text.starts_with("open files") {
                if let Some(limit) = limit(value, 1) {
                    limits.open_files_soft.see(limit, origin);
                }
                return true;
            }
            if text.contains("(-") || text.contains(", -") {
                return true;
            }
        }
        if text.starts_with("Max ") || text.starts_with("Limit ") {
            return true;
        }
        // A bare number answers the next question; kibibytes for locked memory.
        if let Some(ask) = self.asks.first().copied()
            && let Some(limit) = limit(text, if ask.memlock { 1024 } else { 1 })
        {
            self.asks.remove(0);
            match (ask.memlock, ask.hard) {
                (true, false) => limits.memlock_soft.see(limit, origin),
                (true, true) => limits.memlock_hard.see(limit, origin),
                (false, false) => limits.open_files_soft.see(limit, origin),
                (false, true) => limits.open_files_hard.see(limit, origin),
            }
            return true;
        }
        false
    }

    fn finish(&mut self, _: At<'_>, _: &mut Observation) -> Completeness {
        Completeness::Whole
    }
}
