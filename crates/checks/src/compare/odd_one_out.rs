//! Replicas of one workload are alike.
//!
//! One worker of sixty-four with another setting, a rail less or an older library makes every transfer with it slow or
//! wrong, and nothing else shows it: each worker for itself looks well. So each is held against what more than half of
//! its workload have, thing by thing, and one that differs is named with what it has and what the others have.
//!
//! No value is judged here: whether eight ports or seven are right is not known, that seven is not like the others is.
//! Leaders and members of a group are different workloads. Firmware, cards and kernels that differ are told as notes,
//! since fleets are renewed step by step.

use std::collections::BTreeMap;

use model::{Grade, GroupPart};

use super::layers::{self, Layer};
use super::spread::{Valued, majority};
use super::traits::{TRAITS, setting, setting_names};
use super::view::GroupView;
use crate::check::{Check, Run};
use crate::finding::{Finding, Findings};
use crate::pod::view::PodView;

const NAME: &str = "worker/alike";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the workers of one workload are alike, and which one is not",
    source: include_str!("odd_one_out.rs"),
    causes: &[
        layers::SPEC,
        layers::SETTINGS,
        layers::RAILS,
        layers::GPUS,
        layers::SOFTWARE,
        layers::LIMITS,
    ],
    notes: &[],
    run: Run::Group(run),
};

/// Differences that one line lists.
const LISTED: usize = 4;

/// How a worker is not like the others.
struct Differs {
    what: String,
    own: String,
    common: String,
    note: bool,
}

/// What makes workers replicas of each other.
type Workload<'p> = (&'p str, Option<GroupPart>, Option<model::Role>);

fn run(view: &GroupView<'_>, findings: &mut Findings) {
    let mut workloads: BTreeMap<(String, u8), Vec<&PodView<'_>>> = BTreeMap::new();
    for pod in &view.pods {
        let (name, part, role) = workload(pod);
        let rank = match part {
            None => 0,
            Some(GroupPart::Leader) => 1,
            Some(GroupPart::Member) => 2,
        };
        let role = role.map_or("", model::Role::as_str);
        workloads
            .entry((format!("{name}\0{role}"), rank))
            .or_default()
            .push(pod);
    }
    for pods in workloads.values() {
        of_workload(pods, findings);
    }
}

fn workload<'p>(pod: &PodView<'p>) -> Workload<'p> {
    let name = pod.subject.workers.first().map_or("", String::as_str);
    let part = pod
        .object
        .labels
        .get("leaderworkerset.sigs.k8s.io/worker-index")
        .map(|rank| {
            if rank == "0" {
                GroupPart::Leader
            } else {
                GroupPart::Member
            }
        });
    (name, part, pod.role)
}

fn of_workload<'p>(pods: &[&'p PodView<'p>], findings: &mut Findings) {
    let mut odd: BTreeMap<(usize, Layer), Vec<Differs>> = BTreeMap::new();
    let mut compared = 0_usize;
    let at: BTreeMap<&str, usize> = pods
        .iter()
        .enumerate()
        .map(|(at, pod)| (pod.object.name.as_str(), at))
        .collect();
    let mut hold = |layer: Layer, what: &str, note: bool, values: Vec<Valued<'p>>| {
        let Some(spread) = majority(values) else {
            return;
        };
        compared = compared.max(spread.known);
        for (pod, own) in spread.others {
            let Some(at) = at.get(pod.object.name.as_str()) else {
                continue;
            };
            odd.entry((*at, layer)).or_default().push(Differs {
                what: what.to_owned(),
                own,
                common: spread.common.clone(),
                note,
            });
        }
    };
    for one in TRAITS {
        let values = pods
            .iter()
            .filter_map(|pod| Some((*pod, (one.of)(pod)?)))
            .collect();
        hold(one.layer, one.what, one.note, values);
    }
    for name in setting_names(pods) {
        let values = pods
            .iter()
            .filter_map(|pod| Some((*pod, setting(pod, name)?)))
            .collect();
        hold(Layer::Settings, name, false, values);
    }
    let role = pods
        .first()
        .and_then(|pod| pod.role)
        .map_or("worker", model::Role::as_str);
    let mut told = 0_usize;
    for layer in Layer::ALL {
        for (number, pod) in pods.iter().enumerate() {
            let Some(differs) = odd.get(&(number, layer)) else {
                continue;
            };
            told = told.saturating_add(1);
            findings.push(pod.about(told_of(layer, differs, pods.len(), role)));
        }
    }
    if told == 0 && compared > 0 {
        let finding = Finding::ok(
            NAME,
            format!("the {compared} workers that could be compared are alike"),
        )
        .grade(Grade::Observed);
        findings.push(super::view::about(finding, pods.iter().copied()));
    }
}

fn told_of(layer: Layer, differs: &[Differs], of: usize, role: &str) -> Finding {
    let counts: Vec<&Differs> = differs.iter().filter(|d| !d.note).collect();
    let shown: Vec<&Differs> = if counts.is_empty() {
        differs.iter().collect()
    } else {
        counts.clone()
    };
    let mut words: Vec<String> = shown
        .iter()
        .take(LISTED)
        .map(|d| format!("{} {}, the others {}", d.what, d.own, d.common))
        .collect();
    if shown.len() > LISTED {
        words.push(format!("{} more", shown.len().saturating_sub(LISTED)));
    }
    let detail = format!(
        "not like most of the {of} {role} workers: {}",
        words.join("; ")
    );
    let finding = if counts.is_empty() {
        Finding::ok(NAME, detail).note("worth knowing, and usual while a fleet is renewed")
    } else {
        Finding::warn(NAME, layer.cause(), detail)
    };
    finding.grade(Grade::Observed)
}
