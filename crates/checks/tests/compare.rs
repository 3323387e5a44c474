//! Workers held against each other: fleets that are well in several ways, and one that is not like the others.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

#[path = "pods/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use checks::{Around, Gathered, NodeFacts, ProbedPod, judge_check};
use model::observation::rdma::{Device, Port, PortState};
use model::observation::{Fact, Origin, Provenance, Tool};
use model::{CheckResult, Report, Status};
use serde_json::{Value, json};
use support::{DECODE, Inside, PREFILL, limits, pod, probed};

/// What is inside of workers that are well; a run of the script for each would take long.
static PREFILL_FACTS: LazyLock<NodeFacts> = LazyLock::new(|| Inside::new(PREFILL).facts());
static DECODE_FACTS: LazyLock<NodeFacts> = LazyLock::new(|| Inside::new(DECODE).facts());

/// Decode workers that are well, so many of them, beside one prefill worker.
fn fleet(size: usize) -> Vec<ProbedPod> {
    let mut pods = vec![worker("prefill", 0, &PREFILL_FACTS, |_| {})];
    pods.extend((0..size).map(|n| worker("decode", n, &DECODE_FACTS, |_| {})));
    pods
}

fn worker(
    role: &str,
    number: usize,
    facts: &NodeFacts,
    change: impl FnOnce(&mut Value),
) -> ProbedPod {
    let mut object = pod(&format!("qwen-{role}-{number}"), role);
    object["spec"]["nodeName"] = json!(format!("node-{role}-{number}"));
    change(&mut object);
    probed(&object, Ok(facts.clone()))
}

/// Another worker in the place of one of the fleet.
fn put(fleet: &mut [ProbedPod], number: usize, facts: &NodeFacts, change: impl FnOnce(&mut Value)) {
    fleet[number + 1] = worker("decode", number, facts, change);
}

/// Facts of a decode worker with something done to it.
fn inside(flags: &[&str], change: impl FnOnce(&Inside)) -> NodeFacts {
    let inside = Inside::new(flags);
    change(&inside);
    inside.facts()
}

/// Facts of one with these variables beside the usual.
fn with(environment: &[&str]) -> NodeFacts {
    inside(DECODE, |inside| {
        let mut all = vec!["PATH=/usr/bin"];
        all.extend(environment);
        inside.engine(87, DECODE, &all);
    })
}

fn judge(pods: Vec<ProbedPod>) -> Report {
    judge_check(Gathered {
        pods,
        around: Around::default(),
        scope: Vec::new(),
        ..Gathered::default()
    })
}

fn compared(report: &Report) -> impl Iterator<Item = &CheckResult> {
    report
        .results
        .iter()
        .filter(|r| r.name.starts_with("worker/") || r.name.starts_with("pair/"))
}

/// Warnings and failures of comparison: pod, cause, detail.
fn accused(report: &Report) -> Vec<(&str, &str, &str)> {
    compared(report)
        .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
        .map(|r| {
            let pod = r.subject.pod.as_deref().unwrap_or("several");
            (pod, r.cause.unwrap_or_default(), r.detail.as_str())
        })
        .collect()
}

fn notes(report: &Report) -> Vec<&str> {
    compared(report)
        .filter(|r| r.status == Status::Ok && r.note.is_some())
        .map(|r| r.detail.as_str())
        .collect()
}

/// Nobody is accused.
#[track_caller]
fn quiet(pods: Vec<ProbedPod>) -> Report {
    let report = judge(pods);
    assert_eq!(accused(&report), []);
    report
}

/// One decode worker is accused for this cause, and nobody else for anything.
#[track_caller]
fn names(pods: Vec<ProbedPod>, number: usize, cause: &str) -> Report {
    let report = judge(pods);
    let pod = format!("qwen-decode-{number}");
    let all = accused(&report);
    assert!(
        !all.is_empty() && all.iter().all(|(p, c, _)| *p == pod && *c == cause),
        "{all:?}"
    );
    report
}

