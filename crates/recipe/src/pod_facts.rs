//! What a pod spec says about where the pod runs and what is put around it: DNS, anti-affinity, machine type,
//! service meshes, attached networks, claims that no container lists.

use model::{Claim, GroupPart, HeadlessService, Located};
use yaml::Node;

use crate::draft::Draft;
use crate::place::Text;

/// Node labels that tell the machine type.
const MACHINE_LABELS: [&str; 3] = [
    "cloud.google.com/gke-accelerator",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
];

/// Labels and annotations that put a mesh's proxy into a pod, with the value that does.
const MESH: [(&str, &[&str]); 2] = [
    ("sidecar.istio.io/inject", &["true"]),
    ("linkerd.io/inject", &["enabled", "ingress"]),
];

/// Annotations that keep a mesh's proxy away from ports.
const MESH_EXCEPTIONS: [&str; 4] = [
    "traffic.sidecar.istio.io/excludeInboundPorts",
    "traffic.sidecar.istio.io/excludeOutboundPorts",
    "config.linkerd.io/skip-inbound-ports",
    "config.linkerd.io/skip-outbound-ports",
];

/// Reads a pod spec.
pub(crate) fn spec(
    text: &Text<'_>,
    spec: Node<'_>,
    container: Option<Node<'_>>,
    draft: &mut Draft,
) {
    if let Some(node) = spec.get("dnsPolicy")
        && let Some(policy) = node.text()
    {
        draft.pod.dns_policy = Some(Located {
            value: policy.to_owned(),
            place: text.node(node, true),
        });
    }
    if draft.pod.anti_affinity.is_none() {
        draft.pod.anti_affinity = anti_affinity(text, spec);
    }
    if draft.pod.machine.is_none() {
        draft.pod.machine = machine(text, spec);
    }
    draft.pod.unlisted_claims = unlisted_claims(text, spec, container);
}

fn anti_affinity(text: &Text<'_>, spec: Node<'_>) -> Option<Located<String>> {
    let affinity = spec.get_path(&["affinity", "podAntiAffinity"])?;
    for (rule, how) in [
        ("requiredDuringSchedulingIgnoredDuringExecution", "required"),
        (
            "preferredDuringSchedulingIgnoredDuringExecution",
            "preferred",
        ),
    ] {
        let Some(list) = affinity.get(rule) else {
            continue;
        };
        for item in list.items() {
            let term = item.get("podAffinityTerm").unwrap_or(item);
            if let Some(key) = term.get("topologyKey")
                && key.text() == Some("kubernetes.io/hostname")
            {
                return Some(Located {
                    value: how.to_owned(),
                    place: text.node(key, true),
                });
            }
        }
    }
    None
}

fn machine(text: &Text<'_>, spec: Node<'_>) -> Option<Located<String>> {
    let found = |node: Node<'_>| {
        node.text().map(|value| Located {
            value: value.to_owned(),
            place: text.node(node, true),
        })
    };
    for label in MACHINE_LABELS {
        if let Some(machine) = spec.get_path(&["nodeSelector", label]).and_then(found) {
            return Some(machine);
        }
    }
    let terms = spec.get_path(&[
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ])?;
    for expression in terms
        .items()
        .filter_map(|t| t.get("matchExpressions"))
        .flat_map(|e| e.items().collect::<Vec<_>>())
    {
        let key = expression.get("key").and_then(Node::text);
        let is_in = expression.get("operator").and_then(Node::text) == Some("In");
        let Some(values) = expression
            .get("values")
            .filter(|_| is_in && key.is_some_and(|k| MACHINE_LABELS.contains(&k)))
        else {
            continue;
        };
        // One of several machine types is no machine type.
        if let (Some(first), None) = (values.item(0), values.item(1)) {
            return found(first);
        }
    }
    None
}

