//! What was deployed is what runs: no layer on the way has changed a transport setting.
//!
//! Between the file that somebody wrote and the engine that runs lie the object in the cluster, the template that the
//! operator makes of it, the pod's spec, which webhooks may change at admission, and the image and the start script, which
//! set variables too. Each setting that is declared is followed through the layers that could be read, and where it
//! changes, the layer that changed it is named with both values. What a layer only adds is told as a note: operators and
//! images do that on purpose, and the value itself is judged by its own rule.

use std::collections::BTreeMap;

use model::{Grade, Place, Setting, Value, Worker};
use settings::catalogue::{self, Relevance};

use super::view::{GroupView, about};
use super::workload::part;
use crate::check::{Cause, Check, Run};
use crate::declaring::declaring;
use crate::finding::{Finding, Findings};
use crate::gathered::{Declared, DeclaredBy};
use crate::pod::view::PodView;
use crate::pod::workers::{deployment_of, workload};

const NAME: &str = "worker/drift";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "what was deployed is what runs, and which layer has changed it",
    source: include_str!("drift.rs"),
    causes: &[CHANGED],
    notes: &[],
    run: Run::Group(run),
};

const CHANGED: Cause = Cause {
    id: "setting-changed-on-the-way",
    what: "a transport setting that is declared has another value, or none, in the worker that runs",
    why: "who reads the recipe believes its value; KV takes the path of the other one",
    fix: "look at the layer that is named: apply the recipe again where the object is older; a webhook (kubectl get mutatingwebhookconfigurations) or the operator's defaults where the pod's spec differs; the image and the start script where only the process differs",
    quiet_if: "the values are equal; a value is decided at start or could not be read; a layer only adds a setting (a note); the recipe and its object are not given or may not be read",
    source: "comparison of the layers",
};

/// A layer between what somebody wrote and what runs.
struct Layer<'p> {
    /// `recipe deploy.yaml`, `DynamoGraphDeployment llama`, `pod spec`.
    name: String,
    /// Who makes it out of the layer before.
    maker: &'static str,
    worker: &'p Worker,
    /// Why what is not in it may be there all the same.
    open: [bool; 2],
}

/// What a layer says of a setting.
#[derive(Clone, PartialEq, Eq)]
enum Says<'p> {
    Value(&'p str),
    Nothing,
    Unknown,
}

impl<'p> Layer<'p> {
    fn says(&self, name: &str) -> Says<'p> {
        match self.setting(name).map(|setting| &setting.value) {
            Some(Value::Literal(text)) => Says::Value(text),
            Some(Value::Dynamic(_)) => Says::Unknown,
            None => {
                let [environment, command] = self.open;
                let open = if model::is_variable(name) {
                    environment
                } else {
                    command
                };
                if open { Says::Unknown } else { Says::Nothing }
            }
        }
    }

    fn setting(&self, name: &str) -> Option<&'p Setting> {
        self.worker.setting(name)
    }
}

/// Whether a name is followed.
fn followed(name: &str) -> bool {
    catalogue::lookup(name).is_some_and(|variable| {
        matches!(
            variable.relevance,
            Relevance::Critical | Relevance::Relevant
        )
    }) || name.starts_with("--") && name != model::MODEL
}

/// The worker that something declares for a pod.
fn declared_for<'p>(declared: &'p Declared, pod: &PodView<'_>) -> Option<&'p Worker> {
    let container = |worker: &&Worker| {
        worker.container.is_empty()
            || worker.container == pod.pod.container
            || declared.by != DeclaredBy::Template
    };
    if declared.by == DeclaredBy::Template {
        let owner = pod.object.owner.as_ref().map(|(_, name)| name.as_str());
        if owner != Some(declared.object.as_str()) {
            return None;
        }
        return declared
            .deployments
            .iter()
            .flat_map(|d| &d.workers)
            .find(container);
    }
    let is_behind = || {
        declaring(pod.object)
            .any(|(_, kind, name)| declared.name == format!("{} {name}", kind.kind))
    };
    if declared.by == DeclaredBy::Graph && !is_behind() {
        return None;
    }
    let of = deployment_of(pod.object);
    let named = declared.deployments.iter().find(|d| d.name == of);
    let deployments: Vec<_> = match named {
        Some(one) => vec![one],
        None => declared.deployments.iter().collect(),
    };
    let mut all: Vec<&Worker> = deployments.iter().flat_map(|d| &d.workers).collect();
    // Of a group's two templates the one that is the pod's; with one alone all its pods are made from that.
    let part = part(pod.object);
    if part.is_some() && all.iter().any(|worker| worker.part == part) {
        all.retain(|worker| worker.part.is_none() || worker.part == part);
    }
    let workers = || all.iter().copied();
    let own = workload(pod.object);
    // Several recipes can call their workers alike; which of them is meant is not guessed.
    let by_name = only(workers().filter(|w| w.name.eq_ignore_ascii_case(&own)));
    // Names change on the way; a role that is there once does not.
    by_name.or_else(|| only(workers().filter(|w| Some(w.role) == pod.role)))
}

/// The only one.
fn only<'p>(mut workers: impl Iterator<Item = &'p Worker>) -> Option<&'p Worker> {
    match (workers.next(), workers.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    }
}

