//! `uname -a` and `uname -r`.

use model::Observation;
use model::observation::Tool;

use super::Kind;
use crate::parser::{At, Parser};
use crate::text::keep;

pub(crate) const KIND: Kind = Kind {
    tool: Tool::Uname,
    programs: &["uname"],
    command: |_| true,
    starts: |line, _| all(line).is_some(),
    open: |_| Box::new(Uname),
};

struct Uname;

/// `Linux host 6.8.0-1012-azure #14-Ubuntu SMP … x86_64 GNU/Linux`: host, release, architecture.
fn all(line: &str) -> Option<(&str, &str, Option<&str>)> {
    let words: Vec<&str> = line.split_whitespace().take(64).collect();
    let ["Linux", host, release, version, ..] = words.as_slice() else {
        return None;
    };
    if !version.starts_with('#') || !is_release(release) {
        return None;
    }
    let machine = words
        .iter()
        .find(|w| matches!(**w, "x86_64" | "aarch64" | "ppc64le" | "arm64"))
        .copied();
    Some((host, release, machine))
}

fn is_release(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
}

impl Parser for Uname {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let host = &mut out.host;
        if let Some((name, release, machine)) = all(line) {
            host.hostname.see(keep(name), at.origin());
            host.kernel.see(keep(release), at.origin());
            if let Some(machine) = machine {
                host.architecture.see(keep(machine), at.origin());
            }
            return true;
        }
        let text = line.trim();
        let release =
            is_release(text) && text.matches('.').count() >= 2 && !text.contains([' ', ':']);
        if release {
            host.kernel.see(keep(text), at.origin());
        }
        release
    }
}
