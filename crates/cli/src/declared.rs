//! What declares workers: recipes as files, and the objects in the cluster that pods are made from.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use checks::{Declared, DeclaredBy, DeclaringKind, ProbedPod, declaring};
use cluster::{Cluster, Kept, Stop};
use model::pod::{Fault, FaultKind};
use model::{Deployment, Facts};
use recipe::live;

use crate::render;
use crate::sources::{self, LeaveOut, Reading};

/// Objects that are read at most: a deployment has a handful.
const MAX_OBJECTS: usize = 64;

/// Reads recipes.
pub(crate) fn recipes(paths: &[PathBuf]) -> Result<Facts, String> {
    let read = sources::read(
        paths,
        render::Options {
            off: false,
            timeout: Duration::from_secs(30),
            values: &[],
        },
        &Reading {
            leave_out: &|_| LeaveOut::No,
            instead: &HashMap::new(),
        },
    )?;
    Ok(read.facts)
}

/// Recipes as a layer.
pub(crate) fn of_recipes(facts: Facts, paths: &[PathBuf]) -> Declared {
    let shown: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    Declared {
        by: DeclaredBy::Recipe,
        name: shown.join(", "),
        object: String::new(),
        deployments: facts.deployments,
    }
}

/// The deployments of recipes that are looked for in the cluster.
pub(crate) fn disaggregated(recipes: &Declared) -> Vec<Deployment> {
    let all = recipes.deployments.iter();
    all.filter(|d| d.is_disaggregated()).cloned().collect()
}

/// An object that pods are made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Behind {
    namespace: String,
    kind: &'static DeclaringKind,
    name: String,
}

/// Reads the objects that pods are made from. What may not be read is one fault.
pub(crate) async fn objects(
    cluster: Arc<dyn Cluster>,
    behind: Vec<Behind>,
    stop: Stop,
) -> (Vec<Declared>, Option<Fault>) {
    let mut found = Vec::new();
    let mut fault = None;
    for object in behind {
        let kind = object.kind;
        let kept = Kept {
            group: kind.group,
            versions: kind.versions,
            resource: kind.resource,
        };
        match cluster::object(&*cluster, kept, &object.namespace, &object.name, &stop).await {
            Ok(Some(text)) => found.push(Declared {
                by: if kind.is_template() {
                    DeclaredBy::Template
                } else {
                    DeclaredBy::Graph
                },
                name: format!("{} {}", kind.kind, object.name),
                object: object.name,
                deployments: live::declared(kind.kind, &text),
            }),
            Ok(None) => {}
            Err(refused) => {
                let forbidden = refused.kind == FaultKind::ForbiddenPods;
                if fault.is_none() {
                    fault = Some(if forbidden {
                        Fault::new(FaultKind::ForbiddenWorkload, refused.detail)
                    } else {
                        refused
                    });
                }
                if !forbidden {
                    break;
                }
            }
        }
    }
    found.retain(|declared| !declared.deployments.is_empty());
    (found, fault)
}

/// Which objects pods are made from, the widest first.
pub(crate) fn behind(pods: &[ProbedPod]) -> Vec<Behind> {
    // By their place in the order of kinds, which is the same for all pods.
    let mut objects: BTreeMap<(usize, &str, &str), Behind> = BTreeMap::new();
    for pod in pods {
        for (at, kind, name) in declaring(&pod.object) {
            objects
                .entry((at, &pod.object.namespace, name))
                .or_insert_with(|| Behind {
                    namespace: pod.object.namespace.clone(),
                    kind,
                    name: name.clone(),
                });
        }
    }
    objects.into_values().take(MAX_OBJECTS).collect()
}
