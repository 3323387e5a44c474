//! Which workers are judged together.
//!
//! Prefill and decode are often objects of their own, in one file or in two. They are halves of one deployment where
//! something shows that KV cache moves (an engine was told a role, or has a connector) and their names or labels say
//! which half each one is, or where both are named and their names agree. The half that lacks its connector is the very
//! one to be found, so what a half shows counts for the other one too.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Partial, Role, Setting, Surroundings, Value};

use crate::draft::ObjectDraft;
use crate::engine;
use crate::group;
use crate::resolve::Resolved;

/// What is judged together, as far as is known yet.
pub(crate) struct Unit {
    pub(crate) path: Arc<str>,
    /// Further files.
    pub(crate) files: Vec<Arc<str>>,
    /// Names of its objects.
    pub(crate) names: Vec<String>,
    pub(crate) kind: Arc<str>,
    pub(crate) namespace: Option<String>,
    pub(crate) partial: Option<Partial>,
    pub(crate) workers: Vec<Resolved>,
    /// Something else in the file shows disaggregation.
    shown_by_file: bool,
    pub(crate) around: Vec<Arc<Surroundings>>,
    pub(crate) loose: Vec<Setting>,
}

/// One half of a deployment.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Half {
    /// The role of its workers.
    role: Role,
    /// The role by names and labels.
    named: Option<Role>,
}

impl Half {
    /// Whether the two are halves of one deployment, as far as roles tell: the roles differ, or the names do. The same
    /// role told to a worker named prefill and to one named decode is a slip, and has to be seen.
    fn completes(self, other: Self) -> bool {
        self.role != other.role || matches!((self.named, other.named), (Some(a), Some(b)) if a != b)
    }
}

impl Unit {
    fn new(path: &Arc<str>, object: Option<ObjectDraft>) -> Self {
        let partial = object.as_ref().and_then(|o| o.partial);
        let (kind, name, namespace) =
            object.map_or_else(Default::default, |o| (o.kind, o.name, o.namespace));
        Self {
            path: Arc::clone(path),
            files: Vec::new(),
            names: if name.is_empty() {
                Vec::new()
            } else {
                vec![name]
            },
            kind,
            namespace,
            partial,
            workers: Vec::new(),
            shown_by_file: false,
            around: Vec::new(),
            loose: Vec::new(),
        }
    }

    /// Whether something shows that KV cache moves.
    pub(crate) fn is_disaggregated(&self) -> bool {
        group::is_disaggregated(&self.workers)
            || (self.shown_by_file
                && self
                    .workers
                    .iter()
                    .any(|w| group::weak(w).is_some_and(Role::moves_kv)))
    }

    /// Which half it is, if it is one.
    fn half(&self) -> Option<Half> {
        let only = |of: &dyn Fn(&Resolved) -> Role| {
            let workers = || self.workers.iter().filter(|w| w.is_worker);
            let has = |role| workers().any(|w| of(w) == role);
            match (has(Role::Prefill), has(Role::Decode)) {
                (true, false) => Some(Role::Prefill),
                (false, true) => Some(Role::Decode),
                _ => None,
            }
        };
        let letter = self.letter();
        let role = match letter {
            Some(role) if self.is_aggregated() => role,
            _ => only(&|w| group::role_of(w, true))?,
        };
        let named = only(&|w| group::weak(w).unwrap_or(Role::Other));
        Some(Half {
            role,
            named: named.or(letter),
        })
    }

    /// The role by the last letter of its name.
    fn letter(&self) -> Option<Role> {
        match self.names.as_slice() {
            [one] => letter_role(one),
            _ => None,
        }
    }

    /// Neither its engines nor its names say a role.
    fn is_aggregated(&self) -> bool {
        let mut workers = self.workers.iter().filter(|w| w.is_worker).peekable();
        workers.peek().is_some() && workers.all(|w| w.strong.is_none() && group::weak(w).is_none())
    }

    /// Once the other half is found, a letter is a role.
    fn name_by_letter(&mut self) {
        if let Some(role) = self.letter().filter(|_| self.is_aggregated()) {
            for worker in self.workers.iter_mut().filter(|w| w.is_worker) {
                worker.hinted = Some(role);
            }
        }
    }

