//! What a container asks the cluster for: extended resources, accelerators, device claims.

use model::{Accelerator, Claim, Resource};
use yaml::Node;

use crate::draft::Draft;
use crate::place::{Around, Text};

/// The accelerator behind an extended resource name.
fn accelerator(name: &str) -> Option<Accelerator> {
    let (domain, rest) = name.split_once('/')?;
    match domain {
        "nvidia.com"
            if rest.starts_with("gpu") || rest.starts_with("mig-") || rest.starts_with("pgpu") =>
        {
            Some(Accelerator::Nvidia)
        }
        "amd.com" if rest.starts_with("gpu") => Some(Accelerator::Amd),
        "gpu.intel.com" => Some(Accelerator::IntelXpu),
        "habana.ai" => Some(Accelerator::Gaudi),
        "huawei.com" if rest.to_ascii_lowercase().starts_with("ascend") => {
            Some(Accelerator::Ascend)
        }
        "google.com" if rest == "tpu" => Some(Accelerator::Tpu),
        "aws.amazon.com" if rest.starts_with("neuron") => Some(Accelerator::Neuron),
        _ => None,
    }
}

/// Whether a resource is an accelerator.
pub(crate) fn is_accelerator(name: &str) -> bool {
    accelerator(name).is_some()
}

/// The accelerator behind a device class of dynamic resource allocation: `gpu.nvidia.com`, `gpu.amd.com`.
pub(crate) fn accelerator_of_class(class: &str) -> Option<Accelerator> {
    let class = class.to_ascii_lowercase();
    let (kind, domain) = class.split_once('.')?;
    match domain {
        "nvidia.com" if matches!(kind, "gpu" | "mig" | "vfio") => Some(Accelerator::Nvidia),
        "amd.com" => Some(Accelerator::Amd),
        "intel.com" if kind == "gaudi" => Some(Accelerator::Gaudi),
        "intel.com" if kind.starts_with("gpu") => Some(Accelerator::IntelXpu),
        "habana.ai" => Some(Accelerator::Gaudi),
        "huawei.com" | "ascend.huawei.com" => Some(Accelerator::Ascend),
        "google.com" if kind == "tpu" => Some(Accelerator::Tpu),
        "aws.com" | "amazonaws.com" if kind == "neuron" => Some(Accelerator::Neuron),
        _ => None,
    }
}

/// The accelerator that an image is built for, where its name or tag says one other than NVIDIA's.
pub(crate) fn accelerator_of_image(image: &str) -> Option<Accelerator> {
    let image = image
        .split('@')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    // A registry's host is no property of the image.
    let name = image
        .split_once('/')
        .map_or(image.as_str(), |(_, rest)| rest);
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .find_map(|word| {
            let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
            match word {
                "rocm" => Some(Accelerator::Amd),
                "xpu" => Some(Accelerator::IntelXpu),
                "gaudi" | "hpu" | "habana" => Some(Accelerator::Gaudi),
                "ascend" | "cann" => Some(Accelerator::Ascend),
                "tpu" => Some(Accelerator::Tpu),
                "neuron" | "neuronx" => Some(Accelerator::Neuron),
                _ => None,
            }
        })
}

/// Reads `resources` of a container, or of a Dynamo service (where accelerators stand as `gpu` and the
/// rest under `custom`).
pub(crate) fn read(text: &Text<'_>, resources: Node<'_>, draft: &mut Draft) {
    for name in ["limits", "requests"] {
        // An overlay writes `limits: null`, or a number where a mapping belongs.
        if let Some(list) = resources.get(name) {
            section(text, list, draft);
        }
    }
}

/// Reads `limits` or `requests`.
pub(crate) fn section(text: &Text<'_>, list: Node<'_>, draft: &mut Draft) {
    for (key, value) in list.entries() {
        let Some(name) = key.text() else { continue };
        if name == "custom" {
            for (key, value) in value.entries() {
                if let Some(name) = key.text() {
                    single(text, name, key, value, draft);
                }
            }
        } else {
            single(text, name, key, value, draft);
        }
    }
}

/// A number of accelerators under a name of its own, which does not tell their kind.
pub(crate) fn accelerator_count(value: Node<'_>, draft: &mut Draft) {
    count(value, None, draft);
}

