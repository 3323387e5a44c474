//! Prefill and decode workers are on one fabric: the ports of one can reach the ports of the other.
//!
//! Two ports that are active can still not be of one network. InfiniBand does not speak with Ethernet; two InfiniBand
//! subnets need a router; two ports without a partition in common, or with limited membership on both sides, are kept
//! apart by the switch; RoCE version 1 is passed by no router. Each of these is seen only by who looks at both ends.
//! Rails that only one end has carry nothing, and the slower end sets the pace: told, and judged by nobody, since
//! prefill and decode may have different machines on purpose.

use std::collections::{BTreeMap, BTreeSet};

use model::{Grade, Role};

use super::listed;
use super::rails::{Rails, fabric_words, partition_words, subnet_words};
use super::view::{GroupView, about};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node::ports::Fabric;
use crate::pod::view::PodView;

const NAME: &str = "pair/fabric";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode workers are on one fabric",
    source: include_str!("fabric.rs"),
    causes: &[LINK_LAYERS, SUBNETS, PARTITIONS, ROCE_VERSIONS, MTU],
    notes: &[],
    run: Run::Group(run),
};

const LINK_LAYERS: Cause = Cause {
    id: "pair-link-layers-differ",
    what: "the active RDMA ports of prefill and of decode speak different protocols",
    why: "InfiniBand, RoCE and EFA do not reach each other: UCX finds no common RDMA transport and takes TCP",
    fix: "place both roles on machines of one fabric (node selector, or the same device resource)",
    quiet_if: "both have at least one in common; the ports of one side are not known, or none is active (node/rdma-ports tells that)",
    source: "InfiniBand Architecture Specification, annex A17 (RoCEv2); UCX uct_ib_iface_is_reachable",
};

const SUBNETS: Cause = Cause {
    id: "pair-ib-subnets-differ",
    what: "the InfiniBand ports of prefill and of decode are in different subnets",
    why: "without an InfiniBand router they do not reach each other: UCX calls the pair unreachable and takes TCP",
    fix: "place both roles in one InfiniBand subnet, or tell UCX of the router (UCX_IB_SUBNET_PREFIX, UCX_IB_IS_GLOBAL=y)",
    quiet_if: "a subnet prefix is common to both; UCX_IB_IS_GLOBAL=y; prefixes could not be read; one side has no InfiniBand",
    source: "UCX uct_ib_iface_is_reachable (subnet prefix of GID 0)",
};

const PARTITIONS: Cause = Cause {
    id: "pair-partitions-differ",
    what: "the InfiniBand ports of prefill and of decode share no partition in which one is a full member",
    why: "the switches drop what one sends to the other: transfers time out, or UCX takes TCP",
    fix: "put both into one partition in the subnet manager (partitions.conf), one of them at least as a full member",
    quiet_if: "a partition is common and one of both is a full member of it; partition keys could not be read",
    source: "InfiniBand Architecture Specification 10.9 (partitioning); opensm partitions.conf",
};

const ROCE_VERSIONS: Cause = Cause {
    id: "pair-roce-versions-differ",
    what: "the RoCE ports of one role have GIDs of version 2, those of the other of version 1 only",
    why: "UCX prefers version 2; a port that has none cannot answer it",
    fix: "give the interface of the port an IPv4 or IPv6 address inside the pod: GIDs of version 2 come with it",
    quiet_if: "both have version 2, or neither; kinds of GIDs could not be read",
    source: "ucx#4688; UCX ib_device.c (GID selection)",
};

const MTU: Cause = Cause {
    id: "roce-mtu-mismatch",
    what: "the RoCE ports of prefill and of decode send packets of different sizes",
    why: "the ends agree on the smaller size, which is slower; a switch between them that has the small one drops the large packets",
    fix: "set the same MTU on the interfaces, the switches and the peers",
    quiet_if: "equal; not RoCE; sizes could not be read",
    source: "NVIDIA/nccl#709; Linux include/rdma/ib_addr.h (iboe_get_mtu)",
};