fn layers<'p>(view: &GroupView<'p>, pod: &'p PodView<'p>) -> Vec<Layer<'p>> {
    let mut layers: Vec<Layer<'p>> = Vec::new();
    let mut of_object = false;
    for declared in view.declared {
        let Some(worker) = declared_for(declared, pod) else {
            continue;
        };
        let open = worker.is_open();
        let made = std::mem::replace(&mut of_object, declared.by != DeclaredBy::Recipe);
        layers.push(Layer {
            name: declared.name.clone(),
            maker: match declared.by {
                DeclaredBy::Recipe => "whoever wrote it",
                DeclaredBy::Graph if !made => {
                    "an edit of the object, or another text that was applied"
                }
                DeclaredBy::Graph | DeclaredBy::Template => "the operator or controller",
            },
            worker,
            open: [open, open || !worker.has_command],
        });
    }
    if layers.is_empty() {
        return layers;
    }
    if let Some(worker) = &pod.pod.worker {
        let open = worker.is_open();
        layers.push(Layer {
            name: "the pod's spec".to_owned(),
            maker: "a webhook at admission, or the operator",
            worker,
            open: [open, open || !worker.has_command],
        });
    }
    if let Some(live) = pod.live {
        layers.push(Layer {
            name: "the engine process".to_owned(),
            maker: "the image, a start script or the runtime",
            worker: &live.worker,
            open: [live.environment.is_some(), live.flags.is_some()],
        });
    }
    layers
}

/// One change, on one layer: equal ones of several workers are told once.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    name: String,
    from_layer: String,
    from: String,
    to_layer: String,
    to: String,
    maker: &'static str,
}

fn run(view: &GroupView<'_>, findings: &mut Findings) {
    if view.declared.is_empty() {
        return;
    }
    let mut changes: BTreeMap<Change, (Vec<&PodView<'_>>, Option<&Place>)> = BTreeMap::new();
    let mut added: BTreeMap<(String, String), Vec<&PodView<'_>>> = BTreeMap::new();
    let mut compared: Vec<&PodView<'_>> = Vec::new();
    for pod in view.kv() {
        let layers = layers(view, pod);
        if layers.len() < 2 {
            continue;
        }
        compared.push(pod);
        let mut names: Vec<&str> = layers
            .iter()
            .flat_map(|layer| &layer.worker.settings)
            .map(|setting| setting.name.as_str())
            .filter(|name| followed(name))
            .collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            follow(pod, &layers, name, &mut changes, &mut added);
        }
    }
    for (change, (pods, place)) in &changes {
        let finding = Finding::warn(
            NAME,
            &CHANGED,
            format!(
                "{}: {} in {}, {} in {}",
                change.name, change.from, change.from_layer, change.to, change.to_layer
            ),
        )
        .note(format!("changed by {}", change.maker))
        .grade(Grade::Observed);
        let finding = match place {
            Some(place) => {
                finding.context(place, format!("{}: {}", change.from_layer, change.from))
            }
            None => finding,
        };
        findings.push(about(finding, pods.iter().copied()));
    }
    for ((layer, names), pods) in added {
        let finding = Finding::ok(NAME, format!("{layer} adds {names}")).grade(Grade::Observed);
        findings.push(about(finding, pods));
    }
    if changes.is_empty() && !compared.is_empty() {
        let from: Vec<&str> = view.declared.iter().map(|d| d.name.as_str()).collect();
        let from = super::listed(&from);
        let finding = Finding::ok(
            NAME,
            format!("what {from} declares is what runs, as far as it could be followed"),
        )
        .grade(Grade::Observed);
        findings.push(about(finding, compared));
    }
}

type Changes<'p> = BTreeMap<Change, (Vec<&'p PodView<'p>>, Option<&'p Place>)>;

/// Follows one setting of one worker through the layers.
fn follow<'p>(
    pod: &'p PodView<'p>,
    layers: &[Layer<'p>],
    name: &str,
    changes: &mut Changes<'p>,
    added: &mut BTreeMap<(String, String), Vec<&'p PodView<'p>>>,
) {
    let mut held: Option<(usize, Says<'p>)> = None;
    for (at, layer) in layers.iter().enumerate() {
        let says = layer.says(name);
        if says == Says::Unknown {
            continue;
        }
        let before = held.replace((at, says.clone()));
        let Some((from_at, from)) = before else {
            continue;
        };
        let Some(from_layer) = layers.get(from_at) else {
            continue;
        };
        match (&from, &says) {
            (Says::Value(one), Says::Value(other)) if one.trim() == other.trim() => {}
            (Says::Value(one), other) => {
                let to = match other {
                    Says::Value(text) => (*text).to_owned(),
                    _ => "not set".to_owned(),
                };
                let change = Change {
                    name: name.to_owned(),
                    from_layer: from_layer.name.clone(),
                    from: (*one).to_owned(),
                    to_layer: layer.name.clone(),
                    to,
                    maker: layer.maker,
                };
                let place = from_layer
                    .setting(name)
                    .map(|setting| &setting.place)
                    .filter(|place| place.line > 0);
                let entry = changes.entry(change).or_insert((Vec::new(), place));
                entry.0.push(pod);
            }
            (_, Says::Value(text)) => {
                let critical = catalogue::lookup(name)
                    .is_some_and(|variable| variable.relevance == Relevance::Critical);
                if critical {
                    added
                        .entry((layer.name.clone(), format!("{name}={text}")))
                        .or_default()
                        .push(pod);
                }
            }
            _ => {}
        }
    }
}
