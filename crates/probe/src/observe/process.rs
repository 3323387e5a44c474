//! The engine's processes: settings, limits, libraries, open devices.

use std::collections::BTreeMap;

use model::Reason;
use model::observation::process::{MappedLibrary, Process};
use model::observation::{Fact, Observation};

use super::facts::{Facts, origin, printable};
use super::{host, queue_pairs, sockets};
use crate::stream::Kind;

pub(super) fn read(facts: &Facts<'_>, seen: &mut Observation) {
    read_processes(facts, seen);
    sockets::read(facts, seen);
    queue_pairs::read(facts, seen);
}

fn read_processes(facts: &Facts<'_>, seen: &mut Observation) {
    for path in facts.listed("engine") {
        let Some(pid) = path.strip_prefix("/proc/") else {
            continue;
        };
        if let Ok(number) = pid.parse() {
            let process = process(facts, pid);
            seen.process.processes.insert(number, Box::new(process));
        }
    }
    seen.process.environment = environment(facts, "self");
    if facts.reached("own-environment") {
        seen.process.looked = match facts.of(Kind::None, "/proc/1").first() {
            Some(_) => Fact::missing(Reason::NotVisible, "/proc shows no processes"),
            None => Fact::seen(true, origin("/proc")),
        };
    }
}

/// Variables of a process that the script let out, once more held against the catalogue.
fn environment(facts: &Facts<'_>, pid: &str) -> BTreeMap<String, Fact<String>> {
    let path = format!("/proc/{pid}/environ");
    facts
        .entries(Kind::Env, pid)
        .into_iter()
        .filter(|(name, _)| settings::catalogue::is_allowed(name))
        .map(|(name, value)| {
            let value = recipe::without_credentials(value).into_owned();
            (name.to_owned(), Fact::seen(value, origin(&path)))
        })
        .collect()
}

fn process(facts: &Facts<'_>, pid: &str) -> Process {
    let property = |name: &str| {
        facts
            .of(Kind::Proc, &format!("{pid}/{name}"))
            .first()
            .copied()
    };
    let path = format!("/proc/{pid}/cmdline");
    let environ = format!("/proc/{pid}/environ");
    let mut process = Process {
        environment: environment(facts, pid),
        environment_read: whole(facts, "environment", &environ, "own-environment"),
        flags_read: whole(facts, "arguments", &path, "own-environment"),
        limits: host::limits(facts, pid),
        namespaces: host::namespaces(facts, pid),
        ..Process::default()
    };
    if let Some(name) = property("program").or_else(|| property("comm")) {
        process.name = Fact::seen(printable(name), origin(&path));
        // A worker that was renamed tells its engine by that name.
        let engine = property("program")
            .and_then(engine_of)
            .or_else(|| property("comm").and_then(engine_of));
        if let Some(engine) = engine {
            process.engine = Fact::seen(engine.to_owned(), origin(&path));
        }
    }
    for (flag, value) in facts.entries(Kind::Arg, pid) {
        let known = flag.replace('_', "-");
        if !recipe::ENGINE_FLAGS.contains(&known.as_str()) {
            continue;
        }
        let value = recipe::value_of_flag(&known, value).into_owned();
        process
            .flags
            .insert(known, Fact::seen(value, origin(&path)));
    }
    let executable = format!("/proc/{pid}/exe");
    if let Some(target) = facts.link(&executable) {
        process.interpreter = Fact::seen(printable(target), origin(&executable));
    }
    process.libraries = libraries(facts, pid);
    process.files = files(facts, pid);
    let directory = format!("/proc/{pid}/fd");
    let mut open: Vec<String> = facts
        .entries_of_links(&directory)
        .into_iter()
        .map(printable)
        .collect();
    open.sort();
    open.dedup();
    if facts.reached("providers") {
        process.open_devices = Fact::seen(open, origin(&directory));
    }
    process
}

/// Files that were looked for as the process sees them.
fn files(facts: &Facts<'_>, pid: &str) -> BTreeMap<String, Fact<bool>> {
    let begin = format!("{pid}:");
    let there = facts
        .listed("named-file")
        .iter()
        .filter_map(|text| Some((text.strip_prefix(&begin)?, true)));
    let absent = facts.keys(Kind::None).filter_map(|key| {
        Some((
            key.strip_prefix("named-file:")?.strip_prefix(&begin)?,
            false,
        ))
    });
    there
        .chain(absent)
        .map(|(path, is)| (printable(path), Fact::seen(is, origin(path))))
        .collect()
}

/// Whether a file of a process was read to its end, which its own record says, and that the next part was reached.
fn whole(facts: &Facts<'_>, list: &str, path: &str, next: &str) -> Fact<bool> {
    if facts.listed(list).contains(&path) && (facts.nothing_lost() && facts.reached(next)) {
        Fact::seen(true, origin(path))
    } else {
        facts.missing(path)
    }
}

fn engine_of(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    [
        ("vllm", "vllm"),
        ("sglang", "sglang"),
        ("trtllm", "trtllm"),
        ("tensorrt_llm", "trtllm"),
        ("tokenspeed", "tokenspeed"),
        ("dynamo", "dynamo"),
    ]
    .iter()
    .find(|(part, _)| word.contains(part))
    .map(|(_, engine)| *engine)
}

fn libraries(facts: &Facts<'_>, pid: &str) -> Fact<Vec<MappedLibrary>> {
    let path = format!("/proc/{pid}/maps");
    let mut found: Vec<MappedLibrary> = facts
        .of(Kind::Map, pid)
        .iter()
        .map(|text| {
            let kept = text.strip_suffix(" (deleted)");
            let path = kept.unwrap_or(text);
            MappedLibrary {
                library: library_name(path),
                path: printable(path),
                deleted: kept.is_some(),
            }
        })
        .collect();
    found.sort();
    found.dedup();
    // All maps are read in one go, after the list of them.
    let read = facts.listed("maps").contains(&path.as_str()) && facts.reached("own-environment");
    if !found.is_empty() || read {
        return Fact::seen(found, origin(&path));
    }
    facts.missing(&path)
}

/// `libucp` of `/x/libucp-1a2b3c4d.so.0.0.0`: wheels add a hash to the names of the libraries that they bring.
pub fn library_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.split(".so").next().unwrap_or(file);
    let name = match stem.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name
        }
        _ => stem,
    };
    printable(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libraries() {
        for (path, name) in [
            ("/a/libucp.so.0.0.0", "libucp"),
            ("/a/nixl_cu12.libs/libucp-1a2b3c4d.so.0.0.0", "libucp"),
            ("/a/libmlx5-rdmav34.so", "libmlx5-rdmav34"),
            ("/a/libplugin_UCX.so", "libplugin_UCX"),
        ] {
            assert_eq!(library_name(path), name);
        }
    }
}