fn count(value: Node<'_>, kind: Option<Accelerator>, draft: &mut Draft) {
    let number = value.raw().trim().parse::<u64>().ok();
    match number {
        Some(0) => {}
        number => {
            // What is read later is closer to the container: a patch over a template.
            draft.accelerator = kind.or(draft.accelerator);
            draft.accelerators = number.or(draft.accelerators);
        }
    }
}

/// One resource.
pub(crate) fn single(
    text: &Text<'_>,
    name: &str,
    key: Node<'_>,
    value: Node<'_>,
    draft: &mut Draft,
) {
    if name == "gpu" {
        return count(value, None, draft);
    }
    // Dynamo's `gpuType: gpu.intel.com/xe`.
    if name == "gpuType" {
        draft.accelerator = value.text().and_then(accelerator).or(draft.accelerator);
        return;
    }
    if let Some(kind) = accelerator(name) {
        return count(value, Some(kind), draft);
    }
    // cpu, memory, storage and hugepages say nothing about a fabric.
    if !name.contains('/') {
        return;
    }
    draft.resources.retain(|r| r.name != name);
    let place = text.place(&key.span(), &[key.span(), value.span()], Around::Yaml);
    draft.resources.push(Resource {
        name: name.to_owned(),
        quantity: value.raw().into_owned(),
        place,
    });
}

/// Reads `resources.claims` of a container against the pod's `resourceClaims`.
pub(crate) fn claims(
    text: &Text<'_>,
    container: Option<Node<'_>>,
    pod: Option<Node<'_>>,
    draft: &mut Draft,
) {
    let names = container.and_then(|c| c.get("claims"));
    let pod_claims = pod.and_then(|p| p.get("resourceClaims"));
    let Some(names) = names else { return };
    for item in names.items() {
        let Some(name) = item.get("name").and_then(Node::text) else {
            continue;
        };
        if draft.claims.iter().any(|c| c.name == name) {
            continue;
        }
        let of_pod = pod_claims.and_then(|list| {
            list.items()
                .find(|c| c.get("name").and_then(Node::text) == Some(name))
        });
        let reference = of_pod.and_then(|c| {
            c.get("resourceClaimTemplateName")
                .or_else(|| c.get("resourceClaimName"))
                .or_else(|| {
                    // The form before Kubernetes 1.31.
                    c.get_path(&["source", "resourceClaimTemplateName"])
                        .or_else(|| c.get_path(&["source", "resourceClaimName"]))
                })
        });
        let template = reference.and_then(Node::text).map(str::to_owned);
        draft.claims.push(Claim {
            name: name.to_owned(),
            template,
            declared: of_pod.is_some(),
            place: text.node(reference.unwrap_or(item), true),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_by_class_and_image() {
        assert_eq!(
            accelerator_of_class("gpu.nvidia.com"),
            Some(Accelerator::Nvidia)
        );
        assert_eq!(accelerator_of_class("gpu.amd.com"), Some(Accelerator::Amd));
        assert_eq!(
            accelerator_of_class("gpu.intel.com"),
            Some(Accelerator::IntelXpu)
        );
        assert_eq!(
            accelerator_of_class("gaudi.intel.com"),
            Some(Accelerator::Gaudi)
        );
        assert_eq!(
            accelerator_of_class("compute-domain-default-channel.nvidia.com"),
            None
        );
        assert_eq!(accelerator_of_class("rdma-dranet"), None);
        assert_eq!(
            accelerator_of_image("docker.io/rocm/vllm:rocm7.0"),
            Some(Accelerator::Amd)
        );
        assert_eq!(
            accelerator_of_image("r.io/a/vllm-openai-xpu:v1"),
            Some(Accelerator::IntelXpu)
        );
        assert_eq!(
            accelerator_of_image("quay.io/ascend/vllm-ascend:v0.9"),
            Some(Accelerator::Ascend)
        );
        assert_eq!(accelerator_of_image("rocm.example/a/vllm:v1"), None);
        assert_eq!(accelerator_of_image("vllm/vllm-openai:v1"), None);
    }
}