    fn take(&mut self, mut other: Self) {
        self.name_by_letter();
        other.name_by_letter();
        self.names.extend(other.names);
        for file in std::iter::once(other.path).chain(other.files) {
            if self.path != file && !self.files.contains(&file) {
                self.files.push(file);
            }
        }
        self.workers.extend(other.workers);
        self.shown_by_file |= other.shown_by_file;
        for around in other.around {
            if !self.around.iter().any(|a| Arc::ptr_eq(a, &around)) {
                self.around.push(around);
            }
        }
        self.loose.extend(other.loose);
    }

    /// The models that its workers serve, where they are written out.
    fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = self
            .workers
            .iter()
            .filter_map(|w| w.worker.setting(model::MODEL))
            .filter_map(|s| match &s.value {
                Value::Literal(name) => Some(name.as_str()),
                Value::Dynamic(_) => None,
            })
            .collect();
        models.sort_unstable();
        models.dedup();
        models
    }
}

/// What is judged together in one file.
pub(crate) fn of_file(
    path: &Arc<str>,
    objects: Vec<ObjectDraft>,
    resolved: Vec<Resolved>,
) -> Vec<Unit> {
    // In the order of their objects; those without references into other documents were resolved first.
    let mut resolved = resolved;
    if !resolved.is_sorted_by_key(|r| r.object_index) {
        resolved.sort_by_key(|r| r.object_index);
    }
    name_other_halves(&mut resolved);
    // A file can hold a hundred thousand objects: no list is larger than it has to be, and names are moved.
    let mut count = 0;
    let mut last = None;
    for worker in &resolved {
        count += usize::from(last.replace(worker.object_index) != Some(worker.object_index));
    }
    // Roles that only names suggest count where something in the file shows disaggregation.
    let shown_by_file = resolved.iter().any(group::is_told);
    if resolved.is_empty() {
        // A file with manifests and no pod at all is still something that was looked at, unless nothing in it could
        // ever hold one.
        let first = objects.into_iter().find(|object| !object.bare);
        return first
            .map(|object| Unit::new(path, Some(object)))
            .into_iter()
            .collect();
    }
    let mut objects = objects;
    let mut rest = resolved.into_iter().peekable();
    let mut units = Vec::with_capacity(count);
    while let Some(first) = rest.next() {
        let index = first.object_index;
        let mut workers = vec![first];
        while let Some(next) = rest.next_if(|r| r.object_index == index) {
            workers.push(next);
        }
        let object = objects.get_mut(index as usize).map(std::mem::take);
        units.push(Unit {
            workers,
            shown_by_file,
            ..Unit::new(path, object)
        });
    }
    drop(rest);
    drop(objects);
    halves_of_file(units)
}

/// A worker without a connector that is called `gen` is a half where a worker called `ctx` has one, and the names agree in
/// everything else.
fn name_other_halves(resolved: &mut [Resolved]) {
    let halves: Vec<(Role, String)> = resolved
        .iter()
        .filter(|r| r.moves_kv)
        .filter_map(|r| Some((r.worded.as_ref()?.0, without_role(&r.worker.name))))
        .collect();
    if halves.is_empty() {
        return;
    }
    for worker in resolved.iter_mut().filter(|r| r.is_worker && !r.moves_kv) {
        let Some((role, _)) = &worker.worded else {
            continue;
        };
        let name = without_role(&worker.worker.name);
        if halves.iter().any(|(other, n)| other != role && *n == name) {
            worker.name_by_words();
        }
    }
}

