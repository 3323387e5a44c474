//! Transport variables are spelt as the libraries read them.
//!
//! UCX warns of a variable that nothing used; NCCL and libfabric say nothing. A misspelt name leaves the default
//! in force while the recipe seems to set something. Names are compared with everything that UCX (1.10 to 1.23)
//! and NCCL (2.18 to 2.30) read and with the catalogue; what is close to one of them is taken for a slip. The same
//! goes for flags of engines, for keys of the KV configuration, and for extended resources, which are matched by
//! exact name.

use model::{Engine, Located, Role, Worker};
use settings::connectors;
use settings::distance::edit_distance;

use crate::check::{Cause, Check, Run};
use crate::fabric;
use crate::finding::{Finding, Findings};
use crate::kv_path::Backend;
use crate::view::{View, WorkerView};

const NAME: &str = "env/setting-names";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "transport variables are spelt as the libraries read them",
    source: include_str!("setting_names.rs"),
    causes: &[TYPO, FLAG_TYPO, RESOURCE_TYPO, PATH_TYPO],
    notes: &[],
    run: Run::Recipe(run),
};

const TYPO: Cause = Cause {
    id: "setting-name-typo",
    what: "a variable that nothing reads, one slip away from one that matters",
    why: "it has no effect: the default stays in force",
    fix: "correct the name",
    quiet_if: "the name is read by a known UCX or NCCL release, or is far from any of them; the right name would not matter to KV here",
    source: "UCX parser.c:2493-2578 (unused environment variable); name lists by version",
};

const FLAG_TYPO: Cause = Cause {
    id: "flag-name-typo",
    what: "a flag that the engine does not have, one slip away from one that decides how KV cache moves",
    why: "engines refuse a flag that they do not know, and do not start",
    fix: "correct the flag",
    quiet_if: "the name is far from any such flag; a warning where the start command shows no engine, or where the flag is the beginning of the right one, which some versions take for it",
    source: "argparse (vLLM with allow_abbrev off, SGLang, Dynamo) and click (trtllm-serve) end with: unrecognized arguments, no such option",
};

/// A slip in a flag. Its engine ends at start, whatever its role.
fn flag_typo(worker: &Worker, name: &Located<String>, right: &'static str) -> Finding {
    let abbreviated = right.starts_with(&name.value.replace('_', "-"));
    let detail = format!("no engine has {}: did you mean {right}?", name.value);
    let (finding, label) = if abbreviated || worker.engine == Engine::Unknown {
        (
            Finding::warn(NAME, &FLAG_TYPO, detail),
            format!("not {right}"),
        )
    } else {
        (
            Finding::fail(NAME, &FLAG_TYPO, detail),
            format!("{} ends here", worker.engine.as_str()),
        )
    };
    finding
        .fix(format!("write {right}"))
        .worker(worker)
        .at(&name.place, label)
}

const RESOURCE_TYPO: Cause = Cause {
    id: "resource-name-typo",
    what: "a resource one slip away from a well-known one, or from the one that the other role asks for",
    why: "no device plugin offers it, so the pods stay Pending; or the two roles are on different fabrics",
    fix: "ask for the resource that the nodes offer: kubectl get nodes -o yaml | grep -i -E 'rdma|ib|efa'",
    quiet_if: "both roles ask for the same name, unless two letters of a well-known one changed places; names that differ in a number or in their last letter; a warning, once, where nothing tells which of the two names is right",
    source: "Kubernetes schedules extended resources by exact name",
};

const PATH_TYPO: Cause = Cause {
    id: "kv-path-name-typo",
    what: "the name of a KV connector or of its backend is one slip away from one that exists",
    why: "the engine looks it up by its exact name, finds nothing and does not start",
    fix: "correct the name",
    quiet_if: "kv_connector_module_path is set (any name can be right then), or the name is far from all known ones",
    source: "vLLM kv_connector/factory.py (Unsupported connector type); SGLang server_args.py (choices of --disaggregation-transfer-backend); NIXL plugin names",
};

/// Values of SGLang's --disaggregation-transfer-backend (server_args.py).
const SGLANG_BACKENDS: [&str; 7] = ["mooncake", "nixl", "ascend", "fake", "mori", "rixl", "base"];

/// Names of NIXL's plugins for transfers between hosts, and of those that are close to them.
const NIXL_BACKENDS: [&str; 6] = ["UCX", "UCX_MO", "LIBFABRIC", "Mooncake", "UCCL", "MOONCAKE"];

