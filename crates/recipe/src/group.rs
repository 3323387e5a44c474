//! Which workers are judged together, and the role of each among the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    Deployment, Facts, Input, Located, Partial, Role, Setting, Surroundings, Value, Worker,
};

use crate::credentials;
use crate::draft::{ConfigMapDraft, EnvDraft, EnvValue, FileDraft, FlagDraft, ObjectDraft};
use crate::elsewhere::{self, ClaimObjects};
use crate::resolve::{self, Resolved};

/// Turns the drafts of all files into facts.
#[must_use]
pub fn assemble(files: Vec<FileDraft>) -> Facts {
    // ConfigMaps may stand in another file of the same directory.
    let mut maps: BTreeMap<String, Vec<ConfigMapDraft>> = BTreeMap::new();
    let mut files = files;
    elsewhere::missing(&mut files);
    let claims = ClaimObjects::of(&files);
    for file in &mut files {
        maps.entry(directory(&file.path).to_owned())
            .or_default()
            .append(&mut file.config_maps);
    }
    let mut facts = Facts::default();
    let mut open: Vec<(Deployment, String)> = Vec::new();
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
        let deployments = of_file(&file.path, &file.objects, workers);
        let mut loose = loose(&file.loose_env, &file.loose_flags);
        let around = if file.around == Surroundings::default() {
            Vec::new()
        } else {
            vec![Arc::new(file.around)]
        };
        for mut deployment in deployments {
            deployment.loose = std::mem::take(&mut loose);
            deployment.around.clone_from(&around);
            let key = pair_key(&file.path, &deployment);
            open.push((deployment, key));
        }
    }
    facts.deployments = join_halves(open);
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

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Objects that are judged together, by number, and their workers.
type Group = (Vec<u32>, Vec<Resolved>);

/// The deployments of one file.
fn of_file(path: &Arc<str>, objects: &[ObjectDraft], resolved: Vec<Resolved>) -> Vec<Deployment> {
    // In the order of their objects; those without references into other documents were resolved first.
    let mut resolved = resolved;
    resolved.sort_by_key(|r| r.object_index);
    // Roles that only names suggest count where something in the file shows disaggregation.
    let strong = |r: &Resolved| matches!(r.strong, Some((Role::Prefill | Role::Decode, _)));
    let file_is_disaggregated = resolved
        .iter()
        .any(|r| r.is_worker && (strong(r) || r.moves_kv));
    let mut groups: Vec<Group> = Vec::new();
    let mut halves: Group = (Vec::new(), Vec::new());
    let mut rest = resolved.into_iter().peekable();
    while let Some(first) = rest.next() {
        let index = first.object_index;
        let mut workers = vec![first];
        while let Some(next) = rest.next_if(|r| r.object_index == index) {
            workers.push(next);
        }
        let roles = candidate_roles(&workers, file_is_disaggregated);
        let (prefill, decode) = (
            roles.contains(&Role::Prefill),
            roles.contains(&Role::Decode),
        );
        if prefill != decode {
            halves.0.push(index);
            halves.1.extend(workers);
        } else {
            groups.push((vec![index], workers));
        }
    }
    if !halves.1.is_empty() {
        groups.push(halves);
    }
    groups.sort_by_key(|(indices, _)| indices.first().copied().unwrap_or(u32::MAX));
    let mut used: Vec<bool> = vec![false; objects.len()];
    let mut deployments = Vec::new();
    for (indices, workers) in groups {
        for index in &indices {
            if let Some(flag) = used.get_mut(*index as usize) {
                *flag = true;
            }
        }
        let object = indices.first().and_then(|i| objects.get(*i as usize));
        let names: Vec<&str> = indices
            .iter()
            .filter_map(|i| objects.get(*i as usize))
            .map(|o| o.name.as_str())
            .filter(|n| !n.is_empty())
            .collect();
        deployments.push(deployment(
            path,
            object,
            &names,
            workers,
            file_is_disaggregated,
        ));
    }
    // A file with manifests and no pod at all is still something that was looked at.
    if deployments.is_empty()
        && let Some(object) = objects.first()
    {
        deployments.push(deployment(
            path,
            Some(object),
            &[object.name.as_str()],
            Vec::new(),
            false,
        ));
    }
    deployments
}

/// Prefill and decode roles that the workers of one object can have.
fn candidate_roles(workers: &[Resolved], file_is_disaggregated: bool) -> Vec<Role> {
    let disaggregated = is_disaggregated(workers) || file_is_disaggregated;
    workers
        .iter()
        .filter(|w| w.is_worker)
        .map(|w| role_of(w, disaggregated))
        .filter(|r| r.moves_kv())
        .collect()
}

fn weak(worker: &Resolved) -> Option<Role> {
    worker
        .declared
        .as_ref()
        .map(|(role, _)| *role)
        .or(worker.hinted)
}

