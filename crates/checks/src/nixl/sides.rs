//! Who is who in logs of both sides: files, pods and processes put together to the two ends of a transfer.
//!
//! Files of one process (its output and its errors) are one side. Sides are told apart by the pod that a collector
//! names, by the host in UCX's prefix, and by the names that agents, hosts and files have; never by order.

use std::collections::{BTreeMap, BTreeSet};

use model::Observation;
use model::observation::Merge as _;
use model::observation::log::{Event, Log, Process};

use super::payload_transport::of_peers;

/// What one file shows.
#[derive(Debug, Clone, Default)]
pub struct LogFile {
    /// Its name, as it was given.
    pub name: String,
    /// What was read in it.
    pub seen: Observation,
}

/// One end of the transfers.
#[derive(Default)]
pub(crate) struct Side {
    /// `initiator` or `target`: who starts the transfers.
    pub(crate) starts: Option<&'static str>,
    /// `prefill` or `decode`.
    pub(crate) role: Option<&'static str>,
    pub(crate) hosts: BTreeSet<String>,
    pub(crate) files: BTreeSet<String>,
    pub(crate) seen: Observation,
}

/// More are one picture: nobody reads so many.
const MAX_SIDES: usize = 64;

impl Side {
    /// What it is called: its parts in the transfer and its host, else its files.
    pub(crate) fn name(&self) -> String {
        let mut words: Vec<&str> = Vec::new();
        words.extend(self.starts);
        let host = self.hosts.first().map(String::as_str);
        if let Some(role) = self.role
            && !host.is_some_and(|h| h.contains(role))
        {
            words.push(role);
        }
        words.extend(host);
        if words.is_empty() {
            words.extend(self.files.iter().map(String::as_str).take(2));
        }
        words.join(" ")
    }

    /// Somebody or something says which end it is.
    fn is_known(&self) -> bool {
        self.starts.is_some() || self.role.is_some() || !self.hosts.is_empty()
    }

    /// The same end as another part, as far as both tell.
    fn fits(&self, other: &Self) -> bool {
        let differ =
            |a: Option<&str>, b: Option<&str>| matches!((a, b), (Some(a), Some(b)) if a != b);
        !differ(self.starts, other.starts)
            && !differ(self.role, other.role)
            && (self.hosts.is_empty()
                || other.hosts.is_empty()
                || !self.hosts.is_disjoint(&other.hosts))
    }

    fn join(&mut self, other: Self) {
        self.starts = self.starts.or(other.starts);
        self.role = self.role.or(other.role);
        self.hosts.extend(other.hosts);
        self.files.extend(other.files);
        self.seen.merge(other.seen);
    }

    /// It has a table of a read, or is called the initiator.
    pub(crate) fn starts_transfers(&self) -> bool {
        self.starts == Some(INITIATOR) || of_peers(&self.seen.log).any(|t| t.operation == "get")
    }
}

pub(crate) const INITIATOR: &str = "initiator";
pub(crate) const TARGET: &str = "target";

/// Which of two words a text has, where it has only one.
fn word(text: &str, one: &'static str, other: &'static str) -> Option<&'static str> {
    match (text.contains(one), text.contains(other)) {
        (true, false) => Some(one),
        (false, true) => Some(other),
        _ => None,
    }
}

fn starts(text: &str) -> Option<&'static str> {
    word(text, INITIATOR, TARGET)
}

fn role(text: &str) -> Option<&'static str> {
    word(text, "prefill", "decode")
}

/// The one answer that all texts give.
fn agreed<'t>(
    texts: impl Iterator<Item = &'t str>,
    read: fn(&str) -> Option<&'static str>,
) -> Option<&'static str> {
    let found: BTreeSet<&'static str> = texts.filter_map(read).collect();
    match found.len() {
        1 => found.first().copied(),
        _ => None,
    }
}

/// Names that UCX's contexts and NIXL's agents have.
fn names(seen: &Observation) -> impl Iterator<Item = &str> {
    let log = &seen.log;
    log.lanes
        .iter()
        .map(|l| l.context.as_str())
        .chain(log.tables.iter().filter_map(|t| t.context.as_deref()))
        .chain(log.of("nixl-agent").filter_map(|e| e.field("agent")))
        .chain(log.of("nixl-bench-worker").filter_map(|e| e.field("type")))
}