/// Names of what carries KV, which no engine guesses at.
fn path_names(view: &View<'_>, findings: &mut Findings) {
    for worker in &view.deployment.workers {
        // A class from a module of its own can have any name.
        if worker.setting("kv_connector_module_path").is_some() {
            continue;
        }
        for setting in &worker.settings {
            let names = setting.value.literal().unwrap_or_default();
            for name in names.split(',').map(str::trim) {
                let right = match setting.name.as_str() {
                    "kv_connector" => connectors::did_you_mean(name),
                    "--disaggregation-transfer-backend" => {
                        connectors::slip_of(name, SGLANG_BACKENDS.into_iter())
                    }
                    "kv_connector_extra_config.backends" => {
                        connectors::slip_of(name, NIXL_BACKENDS.into_iter())
                    }
                    _ => continue,
                };
                let Some(right) = right else { continue };
                findings.push(
                    Finding::fail(
                        NAME,
                        &PATH_TYPO,
                        format!(
                            "{} {name} does not exist: did you mean {right}?",
                            setting.name
                        ),
                    )
                    .fix(format!("write {right}"))
                    .worker(worker)
                    .at(&setting.place, format!("not {right}")),
                );
            }
        }
    }
}

fn run(view: &View<'_>, findings: &mut Findings) {
    untold(view, findings);
    path_names(view, findings);
    for kv in &view.kv {
        let role = kv.worker.role.as_str();
        for name in &kv.worker.unknown_names {
            let Some(right) = settings::known_names::did_you_mean(&name.value) else {
                continue;
            };
            if right.starts_with("--") {
                findings.push(flag_typo(kv.worker, name, right));
                continue;
            }
            let detail = format!("nothing reads {}: did you mean {right}?", name.value);
            if !matters(kv, right) {
                findings.push(
                    Finding::ok(NAME, detail)
                        .note(format!("{right} has no effect on KV here"))
                        .worker(kv.worker)
                        .at(&name.place, role),
                );
                continue;
            }
            findings.push(
                Finding::warn(NAME, &TYPO, detail)
                    .fix(format!("rename it to {right}"))
                    .worker(kv.worker)
                    .at(&name.place, format!("{role}: {} has no effect", name.value)),
            );
        }
        for resource in kv.worker.resources.iter().filter(|r| r.is_requested()) {
            if let Some((right, certain)) = meant_resource(view, kv, &resource.name) {
                let asked = format!("{role} asks for {}", resource.name);
                let finding = if certain {
                    Finding::fail(
                        NAME,
                        &RESOURCE_TYPO,
                        format!("{asked}, which no node has: did you mean {right}?"),
                    )
                    .fix(format!("ask for {right}"))
                } else {
                    Finding::warn(
                        NAME,
                        &RESOURCE_TYPO,
                        format!("{asked}, the other role for {right}: one of the two is a slip"),
                    )
                    .fix("ask for the same resource on both roles")
                };
                findings.push(
                    finding
                        .worker(kv.worker)
                        .at(&resource.place, format!("{role}: not {right}")),
                );
            }
        }
    }
}

/// A slip in the very flag or key that makes a worker prefill or decode leaves it aggregated.
fn untold(view: &View<'_>, findings: &mut Findings) {
    for worker in view.deployment.role(Role::Aggregated) {
        for name in &worker.unknown_names {
            let Some(right) = settings::known_names::did_you_mean(&name.value)
                .filter(|right| right.starts_with("--") || right.starts_with("kv_"))
            else {
                continue;
            };
            if right.starts_with("--") {
                findings.push(flag_typo(worker, name, right));
                continue;
            }
            findings.push(
                Finding::warn(
                    NAME,
                    &TYPO,
                    format!("no engine reads {}: did you mean {right}?", name.value),
                )
                .fix(format!("rename it to {right}"))
                .worker(worker)
                .at(&name.place, format!("{} has no effect", name.value)),
            );
        }
    }
}

