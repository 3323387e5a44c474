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

/// Kinds of Kubernetes itself and of its working groups: their pod templates stand alone, nothing is merged into them.
const COMPLETE_KINDS: [&str; 9] = [
    "Pod",
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "JobSet",
    "LeaderWorkerSet",
];

/// Keys that lead to a pod template, and hold nothing else.
const TEMPLATES: [&str; 7] = [
    "template",
    "jobTemplate",
    "podTemplate",
    "leaderTemplate",
    "workerTemplate",
    "entryTemplate",
    "leaderWorkerTemplate",
];

/// Templates nest far less deep than this.
const MAX_DEPTH: u32 = 24;

/// One document's worth; the rest is of the same kind.
pub(crate) const MAX_PROBLEMS: usize = 5;

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
    Text,
    Quantity,
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
            Self::Text | Self::Quantity => kind == Kind::Scalar,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Mapping | Self::MappingOrList => "a mapping",
            Self::List | Self::ListOrMapping | Self::ListOrText => "a list",
            Self::Text => "text",
            Self::Quantity => "a quantity such as 1",
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
    /// What is null or empty is not filled in from elsewhere.
    complete: bool,
    problems: Vec<InputProblem>,
}

/// Notes the parts of an object that are of another shape.
pub(crate) fn check(text: &Text<'_>, root: Node<'_>, kind: &str, file: &mut FileDraft) {
    let mut reader = Reader {
        text,
        complete: COMPLETE_KINDS.contains(&kind),
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
        self.env(spec, file);
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
        self.env(service, file);
        self.resources(service);
        if let Some(spec) = self.part(service, "extraPodSpec", Wanted::Mapping) {
            self.pod(spec, file);
            if let Some(main) = self.part(spec, "mainContainer", Wanted::Mapping) {
                self.container(main, file);
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
        for key in TEMPLATES {
            let Some(template) = node.get(key) else {
                continue;
            };
            if !template.is_null() {
                let _ = self.is(template, key, Wanted::Mapping);
            } else if self.complete {
                self.found(template, key, Wanted::Mapping);
            }
            if let Some(spec) = template.get("spec") {
                let _ = self.is(spec, &format!("spec of {key}"), Wanted::Mapping);
            }
        }
        let below = node.entries().map(|(_, value)| value).chain(node.items());
        for child in below.filter(|n| n.is_mapping() || n.is_sequence()) {
            self.templates(child, file, depth + 1);
        }
    }

    fn pod(&mut self, spec: Node<'_>, file: &mut FileDraft) {
        self.parts(spec, &POD);
        if let Some(list) = spec.get("containers").filter(|_| self.complete)
            && (list.is_null() || list.is_sequence() && list.items().next().is_none())
        {
            self.found(list, "containers", Wanted::List);
        }
        for key in ["containers", "initContainers"] {
            let Some(list) = spec.get(key).filter(|l| l.is_sequence()) else {
                continue;
            };
            for container in self.items(list, key) {
                if !file.spend(1) {
                    return;
                }
                self.container(container, file);
            }
        }
    }

    fn container(&mut self, container: Node<'_>, file: &mut FileDraft) {
        self.parts(container, &CONTAINER);
        self.env(container, file);
        self.resources(container);
    }

    /// Entries of `env`: each a mapping with a name, and text for a value.
    fn env(&mut self, node: Node<'_>, file: &mut FileDraft) {
        for list in ["env", "envs"].into_iter().filter_map(|key| node.get(key)) {
            for item in list.items() {
                if !file.spend(1) {
                    return;
                }
                if !item.is_mapping() {
                    self.found(item, "an item of env", Wanted::Mapping);
                    continue;
                }
                match item.get("name") {
                    Some(name) if name.text() == Some("") => {
                        self.wrong(item, "an item of env has no name".to_owned());
                    }
                    Some(name) if name.is_scalar() && !name.is_plain_non_string() => {}
                    Some(name) => self.found(name, "the name of an item of env", Wanted::Text),
                    None => self.wrong(item, "an item of env has no name".to_owned()),
                }
                if let Some(value) = item.get("value") {
                    let _ = self.is(value, "the value of an item of env", Wanted::Text);
                }
                let _ = self.part(item, "valueFrom", Wanted::Mapping);
            }
        }
    }

    fn resources(&mut self, node: Node<'_>) {
        let Some(resources) = node.get("resources") else {
            return;
        };
        for key in ["limits", "requests"] {
            let Some(list) = self.part(resources, key, Wanted::Mapping) else {
                continue;
            };
            // A Dynamo service has the rest under `custom`.
            let custom = list.get("custom").filter(|c| c.is_mapping());
            let entries = list
                .entries()
                .chain(custom.into_iter().flat_map(Node::entries));
            for (name, quantity) in entries {
                let Some(name) = name.text().filter(|n| is_resource(n)) else {
                    continue;
                };
                if self.is(quantity, name, Wanted::Quantity) && !is_quantity(&quantity.raw()) {
                    self.found(quantity, name, Wanted::Quantity);
                }
            }
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
        if let Some(item) = list.items().find(|i| i.is_null()).filter(|_| self.complete) {
            self.found(item, &name, Wanted::Mapping);
        }
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
        let detail = format!("{name}: got {}, expected {}", got(value), wanted.as_str());
        self.wrong(value, detail);
    }

    fn wrong(&mut self, value: Node<'_>, detail: String) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let position = self.text.line_column(value.span().start);
        let name = detail.split(": got").next().unwrap_or(&detail);
        let template = value
            .text()
            .is_some_and(|t| t.contains("{{") || t.contains("${"));
        self.problems.push(if template {
            InputProblem {
                cause: "input-template".into(),
                detail: format!("{name} is filled in by a template, and what with is not known"),
                fix:
                    "render it first (helm template, or the tool that owns it) and give the result"
                        .into(),
                position: Some(position),
                outcome: Outcome::Skipped,
            }
        } else {
            problem(detail, position)
        });
    }
}

/// A part of another shape.
pub(crate) fn problem(detail: String, position: (u32, u32)) -> InputProblem {
    InputProblem {
        cause: "input-wrong-shape".into(),
        detail,
        fix: "correct it: Kubernetes refuses the object as it is".into(),
        position: Some(position),
        outcome: Outcome::Broken,
    }
}

/// What stands there, in the words of a person, never the value itself.
pub(crate) fn got(value: Node<'_>) -> &'static str {
    match value.kind() {
        Kind::Mapping => "a mapping",
        Kind::Sequence if value.items().next().is_none() => "an empty list",
        Kind::Sequence => "a list",
        Kind::Null => "nothing",
        Kind::Scalar if value.is_bool() => "true or false",
        Kind::Scalar if value.is_number() => "a number",
        Kind::Scalar => "text",
    }
}

/// Whether an entry of `limits` is a resource of Kubernetes: operators put words of their own beside them.
fn is_resource(name: &str) -> bool {
    name.contains('/')
        || matches!(name, "cpu" | "memory" | "ephemeral-storage")
        || name.starts_with("hugepages-")
}

/// Whether Kubernetes reads this as a quantity: a decimal number with an exponent or a unit, or without.
fn is_quantity(text: &str) -> bool {
    const UNITS: [&str; 16] = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let exponent = unit.strip_prefix(['e', 'E']).is_some_and(|digits| {
        let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    });
    number.bytes().any(|b| b.is_ascii_digit())
        && number.matches('.').count() <= 1
        && (UNITS.contains(&unit) || exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        for yes in [
            "1", "+1", "0.5", ".5", "5.", "100m", "1k", "12Gi", "1e3", "1E-3", "2E", "1Ei",
        ] {
            assert!(is_quantity(yes), "{yes}");
        }
        for no in [
            "", "abc", "1 Gi", "16GB", "1gi", "one", ".", "1.2.3", "1e", "-", "true", "1K",
        ] {
            assert!(!is_quantity(no), "{no}");
        }
    }
}
