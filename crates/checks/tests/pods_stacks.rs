//! Workers that are well in ways of their own, and one that is not among others that are.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

#[path = "pods/support.rs"]
mod support;

use checks::{Around, ProbedPod, judge_pods};
use model::{Readiness, Report, Status};
use serde_json::{Value, json};
use support::{DECODE, Inside, PREFILL, details, pod, probed, told};

fn judge(pods: Vec<ProbedPod>) -> Report {
    judge_pods("node", pods, &Around::default(), Vec::new())
}

fn one(object: impl FnOnce(&mut Value), inside: impl FnOnce(&Inside)) -> Report {
    let mut value = pod("qwen-decode-0", "decode");
    object(&mut value);
    let within = Inside::new(DECODE);
    inside(&within);
    judge(vec![probed(&value, Ok(within.facts()))])
}

fn causes(report: &Report) -> Vec<&str> {
    told(report).into_iter().map(|(_, cause)| cause).collect()
}

fn only_gpus(pod: &mut Value) {
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": "1"}});
}

/// No RDMA device, neither of the node nor of the container.
fn without_rdma(inside: &Inside) {
    for path in [
        "sys/class/infiniband",
        "sys/class/infiniband_verbs",
        "dev/infiniband",
    ] {
        std::fs::remove_dir_all(inside.tree.root().join(path)).unwrap();
    }
}

#[test]
fn nvlink_between_nodes_needs_no_rdma_device() {
    let report = one(only_gpus, |inside| {
        without_rdma(inside);
        inside
            .tree
            .file("/dev/nvidia-caps-imex-channels/channel0", "");
    });
    assert!(
        !causes(&report).contains(&"rdma-no-device"),
        "{:?}",
        told(&report)
    );
    assert!(
        details(&report, "node/rdma-devices")
            .iter()
            .any(|d| d.contains("NVLink between nodes"))
    );
    let report = one(only_gpus, without_rdma);
    assert!(told(&report).contains(&(Status::Fail, "rdma-no-device")));
}

#[test]
fn ascend_has_ports_that_verbs_do_not_show() {
    let ascend = |inside: &Inside| {
        without_rdma(inside);
        inside.tree.file("/dev/davinci0", "");
    };
    let report = one(only_gpus, ascend);
    assert!(
        !causes(&report).contains(&"rdma-no-device"),
        "{:?}",
        told(&report)
    );
    assert!(
        details(&report, "node/rdma-devices")
            .iter()
            .any(|d| d.contains("Ascend"))
    );
}

#[test]
fn a_tool_that_fails_takes_nothing_from_what_the_kernel_lists() {
    let fails = "echo 'Failed to open NETLINK_RDMA socket' >&2; exit 1";
    let report = one(|_| (), |inside| inside.tree.tool("rdma", fails));
    assert_eq!(told(&report), []);
    assert_eq!(report.readiness, Readiness::Unproven, "{}", report.verdict);
    // Nothing else lists them.
    let report = one(
        |_| (),
        |inside| {
            std::fs::remove_dir_all(inside.tree.root().join("sys/class")).unwrap();
            inside.tree.tool("rdma", fails);
        },
    );
    assert_ne!(report.readiness, Readiness::Unproven, "{}", report.verdict);
}

const LIBFABRIC: &str = r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_connector_extra_config":{"backends":["LIBFABRIC"]}}"#;

#[test]
fn efa_that_the_engine_uses_needs_no_image_of_that_name() {
    let of_efa = |pod: &mut Value| {
        let container = &mut pod["spec"]["containers"][0];
        container["resources"] =
            json!({"limits": {"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}});
        container["args"][1] = LIBFABRIC.into();
    };
    let efa = |mapped: bool| {
        move |inside: &Inside| {
            let name = "rdmap0s6";
            let device = "/sys/devices/pci0000:05/0000:05:02.0/0000:0a:00.0";
            std::fs::remove_dir_all(inside.tree.root().join("sys/class/infiniband")).unwrap();
            inside.tree.device(name, device, "0x0200", &[]);
            inside.tree.file(
                &format!("/sys/class/infiniband/{name}/node_type"),
                "7: unspecified\n",
            );
            inside
                .tree
                .files(device, &[("vendor", "0x1d0f"), ("device", "0xefa2")]);
            inside.tree.port(
                name,
                &[
                    ("link_layer", "Unspecified"),
                    ("rate", "100 Gb/sec (4X EDR)"),
                ],
            );
            inside
                .tree
                .files("/sys/class/infiniband_verbs/uverbs0", &[("ibdev", name)]);
            inside
                .tree
                .file("/etc/libibverbs.d/efa.driver", "driver efa\n");
            inside.tree.file(
                "/proc/87/cmdline",
                format!("python3\0-m\0dynamo.vllm\0--kv-transfer-config\0{LIBFABRIC}\0--disaggregation-mode\0decode\0"),
            );
            if mapped {
                inside.tree.file(
                    "/proc/87/maps",
                    "7f0000001000-7f0000002000 r-xp 00001000 08:01 1 /opt/amazon/efa/lib/libfabric.so.1.28.0\n",
                );
            }
        }
    };
    let report = one(of_efa, efa(true));
    assert!(
        !causes(&report).contains(&"efa-image-unverified"),
        "{:?}",
        told(&report)
    );
    let report = one(of_efa, efa(false));
    assert!(
        causes(&report).contains(&"efa-image-unverified"),
        "{:?}",
        told(&report)
    );
}

#[test]
fn one_pod_that_is_told_another_role_is_the_one_that_is_named() {
    let mut pods = vec![probed(
        &pod("qwen-prefill-0", "prefill"),
        Ok(Inside::new(PREFILL).facts()),
    )];
    for number in 0..3 {
        let mut value = pod(&format!("qwen-decode-{number}"), "decode");
        let mut flags = DECODE;
        if number == 1 {
            flags = PREFILL;
            value["spec"]["containers"][0]["args"][3] = "prefill".into();
        }
        pods.push(probed(&value, Ok(Inside::new(flags).facts())));
    }
    let report = judge(pods);
    let found: Vec<_> = report
        .results
        .iter()
        .filter(|r| r.cause == Some("role-contradicts-name"))
        .map(|r| (r.subject.pod.as_deref(), r.subject.pods.len()))
        .collect();
    assert_eq!(found, [(Some("qwen-decode-1"), 0)]);
    assert!(report.verdict.contains("1 of 4 pods"), "{}", report.verdict);
}
