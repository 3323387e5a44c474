//! Replicas of one workload are alike.
//!
//! One worker of sixty-four with another setting, a rail less or an older library makes every transfer with it slow or
//! wrong, and nothing else shows it: each worker for itself looks well. So each is held against what more than half of
//! its workload have, thing by thing, and one that differs is named with what it has and what the others have.
//!
//! No value is judged here: whether eight ports or seven are right is not known, that seven is not like the others is.
//! Leaders and members of a group are different workloads, and so are workers of different templates while a rollout is
//! under way. What every fourth worker has, or more, is a kind of machine and no accident: told as a note. Firmware, cards
//! and kernels that differ are told as notes, since fleets are renewed step by step; so are settings of speed, and those
//! of NCCL where it does not move KV.

use std::collections::BTreeMap;

use model::Grade;

use super::layers::{self, Layer};
use super::rails::Rails;
use super::settings::{self, Weight};
use super::spread::{Spread, Valued, majority};
use super::traits::TRAITS;
use super::view::{GroupView, about};
use super::workload::Workload;
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

fn run(view: &GroupView<'_>, findings: &mut Findings) {
    let mut workloads: BTreeMap<Workload, Vec<&PodView<'_>>> = BTreeMap::new();
    for pod in &view.pods {
        workloads.entry(Workload::of(pod)).or_default().push(pod);
    }
    templates(&workloads, findings);
    for pods in workloads.values() {
        of_workload(pods, findings);
    }
}

/// A rollout: workers of one workload that were made from different templates.
fn templates(workloads: &BTreeMap<Workload, Vec<&PodView<'_>>>, findings: &mut Findings) {
    let mut by_name: BTreeMap<Workload, Vec<&Vec<&PodView<'_>>>> = BTreeMap::new();
    for (workload, pods) in workloads {
        by_name
            .entry(workload.without_template())
            .or_default()
            .push(pods);
    }
    for mut kinds in by_name.into_values() {
        if kinds.len() < 2 {
            continue;
        }
        kinds.sort_by_key(|pods| std::cmp::Reverse(pods.len()));
        let all: usize = kinds.iter().map(|pods| pods.len()).sum();
        let words: Vec<String> = kinds
            .iter()
            .skip(1)
            .map(|pods| {
                let names: Vec<&str> = pods.iter().map(|pod| pod.object.name.as_str()).collect();
                super::listed(&names)
            })
            .collect();
        let role = role(kinds.first().copied().map_or(&[][..], Vec::as_slice));
        let finding = Finding::ok(
            NAME,
            format!(
                "{} of the {all} {role} workers are of another template than most: {}",
                all.saturating_sub(kinds.first().map_or(0, |pods| pods.len())),
                words.join("; ")
            ),
        )
        .note("a rollout is under way, or stands; each is held against those of its own template");
        let others = kinds.into_iter().skip(1).flatten().copied();
        findings.push(about(finding.grade(Grade::Observed), others));
    }
}

fn role(pods: &[&PodView<'_>]) -> &'static str {
    pods.first()
        .and_then(|pod| pod.role)
        .map_or("worker", model::Role::as_str)
}

/// What was found of the workers of one workload.
#[derive(Default)]
struct Held {
    /// By worker and layer.
    odd: BTreeMap<(usize, Layer), Vec<Differs>>,
    /// Things of which there are kinds.
    kinds: Vec<String>,
    /// Workers that could be compared.
    compared: usize,
}

impl Held {
    fn take(
        &mut self,
        pods: &[&PodView<'_>],
        (layer, what, note): (Layer, &str, bool),
        spread: Spread<'_>,
        shown: impl Fn(&PodView<'_>) -> Option<String>,
    ) {
        self.compared = self.compared.max(spread.known);
        let mut others = spread.others;
        for (kind, count) in spread.kinds {
            if layer == Layer::Spec {
                // Replicas are made from one template.
                let held = pods
                    .iter()
                    .copied()
                    .filter(|pod| shown(pod).as_ref() == Some(&kind));
                others.extend(held.map(|pod| (pod, kind.clone())));
            } else if !note {
                self.kinds.push(format!(
                    "{what} {kind} on {count}, {} on most",
                    spread.common
                ));
            }
        }
        for (pod, own) in others {
            let Some(at) = pods.iter().position(|p| p.object.name == pod.object.name) else {
                continue;
            };
            self.odd.entry((at, layer)).or_default().push(Differs {
                what: what.to_owned(),
                own: shown(pod).unwrap_or(own),
                common: spread.common.clone(),
                note,
            });
        }
    }
}

fn of_workload<'p>(pods: &[&'p PodView<'p>], findings: &mut Findings) {
    let mut held = Held::default();
    let rails: Vec<Option<Rails<'_>>> = pods.iter().map(|pod| Rails::here(pod)).collect();
    for one in TRAITS {
        let values: Vec<Valued<'p>> = pods
            .iter()
            .zip(&rails)
            .filter_map(|(pod, rails)| Some((*pod, one.value(pod, rails.as_ref())?)))
            .collect();
        if let Some(spread) = majority(values) {
            held.take(pods, (one.layer, one.what, one.note), spread, |pod| {
                one.value(pod, Rails::here(pod).as_ref())
            });
        }
    }
    for (name, weight) in settings::names(pods) {
        let values: Vec<Valued<'p>> = pods
            .iter()
            .filter_map(|pod| {
                let given = settings::given(pod, name)?;
                Some((*pod, settings::alike(name, &given)))
            })
            .collect();
        if let Some(spread) = majority(values) {
            let note = weight == Weight::Note;
            held.take(pods, (Layer::Settings, name, note), spread, |pod| {
                settings::given(pod, name)
            });
        }
    }
    let Held {
        odd,
        kinds,
        compared,
    } = held;
    let role = role(pods);
    let mut told = 0_usize;
    if !kinds.is_empty() {
        told = told.saturating_add(1);
        findings.push(about(
            of_kinds(&kinds, pods.len(), role),
            pods.iter().copied(),
        ));
    }
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
        findings.push(about(finding, pods.iter().copied()));
    }
}

/// Machines of several types.
fn of_kinds(kinds: &[String], of: usize, role: &str) -> Finding {
    let mut words: Vec<String> = kinds.iter().take(LISTED).cloned().collect();
    if kinds.len() > LISTED {
        words.push(format!("{} more", kinds.len().saturating_sub(LISTED)));
    }
    Finding::ok(
        NAME,
        format!(
            "the {of} {role} workers are of several kinds: {}",
            words.join("; ")
        ),
    )
    .note("machines of several types; each pair is as fast as its slower end")
    .grade(Grade::Observed)
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
