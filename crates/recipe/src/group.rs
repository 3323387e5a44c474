//! From the drafts of all files to deployments, and the role of each worker among the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    Deployment, Facts, GroupPart, Input, Located, Partial, Role, Setting, Surroundings, Value,
    Worker,
};

use crate::credentials;
use crate::draft::{ConfigMapDraft, EnvDraft, EnvValue, FileDraft, FlagDraft};
use crate::elsewhere::{self, ClaimObjects};
use crate::pairing::{self, Unit};
use crate::resolve::{self, Resolved};

/// Turns the drafts of all files into facts.
#[must_use]
pub fn assemble(files: Vec<FileDraft>) -> Facts {
    // ConfigMaps may stand in another file of the same directory.
    let mut maps: BTreeMap<String, Vec<ConfigMapDraft>> = BTreeMap::new();
    let mut files = files;
    elsewhere::missing(&mut files);
    elsewhere::targets(&mut files);
    let claims = ClaimObjects::of(&files);
    for file in &mut files {
        maps.entry(directory(&file.path).to_owned())
            .or_default()
            .append(&mut file.config_maps);
    }
    let mut facts = Facts::default();
    let mut units: Vec<Unit> = Vec::new();
    for file in files {
        let in_directory = maps
            .get(directory(&file.path))
            .map(Vec::as_slice)
            .unwrap_or_default();
        facts.inputs.push(Input {
            path: Arc::clone(&file.path),
            documents: file.documents,
            problems: file.problems,
        });
        let mut workers = file.resolved;
        workers.extend(
            file.containers
                .into_iter()
                .map(|d| resolve::resolve(d, in_directory)),
        );
        let mut of_file = pairing::of_file(&file.path, file.objects, workers);
        let mut loose = loose(&file.loose_env, &file.loose_flags);
        let around = if file.around == Surroundings::default() {
            Vec::new()
        } else {
            vec![Arc::new(file.around)]
        };
        for unit in &mut of_file {
            unit.loose = std::mem::take(&mut loose);
            unit.around.clone_from(&around);
        }
        units.append(&mut of_file);
    }
    facts.deployments = pairing::across_files(units)
        .into_iter()
        .map(deployment)
        .collect();
    for deployment in &mut facts.deployments {
        claims.complete(deployment);
    }
    facts
}

/// Settings of documents that describe no worker.
fn loose(env: &[EnvDraft], flags: &[FlagDraft]) -> Vec<Setting> {
    let env = env
        .iter()
        .filter(|e| crate::allow::is_shown(&e.name))
        .map(|e| Setting {
            name: e.name.clone(),
            value: match &e.value {
                EnvValue::Literal(text) if !text.contains("{{") => {
                    Value::Literal(credentials::masked(text).into_owned())
                }
                _ => Value::Dynamic("filled in by the tool that uses this file".to_owned()),
            },
            form: e.form,
            place: e.place.clone(),
        });
    let flags = flags.iter().filter(|f| f.json.is_empty()).map(|f| Setting {
        name: f.name.clone(),
        value: credentials::of_flag(f.value.as_deref().unwrap_or_default()),
        form: f.form,
        place: f.place.clone(),
    });
    env.chain(flags).collect()
}

pub(crate) fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

pub(crate) fn weak(worker: &Resolved) -> Option<Role> {
    worker
        .declared
        .as_deref()
        .map(|(role, _)| *role)
        .or(worker.hinted)
}

/// Whether a worker shows by itself that KV cache moves: its engine was told a role, or a connector is configured.
pub(crate) fn is_told(worker: &Resolved) -> bool {
    worker.is_worker
        && (matches!(
            worker.strong.as_deref(),
            Some((Role::Prefill | Role::Decode, _))
        ) || worker.moves_kv)
}

/// Whether the workers show disaggregation among themselves: an engine was told a role, a connector moves KV
/// cache, or both roles are named.
pub(crate) fn is_disaggregated(workers: &[Resolved]) -> bool {
    let named = |role| workers.iter().any(|w| w.is_worker && weak(w) == Some(role));
    workers.iter().any(is_told)
        || (named(Role::Prefill) && named(Role::Decode))
        || workers
            .iter()
            .any(|w| w.patch && weak(w).is_some_and(Role::moves_kv))
}

pub(crate) fn role_of(worker: &Resolved, disaggregated: bool) -> Role {
    if worker.frontend || matches!(worker.declared.as_deref(), Some((Role::Frontend, _))) {
        return Role::Frontend;
    }
    if matches!(worker.declared.as_deref(), Some((Role::Other, _))) {
        return Role::Other;
    }
    if !worker.is_worker {
        return Role::Other;
    }
    if let Some((role, _)) = worker.strong.as_deref() {
        // `--disaggregation-mode agg` with a P/D connector beside a prefill worker decodes (a documented idiom).
        return *role;
    }
    match weak(worker) {
        Some(role) if role.moves_kv() && disaggregated => role,
        Some(Role::Encode) => Role::Encode,
        _ if worker.patch => Role::Other,
        // A label that says both.
        Some(Role::Aggregated) => Role::Aggregated,
        _ if worker.moves_kv && !worker.whole_by_default => Role::Unknown,
        _ => Role::Aggregated,
    }
}

