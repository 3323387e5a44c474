//! What to do after `nixl` has looked at an engine.

use model::{CheckResult, NextStep, Readiness, Role, Status};

use super::view::has_nixl;
use crate::judge::shell_word;
use crate::judge_pods::ProbedPod;
use crate::node_view::NodeFacts;
use crate::pod::prepare::Prepared;

fn step(command: String, why: &str, read_only: bool) -> NextStep {
    NextStep {
        command,
        why: why.to_owned(),
        read_only,
    }
}

/// What explains the worst finding.
pub(super) fn explain(readiness: Readiness, results: &[CheckResult]) -> Vec<NextStep> {
    let is_worst = |r: &&CheckResult| match readiness {
        Readiness::Blocked => r.status == Status::Fail,
        Readiness::Degraded => r.status == Status::Warn,
        _ => r.status == Status::Skipped && r.required,
    };
    results
        .iter()
        .filter(|r| !r.collective)
        .find(is_worst)
        .and_then(|r| r.cause)
        .map(|cause| {
            step(
                format!("check-interconnect explain {cause}"),
                "what it means, when it is no problem, and how to fix it",
                true,
            )
        })
        .into_iter()
        .collect()
}

/// On a host: how to look at pods.
pub(super) fn on_host(facts: &NodeFacts) -> Vec<NextStep> {
    if facts.observation.process.processes.is_empty() {
        vec![step(
            "check-interconnect nixl --all".to_owned(),
            "look into the KV workers of the kubeconfig's namespace",
            true,
        )]
    } else {
        Vec::new()
    }
}

/// A pod at one end of a transfer.
struct EndOf<'p> {
    pod: &'p ProbedPod,
    prepared: &'p Prepared,
}

impl EndOf<'_> {
    /// `-n serving --pod decode-0 -c main`.
    fn options(&self) -> String {
        format!(
            "-n {} --pod {} -c {}",
            shell_word(&self.pod.object.namespace),
            shell_word(&self.pod.object.name),
            shell_word(&self.pod.container)
        )
    }

    fn exec(&self, variables: &str, words: &str) -> String {
        format!(
            "kubectl exec -n {} {} -c {} -- env {variables} {words}",
            shell_word(&self.pod.object.namespace),
            shell_word(&self.pod.object.name),
            shell_word(&self.pod.container)
        )
    }

    fn facts(&self) -> Option<&NodeFacts> {
        self.pod.probed.as_ref().ok()
    }

    fn has_nixl(&self) -> bool {
        let processes = |facts: &NodeFacts| {
            let mut all = facts.observation.process.processes.values();
            all.any(|process| has_nixl(process))
        };
        self.facts().is_some_and(processes)
    }
}

