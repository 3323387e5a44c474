//! The two workers of a transfer: which is which, their engines, and what they transfer how.

use checks::ProbedPod;
use model::observation::Fact;
use model::observation::process::Process;
use model::{MemoryKind, Operation, Role, TransferEnd, Worker};
use transfer::{Both, Engine, Side};

/// Two pods that could be looked into.
pub(crate) struct Pair<'p> {
    pub(crate) ends: Both<&'p ProbedPod>,
    /// The engine process of each.
    pub(crate) processes: Both<Option<u32>>,
    pub(crate) engines: Both<Engine>,
    /// How their engines transfer, where it is known.
    pub(crate) operation: Option<Operation>,
    /// The memory that they transfer, where it is known.
    pub(crate) memory: Option<MemoryKind>,
    /// Both see a GPU.
    pub(crate) gpus: bool,
    /// How the roles were found, where that is not plain.
    pub(crate) by: Option<&'static str>,
    odd: Vec<String>,
}

impl<'p> Pair<'p> {
    /// `own` is the pod of `--pod`.
    pub(crate) fn of(own: &'p ProbedPod, theirs: &'p ProbedPod) -> Self {
        let (worker, role) = checks::live_of(own);
        let (their_worker, their_role) = checks::live_of(theirs);
        let mut odd: Vec<String> = [(own, role), (theirs, their_role)]
            .into_iter()
            .filter_map(|(pod, role)| not_a_worker(pod, role))
            .collect();
        if role == their_role && matches!(role, Some(Role::Prefill | Role::Decode)) {
            let role = role.map(Role::as_str).unwrap_or_default();
            odd.push(format!(
                "both pods are {role} workers, between which no KV moves"
            ));
        }
        // Where nothing tells, --pod is the one that begins in most deployments: it decodes and reads.
        let own_is_prefill = role == Some(Role::Prefill) && their_role != Some(Role::Prefill)
            || their_role == Some(Role::Decode) && role != Some(Role::Decode);
        let plain = matches!(
            (role, their_role),
            (Some(Role::Prefill), Some(Role::Decode)) | (Some(Role::Decode), Some(Role::Prefill))
        );
        let (ends, workers) = if own_is_prefill {
            (
                Both {
                    prefill: own,
                    decode: theirs,
                },
                [worker, their_worker],
            )
        } else {
            (
                Both {
                    prefill: theirs,
                    decode: own,
                },
                [their_worker, worker],
            )
        };
        let processes = Both {
            prefill: process_of(ends.prefill),
            decode: process_of(ends.decode),
        };
        let engines = Both {
            prefill: engine(processes.prefill.map(|(_, p)| p)),
            decode: engine(processes.decode.map(|(_, p)| p)),
        };
        let of_both = |of: fn(&Worker) -> Option<MemoryKind>| {
            // GPU memory at one end makes it a transfer of GPU memory.
            workers.iter().filter_map(|w| w.as_ref().and_then(of)).max()
        };
        let memory = of_both(checks::memory_of);
        let operations: Vec<Operation> = workers
            .iter()
            .filter_map(|w| w.as_ref().and_then(checks::operation_of))
            .collect();
        let operation = match operations.as_slice() {
            [one] => Some(*one),
            [one, other] if one == other => Some(*one),
            _ => None,
        };
        Self {
            gpus: sees_gpu(ends.prefill) && sees_gpu(ends.decode),
            processes: Both {
                prefill: processes.prefill.map(|(pid, _)| pid),
                decode: processes.decode.map(|(pid, _)| pid),
            },
            ends,
            engines,
            operation,
            memory,
            by: if plain {
                None
            } else if own_is_prefill {
                Some("--pod is taken for the prefill worker, since nothing tells of both roles")
            } else {
                Some("--pod is taken for the decode worker, since nothing tells of both roles")
            },
            odd,
        }
    }

