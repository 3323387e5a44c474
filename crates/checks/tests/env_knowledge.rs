//! Every entry of the knowledge base that `env` owns is a cause, a note, or has a reason why it is neither.
//!
//! The knowledge base lies beside the repository and not in it; without it the list is checked against the
//! registry only.

use std::collections::BTreeSet;
use std::path::Path;

const KNOWLEDGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/knowledge/KB.tsv"
);

/// Entry and the cause or note that covers it, or `rule: ` and why it is none.
const COVERED: &[(&str, &str)] = &[
    ("ucx-tls-tcp-only", "ucx-tls-tcp-only"),
    (
        "ucx-tls-copied-from-nccl-job",
        "ucx-tls-copied-from-nccl-job",
    ),
    ("ucx-tls-mid-list-caret", "ucx-tls-mid-list-caret"),
    ("ucx-tls-all-plus-caret", "ucx-tls-all-not-alone"),
    ("ucx-tls-empty-string", "ucx-tls-empty-string"),
    ("ucx-tls-spaces-quotes-case", "ucx-tls-spaces-quotes-case"),
    ("ucx-tls-unknown-name", "ucx-tls-unknown-name"),
    ("ucx-tls-no-cuda-copy", "ucx-tls-no-gpu-memory-transport"),
    (
        "ucx-tls-no-rdma-but-mnnvl",
        "mnnvl-kv-memory-no-fabric-handle",
    ),
    (
        "ucx-tls-cuda-ipc-tcp-default-example",
        "cuda-ipc-tcp-without-imex",
    ),
    ("ucx-tls-cuda-only-no-am", "ucx-tls-cuda-only-no-am"),
    ("ucx-tls-rc-verbs-no-aux", "ucx-tls-rc-no-bootstrap"),
    (
        "ucx-tls-list-without-tcp",
        "rule: a missing fallback is right; env/ucx-tls tells the list's effect",
    ),
    (
        "ucx-tls-negated-tcp",
        "rule: right; env/ucx-tls tells the list's effect",
    ),
    ("ucx-tls-negated-cuda-ipc", "ucx-tls-negated-cuda-ipc"),
    (
        "ucx-tls-unset",
        "rule: right; env/missing-settings tells what holds then",
    ),
    (
        "ucx-tls-gga-negation",
        "rule: right; env/ucx-tls tells the list's effect",
    ),
    (
        "ucx-tls-includes-tcp-fallback",
        "rule: env/ucx-tls notes that tcp in a list allows a silent fallback",
    ),
    (
        "ucx-netdev-missing-device",
        "rule: which devices a pod has shows only in the pod",
    ),
    (
        "ucx-netdev-inactive-port",
        "rule: the state of a port shows only on the node",
    ),
    (
        "ucx-netdev-storage-or-mgmt-nic",
        "rule: which NIC is which shows only on the node",
    ),
    (
        "ucx-netdev-single-nic-for-many-gpus",
        "single-nic-pin-multi-gpu",
    ),
    ("ucx-netdev-nccl-syntax", "ucx-netdev-nccl-syntax"),
    ("ucx-netdev-space", "ucx-netdev-space"),
    ("ucx-netdev-eth0", "ucx-netdev-eth0"),
    (
        "ucx-netdev-netdev-name-on-gke",
        "ucx-netdev-netdev-name-on-gke",
    ),
    (
        "ucx-netdev-ib-roce-mixed",
        "rule: the link layer of a device shows only on the node",
    ),
    ("ucx-netdev-azure-an-device", "ucx-netdev-azure-an-device"),
    (
        "ucx-netdev-unset",
        "rule: right; env/missing-settings tells what holds then",
    ),
    ("ucx-netdev-loopback", "ucx-netdev-loopback"),
    ("ucx-gdr-forced-off", "ucx-gdr-forced-off"),
    ("ucx-gdr-forced-yes", "ucx-gdr-forced-yes"),
    (
        "ucx-gdr-unset",
        "rule: right; env/missing-settings tells what holds then",
    ),
    ("ucx-env-typo", "setting-name-typo"),
    ("ucx-warn-unused-suppressed", "ucx-warn-unused-suppressed"),
    ("ucx-ib-addr-type-deprecated", "ucx-ib-addr-type-deprecated"),
    ("ucx-gid-index-pinned", "ucx-gid-index-pinned"),
    ("ucx-roce-reachability-mode", "ucx-roce-reachability-mode"),
    ("ucx-rndv-settings-no-effect", "ucx-rndv-settings-no-effect"),
    ("ucx-memtype-cache-off", "ucx-memtype-cache-off"),
    ("ucx-mnnvl-option", "ucx-mnnvl-option"),
    ("gdr-trtllm-off-by-default", "gdr-trtllm-off-by-default"),
    ("ipc-lock-missing", "ipc-lock-missing"),
    ("privileged-needed-efa", "efa-image-unverified"),
    (
        "hugepages-efa",
        "rule: the provider runs without huge pages, so nothing is said for KV",
    ),
    ("rdma-resource-missing", "rdma-resource-missing"),
    (
        "rdma-resource-names-vary",
        "rule: resources are recognized by their words, not by a list of names",
    ),
    (
        "rdma-resource-count-vs-gpu",
        "rule: shared device plugins count slots, so a number says nothing",
    ),
    (
        "dev-infiniband-hostpath-breaks-efa",
        "dev-infiniband-hostpath-breaks-efa",
    ),
    (
        "hostnetwork-without-dnspolicy",
        "hostnetwork-without-dnspolicy",
    ),
    ("multus-annotation-missing", "multus-annotation-missing"),
    ("dra-claim-missing", "dra-claim-missing"),
    ("lws-grove-partial-patch", "lws-grove-partial-patch"),
    ("prefill-decode-asymmetric-fabric", "one-role-lacks-fabric"),
    ("roce-v1-v2-mismatch", "roce-v1-v2-mismatch"),
    (
        "roce-traffic-class-ucx-vs-nccl",
        "roce-traffic-class-ucx-vs-nccl",
    ),
    (
        "topo-far-numa-selected",
        "rule: distances show only on the node",
    ),
    ("pcie-relaxed-ordering", "pcie-relaxed-ordering"),
    ("nvlink-not-between-pods", "nvlink-not-between-pods"),
    ("compute-domain-claim-missing", "cuda-ipc-tcp-without-imex"),
    ("imex-node-count", "imex-node-count"),
    (
        "mnnvl-kv-memory-no-fabric-handle",
        "mnnvl-kv-memory-no-fabric-handle",
    ),
    (
        "nccl-env-does-not-steer-nixl",
        "nccl-env-does-not-steer-nixl",
    ),
    ("nccl-ib-disable-1", "nccl-ib-disable-1"),
    ("nccl-ib-disable-unset-or-0", "rule: right"),
    ("nccl-ib-hca-prefix", "nccl-ib-hca-prefix"),
    ("nccl-ib-hca-port-excl", "rule: right syntax"),
    (
        "nccl-exclude-ib-hca-not-a-variable",
        "nccl-exclude-ib-hca-not-a-variable",
    ),
    ("nccl-p2p-disable", "nccl-p2p-disable"),
    ("nccl-net-gdr-level", "nccl-net-gdr-level"),
    ("nccl-socket-ifname-wrong", "nccl-socket-ifname-wrong"),
    ("gloo-socket-ifname-caret", "gloo-socket-ifname-caret"),
    ("nccl-net-socket", "nccl-net-socket"),
    ("nccl-gid-index-set-new", "nccl-gid-index-set-new"),
    ("nccl-mnnvl-cumem-off", "nccl-mnnvl-cumem-off"),
    ("nccl-dmabuf-off", "nccl-dmabuf-off"),
    ("efa-ucx-default", "efa-backend-not-libfabric"),
    ("libfabric-on-ib-is-tcp", "libfabric-on-ib-is-tcp"),
    ("efa-same-node-loopback", "efa-same-node-loopback"),
    ("efa-fi-provider-env", "efa-fi-provider-env"),
    ("gke-rdma-annotations", "gke-rdma-annotations"),
    ("gke-tcpx-tcpxo-no-nixl", "gke-tcpx-tcpxo-no-nixl"),
    ("oci-nccl-values", "rule: a vendor's list, not arbitrary"),
    ("coreweave-ibp-names", "rule: names of devices there"),
    (
        "azure-topo-file",
        "rule: the image may carry the topology file; only the pod shows",
    ),
    ("nixl-plugin-dir", "nixl-plugin-dir"),
    (
        "nixl-cu12-cu13",
        "rule: what is installed shows only in the image",
    ),
    ("ucx-pd-version-skew", "ucx-pd-version-skew"),
    ("image-runs-nonroot", "image-runs-nonroot"),
    (
        "garbage-tokens-200",
        "rule: shows only in answers of the running service",
    ),
    ("side-channel-host-loopback", "side-channel-host-loopback"),
    ("side-channel-host-any", "side-channel-host-any"),
    ("side-channel-host-wrong-ip", "side-channel-host-wrong-ip"),
    ("side-channel-port-clash", "side-channel-port-clash"),
    ("istio-sidecar", "istio-sidecar"),
    ("dns-headless", "dns-headless"),
    ("vllm-kv-role", "vllm-kv-role"),
    ("vllm-kv-buffer-cpu", "vllm-kv-buffer-cpu"),
    ("vllm-block-size-mismatch", "block-size-differs"),
    ("vllm-tp-mismatch", "vllm-tp-mismatch"),
    ("vllm-kv-dtype-layout", "kv-cache-dtype-differs"),
    ("vllm-gpu-nic-mapping-env", "vllm-gpu-nic-mapping-env"),
    (
        "sglang-nixl-ignores-ib-device",
        "sglang-nixl-ignores-ib-device",
    ),
    ("mooncake-protocol-tcp", "mooncake-protocol-tcp"),
    ("mooncake-nvlink-pool", "mooncake-nvlink-pool"),
    ("trtllm-transceiver-unset", "trtllm-transceiver-unset"),
    ("trtllm-default-flip", "trtllm-default-flip"),
    ("trtllm-mpi", "trtllm-mpi"),
    (
        "router-drops-kv-params",
        "rule: what a router relays shows only in requests",
    ),
    ("dynamo-kvbm-backend", "dynamo-kvbm-backend"),
];

