//! `check --from-logs`: workers out of the logs of what `manifest` prints.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use checks::{Around, Gathered, NodeFacts, ProbedPod, SeenBy};
use model::pod::{Fault, FaultKind};
use model::{PodObject, Role};
use probe::carried::{self, Carried, Found};

use crate::sources;

/// Bytes of one log: a worker has some hundred thousand, and prints its own lines beside.
const MAX_LOG: u64 = 1024 * 1024 * 1024;

/// What to do about a log of which a part is missing.
const WHOLE: &str = "kubectl logs --tail=-1 --prefix gives all of it, and tells containers apart";

/// Everything that the logs show.
pub(crate) fn gathered(paths: &[PathBuf]) -> Result<Gathered, String> {
    let mut workers: BTreeMap<(String, String, String), (usize, Carried)> = BTreeMap::new();
    let mut count = 0_usize;
    for path in paths {
        let shown = path.display();
        let found = carried::find(&read(path)?);
        whole(&found).map_err(|why| format!("{shown}: {why}"))?;
        for carried in found.carried {
            let head = &carried.head;
            let key = (
                head.namespace.clone(),
                head.pod.clone(),
                head.container.clone(),
            );
            let well = |c: &Carried| !c.mixed && c.stream.is_complete();
            // A container that was started again prints again; the later one holds, if it is whole.
            match workers.get_mut(&key) {
                Some((_, held)) if well(&carried) || !well(held) => *held = carried,
                Some(_) => {}
                None => {
                    workers.insert(key, (count, carried));
                    count = count.saturating_add(1);
                }
            }
        }
    }
    let mut workers: Vec<(usize, Carried)> = workers.into_values().collect();
    workers.sort_by_key(|(at, _)| *at);
    Ok(Gathered {
        pods: workers.into_iter().map(|(_, c)| probed(c)).collect(),
        around: Around::default(),
        scope: paths
            .iter()
            .map(|path| format!("log {}", path.display()))
            .collect(),
        ..Gathered::default()
    })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let failed = |e: std::io::Error| format!("{shown}: {}", sources::reason(&e));
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(MAX_LOG + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    } else {
        if let Some(what) = sources::endless(path) {
            return Err(format!(
                "{shown}: it is {what}, not a file; to read a stream, pipe it: command | check-interconnect check --from-logs -"
            ));
        }
        std::fs::File::open(path)
            .map_err(failed)?
            .take(MAX_LOG + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_LOG {
        return Err(format!(
            "{shown}: it has more than {} MiB; give the log of the container check-interconnect only",
            MAX_LOG >> 20
        ));
    }
    Ok(bytes)
}

/// Why a log is not one that can be judged.
fn whole(found: &Found) -> Result<(), String> {
    if found.other_versions > 0 {
        return Err(format!(
            "{} of its lines that say where facts come from are damaged, or of another version of check-interconnect; print the manifest with this version, and collect again",
            found.other_versions
        ));
    }
    if found.stray > 0 {
        return Err(format!(
            "{} lines of facts stand where no line says where they come from: it was cut at its beginning, or lines of several containers are mixed; {WHOLE}",
            found.stray
        ));
    }
    if found.left_out > 0 {
        return Err(format!(
            "it has facts of {} containers more than can be judged together",
            found.left_out
        ));
    }
    if found.carried.is_empty() {
        return Err(
            "no facts are in it; expected the log of the container check-interconnect, as check-interconnect manifest makes it, or of a Job of that"
                .to_owned(),
        );
    }
    Ok(())
}

fn probed(carried: Carried) -> ProbedPod {
    let Carried {
        head,
        stream,
        mixed,
    } = carried;
    let by = match head.way.as_str() {
        "init-container" => SeenBy::InitContainer,
        "job" => SeenBy::Job,
        // Nothing is taken for granted of a way that is not known.
        _ => SeenBy::Image,
    };
    let role = match head.role.as_str() {
        "prefill" => Some(Role::Prefill),
        "decode" => Some(Role::Decode),
        "aggregated" => Some(Role::Aggregated),
        "unknown-role" => Some(Role::Unknown),
        _ => None,
    };
    // A Job that sees the processes of its node sees engines, and not that of its worker.
    let facts = if mixed {
        Err(Fault::new(
            FaultKind::NotOurs,
            format!("lines of several containers are mixed in the log; {WHOLE}"),
        ))
    } else if stream.records.is_empty() {
        Err(Fault::new(
            FaultKind::Cut,
            "the log ends where the facts begin: the container did not get so far, or the log was cut",
        ))
    } else {
        let mut observation = probe::observe::observation(&stream);
        observation.process.processes.clear();
        Ok(NodeFacts {
            observation,
            gap: stream.gap().map(|gap| gap.to_string()),
            unanswered: probe::observe::tools_without_output(&stream),
            ..NodeFacts::default()
        })
    };
    let mut object = PodObject {
        namespace: head.namespace,
        name: head.pod,
        node: some(head.node),
        owner: some(head.workload).map(|name| ("Workload".to_owned(), name)),
        ..PodObject::default()
    };
    if let Some(name) = some(head.deployment) {
        object
            .labels
            .insert("app.kubernetes.io/instance".to_owned(), name);
    }
    ProbedPod {
        object,
        container: head.container,
        taken: by.words().to_owned(),
        chosen: String::new(),
        worker: None,
        probed: facts,
        later: None,
        // Whether a device should be there is not known of an image.
        role: role.filter(|_| by != SeenBy::Image),
        by,
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