fn processes(seen: &Observation) -> impl Iterator<Item = &Process> {
    let log = &seen.log;
    log.events
        .iter()
        .map(|e| &e.process)
        .chain(log.lanes.iter().map(|l| &l.process))
        .chain(log.tables.iter().map(|t| &t.process))
}

/// File name without folder and endings: `initiator` of `run/initiator.stderr`.
pub(crate) fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.split('.').next().unwrap_or(name)
}

/// The sides, in the order in which they are first named. Where nothing tells them apart there is one.
pub(crate) fn sides(files: &[LogFile]) -> Vec<Side> {
    let mut parts: Vec<Side> = files.iter().flat_map(of_file).collect();
    // Those that say most about themselves first, in the order of the files.
    parts.sort_by_key(|part| {
        (
            part.hosts.is_empty(),
            part.starts.is_none() && part.role.is_none(),
        )
    });
    let mut sides: Vec<Side> = Vec::new();
    let mut loose: Vec<Side> = Vec::new();
    for part in parts {
        if !part.is_known() {
            loose.push(part);
            continue;
        }
        let same_file = |side: &Side| {
            side.files
                .iter()
                .any(|f| part.files.iter().any(|p| stem(p) == stem(f)))
        };
        let at = sides
            .iter()
            .position(|side| {
                side.fits(&part) && !side.hosts.is_disjoint(&part.hosts)
                    || (side.hosts.is_empty() || part.hosts.is_empty())
                        && side.fits(&part)
                        && same_file(side)
            })
            // A file without hosts goes by what it is called, where only one has that name.
            .or_else(|| {
                let mut same = sides.iter().enumerate().filter(|(_, side)| {
                    part.hosts.is_empty()
                        && side.fits(&part)
                        && ((part.starts.is_some() && part.starts == side.starts)
                            || (part.role.is_some() && part.role == side.role))
                });
                let first = same.next().map(|(at, _)| at);
                if same.next().is_some() { None } else { first }
            });
        let room = sides.len() < MAX_SIDES;
        match at.and_then(|at| sides.get_mut(at)) {
            Some(side) => side.join(part),
            None if room => sides.push(part),
            None => loose.push(part),
        }
    }
    // What has no name belongs to the process whose other output has the same file name, or to the only side.
    let mut rest: Option<Side> = None;
    for part in loose {
        let mut same = sides.iter_mut().filter(|side| {
            side.files
                .iter()
                .any(|f| part.files.iter().any(|p| stem(p) == stem(f)))
        });
        let (first, second) = (same.next(), same.next());
        match (first, second) {
            (Some(side), None) => side.join(part),
            _ => match &mut rest {
                Some(rest) => rest.join(part),
                None => rest = Some(part),
            },
        }
    }
    if let Some(rest) = rest {
        match sides.as_mut_slice() {
            [only] => only.join(rest),
            _ => sides.push(rest),
        }
    }
    sides
}

/// The parts of one file: its pods, else its hosts, else the whole.
fn of_file(file: &LogFile) -> Vec<Side> {
    let mut parts = Vec::new();
    let pods = file
        .seen
        .places
        .iter()
        .filter(|(name, _)| !name.is_empty())
        .count();
    if pods > 1 {
        for (pod, seen) in &file.seen.places {
            if pod.is_empty() && seen.log == Log::default() {
                continue;
            }
            let mut side = whole(&file.name, seen.clone(), pod);
            if !pod.is_empty() && side.hosts.is_empty() {
                side.hosts.insert(pod.clone());
            }
            parts.push(side);
        }
        return parts;
    }
    let by_host = split(&file.seen);
    if by_host.len() > 1 {
        for (_, seen) in by_host {
            parts.push(whole("", seen, ""));
        }
        for part in &mut parts {
            part.files.insert(file.name.clone());
        }
        return parts;
    }
    let pod = file.seen.places.keys().find(|name| !name.is_empty());
    vec![whole(
        &file.name,
        file.seen.clone(),
        pod.map_or("", String::as_str),
    )]
}

/// A part as one end, with what its names tell.
fn whole(file: &str, seen: Observation, pod: &str) -> Side {
    let hosts: BTreeSet<String> = processes(&seen).filter_map(|p| p.host.clone()).collect();
    let stem = stem(file);
    let mut files = BTreeSet::new();
    if !file.is_empty() {
        files.insert(file.to_owned());
    }
    Side {
        starts: agreed(names(&seen), starts).or_else(|| starts(stem)),
        role: agreed(names(&seen), role)
            .or_else(|| agreed(hosts.iter().map(String::as_str).chain([pod]), role))
            .or_else(|| role(stem)),
        hosts,
        files,
        seen,
    }
}