/// Whether `env` owns an entry, by its second word: where it can be seen.
fn is_owned(id: &str, seen_in: &str) -> bool {
    !id.starts_with("trap-")
        && !seen_in.contains("never in the recipe")
        && seen_in
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|w| matches!(w, "recipe" | "config" | "app" | "image" | "images" | "env"))
}

#[test]
fn what_covers_an_entry_exists() {
    let mut seen = BTreeSet::new();
    for (entry, by) in COVERED {
        assert!(seen.insert(entry), "{entry} twice");
        assert!(
            by.starts_with("rule: ") || checks::cause(by).is_some(),
            "{entry}: no cause is called {by}"
        );
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "says why nothing was checked")]
fn every_entry_of_env_is_covered() {
    let Ok(table) = std::fs::read_to_string(Path::new(KNOWLEDGE)) else {
        eprintln!("skipped: no knowledge base at {KNOWLEDGE}");
        return;
    };
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let column = |name: &str| header.iter().position(|h| *h == name).unwrap();
    let (id, seen_in) = (column("id"), column("where"));
    let mut owned = BTreeSet::new();
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        if is_owned(fields[id], fields[seen_in]) {
            owned.insert(fields[id]);
        }
    }
    let covered: BTreeSet<&str> = COVERED.iter().map(|(entry, _)| *entry).collect();
    let missing: Vec<&&str> = owned.difference(&covered).collect();
    assert!(missing.is_empty(), "not covered: {missing:?}");
    let gone: Vec<&&str> = covered.difference(&owned).collect();
    assert!(
        gone.is_empty(),
        "not in the knowledge base, or not owned by env: {gone:?}"
    );
    assert!(owned.len() > 100, "{} entries only", owned.len());
}