/// What is known of a worker's fabric; few workers differ in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    fabrics: BTreeSet<Fabric>,
    subnets: Option<BTreeSet<u64>>,
    partitions: Option<BTreeMap<u32, bool>>,
    roce: Option<&'static str>,
    mtus: Option<BTreeSet<u32>>,
    rails: String,
}

fn known(pod: &PodView<'_>) -> Option<Known> {
    let rails = Rails::of(pod)?;
    let fabrics = rails.fabrics();
    if fabrics.is_empty() {
        return None;
    }
    let roce = fabrics.contains(&Fabric::Roce);
    Some(Known {
        subnets: rails.subnets().filter(|_| !routed(pod)),
        partitions: rails.partitions(),
        roce: rails.roce_versions(),
        mtus: rails.mtus().filter(|_| roce && fabrics.len() == 1),
        rails: format!(
            "{} {}",
            rails
                .rates()
                .unwrap_or_else(|| rails.active_count().to_string()),
            fabric_words(&fabrics)
        ),
        fabrics,
    })
}

/// Whether UCX is told that a router leads to other subnets.
fn routed(pod: &PodView<'_>) -> bool {
    let told = pod
        .live
        .and_then(|live| live.worker.literal("UCX_IB_IS_GLOBAL"));
    told.is_some_and(|value| {
        matches!(
            value.trim().to_ascii_lowercase().as_str(),
            "y" | "yes" | "on" | "1"
        )
    })
}

/// Workers of one role that are alike in this.
type Kind<'p> = (Known, Vec<&'p PodView<'p>>);

fn kinds<'p>(view: &GroupView<'p>, role: Role) -> Vec<Kind<'p>> {
    let mut kinds: BTreeMap<Known, Vec<&'p PodView<'p>>> = BTreeMap::new();
    for pod in view.role(role) {
        if let Some(known) = known(pod) {
            kinds.entry(known).or_default().push(pod);
        }
    }
    kinds.into_iter().collect()
}

fn run(view: &GroupView<'_>, findings: &mut Findings) {
    let (prefill, decode) = (kinds(view, Role::Prefill), kinds(view, Role::Decode));
    if prefill.is_empty() || decode.is_empty() {
        return;
    }
    let before = findings.results().len();
    let sides = Sides {
        prefill: &prefill,
        decode: &decode,
    };
    // One that has no protocol in common has nothing else in common either.
    let apart = |p: &Known, d: &Known| p.fabrics.is_disjoint(&d.fabrics);
    sides.judge(findings, &LINK_LAYERS, true, apart, |known| {
        fabric_words(&known.fabrics)
    });
    sides.judge(
        findings,
        &SUBNETS,
        false,
        |p, d| match (&p.subnets, &d.subnets) {
            (Some(p), Some(d)) => p.is_disjoint(d),
            _ => false,
        },
        |known| {
            let subnets = known.subnets.as_ref().map(subnet_words);
            format!("subnet {}", subnets.unwrap_or_default())
        },
    );
    sides.judge(
        findings,
        &PARTITIONS,
        true,
        |p, d| match (&p.partitions, &d.partitions) {
            (Some(p), Some(d)) => !p
                .iter()
                .any(|(key, full)| d.get(key).is_some_and(|other| *full || *other)),
            _ => false,
        },
        |known| {
            let partitions = known.partitions.as_ref().map(partition_words);
            format!("partition {}", partitions.unwrap_or_default())
        },
    );
    sides.judge(
        findings,
        &ROCE_VERSIONS,
        false,
        |p, d| matches!((p.roce, d.roce), (Some(p), Some(d)) if p != d),
        |known| format!("RoCE {}", known.roce.unwrap_or_default()),
    );
    sides.judge(
        findings,
        &MTU,
        false,
        |p, d| matches!((&p.mtus, &d.mtus), (Some(p), Some(d)) if p.is_disjoint(d)),
        |known| {
            let sizes = known.mtus.iter().flatten();
            let words: Vec<String> = sizes.map(u32::to_string).collect();
            format!("packets of {} bytes", words.join(", "))
        },
    );
    if findings.results().len() == before {
        findings.push(fine(&prefill, &decode));
    }
}

