//! Parts of a manifest that are of another shape than their kind has: a list of services, a number of containers.
//!
//! Kubernetes refuses such an object. Read as if the part were not there it would look like a recipe without workers,
//! so it counts as broken. Only kinds whose shape is known are looked at, and of them only what leads to a setting.

use model::{InputProblem, Outcome};
use yaml::{Kind, Node};

use crate::draft::FileDraft;
use crate::place::Text;

/// Kinds with pod templates under `spec`.
const POD_KINDS: [&str; 13] = [
    "Pod",
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "JobSet",
    "LeaderWorkerSet",
    "DisaggregatedSet",
    "RoleBasedGroup",
    "PodCliqueSet",
    "LLMInferenceService",
];

/// Templates nest far less deep than this.
const MAX_DEPTH: u32 = 24;

/// One document's worth; the rest is of the same kind.
const MAX_PROBLEMS: usize = 5;

/// What a key holds.
#[derive(Clone, Copy)]
enum Wanted {
    Mapping,
    List,
    /// Charts and some operators take a mapping of names as well.
    ListOrMapping,
    /// Early releases had a list.
    MappingOrList,
    /// One word stands for a list of one.
    ListOrText,
}

impl Wanted {
    fn takes(self, kind: Kind) -> bool {
        match self {
            Self::Mapping => kind == Kind::Mapping,
            Self::List => kind == Kind::Sequence,
            Self::ListOrMapping | Self::MappingOrList => {
                matches!(kind, Kind::Sequence | Kind::Mapping)
            }
            Self::ListOrText => matches!(kind, Kind::Sequence | Kind::Scalar),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Mapping | Self::MappingOrList => "a mapping",
            Self::List | Self::ListOrMapping | Self::ListOrText => "a list",
        }
    }
}

/// Keys of a container.
const CONTAINER: [(&str, Wanted); 9] = [
    ("env", Wanted::ListOrMapping),
    ("envs", Wanted::ListOrMapping),
    ("envFrom", Wanted::List),
    ("command", Wanted::ListOrText),
    ("args", Wanted::ListOrText),
    ("resources", Wanted::Mapping),
    ("securityContext", Wanted::Mapping),
    ("volumeMounts", Wanted::List),
    ("ports", Wanted::List),
];

/// Keys of a pod spec.
const POD: [(&str, Wanted); 5] = [
    ("containers", Wanted::List),
    ("initContainers", Wanted::List),
    ("volumes", Wanted::List),
    ("resourceClaims", Wanted::List),
    ("securityContext", Wanted::Mapping),
];

struct Reader<'t, 's> {
    text: &'t Text<'s>,
    problems: Vec<InputProblem>,
}

/// Notes the parts of an object that are of another shape.
pub(crate) fn check(text: &Text<'_>, root: Node<'_>, kind: &str, file: &mut FileDraft) {
    let mut reader = Reader {
        text,
        problems: Vec::new(),
    };
    match kind {
        "DynamoGraphDeployment" => reader.graph(root, file),
        "DynamoComponentDeployment" => {
            if let Some(spec) = reader.part(root, "spec", Wanted::Mapping) {
                reader.service(spec, file);
            }
        }
        kind if POD_KINDS.contains(&kind) => {
            if let Some(spec) = reader.part(root, "spec", Wanted::Mapping) {
                reader.templates(spec, file, 0);
            }
        }
        _ => return,
    }
    reader.problems.truncate(MAX_PROBLEMS);
    file.problems.append(&mut reader.problems);
}

impl Reader<'_, '_> {
    fn graph(&mut self, root: Node<'_>, file: &mut FileDraft) {
        let Some(spec) = self.part(root, "spec", Wanted::Mapping) else {
            return;
        };
        self.parts(
            spec,
            &[
                ("env", Wanted::ListOrMapping),
                ("envs", Wanted::ListOrMapping),
            ],
        );
        let services = self.part(spec, "services", Wanted::MappingOrList);
        let components = self.part(spec, "components", Wanted::List);
        for list in [services, components].into_iter().flatten() {
            if list.is_mapping() {
                for (key, service) in list.entries() {
                    let name = key.text().unwrap_or_default();
                    if self.is(service, name, Wanted::Mapping) {
                        self.service(service, file);
                    }
                }
                continue;
            }
            // Early releases had a list of services; its items have names.
            let named = list.items().all(|i| i.is_null() || i.get("name").is_some());
            if services.is_some_and(|s| s.id() == list.id()) && !named {
                self.found(list, "services", Wanted::Mapping);
                continue;
            }
            for service in self.items(list, "components") {
                self.service(service, file);
            }
        }
    }