#[test]
fn machines_of_two_types_are_a_note_and_one_of_another_type_is_not() {
    // A card that is beside no GPU is there for something else.
    let two_rails = inside(DECODE, |inside| {
        inside.gpu(1, true);
        inside.rail(1, true);
    });
    // Half and half: nobody is usual.
    let mut pods = fleet(8);
    for number in 0..4 {
        put(&mut pods, number, &two_rails, |_| {});
    }
    quiet(pods);
    let mut pods = fleet(8);
    for number in [1, 5] {
        put(&mut pods, number, &two_rails, |_| {});
    }
    let report = quiet(pods);
    assert!(
        notes(&report)
            .iter()
            .any(|d| d.contains("several kinds")
                && d.contains("active RDMA ports 2 on 2, 1 on most")),
        "{:?}",
        notes(&report)
    );
    let mut pods = fleet(8);
    put(&mut pods, 5, &two_rails, |_| {});
    let report = judge(pods);
    let all = accused(&report);
    assert!(
        all.iter().all(|(pod, ..)| *pod == "qwen-decode-5"),
        "{all:?}"
    );
    assert!(
        all.iter()
            .any(|(_, cause, _)| *cause == "worker-rails-differ"),
        "{all:?}"
    );
}

#[test]
fn prefill_may_have_more_rails_than_decode() {
    let many = inside(PREFILL, |inside| {
        (1..4).for_each(|n| {
            inside.gpu(n, true);
            inside.rail(n, true);
        });
    });
    let mut pods = fleet(4);
    for number in 0..3 {
        pods.push(worker("prefill", number + 1, &many, |_| {}));
    }
    pods[0] = worker("prefill", 0, &many, |_| {});
    let report = quiet(pods);
    assert!(
        notes(&report).iter().any(|d| d.contains("4 at 400 Gb/s")),
        "{:?}",
        notes(&report)
    );
}

/// The pod as another template makes it.
fn newer(pod: &mut Value) {
    pod["metadata"]["labels"]["pod-template-hash"] = json!("5f6d7c8b9");
    pod["metadata"]["ownerReferences"][0]["name"] = json!("qwen-decode-5f6d7c8b9");
    image(pod);
}

fn image(pod: &mut Value) {
    pod["spec"]["containers"][0]["image"] = json!("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.1.1");
}

#[test]
fn a_rollout_is_a_note_and_a_changed_pod_is_not() {
    for renewed in [1, 2, 4, 7] {
        let mut pods = fleet(9);
        for number in 0..renewed {
            put(&mut pods, number, &DECODE_FACTS, newer);
        }
        let report = judge(pods);
        let of_workers: Vec<_> = accused(&report)
            .into_iter()
            .filter(|(_, cause, _)| cause.starts_with("worker-"))
            .collect();
        assert_eq!(of_workers, []);
        assert!(
            notes(&report)
                .iter()
                .any(|d| d.contains("of another template")),
            "{renewed}: {:?}",
            notes(&report)
        );
    }
    let mut pods = fleet(9);
    put(&mut pods, 3, &DECODE_FACTS, image);
    names(pods, 3, "worker-spec-differs");
    // Even several, since replicas have one template.
    let mut pods = fleet(8);
    for number in [3, 6] {
        put(&mut pods, number, &DECODE_FACTS, image);
    }
    let report = judge(pods);
    let named: Vec<&str> = accused(&report).iter().map(|(pod, ..)| *pod).collect();
    assert_eq!(named, ["qwen-decode-3", "qwen-decode-6"]);
}

#[test]
fn a_tag_that_moved_is_seen_by_the_digest_that_runs() {
    let digest = |text: &'static str| {
        move |pod: &mut Value| pod["status"]["containerStatuses"][0]["imageID"] = json!(text)
    };
    let all = |odd: &'static str| {
        let mut pods = fleet(5);
        for number in 0..5 {
            let id = if number == 2 {
                odd
            } else {
                "registry.example/vllm@sha256:1111111111111111"
            };
            put(&mut pods, number, &DECODE_FACTS, digest(id));
        }
        pods
    };
    names(
        all("registry.example/vllm@sha256:2222222222222222"),
        2,
        "worker-software-differs",
    );
    // A mirror has the same image under another name; a runtime's own number of it says nothing.
    quiet(all("mirror.example/vllm@sha256:1111111111111111"));
    quiet(all("sha256:3333333333333333"));
}