    /// Why one of them does not look like a KV worker.
    pub(crate) fn odd(&self) -> Option<String> {
        (!self.odd.is_empty()).then(|| {
            format!(
                "nothing was transferred: {}; --force transfers all the same",
                self.odd.join("; ")
            )
        })
    }

    /// Whether they run on different nodes.
    pub(crate) fn apart(&self) -> Option<bool> {
        let node = |pod: &ProbedPod| pod.object.node.clone();
        Some(node(self.ends.prefill)? != node(self.ends.decode)?)
    }

    pub(crate) fn end(&self, side: Side) -> TransferEnd {
        let pod = self.ends.of(side);
        TransferEnd {
            namespace: pod.object.namespace.clone(),
            pod: pod.object.name.clone(),
            container: pod.container.clone(),
            node: pod.object.node.clone(),
            process: *self.processes.of(side),
            ..TransferEnd::default()
        }
    }
}

/// Why a pod is none that moves KV.
fn not_a_worker(pod: &ProbedPod, role: Option<Role>) -> Option<String> {
    let name = &pod.object.name;
    match role {
        Some(role) if role.moves_kv() => None,
        Some(role) => Some(format!(
            "{name} is {}, which moves no KV to another worker",
            role.as_str()
        )),
        None => {
            let runs_nixl = process_of(pod).is_some_and(|(_, process)| maps_nixl(process));
            (!runs_nixl).then(|| format!("{name} does not look like a prefill or decode worker"))
        }
    }
}

fn maps_nixl(process: &Process) -> bool {
    process.libraries.value().is_some_and(|all| {
        all.iter().any(|library| {
            ["libnixl", "libplugin_UCX", "_bindings"]
                .iter()
                .any(|name| library.library.starts_with(name))
                && library.path.contains("nixl")
        })
    })
}

/// The process that transfers: it has NIXL; else one that is told of a connector.
pub(crate) fn process_of(pod: &ProbedPod) -> Option<(u32, &Process)> {
    let seen = &pod.probed.as_ref().ok()?.observation;
    let processes = &seen.process.processes;
    let own = seen.host.namespaces.get("net").and_then(Fact::value);
    let rank = |process: &Process| {
        let theirs = process.namespaces.get("net").and_then(Fact::value);
        (
            // With hostPID the engines of other pods are in sight as well.
            own.is_none() || theirs.is_none() || own == theirs,
            maps_nixl(process),
            process.flags.contains_key("--kv-transfer-config"),
            process.flags.len(),
            process.environment_read.is_seen(),
        )
    };
    let mut best: Option<(u32, &Process)> = None;
    for (pid, process) in processes {
        // Of equals the first one: it is the parent of the others.
        if best.is_none_or(|(_, held)| rank(process) > rank(held)) {
            best = Some((*pid, process));
        }
    }
    best
}

fn engine(process: Option<&Process>) -> Engine {
    let Some(process) = process else {
        return Engine::default();
    };
    Engine {
        environment: process
            .environment
            .iter()
            .filter_map(|(name, fact)| Some((name.clone(), fact.value()?.clone())))
            .collect(),
        libraries: process
            .libraries
            .value()
            .into_iter()
            .flatten()
            .filter(|library| !library.deleted)
            .map(|library| library.path.clone())
            .collect(),
        ..Engine::default()
    }
}

/// A GPU was given to the container, or its engine has one open. What /sys shows belongs to the whole node.
fn sees_gpu(pod: &ProbedPod) -> bool {
    let granted = pod.object.container(&pod.container).is_some_and(|c| {
        c.resources
            .keys()
            .any(|name| name.starts_with("nvidia.com/gpu") || name.starts_with("nvidia.com/mig"))
    });
    let open = process_of(pod)
        .and_then(|(_, process)| process.open_devices.value())
        .is_some_and(|all| all.iter().any(|path| path.starts_with("/dev/nvidia")));
    granted || open
}