struct Sides<'k, 'p> {
    prefill: &'k [Kind<'p>],
    decode: &'k [Kind<'p>],
}

impl Sides<'_, '_> {
    /// Pairs that do not fit. A worker that fits nobody of the other role is the one that is named; where all of both
    /// roles do not fit, both are.
    fn judge(
        &self,
        findings: &mut Findings,
        cause: &'static Cause,
        fails: bool,
        apart: impl Fn(&Known, &Known) -> bool,
        words: impl Fn(&Known) -> String,
    ) {
        let alone = |own: &[Kind<'_>], others: &[Kind<'_>]| -> Vec<usize> {
            (0..own.len())
                .filter(|at| {
                    own.get(*at)
                        .is_some_and(|(one, _)| others.iter().all(|(other, _)| apart(one, other)))
                })
                .collect()
        };
        let (p, d) = (
            alone(self.prefill, self.decode),
            alone(self.decode, self.prefill),
        );
        let all = p.len() == self.prefill.len();
        if all {
            let say = |kinds: &[Kind<'_>]| -> String {
                let values: BTreeSet<String> =
                    kinds.iter().map(|(known, _)| words(known)).collect();
                values.into_iter().collect::<Vec<_>>().join(" or ")
            };
            let detail = format!(
                "prefill has {}, decode {}",
                say(self.prefill),
                say(self.decode)
            );
            let pods = self.prefill.iter().chain(self.decode);
            let pods = pods.flat_map(|(_, pods)| pods.iter().copied());
            findings.push(about(found(cause, fails, detail), pods));
            return;
        }
        for (role, own, others, odd) in [
            ("prefill", self.prefill, self.decode, p),
            ("decode", self.decode, self.prefill, d),
        ] {
            for (known, pods) in odd.into_iter().filter_map(|at| own.get(at)) {
                let other = others
                    .iter()
                    .max_by_key(|(_, pods)| pods.len())
                    .map(|(known, _)| words(known))
                    .unwrap_or_default();
                let names: Vec<&str> = pods.iter().map(|pod| pod.object.name.as_str()).collect();
                let against = if role == "prefill" {
                    "decode"
                } else {
                    "prefill"
                };
                let detail = format!(
                    "{} ({role}) has {}, no {against} worker fits: they have {other}",
                    listed(&names),
                    words(known)
                );
                findings.push(about(found(cause, fails, detail), pods.iter().copied()));
            }
        }
    }
}

fn found(cause: &'static Cause, fails: bool, detail: String) -> Finding {
    let finding = if fails {
        Finding::fail(NAME, cause, detail)
    } else {
        Finding::warn(NAME, cause, detail)
    };
    finding.grade(Grade::Observed)
}

fn fine(prefill: &[Kind<'_>], decode: &[Kind<'_>]) -> Finding {
    let say = |kinds: &[Kind<'_>]| {
        let mut workers: BTreeMap<&str, usize> = BTreeMap::new();
        for (known, pods) in kinds {
            let count = workers.entry(&known.rails).or_default();
            *count = count.saturating_add(pods.len());
        }
        let most = workers
            .into_iter()
            .min_by_key(|(_, count)| std::cmp::Reverse(*count));
        most.map_or_else(String::new, |(rails, _)| rails.to_owned())
    };
    let (p, d) = (say(prefill), say(decode));
    let finding = Finding::ok(
        NAME,
        format!("prefill has {p}, decode {d}: nothing seen keeps them apart"),
    );
    let finding = if p == d {
        finding
    } else {
        finding.note("the end with fewer or slower ports sets the pace")
    };
    let pods = prefill.iter().chain(decode);
    about(
        finding.grade(Grade::Observed),
        pods.flat_map(|(_, pods)| pods.iter().copied()),
    )
}