/// What measures a transfer between the pods that were looked into: of two roles of one deployment, where both are here.
pub(crate) fn of_pods(pods: &[ProbedPod], prepared: &[Prepared]) -> Vec<NextStep> {
    let ends: Vec<EndOf<'_>> = pods
        .iter()
        .zip(prepared)
        .filter(|(pod, _)| pod.probed.is_ok())
        .map(|(pod, prepared)| EndOf { pod, prepared })
        .collect();
    let with = |role| {
        ends.iter()
            .filter(move |end: &&EndOf<'_>| end.prepared.role == Some(role))
    };
    let pair = with(Role::Decode).find_map(|decode| {
        with(Role::Prefill)
            .find(|prefill| prefill.prepared.group == decode.prepared.group)
            .map(|prefill| (decode, prefill))
    });
    let Some((decode, prefill)) = pair else {
        return one_end(&ends);
    };
    if !decode.has_nixl() && !prefill.has_nixl() && !installed(decode) && !installed(prefill) {
        return debug_pods(&[decode, prefill]);
    }
    let mut peer = format!("--peer {}", shell_word(&prefill.pod.object.name));
    if prefill.pod.container != decode.pod.container {
        peer.push_str(" --peer-container ");
        peer.push_str(&shell_word(&prefill.pod.container));
    }
    let mut steps = vec![step(
        format!(
            "check-interconnect nixl {} {peer} --transfer",
            decode.options()
        ),
        "measure a real transfer between these two, with their own NIXL, and tell what carried it",
        false,
    )];
    steps.extend(nixlbench(decode, prefill));
    steps
}

/// NIXL is in the image, although no process has it loaded.
fn installed(end: &EndOf<'_>) -> bool {
    end.facts().is_some_and(|facts| {
        let software = &facts.observation.software;
        software.nixl_version.is_seen() || software.nixl_plugins.is_seen()
    })
}

/// One role alone: the other one has to be named.
fn one_end(ends: &[EndOf<'_>]) -> Vec<NextStep> {
    let Some(end) = ends
        .iter()
        .find(|end| end.prepared.role.is_none_or(Role::moves_kv))
    else {
        return Vec::new();
    };
    if !end.has_nixl() && !installed(end) {
        return debug_pods(&[end]);
    }
    vec![
        step(
            format!(
                "check-interconnect nixl -n {} --all",
                shell_word(&end.pod.object.namespace)
            ),
            "find the pods of the other role beside this one",
            true,
        ),
        step(
            format!(
                "check-interconnect nixl {} --peer POD --transfer",
                end.options()
            ),
            "measure a real transfer; put a pod of the other role in the place of POD",
            false,
        ),
    ]
}

/// The image has no NIXL: pods beside the workers that have one.
fn debug_pods(ends: &[&EndOf<'_>]) -> Vec<NextStep> {
    let Some(first) = ends.first() else {
        return Vec::new();
    };
    let names: Vec<String> = ends
        .iter()
        .map(|end| format!("--pod {}", shell_word(&end.pod.object.name)))
        .collect();
    vec![step(
        format!(
            "check-interconnect nixl -n {} {} --debug-pods",
            shell_word(&first.pod.object.namespace),
            names.join(" ")
        ),
        "the image has no NIXL: print pods (YAML) with the same node, resources, claims and networks and another image; nothing is applied",
        true,
    )]
}

/// Version of NIXL as two numbers.
fn version(end: &EndOf<'_>) -> Option<(u32, u32)> {
    let facts = end.facts()?;
    let told = facts.nixl.as_ref().and_then(|nixl| {
        let trial = nixl.trial.as_ref()?.as_ref().ok()?;
        trial.trial.version.clone()
    });
    let text = told.or_else(|| facts.observation.software.nixl_version.value().cloned())?;
    let mut numbers = text.split('.').map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// nixlbench has a runtime without etcd since 1.1.0 (ai-dynamo/nixl#1502).
const ASIO_SINCE: (u32, u32) = (1, 1);

/// The same line in both pods, where nixlbench is there; who binds the address begins.
fn nixlbench(decode: &EndOf<'_>, prefill: &EndOf<'_>) -> Vec<NextStep> {
    // SGLang's prefill worker writes; the others' decode workers read.
    let writes = decode
        .pod
        .worker
        .as_ref()
        .is_some_and(|worker| worker.engine == model::Engine::Sglang);
    let (first, second, operation) = if writes {
        (prefill, decode, "WRITE")
    } else {
        (decode, prefill, "READ")
    };
    let (Some(one), Some(other)) = (version(first), version(second)) else {
        return Vec::new();
    };
    let asio = one >= ASIO_SINCE && other >= ASIO_SINCE;
    let address = first.pod.object.addresses.first();
    let runtime = match (asio, address) {
        (true, Some(address)) => {
            format!("--runtime_type ASIO --asio_address {address} --asio_port 12345")
        }
        (true, None) => return Vec::new(),
        (false, _) => {
            "--etcd_endpoints http://ETCD:2379 --benchmark_group check-interconnect".to_owned()
        }
    };
    let words = format!(
        "nixlbench {runtime} --backend UCX --op_type {operation} --initiator_seg_type VRAM --target_seg_type VRAM --check_consistency --total_buffer_size 1073741824 --start_block_size 65536 --max_block_size 67108864 --max_batch_size 1 --num_iter 160 --warmup_iter 16"
    );
    let why = if asio {
        "1 of 2, where the image has nixlbench: it binds the address and starts the transfers; the table that UCX_PROTO_INFO=y prints names the transport"
    } else {
        "1 of 2, where the image has nixlbench and an etcd is there (ETCD): the first one starts the transfers; the table that UCX_PROTO_INFO=y prints names the transport"
    };
    vec![
        step(first.exec("UCX_PROTO_INFO=y", &words), why, false),
        step(
            second.exec("UCX_PROTO_INFO=y", &words),
            if asio {
                "2 of 2, within 25 s of the first"
            } else {
                "2 of 2, within a minute of the first"
            },
            false,
        ),
    ]
}