/// Whether the variable, flag or key can change how this worker's KV cache moves.
fn matters(kv: &WorkerView<'_>, right: &str) -> bool {
    let engine = kv.worker.engine;
    match right.split('_').next().unwrap_or_default() {
        "UCX" => kv.path.may_use_ucx(),
        "FI" => kv.path.uses_libfabric(),
        "MC" | "MOONCAKE" => kv.path.backend == Some(Backend::Mooncake),
        "VLLM" => !matches!(engine, Engine::Sglang | Engine::Trtllm),
        "SGLANG" => matches!(engine, Engine::Sglang | Engine::Unknown),
        "TRTLLM" => matches!(engine, Engine::Trtllm | Engine::Unknown),
        // Collective communication never counts for KV.
        "NCCL" | "GLOO" | "NVSHMEM" | "OFI" | "OMPI" | "UCCL" | "TORCH" | "RCCL" | "TP" => false,
        _ => true,
    }
}

/// Resources that device plugins are known to offer, as documented by upstream recipes.
const KNOWN_RESOURCES: [&str; 4] = [
    "rdma/ib",
    "rdma/roce",
    "rdma/shared_ib",
    "vpc.amazonaws.com/efa",
];

/// Domains of device plugins that hand out NICs.
const KNOWN_DOMAINS: [&str; 10] = [
    "rdma",
    "nvidia.com",
    "mellanox.com",
    "amd.com",
    "intel.com",
    "broadcom.com",
    "openshift.io",
    "k8s.io",
    "vpc.amazonaws.com",
    "networking.gke.io.networks",
];

/// What a resource's name was meant to be, and whether it is this one that is misspelt. Sites choose names freely, so
/// that only two letters that changed places, or a slip against what the other role asks for, count.
fn meant_resource<'f>(view: &View<'f>, kv: &WorkerView<'f>, name: &str) -> Option<(&'f str, bool)> {
    if let Some(known) = KNOWN_RESOURCES.iter().find(|k| is_swap(k, name)) {
        return Some((known, true));
    }
    if KNOWN_RESOURCES.contains(&name) {
        return None;
    }
    let right = view
        .kv
        .iter()
        .filter(|other| other.worker.role != kv.worker.role)
        .flat_map(|other| &other.worker.resources)
        .filter(|r| r.is_requested() && is_rdma_or_efa(&r.name))
        .map(|r| r.name.as_str())
        .find(|right| {
            let own = |n: &str| kv.worker.resources.iter().any(|r| r.name == n);
            !own(right) && !numbered_alike(right, name) && one_slip(name, right)
        })?;
    let known = |n: &str| {
        n.split('/')
            .next()
            .is_some_and(|d| KNOWN_DOMAINS.contains(&d))
    };
    match (known(name), known(right)) {
        // The other one is the slip, and is told of there.
        (true, false) => None,
        (false, true) => Some((right, true)),
        _ if KNOWN_RESOURCES.contains(&right) => Some((right, true)),
        _ if KNOWN_RESOURCES.iter().any(|k| is_swap(k, right)) => None,
        // Nothing tells which of the two: told once.
        _ => (kv.worker.role == Role::Decode).then_some((right, false)),
    }
}

fn is_rdma_or_efa(name: &str) -> bool {
    name == fabric::EFA || fabric::is_rdma_resource(name)
}

/// Names that differ in a number or in their last letter are siblings: `hca_a` and `hca_b`.
fn numbered_alike(a: &str, b: &str) -> bool {
    let stem = |n: &str| {
        n.trim_end_matches(|c: char| c.is_ascii_digit())
            .chars()
            .rev()
            .skip(1)
            .collect::<String>()
    };
    a.len() == b.len() && stem(a) == stem(b)
}

fn one_slip(a: &str, b: &str) -> bool {
    edit_distance(a, b, 1) == Some(1)
}

fn is_swap(a: &str, b: &str) -> bool {
    let sorted = |n: &str| {
        let mut bytes = n.as_bytes().to_vec();
        bytes.sort_unstable();
        bytes
    };
    a != b && sorted(a) == sorted(b) && one_slip(a, b)
}

#[cfg(test)]
mod tests {
    use super::{is_swap, numbered_alike};

    #[test]
    fn resources_by_swapped_letters_only() {
        assert!(is_swap("rdma/ib", "rdma/bi"));
        assert!(!is_swap("rdma/ib", "rdma/ic"));
        assert!(!is_swap("rdma/ib", "rdma/ib"));
        assert!(numbered_alike("rdma/hca_a", "rdma/hca_b"));
        assert!(numbered_alike("rdma-1", "rdma-2"));
        assert!(!numbered_alike("rdma/shared_ib", "rdma/sharde_ib"));
    }
}
