//! Every entry of the knowledge base that `node` owns is a cause, a note, or has a reason why it is neither.
//!
//! The knowledge base lies beside the repository and not in it; without it the list is checked against the
//! registry and the tests only.

use std::collections::BTreeSet;
use std::path::Path;

const KNOWLEDGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/knowledge/KB.tsv"
);

/// Tests that may stand for an entry, by the name of their file here.
const TESTS: &[(&str, &str)] = &[
    ("node_rules", include_str!("node_rules.rs")),
    ("node_live", include_str!("node_live.rs")),
    ("read", include_str!("../../probe/tests/outputs/read.rs")),
];

/// Entry and the causes or notes that tell it, separated by commas; or `test: FILE::NAME` for a rule that one reading
/// obeys; or `rule: ` and why it is none.
const COVERED: &[(&str, &str)] = &[
    (
        "ucx-netdev-inactive-port",
        "ib-port-down-polling,ib-port-disabled,ib-port-init-no-sm,selected-device-missing",
    ),
    (
        "ucx-netdev-storage-or-mgmt-nic",
        "ucx-netdev-storage-or-mgmt-nic,topo-far-numa-selected",
    ),
    (
        "ucx-netdev-ib-roce-mixed",
        "ucx-netdev-ib-roce-mixed,ucx-netdev-storage-or-mgmt-nic",
    ),
    ("ucx-netdev-azure-an-device", "ucx-netdev-azure-an-device"),
    ("ucx-tcp-bandwidth-guess", "ucx-tcp-bandwidth-guess"),
    ("gdr-peermem-missing", "gdr-peermem-missing"),
    ("gdr-nothing", "gdr-nothing"),
    (
        "gdr-host-only-list-is-not-proof",
        "gdr-host-only-list-is-not-proof",
    ),
    ("gdr-peermem-stale-abi", "gdr-peermem-stale-abi"),
    ("gdr-aks-managed-driver", "gdr-peermem-missing"),
    ("gdr-use-count-zero", "gdr-use-count-zero"),
    ("gdr-legacy-nv-peer-mem", "gdr-legacy-nv-peer-mem"),
    ("gdr-efa-peermem", "gdr-efa-peermem"),
    ("gdrcopy-missing", "gdrcopy-missing"),
    ("gdr-geforce-unsupported", "gdr-geforce-unsupported"),
    ("gdr-dgx-spark", "gdr-dgx-spark"),
    ("gdr-acs-bare-metal", "gdr-acs-bare-metal"),
    ("gdr-passthrough-pix", "gdr-passthrough-pix"),
    ("gdr-vm-no-ats", "gdr-vm-no-ats"),
    ("gdr-broadcom-phb", "gdr-broadcom-phb"),
    ("memlock-low", "memlock-low"),
    ("ipc-lock-nonroot-inert", "ipc-lock-nonroot-inert"),
    ("shm-small", "shm-small"),
    ("nofile-low", "nofile-low"),
    // Inside the pod a resource that was not asked for shows as devices without nodes, or as none.
    (
        "rdma-resource-missing",
        "dev-infiniband-missing,rdma-no-device",
    ),
    (
        "rdma-resource-zero-allocatable",
        "rule: what a cluster can give stands in its objects; no machine shows it",
    ),
    ("dev-infiniband-missing", "dev-infiniband-missing"),
    ("dev-infiniband-partial", "dev-infiniband-partial"),
    (
        "efa-plugin-counts-nvlink-controllers",
        "efa-plugin-counts-nvlink-controllers",
    ),
    ("uverbs-permission", "uverbs-permission"),
    ("roce-no-netdev-in-pod", "roce-no-netdev-in-pod"),
    ("rdma-netns-exclusive", "rdma-netns-exclusive"),
    (
        "rdma-netns-shared-shows-all",
        "test: node_rules::devices_of_the_host_do_not_make_a_pod_ready",
    ),
    ("ib-vf-guid-not-in-sm", "ib-vf-guid-not-in-sm"),
    ("soft-roce", "soft-roce"),
    ("ib-port-down-polling", "ib-port-down-polling"),
    ("ib-port-init-no-sm", "ib-port-init-no-sm"),
    ("ib-port-armed", "ib-port-armed"),
    ("ib-port-disabled", "ib-port-disabled"),
    ("ib-port-flapping", "ib-port-flapping"),
    ("ib-rate-degraded", "ib-rate-degraded"),
    ("ib-rate-low-absolute", "ib-rate-low-absolute"),
    ("ib-error-counters", "ib-error-counters"),
    ("ib-pkey-limited", "ib-pkey-limited"),
    (
        "ib-any-active-port-is-not-enough",
        "test: node_rules::an_active_front_end_does_not_stand_for_the_fabric",
    ),
    (
        "ibdev2netdev-down-on-ib",
        "test: node_rules::ib_interfaces_that_are_down_say_nothing",
    ),
    (
        "bond-lid0",
        "test: node_rules::a_bond_is_judged_by_its_fabric",
    ),
    (
        "roce-lid-zero-normal",
        "test: node_rules::a_lid_of_zero_is_normal_on_ethernet",
    ),
    (
        "b200-nvswitch-lpf-as-nic",
        "b200-nvswitch-lpf-as-nic,efa-plugin-counts-nvlink-controllers",
    ),
    ("ibstat-silent-empty", "ibstat-silent-empty"),
    ("ibstat-partial-ibpanic", "ibstat-partial-ibpanic"),
    ("roce-only-link-local-gid", "roce-only-link-local-gid"),
    (
        "roce-ipv6-global-is-fine",
        "test: node_rules::global_ipv6_gids_are_routable",
    ),
    ("roce-v1-v2-mismatch", "gid-index-unusable"),
    (
        "roce-gid-sparse-table",
        "test: node_live::a_sparse_table_of_gids_is_fine",
    ),
    ("roce-gid-two-ips", "roce-gid-two-ips"),
    (
        "roce-no-ip-route-between-rails",
        "roce-no-ip-route-between-rails",
    ),
    ("roce-mtu-1500", "roce-mtu-1500"),
    (
        "roce-mtu-mismatch",
        "rule: needs the ports of both ends: check compares them",
    ),
    ("roce-pfc-ecn", "roce-pfc-ecn"),
    (
        "roce-bond-lag",
        "test: node_rules::a_bond_is_judged_by_its_fabric",
    ),
    ("topo-best-level-not-pix", "topo-best-level-not-pix"),
    ("topo-sys-on-grace", "topo-sys-on-grace"),
    ("topo-far-numa-selected", "topo-far-numa-selected"),
    (
        "topo-pod-gpu-subset",
        "test: node_rules::few_gpus_and_all_cards_are_no_fault",
    ),
    ("topo-no-nic-columns", "topo-no-nic-columns"),
    ("topo-command-fails", "topo-command-fails"),
    (
        "topo-format-traps",
        "test: read::rows_that_are_missing_are_named",
    ),
    ("topo-gpu-off-nvlink", "topo-gpu-off-nvlink"),
    (
        "topo-nv-count-per-sku",
        "test: node_rules::numbers_of_links_are_compared_within_the_matrix",
    ),
    ("pcie-link-degraded", "pcie-link-degraded"),
    ("dual-port-same-asic", "dual-port-same-asic"),
    ("nvlink-inactive", "nvlink-inactive"),
    ("nvlink-all-inactive-message", "nvlink-all-inactive-message"),
    ("nvlink-empty-output", "nvlink-empty-output"),
    (
        "nvlink-active-but-fabric-dead",
        "nvlink-active-but-fabric-dead",
    ),
    ("fabric-manager-not-running", "fabric-manager-not-running"),
    ("fabric-state-not-completed", "fabric-state-not-completed"),
    ("fabric-status-not-success", "fabric-status-not-success"),
    ("fabric-health-unhealthy", "fabric-health-unhealthy"),
    (
        "fabric-not-supported-on-gb200",
        "fabric-not-supported-on-gb200",
    ),
    (
        "fabric-different-clique",
        "rule: needs the GPUs of both ends: check compares them",
    ),
    ("nccl-conf-file", "nccl-conf-file,nccl-topo-file-missing"),
    (
        "efa-zero-guid",
        "test: node_rules::zero_guids_and_still_counters_of_efa_are_normal",
    ),
    (
        "efa-counter-zero",
        "test: node_rules::zero_guids_and_still_counters_of_efa_are_normal",
    ),
    (
        "oci-rdma-auth",
        "rule: 802.1X is done by the host and the switch; a port that was not let in shows as down",
    ),
    ("nebius-mlx5-12-virtual", "ucx-netdev-storage-or-mgmt-nic"),
    ("image-no-verbs", "image-no-verbs"),
    ("image-two-ucx", "image-two-ucx"),
    ("image-provider-abi", "image-provider-abi"),
    ("verbs-provider-not-loadable", "verbs-provider-not-loadable"),
    (
        "nixl-counters-proof",
        "rule: needs two readings around requests: measured, not read",
    ),
    (
        "trap-host-wide-sysfs",
        "test: node_rules::devices_of_the_host_do_not_make_a_pod_ready",
    ),
    (
        "trap-lsmod-absent",
        "test: node_rules::without_lsmod_modules_are_unknown",
    ),
];

