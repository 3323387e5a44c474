//! What declares workers: recipes as files, and the objects in the cluster that pods are made from.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use checks::{Declared, DeclaredBy, ProbedPod};
use cluster::{Cluster, Stop};
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

/// Reads the objects that pods are made from. What may not be read is one fault.
pub(crate) async fn objects(
    cluster: Arc<dyn Cluster>,
    pods: Vec<(String, String, String)>,
    stop: Stop,
) -> (Vec<Declared>, Option<Fault>) {
    let mut found = Vec::new();
    let mut fault = None;
    for (namespace, kind, name) in pods {
        match cluster::workload(&*cluster, &namespace, &kind, &name, &stop).await {
            Ok(Some(text)) => found.push(Declared {
                by: if kind == GRAPH {
                    DeclaredBy::Graph
                } else {
                    DeclaredBy::Template
                },
                name: format!("{kind} {name}"),
                object: name,
                deployments: live::declared(&kind, &text),
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
    found.sort_by_key(|declared| declared.by);
    (found, fault)
}

/// The kind of a whole deployment.
const GRAPH: &str = "DynamoGraphDeployment";

/// Which objects pods are made from: namespace, kind and name.
pub(crate) fn behind(pods: &[ProbedPod]) -> Vec<(String, String, String)> {
    let mut objects = BTreeSet::new();
    for pod in pods {
        let object = &pod.object;
        if let Some(graph) = object.labels.get(live::GRAPH) {
            objects.insert((object.namespace.clone(), GRAPH.to_owned(), graph.clone()));
        }
        if let Some((kind, name)) = &object.owner
            && cluster::can_read(kind)
        {
            objects.insert((object.namespace.clone(), kind.clone(), name.clone()));
        }
    }
    objects.into_iter().take(MAX_OBJECTS).collect()
}