/// Joins the halves of one file. Where names make several whole deployments, each stays for itself; else everything
/// that is a half belongs together.
fn halves_of_file(units: Vec<Unit>) -> Vec<Unit> {
    let mut clusters: BTreeMap<String, Vec<(usize, Half, bool)>> = BTreeMap::new();
    for (index, unit) in units.iter().enumerate() {
        if let Some(half) = unit.half() {
            let key = without_role(unit.names.first().map_or("", String::as_str));
            clusters
                .entry(key)
                .or_default()
                .push((index, half, unit.is_disaggregated()));
        }
    }
    if clusters.is_empty() {
        return units;
    }
    // Into which unit each one goes.
    let mut into: Vec<usize> = (0..units.len()).collect();
    let mut join = |members: &[usize]| {
        if let Some(first) = members.iter().min() {
            for member in members {
                if let Some(slot) = into.get_mut(*member) {
                    *slot = *first;
                }
            }
        }
    };
    let is_whole = |members: &[(usize, Half, bool)]| {
        members
            .first()
            .is_some_and(|(_, first, _)| members.iter().any(|(_, h, _)| h.completes(*first)))
    };
    let indices = |members: &[(usize, Half, bool)]| -> Vec<usize> {
        members.iter().map(|(index, ..)| *index).collect()
    };
    let whole = clusters.values().filter(|m| is_whole(m)).count();
    if whole >= 2 {
        for members in clusters.values().filter(|m| is_whole(m)) {
            join(&indices(members));
        }
        let rest: Vec<usize> = clusters
            .values()
            .filter(|m| !is_whole(m))
            .flatten()
            .filter(|(_, _, shown)| *shown)
            .map(|(index, ..)| *index)
            .collect();
        join(&rest);
    } else {
        // Names alone make a deployment where both roles of one name are there.
        let named_only = |m: &[(usize, Half, bool)]| m.iter().all(|(_, _, shown)| !shown);
        let mut together: Vec<usize> = Vec::new();
        for members in clusters.values() {
            if is_whole(members) && named_only(members) {
                join(&indices(members));
            } else {
                let whole = is_whole(members);
                together.extend(
                    members
                        .iter()
                        .filter(|(_, _, shown)| *shown || whole)
                        .map(|(index, ..)| *index),
                );
            }
        }
        join(&together);
    }
    let mut slots: Vec<Option<Unit>> = Vec::with_capacity(units.len());
    for (index, unit) in units.into_iter().enumerate() {
        let target = into.get(index).copied().unwrap_or(index);
        match slots.get_mut(target).and_then(Option::as_mut) {
            Some(first) if target != index => {
                first.take(unit);
                slots.push(None);
            }
            _ => slots.push(Some(unit)),
        }
    }
    slots.into_iter().flatten().collect()
}

/// Joins halves that stand in different files of one directory, or in sibling directories: those that are called after the
/// roles, and others where names agree.
pub(crate) fn across_files(units: Vec<Unit>) -> Vec<Unit> {
    let mut slots: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
    // From what agrees in everything to what agrees in little.
    pass(&mut slots, true, place_of, &|unit| {
        Some(format!(
            "{}\0{}\0{}",
            without_role(group::stem(&unit.path)),
            own_key(unit),
            unit.kind
        ))
    });
    pass(&mut slots, false, place_of, &|unit| Some(own_key(unit)));
    pass(&mut slots, false, place_of, &|_| Some(String::new()));
    // In sibling directories of any name the names of the workloads are all that tells: the same name, else the same
    // model.
    pass(&mut slots, false, parent_of, &|unit| {
        let key = own_key(unit);
        (unit.partial.is_none() && !key.is_empty()).then_some(key)
    });
    pass(&mut slots, false, parent_of, &|unit| {
        let models = unit.models().join("+");
        (unit.partial.is_none() && unit.is_disaggregated() && !models.is_empty()).then_some(models)
    });
    #[expect(
        clippy::filter_map_identity,
        reason = "in the same room, which `flatten` does not do"
    )]
    slots.into_iter().filter_map(|slot| slot).collect()
}

/// The unit's name without its role.
fn own_key(unit: &Unit) -> String {
    let names: Vec<String> = unit.names.iter().map(|n| without_role(n)).collect();
    let mut distinct: Vec<&str> = names.iter().map(String::as_str).collect();
    distinct.dedup();
    distinct.join("+")
}