/// Ranks of workers over several nodes, by what a stack's labels tell.
fn ranks(label: impl Fn(usize, usize) -> (&'static str, String)) -> Vec<ProbedPod> {
    let flags = |node: usize| {
        let mut flags: Vec<String> = DECODE.iter().map(|f| (*f).to_owned()).collect();
        flags.extend(["--nnodes".to_owned(), "3".to_owned()]);
        flags.extend(["--node-rank".to_owned(), node.to_string()]);
        if node > 0 {
            flags.push("--headless".to_owned());
        }
        flags
    };
    let facts: Vec<NodeFacts> = (0..3)
        .map(|node| {
            let flags = flags(node);
            let words: Vec<&str> = flags.iter().map(String::as_str).collect();
            inside(DECODE, |inside| {
                inside.engine(87, &words, &["PATH=/usr/bin"]);
            })
        })
        .collect();
    let mut pods = vec![worker("prefill", 0, &PREFILL_FACTS, |_| {})];
    for group in 0..4 {
        for (node, facts) in facts.iter().enumerate() {
            let (key, value) = label(group, node);
            pods.push(worker("decode", group * 3 + node, facts, |pod| {
                pod["metadata"]["labels"][key] = json!(value);
                pod["spec"]["containers"][0]["args"]
                    .as_array_mut()
                    .unwrap()
                    .extend(flags(node).into_iter().map(Value::from));
            }));
        }
    }
    pods
}

#[test]
fn leaders_and_members_are_not_held_against_each_other() {
    quiet(ranks(|_, node| {
        ("leaderworkerset.sigs.k8s.io/worker-index", node.to_string())
    }));
    quiet(ranks(|group, node| {
        let part = if node == 0 { "ldr" } else { "wkr" };
        (
            "grove.io/podclique",
            format!("qwen-0-decode-{group}-decode-{part}"),
        )
    }));
}

#[test]
fn values_of_each_workers_own_are_no_difference() {
    let mut pods = fleet(4);
    for number in 0..4 {
        let port = format!("VLLM_NIXL_SIDE_CHANNEL_PORT={}", 5600 + number / 3);
        let host = format!("VLLM_NIXL_SIDE_CHANNEL_HOST=10.0.3.{}", 7 + number / 3);
        let device = format!("UCX_NET_DEVICES=mlx5_{}:1", number / 3);
        let gpu = format!("CUDA_VISIBLE_DEVICES={}", number / 3);
        put(
            &mut pods,
            number,
            &with(&[&port, &host, &device, &gpu]),
            |_| {},
        );
    }
    quiet(pods);
    // How many it is given is one.
    let mut pods = fleet(4);
    for number in 0..4 {
        let devices = if number == 3 {
            "mlx5_0:1,mlx5_1:1"
        } else {
            "mlx5_0:1"
        };
        put(
            &mut pods,
            number,
            &with(&[&format!("UCX_NET_DEVICES={devices}")]),
            |_| {},
        );
    }
    names(pods, 3, "worker-settings-differ");
    // A setting is no fault of the machine's cards.
    let picks = |environment: &[&str]| {
        inside(DECODE, |inside| {
            inside.gpu(1, true);
            inside.rail(1, true);
            let mut all = vec!["PATH=/usr/bin"];
            all.extend(environment);
            inside.engine(87, DECODE, &all);
        })
    };
    let usual = picks(&[]);
    let mut pods = fleet(4);
    for number in 0..4 {
        put(&mut pods, number, &usual, |_| {});
    }
    put(&mut pods, 3, &picks(&["UCX_NET_DEVICES=mlx5_1:1"]), |_| {});
    names(pods, 3, "worker-settings-differ");
}

#[test]
fn settings_of_what_does_not_carry_kv_are_notes() {
    let mut pods = fleet(4);
    put(
        &mut pods,
        2,
        &with(&["NCCL_IB_DISABLE=1", "UCX_MAX_RNDV_RAILS=1"]),
        |_| {},
    );
    let report = quiet(pods);
    assert!(
        notes(&report)
            .iter()
            .any(|d| d.contains("NCCL_IB_DISABLE 1")),
        "{:?}",
        notes(&report)
    );
    let mut pods = fleet(4);
    put(&mut pods, 2, &with(&["UCX_MAX_RMA_RAILS=1"]), |_| {});
    names(pods, 2, "worker-settings-differ");
}

#[test]
fn limits_that_nobody_runs_into_are_no_difference() {
    let mut pods = fleet(5);
    // It has IPC_LOCK, for which the limit does not count.
    let locked = inside(DECODE, |inside| {
        inside.tree.file("/proc/87/limits", limits("8388608"));
    });
    put(&mut pods, 1, &locked, |_| {});
    let files = inside(DECODE, |inside| {
        inside.tree.file(
            "/proc/87/limits",
            limits("unlimited").replace("1048576", "524288 "),
        );
    });
    put(&mut pods, 2, &files, |_| {});
    let report = quiet(pods);
    assert!(
        notes(&report)
            .iter()
            .any(|d| d.contains("limit of locked memory")),
        "{:?}",
        notes(&report)
    );

    let mut pods = fleet(5);
    let bound = inside(DECODE, |inside| {
        inside.tree.file("/proc/87/limits", limits("8388608"));
        inside.status(87, 0, "0000000000000000");
    });
    put(&mut pods, 1, &bound, |_| {});
    names(pods, 1, "worker-limits-differ");
    let mut pods = fleet(5);
    let few = inside(DECODE, |inside| {
        inside.tree.file(
            "/proc/87/limits",
            limits("unlimited").replace("1048576", "1024   "),
        );
    });
    put(&mut pods, 2, &few, |_| {});
    names(pods, 2, "worker-limits-differ");
}

#[test]
fn shared_memory_that_is_a_part_of_the_machines_is_of_its_own_size() {
    let sized = |kib: u64| {
        inside(DECODE, |inside| {
            inside.tree.file("/dev/shm/x", "");
            inside.tree.tool(
                "df",
                &format!("echo 'Filesystem 1024-blocks Used Available Capacity Mounted on'\necho 'tmpfs {kib} 0 {kib} 0% /dev/shm'"),
            );
        })
    };
    let whole = |pod: &mut Value| {
        pod["spec"]["volumes"] = json!([{"name": "shm", "emptyDir": {"medium": "Memory"}}]);
    };
    let fleet_of = |odd: u64, change: &dyn Fn(&mut Value)| {
        let usual = sized(500_000_000);
        let mut pods = fleet(4);
        for number in 0..4 {
            put(&mut pods, number, &usual, change);
        }
        put(&mut pods, 3, &sized(odd), change);
        pods
    };
    quiet(fleet_of(500_000_512, &whole));
    quiet(fleet_of(1_000_000_000, &whole));
    names(fleet_of(65_536, &whole), 3, "worker-limits-differ");
    names(fleet_of(100_000_000, &|_| {}), 3, "worker-limits-differ");
}

#[test]
fn a_fleet_that_is_renewed_step_by_step_is_a_note() {
    let renewed = inside(DECODE, |inside| {
        inside
            .tree
            .file("/sys/class/infiniband/mlx5_0/fw_ver", "28.43.1000\n");
        inside.tree.file("/proc/sys/kernel/osrelease", "6.8.0-99\n");
    });
    let mut pods = fleet(6);
    put(&mut pods, 4, &renewed, |_| {});
    let report = quiet(pods);
    let told = notes(&report);
    assert!(
        told.iter().any(|d| d.contains("firmware 28.43.1000")),
        "{told:?}"
    );
    assert!(
        told.iter().any(|d| d.contains("kernel 6.8.0-99")),
        "{told:?}"
    );
}

#[test]
fn racks_of_other_subnets_that_a_router_joins_are_a_note() {
    let rack = |flags: &[&str], environment: &[&str], subnet: &str| {
        inside(flags, |inside| {
            let mut all = vec!["PATH=/usr/bin"];
            all.extend(environment);
            inside.engine(87, flags, &all);
            inside.tree.files(
                "/sys/class/infiniband/mlx5_0/ports/1/gids",
                &[("0", &format!("{subnet}:b83f:d203:0012:3450"))],
            );
        })
    };
    let (here, there) = ("fe80:0000:0000:0000", "fec0:0000:0000:0007");
    let global = ["UCX_IB_IS_GLOBAL=y"];
    let both = |odd: &[&str]| {
        let mut pods = fleet(6);
        for number in 0..6 {
            put(&mut pods, number, &rack(DECODE, odd, here), |_| {});
        }
        put(&mut pods, 5, &rack(DECODE, odd, there), |_| {});
        pods
    };
    quiet(both(&global));
    names(both(&[]), 5, "pair-ib-subnets-differ");
}

#[test]
fn partitions_of_live_ports_are_compared() {
    let keys = |first: &str| {
        inside(DECODE, |inside| {
            inside.tree.files(
                "/sys/class/infiniband/mlx5_0/ports/1/pkeys",
                &[("0", first), ("1", "0x0000")],
            );
        })
    };
    let prefill = inside(PREFILL, |inside| {
        inside.tree.files(
            "/sys/class/infiniband/mlx5_0/ports/1/pkeys",
            &[("0", "0xffff"), ("1", "0x0000")],
        );
    });
    let all = |odd: &str| {
        let usual = keys("0xffff");
        let mut pods = fleet(4);
        pods[0] = worker("prefill", 0, &prefill, |_| {});
        for number in 0..4 {
            put(&mut pods, number, &usual, |_| {});
        }
        put(&mut pods, 1, &keys(odd), |_| {});
        pods
    };
    quiet(all("0xffff"));
    let report = judge(all("0x8001"));
    let causes: Vec<&str> = accused(&report)
        .iter()
        .map(|(_, cause, _)| *cause)
        .collect();
    assert!(causes.contains(&"pair-partitions-differ"), "{causes:?}");
    assert!(
        accused(&report)
            .iter()
            .all(|(pod, ..)| *pod == "qwen-decode-1")
    );
    // Limited and full members reach each other; it is not like the others all the same.
    names(all("0x7fff"), 1, "worker-rails-differ");
}

#[test]
fn workers_in_several_cliques_with_rdma_are_a_note() {
    let smi = |clique: u32| {
        format!(
            "[ \"$1\" = -q ] || exit 127\ncat <<'X'\n==============NVSMI LOG==============\n\nDriver Version                            : 580.65.06\n\nAttached GPUs                             : 1\nGPU 00000000:08:00.0\n    Product Name                          : NVIDIA GB200\n    GPU UUID                              : GPU-11111111-2222-3333-4444-555555555550\n    Minor Number                          : 0\n    Fabric\n        State                             : Completed\n        Status                            : Success\n        CliqueId                          : {clique}\n        ClusterUUID                       : 11111111-2222-3333-4444-555555555555\nX"
        )
    };
    let of = |flags: &[&str], clique: u32, rdma: bool| {
        inside(flags, |inside| {
            inside.tree.tool("nvidia-smi", &smi(clique));
            inside
                .tree
                .file("/dev/nvidia-caps-imex-channels/channel0", "");
            if !rdma {
                for path in [
                    "sys/class/infiniband",
                    "sys/class/infiniband_verbs",
                    "dev/infiniband",
                ] {
                    std::fs::remove_dir_all(inside.tree.root().join(path)).unwrap();
                }
            }
        })
    };
    let all = |rdma: bool| {
        let usual = of(DECODE, 1, rdma);
        let mut pods = fleet(5);
        pods[0] = worker("prefill", 0, &of(PREFILL, 1, rdma), |_| {});
        for number in 0..5 {
            put(&mut pods, number, &usual, |_| {});
        }
        put(&mut pods, 4, &of(DECODE, 2, rdma), |_| {});
        pods
    };
    let report = quiet(all(true));
    assert!(
        notes(&report).iter().any(|d| d.contains("in clique")),
        "{:?}",
        notes(&report)
    );
    names(all(false), 4, "fabric-different-clique");
}

/// The same worker with one EFA device and nothing else of RDMA.
fn over_efa(facts: &NodeFacts) -> NodeFacts {
    let origin = Origin::whole(&Arc::new(Provenance {
        file: "/sys/class/infiniband/rdmap0s6".to_owned(),
        tool: Tool::Sys,
        section: 0,
        place: None,
        command: None,
    }));
    let port = Port {
        state: Fact::seen(PortState::Active, origin.clone()),
        ..Port::default()
    };
    let device = Device {
        driver: Fact::seen("efa".to_owned(), origin),
        ports: BTreeMap::from([(1, Box::new(port))]),
        ..Device::default()
    };
    let mut facts = facts.clone();
    facts.observation.rdma.devices = BTreeMap::from([("rdmap0s6".to_owned(), Box::new(device))]);
    facts
}

#[test]
fn efa_between_two_workers_of_one_node_is_told_and_between_two_nodes_is_not() {
    let (prefill, decode) = (over_efa(&PREFILL_FACTS), over_efa(&DECODE_FACTS));
    let placed = |node: &str| {
        judge(vec![
            worker("prefill", 0, &prefill, |_| {}),
            worker("decode", 0, &decode, |pod| {
                pod["spec"]["nodeName"] = json!(node);
            }),
        ])
    };
    let told = |report: &Report| {
        compared(report)
            .filter(|r| r.name == "pair/placement" && r.status == Status::Warn)
            .map(|r| r.subject.pods.clone())
            .collect::<Vec<_>>()
    };
    let both = ["qwen-prefill-0", "qwen-decode-0"].map(str::to_owned);
    assert_eq!(told(&placed("node-prefill-0")), [both.to_vec()]);
    assert!(told(&placed("node-decode-0")).is_empty());
    // InfiniBand and RoCE reach the same host.
    let mut pods = fleet(1);
    for pod in &mut pods {
        pod.object.node = Some("node-0".to_owned());
    }
    assert!(told(&judge(pods)).is_empty());
}