fn deployment(unit: Unit) -> Deployment {
    let disaggregated = unit.partial == Some(Partial::Patch) || unit.is_disaggregated();
    let Unit {
        path,
        files: others,
        mut names,
        kind,
        namespace,
        partial,
        workers,
        around,
        loose,
        ..
    } = unit;
    let all_patches = !workers.is_empty()
        && workers.iter().all(|w| w.patch || w.frontend)
        && workers.iter().any(|w| w.patch);
    // Exactly as many: a file can hold a hundred thousand deployments of one worker.
    let mut finished: Vec<Worker> = Vec::with_capacity(workers.len());
    for resolved in workers {
        let role = role_of(&resolved, disaggregated);
        let Resolved {
            mut worker,
            strong,
            declared,
            ..
        } = resolved;
        worker.role = role;
        worker.role_place = strong
            .or(declared)
            .filter(|named| named.0 == role)
            .map(|named| Box::new(named.1));
        if worker.name.is_empty() {
            worker.name.clone_from(&worker.container);
        }
        finished.push(*worker);
    }
    let mut files = Vec::with_capacity(1 + others.len());
    files.push(Arc::clone(&path));
    files.extend(others);
    ranks_of_leaders(&mut finished);
    same_host_by_name(&path, &names, &mut finished);
    names.dedup();
    let name = match names.as_mut_slice() {
        [] => String::new(),
        [one] => std::mem::take(one),
        several => shared_name(several),
    };
    Deployment {
        name: if name.is_empty() {
            stem(&path).to_owned()
        } else {
            name
        },
        namespace,
        kind,
        files,
        workers: finished,
        partial: partial.or(all_patches.then_some(Partial::Patch)),
        around,
        loose,
    }
}

/// The other pods of a group run ranks of the leader's engine: where nothing else tells, they have its role.
fn ranks_of_leaders(workers: &mut [Worker]) {
    let leaders: BTreeMap<(String, Arc<str>), Role> = workers
        .iter()
        .filter(|w| {
            w.part == Some(GroupPart::Leader) && matches!(w.role, Role::Prefill | Role::Decode)
        })
        .map(|w| ((w.name.clone(), w.kind.clone()), w.role))
        .collect();
    if leaders.is_empty() {
        return;
    }
    for worker in workers.iter_mut().filter(|w| {
        w.part == Some(GroupPart::Member) && matches!(w.role, Role::Aggregated | Role::Unknown)
    }) {
        if let Some(role) = leaders.get(&(worker.name.clone(), worker.kind.clone())) {
            worker.role = *role;
        }
    }
}

/// A deployment that calls itself single-node, in its name or in its directory's, keeps both roles on one host.
fn same_host_by_name(path: &Arc<str>, names: &[String], workers: &mut [Worker]) {
    let says = |text: &str| {
        let text = text.to_ascii_lowercase().replace('_', "-");
        text.contains("single-node") || text.contains("one-node")
    };
    // The last directories and the file name, in whatever way they are joined.
    let tail: String = path
        .chars()
        .rev()
        .take(120)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let by_name = names.iter().any(|n| says(n));
    if !by_name && !says(&tail) {
        return;
    }
    for worker in workers
        .iter_mut()
        .filter(|w| w.pod().same_host.is_none() && w.role.moves_kv() && w.nodes <= 1)
    {
        worker.pod.get_or_insert_default().same_host = Some(Located {
            value: if by_name {
                "its name says single node"
            } else {
                "its path says single node"
            }
            .to_owned(),
            place: worker.place.clone(),
        });
    }
}

pub(crate) fn stem(path: &str) -> &str {
    let base = path.rsplit('/').next().unwrap_or(path);
    base.rsplit_once('.').map_or(base, |(stem, _)| stem)
}

/// Names that one of several workloads without a common name is called by. It stands in every result.
const NAMES_KEPT: usize = 3;

/// What several names have in common, else the first of them.
fn shared_name(names: &[String]) -> String {
    let first = names.first().map(String::as_str).unwrap_or_default();
    let common = names.iter().skip(1).fold(first.len(), |len, name| {
        first
            .bytes()
            .zip(name.bytes())
            .take(len)
            .take_while(|(a, b)| a == b)
            .count()
    });
    let prefix = first
        .get(..common)
        .unwrap_or_default()
        .trim_end_matches(['-', '_', '.']);
    if prefix.len() >= 3 {
        return prefix.to_owned();
    }
    match names.get(..NAMES_KEPT) {
        Some(kept) if names.len() > NAMES_KEPT => {
            format!("{} and {} more", kept.join(" + "), names.len() - NAMES_KEPT)
        }
        _ => names.join(" + "),
    }
}