/// Joins halves of the same key. `in_order` pairs the first with the first; else only what is alone of its kind.
fn pass(
    slots: &mut [Option<Unit>],
    in_order: bool,
    place: fn(&str) -> &str,
    key: &dyn Fn(&Unit) -> Option<String>,
) {
    let mut open: BTreeMap<String, Vec<(usize, Half)>> = BTreeMap::new();
    for (index, unit) in slots.iter().enumerate() {
        let Some(unit) = unit else { continue };
        let (Some(half), Some(key)) = (unit.half(), key(unit)) else {
            continue;
        };
        let key = format!("{}\0{key}", place(&unit.path));
        open.entry(key).or_default().push((index, half));
    }
    for members in open.into_values() {
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        if in_order {
            let mut waiting: Vec<(usize, Half)> = Vec::new();
            for (index, half) in members {
                // Halves of one key are few kinds: looking at the last is enough, and linear.
                match waiting.last() {
                    Some((first, other)) if other.completes(half) => {
                        pairs.push((*first, index));
                        waiting.pop();
                    }
                    _ => waiting.push((index, half)),
                }
            }
        } else if let [(first, a), (second, b)] = members.as_slice()
            && a.completes(*b)
        {
            pairs.push((*first, *second));
        }
        for (first, second) in pairs {
            join(slots, first, second, in_order);
        }
    }
}

fn join(slots: &mut [Option<Unit>], first: usize, second: usize, certain: bool) {
    let (Some(Some(a)), Some(Some(b))) = (slots.get(first), slots.get(second)) else {
        return;
    };
    if !certain && !belong_together(a, b) {
        return;
    }
    if let Some(other) = slots.get_mut(second).and_then(Option::take)
        && let Some(Some(unit)) = slots.get_mut(first)
    {
        unit.take(other);
    }
}

/// Whether two halves whose files, kinds or names differ can be of one deployment.
fn belong_together(a: &Unit, b: &Unit) -> bool {
    if a.partial.is_some() != b.partial.is_some() {
        return false;
    }
    if let (Some(a), Some(b)) = (&a.namespace, &b.namespace)
        && a != b
    {
        return false;
    }
    let (key, other) = (own_key(a), own_key(b));
    if key == other {
        return true;
    }
    // Without a name in common, something else has to show that KV cache moves.
    if !a.is_disaggregated() && !b.is_disaggregated() {
        return false;
    }
    let (models, others) = (a.models(), b.models());
    if !models.is_empty() && !others.is_empty() {
        return models == others;
    }
    let first = |k: &str| k.split('-').next().unwrap_or_default().to_owned();
    key.is_empty() || other.is_empty() || first(&key) == first(&other)
}

/// The directory; the parent of one that is called after a role.
fn place_of(path: &str) -> &str {
    let directory = group::directory(path);
    let (parent, last) = directory.rsplit_once('/').unwrap_or(("", directory));
    if engine::role_of_name(last).is_some() && without_role(last).is_empty() {
        parent
    } else {
        directory
    }
}

/// The directory above the file's own.
fn parent_of(path: &str) -> &str {
    group::directory(group::directory(path))
}

/// Names without their role words and the numbers that order files, by which two halves of a deployment are recognized.
fn without_role(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let mut parts: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| {
            let word = w.trim_end_matches(|c: char| c.is_ascii_digit());
            !w.is_empty()
                && !(engine::role_of_name(word).is_some_and(Role::moves_kv)
                    || matches!(word, "p" | "d"))
        })
        .collect();
    // Words with other meanings are roles where no other word is.
    if engine::role_of_name(name).is_none() {
        parts.retain(|w| engine::role_of_other_word(w).is_none());
    }
    if parts
        .first()
        .is_some_and(|w| w.bytes().all(|b| b.is_ascii_digit()))
    {
        parts.remove(0);
    }
    parts.join("-")
}

/// `vllm-p` and `vllm-d`: too little to tell a role, and enough to tell two halves apart.
fn letter_role(name: &str) -> Option<Role> {
    match name.rsplit(['-', '_', '.']).next()? {
        "p" | "P" => Some(Role::Prefill),
        "d" | "D" => Some(Role::Decode),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_roles() {
        assert_eq!(without_role("qwen3-8b-prefill"), "qwen3-8b");
        assert_eq!(without_role("01-decode"), "");
        assert_eq!(without_role("prefill0"), "");
        assert_eq!(without_role("vllm-d"), "vllm");
        assert_ne!(
            without_role("qwen3-8b-prefill"),
            without_role("qwen3-32b-decode")
        );
        assert_eq!(place_of("stack/prefill/deployment.yaml"), "stack");
        assert_eq!(place_of("stack/deployment.yaml"), "stack");
        assert_eq!(place_of("a.yaml"), "");
        assert_eq!(letter_role("vllm-p"), Some(Role::Prefill));
        assert_eq!(letter_role("vllm-prod"), None);
    }
}