/// Claims that the pod declares and no container of it lists.
fn unlisted_claims(text: &Text<'_>, spec: Node<'_>, container: Option<Node<'_>>) -> Vec<Claim> {
    let Some(declared) = spec.get("resourceClaims") else {
        return Vec::new();
    };
    let lists = ["containers", "initContainers"]
        .into_iter()
        .filter_map(|key| spec.get(key));
    let listed: Vec<String> = lists
        .flat_map(|list| list.items().collect::<Vec<_>>())
        .chain(container)
        .filter_map(|c| c.get_path(&["resources", "claims"]))
        .flat_map(|claims| claims.items().collect::<Vec<_>>())
        .filter_map(|claim| claim.get("name").and_then(Node::text).map(str::to_owned))
        .collect();
    let mut unlisted = Vec::new();
    for item in declared.items() {
        let Some(node) = item.get("name") else {
            continue;
        };
        let Some(name) = node.text().filter(|n| !listed.iter().any(|l| l == n)) else {
            continue;
        };
        unlisted.push(Claim {
            name: name.to_owned(),
            template: item
                .get("resourceClaimTemplateName")
                .or_else(|| item.get("resourceClaimName"))
                .and_then(Node::text)
                .map(str::to_owned),
            declared: true,
            place: text.node(node, true),
        });
    }
    unlisted
}

/// Reads labels and annotations of a pod.
pub(crate) fn metadata<'d>(
    text: &Text<'_>,
    labels: impl Iterator<Item = Node<'d>>,
    annotations: impl Iterator<Item = Node<'d>>,
    draft: &mut Draft,
) {
    let mut excepted = false;
    let mut mesh = None;
    for entries in labels.chain(annotations) {
        for (key, value) in entries.entries() {
            let Some(name) = key.text() else { continue };
            excepted |= MESH_EXCEPTIONS.contains(&name);
            if let Some((_, on)) = MESH.iter().find(|(n, _)| *n == name) {
                let value = value.raw();
                // The nearest one decides.
                mesh = on.contains(&value.as_ref()).then(|| Located {
                    value: format!("{name}: {value}"),
                    place: text.node(key, true),
                });
            }
            if name == "k8s.v1.cni.cncf.io/networks" {
                draft.pod.networks = count(&value.raw()).map(|number| Located {
                    value: number,
                    place: text.node(key, true),
                });
            }
        }
    }
    if mesh.is_some() && !excepted {
        draft.pod.mesh = mesh;
    }
}

/// Networks in a Multus annotation: names separated by commas, or a JSON list.
fn count(value: &str) -> Option<u64> {
    let value = value.trim();
    if value.contains("{{") || value.contains('$') {
        return None;
    }
    let number = if value.starts_with('[') {
        serde_json::from_str::<serde_json::Value>(value)
            .ok()?
            .as_array()?
            .len()
    } else {
        value.split(',').filter(|n| !n.trim().is_empty()).count()
    };
    u64::try_from(number).ok()
}

/// Which template of a group the keys on the way to a pod template name.
pub(crate) fn part(names: &[String]) -> Option<GroupPart> {
    names.iter().rev().find_map(|name| match name.as_str() {
        "leaderTemplate" | "entryTemplate" => Some(GroupPart::Leader),
        "workerTemplate" => Some(GroupPart::Member),
        _ => None,
    })
}

/// A Service without an address of its own.
pub(crate) fn headless(text: &Text<'_>, root: Node<'_>, name: &str) -> Option<HeadlessService> {
    let spec = root.get("spec")?;
    let address = spec.get("clusterIP")?;
    (address.text() == Some("None")).then(|| HeadlessService {
        name: name.to_owned(),
        publishes_not_ready: spec
            .get("publishNotReadyAddresses")
            .and_then(Node::as_bool)
            .unwrap_or(false),
        place: text.node(address, true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_counted() {
        assert_eq!(count("a, ns/b"), Some(2));
        assert_eq!(
            count(r#"[{"name":"a"},{"name":"b"},{"name":"c"}]"#),
            Some(3)
        );
        assert_eq!(count("{{ .Values.networks }}"), None);
        assert_eq!(count(""), Some(0));
    }

    #[test]
    fn the_nearest_template_names_the_part() {
        let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            part(&names(&["leaderWorkerTemplate", "leaderTemplate", "spec"])),
            Some(GroupPart::Leader)
        );
        assert_eq!(
            part(&names(&["leaderWorkerTemplate", "workerTemplate"])),
            Some(GroupPart::Member)
        );
        assert_eq!(part(&names(&["template"])), None);
    }
}