/// Whether `node` owns an entry, by the words of where it can be seen.
fn is_owned(seen_in: &str) -> bool {
    seen_in
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|w| matches!(w, "pod" | "node" | "tool" | "topo"))
}

#[test]
fn what_covers_an_entry_exists() {
    let mut seen = BTreeSet::new();
    for (entry, by) in COVERED {
        assert!(seen.insert(entry), "{entry} twice");
        if by.starts_with("rule: ") {
            continue;
        }
        if let Some(test) = by.strip_prefix("test: ") {
            let found = test.split_once("::").is_some_and(|(file, name)| {
                TESTS
                    .iter()
                    .any(|(f, text)| *f == file && text.contains(&format!("#[test]\nfn {name}()")))
            });
            assert!(found, "{entry}: no test is called {test}");
            continue;
        }
        for cause in by.split(',') {
            let told = checks::cause(cause);
            assert!(told.is_some(), "{entry}: no cause is called {cause}");
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "says why nothing was checked")]
fn every_entry_of_node_is_covered() {
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
        if is_owned(fields[seen_in]) {
            owned.insert(fields[id]);
        }
    }
    let covered: BTreeSet<&str> = COVERED.iter().map(|(entry, _)| *entry).collect();
    let missing: Vec<&&str> = owned.difference(&covered).collect();
    assert!(missing.is_empty(), "not covered: {missing:?}");
    let gone: Vec<&&str> = covered.difference(&owned).collect();
    assert!(
        gone.is_empty(),
        "not in the knowledge base, or not owned by node: {gone:?}"
    );
    assert!(owned.len() > 80, "{} entries only", owned.len());
}