    fn service(&mut self, service: Node<'_>, file: &mut FileDraft) {
        if !file.spend(1) {
            return;
        }
        self.parts(
            service,
            &[
                ("env", Wanted::ListOrMapping),
                ("envs", Wanted::ListOrMapping),
                ("resources", Wanted::Mapping),
            ],
        );
        if let Some(spec) = self.part(service, "extraPodSpec", Wanted::Mapping) {
            self.pod(spec, file);
            if let Some(main) = self.part(spec, "mainContainer", Wanted::Mapping) {
                self.container(main);
            }
        }
        if let Some(template) = self.part(service, "podTemplate", Wanted::Mapping)
            && let Some(spec) = self.part(template, "spec", Wanted::Mapping)
        {
            self.pod(spec, file);
        }
    }

    /// Finds pod specs below a node.
    fn templates(&mut self, node: Node<'_>, file: &mut FileDraft, depth: u32) {
        // What an alias stands for is looked at where it is written.
        if depth > MAX_DEPTH || node.alias_span().is_some() || !file.spend(1) {
            return;
        }
        if node.get("containers").is_some() {
            return self.pod(node, file);
        }
        let below = node.entries().map(|(_, value)| value).chain(node.items());
        for child in below.filter(|n| n.is_mapping() || n.is_sequence()) {
            self.templates(child, file, depth + 1);
        }
    }

    fn pod(&mut self, spec: Node<'_>, file: &mut FileDraft) {
        self.parts(spec, &POD);
        for key in ["containers", "initContainers"] {
            let Some(list) = spec.get(key).filter(|l| l.is_sequence()) else {
                continue;
            };
            for container in self.items(list, key) {
                if !file.spend(1) {
                    return;
                }
                self.container(container);
            }
        }
    }

    fn container(&mut self, container: Node<'_>) {
        self.parts(container, &CONTAINER);
        if let Some(resources) = container.get("resources") {
            self.parts(
                resources,
                &[("limits", Wanted::Mapping), ("requests", Wanted::Mapping)],
            );
        }
    }

    fn parts(&mut self, node: Node<'_>, parts: &[(&str, Wanted)]) {
        for (key, wanted) in parts {
            let _ = self.part(node, key, *wanted);
        }
    }

    /// The value of a key, where it has the right shape.
    fn part<'d>(&mut self, node: Node<'d>, key: &str, wanted: Wanted) -> Option<Node<'d>> {
        let value = node.get(key)?;
        self.is(value, key, wanted).then_some(value)
    }

    /// The mappings of a list.
    fn items<'d>(&mut self, list: Node<'d>, key: &str) -> Vec<Node<'d>> {
        let name = format!("an item of {key}");
        list.items()
            .filter(|item| self.is(*item, &name, Wanted::Mapping))
            .collect()
    }

    fn is(&mut self, value: Node<'_>, name: &str, wanted: Wanted) -> bool {
        // Null is a key that is not set.
        if value.is_null() {
            return false;
        }
        let fits = wanted.takes(value.kind());
        if !fits {
            self.found(value, name, wanted);
        }
        fits
    }

    fn found(&mut self, value: Node<'_>, name: &str, wanted: Wanted) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let position = self.text.line_column(value.span().start);
        let got = match value.kind() {
            Kind::Mapping => "a mapping",
            Kind::Sequence => "a list",
            Kind::Scalar | Kind::Null => "a single value",
        };
        let template = value
            .text()
            .is_some_and(|t| t.contains("{{") || t.contains("${"));
        self.problems.push(if template {
            InputProblem {
                cause: "input-template",
                detail: format!("{name} is filled in by a template, and what with is not known"),
                fix:
                    "render it first (helm template, or the tool that owns it) and give the result"
                        .into(),
                position: Some(position),
                outcome: Outcome::Skipped,
            }
        } else {
            InputProblem {
                cause: "input-wrong-shape",
                detail: format!("{name}: got {got}, expected {}", wanted.as_str()),
                fix: "correct it: Kubernetes refuses the object as it is".into(),
                position: Some(position),
                outcome: Outcome::Broken,
            }
        });
    }
}