/// Who wrote a line: host, and which end, where processes of one host have both.
type Writer = (String, Option<&'static str>);

/// One observation for each host, and for each end of one host. What names no host goes to each as far as nothing
/// else tells.
fn split(seen: &Observation) -> BTreeMap<Writer, Observation> {
    // Only lanes and tables tell which process has which end.
    let log = &seen.log;
    let mut ends: BTreeMap<(&str, u32), &'static str> = BTreeMap::new();
    let named = log
        .lanes
        .iter()
        .map(|l| (&l.process, Some(l.context.as_str())))
        .chain(
            log.tables
                .iter()
                .map(|t| (&t.process, t.context.as_deref())),
        );
    for (process, context) in named {
        if let (Some(host), Some(pid), Some(end)) =
            (&process.host, process.pid, context.and_then(starts))
        {
            ends.insert((host, pid), end);
        }
    }
    let writer = |process: &Process| -> Option<Writer> {
        let host = process.host.as_ref()?;
        let end = process
            .pid
            .and_then(|pid| ends.get(&(host.as_str(), pid)).copied());
        Some((host.clone(), end))
    };
    let mut writers: BTreeSet<Writer> = processes(seen).filter_map(writer).collect();
    // A process that tells no end is one of its host's.
    let hosts: BTreeSet<String> = writers
        .iter()
        .filter(|(_, end)| end.is_some())
        .map(|(host, _)| host.clone())
        .collect();
    let apart = |host: &str| -> bool {
        writers
            .iter()
            .filter(|(h, end)| h == host && end.is_some())
            .count()
            > 1
    };
    let both: BTreeSet<String> = hosts.into_iter().filter(|h| apart(h)).collect();
    let of = |process: &Process| -> Option<Writer> {
        writer(process).map(|(host, end)| {
            if both.contains(&host) {
                (host, end)
            } else {
                (host, None)
            }
        })
    };
    writers = processes(seen).filter_map(of).collect();
    if writers.len() < 2 || writers.len() > MAX_SIDES {
        return BTreeMap::new();
    }
    let mut parts: BTreeMap<Writer, Observation> = BTreeMap::new();
    let part = |parts: &mut BTreeMap<Writer, Observation>, process: &Process| {
        let who = of(process)?;
        parts.entry(who.clone()).or_default();
        Some(who)
    };
    let mut rest = Observation::default();
    for event in &log.events {
        let to = part(&mut parts, &event.process);
        let out = match to.and_then(|to| parts.get_mut(&to)) {
            Some(out) => out,
            None => &mut rest,
        };
        facts_of(event, seen, out);
        out.log.add(event.clone());
    }
    for lanes in &log.lanes {
        let to = part(&mut parts, &lanes.process);
        let out = to.and_then(|to| parts.get_mut(&to)).unwrap_or(&mut rest);
        out.log.add_lanes(lanes.clone());
    }
    for table in &log.tables {
        let to = part(&mut parts, &table.process);
        let out = to.and_then(|to| parts.get_mut(&to)).unwrap_or(&mut rest);
        out.log.add_table(table.clone());
    }
    rest.log.unread_table.clone_from(&log.unread_table);
    let empty = rest.log == Log::default();
    // All else is about no process.
    let mut other = seen.clone();
    other.log = rest.log;
    other.software.ucx.clear();
    other.process.environment.clear();
    other.places.clear();
    match parts.values_mut().next() {
        Some(first) if empty => first.merge(other),
        _ => {
            parts.insert((String::new(), None), other);
        }
    }
    parts
}

/// What an event told beside itself.
fn facts_of(event: &Event, seen: &Observation, out: &mut Observation) {
    match event.pattern.as_ref() {
        "ucx-version" | "nixl-ucx-bound" => {
            let builds = seen.software.ucx.iter();
            out.software
                .ucx
                .extend(builds.filter(|build| build.origin == event.origin).cloned());
        }
        "ucx-environment" => {
            for word in event
                .field("variables")
                .unwrap_or_default()
                .split_whitespace()
            {
                if let Some((name, value)) = word.split_once('=') {
                    let fact = model::Fact::seen(value.to_owned(), event.origin.clone());
                    out.process
                        .environment
                        .entry(name.to_owned())
                        .or_default()
                        .merge(fact);
                }
            }
        }
        _ => {}
    }
}