/// Whether the workers show disaggregation among themselves: an engine was told a role, a connector moves KV
/// cache, or both roles are named.
fn is_disaggregated(workers: &[Resolved]) -> bool {
    let told = workers
        .iter()
        .filter(|w| w.is_worker)
        .any(|w| matches!(w.strong, Some((Role::Prefill | Role::Decode, _))) || w.moves_kv);
    let named = |role| workers.iter().any(|w| w.is_worker && weak(w) == Some(role));
    told || (named(Role::Prefill) && named(Role::Decode))
        || workers
            .iter()
            .any(|w| w.patch && weak(w).is_some_and(Role::moves_kv))
}

fn role_of(worker: &Resolved, disaggregated: bool) -> Role {
    if worker.frontend || matches!(worker.declared, Some((Role::Frontend, _))) {
        return Role::Frontend;
    }
    if matches!(worker.declared, Some((Role::Other, _))) {
        return Role::Other;
    }
    if !worker.is_worker {
        return Role::Other;
    }
    if let Some((role, _)) = &worker.strong {
        // `--disaggregation-mode agg` with a P/D connector beside a prefill worker decodes (a documented idiom).
        return *role;
    }
    match weak(worker) {
        Some(role) if role.moves_kv() && disaggregated => role,
        Some(Role::Encode) => Role::Encode,
        _ if worker.patch => Role::Other,
        _ => Role::Aggregated,
    }
}

fn deployment(
    path: &Arc<str>,
    object: Option<&ObjectDraft>,
    names: &[&str],
    workers: Vec<Resolved>,
    file_is_disaggregated: bool,
) -> Deployment {
    let is_part = object.is_some_and(|o| o.partial == Some(Partial::Patch));
    let disaggregated = is_part
        || is_disaggregated(&workers)
        || (file_is_disaggregated && workers.iter().any(|w| weak(w).is_some_and(Role::moves_kv)));
    let all_patches = !workers.is_empty()
        && workers.iter().all(|w| w.patch || w.frontend)
        && workers.iter().any(|w| w.patch);
    let partial = object
        .and_then(|o| o.partial)
        .or(all_patches.then_some(Partial::Patch));
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
            .filter(|(r, _)| *r == role)
            .map(|(_, place)| place);
        if worker.name.is_empty() {
            worker.name.clone_from(&worker.container);
        }
        finished.push(*worker);
    }
    same_host_by_name(path, names, &mut finished);
    let name = match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        several => shared_name(several),
    };
    Deployment {
        name: if name.is_empty() {
            stem(path).to_owned()
        } else {
            name
        },
        namespace: object.and_then(|o| o.namespace.clone()),
        kind: object.map(|o| o.kind.clone()).unwrap_or_default(),
        files: vec![Arc::clone(path)],
        workers: finished,
        partial,
        around: Vec::new(),
        loose: Vec::new(),
    }
}

/// A deployment that calls itself single-node, in its name or in its directory's, keeps both roles on one host.
fn same_host_by_name(path: &Arc<str>, names: &[&str], workers: &mut [Worker]) {
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

fn stem(path: &str) -> &str {
    let base = path.rsplit('/').next().unwrap_or(path);
    base.rsplit_once('.').map_or(base, |(stem, _)| stem)
}

/// Names that one of several workloads without a common name is called by. It stands in every result.
const NAMES_KEPT: usize = 3;

/// What several names have in common, else the first of them.
fn shared_name(names: &[&str]) -> String {
    let first = names.first().copied().unwrap_or_default();
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

/// Names without their role words, by which two halves of a deployment are recognized.
fn without_role(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let parts: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| {
            !w.is_empty()
                && !matches!(
                    *w,
                    "prefill" | "decode" | "prefiller" | "decoder" | "p" | "d"
                )
        })
        .collect();
    parts.join("-")
}

fn pair_key(path: &str, deployment: &Deployment) -> String {
    format!(
        "{}\u{0}{}\u{0}{}\u{0}{}",
        directory(path),
        without_role(stem(path)),
        without_role(&deployment.name),
        deployment.kind
    )
}

/// Prefill in one file and decode in another of the same directory are one deployment where their names agree.
fn join_halves(open: Vec<(Deployment, String)>) -> Vec<Deployment> {
    let mut done: Vec<(Deployment, Option<String>)> = Vec::new();
    let mut waiting: BTreeMap<(String, bool), usize> = BTreeMap::new();
    for (deployment, key) in open {
        let prefill = deployment.role(Role::Prefill).next().is_some();
        let decode = deployment.role(Role::Decode).next().is_some();
        if prefill == decode {
            done.push((deployment, None));
            continue;
        }
        if let Some(other) = waiting.remove(&(key.clone(), !prefill))
            && let Some((half, _)) = done.get_mut(other)
        {
            half.name = shared_name(&[half.name.as_str(), deployment.name.as_str()]);
            half.files.extend(deployment.files);
            half.workers.extend(deployment.workers);
            half.around.extend(deployment.around);
            continue;
        }
        waiting.insert((key.clone(), prefill), done.len());
        done.push((deployment, Some(key)));
    }
    done.into_iter().map(|(deployment, _)| deployment).collect()
}
