//! Both roles ask the cluster for the fabric that KV cache shall travel on.
//!
//! Prefill and decode need RDMA devices (an RDMA device plugin's resource, a device claim, or the host's own
//! devices), EFA, or the channel of one compute domain for multi-node NVLink. Without any of them UCX finds no
//! RDMA device in the container and takes TCP without a word. One role alone is worse: the other cannot answer.
//!
//! How many slots a worker asks for says nothing (shared device plugins count slots, not NICs), and neither
//! does the resource's name. Both roles on one host need no fabric between nodes.

use model::{Accelerator, Grade, Reason, Role};

use crate::check::{Cause, Check, Run};
use crate::env::prefill_decode::{misfits, who};
use crate::fabric::{self, Rdma};
use crate::finding::{Finding, Findings};
use crate::kv_path::{Backend, Connector};
use crate::view::{View, WorkerView};

const NAME: &str = "env/kv-fabric";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode ask for the fabric that carries KV",
    source: include_str!("kv_fabric.rs"),
    causes: &[
        RESOURCE_MISSING,
        ONE_ROLE,
        PRIVILEGED_ONLY,
        CLAIM_PLACEHOLDER,
        LIBFABRIC_WITHOUT_EFA,
        LIBFABRIC_ON_IB,
    ],
    notes: &[GKE_ANNOTATION, NVLINK_BETWEEN_PODS, ROCE_ROUTES],
    run: Run::Recipe(run),
};

const RESOURCE_MISSING: Cause = Cause {
    id: "rdma-resource-missing",
    what: "neither role has an RDMA resource, EFA, a device claim or the host's devices",
    why: "UCX and Mooncake then see no RDMA device in the container and KV goes over TCP between nodes, silently",
    fix: "request the cluster's RDMA resource on both roles (its name is in the nodes' allocatable list: kubectl get nodes -o yaml | grep -i -E 'rdma|ib|efa'), or keep both roles on one host on purpose",
    quiet_if: "both roles are kept on one host; multi-node NVLink with a compute domain; a mock engine; accelerators whose base path is TCP; a patch",
    source: "ai-dynamo/dynamo disagg-communication guide",
};

const ONE_ROLE: Cause = Cause {
    id: "one-role-lacks-fabric",
    what: "one role asks for the fabric and the other does not, or one of several pools of a role does not",
    why: "the side without it has no RDMA device: the pair falls to TCP, or cannot connect at all where the transport list has no TCP",
    fix: "request the same fabric on both roles",
    quiet_if: "the lacking role is privileged or uses the host's devices",
    source: "UCX wireup: a lane needs a reachable device on both ends (ucp/wireup/select.c)",
};

const PRIVILEGED_ONLY: Cause = Cause {
    id: "privileged-without-rdma-resource",
    what: "no RDMA resource; the containers are privileged",
    why: "a privileged container may see the host's RDMA devices, or not: the file cannot tell",
    fix: "request the cluster's RDMA resource, or look into the pod: ls /dev/infiniband",
    quiet_if: "an RDMA resource, EFA, a claim, or a /dev/infiniband mount is there",
    source: "libibverbs opens /dev/infiniband/uverbs* (rdma-core libibverbs/init.c:87)",
};

const CLAIM_PLACEHOLDER: Cause = Cause {
    id: "claim-template-placeholder",
    what: "a device claim names a placeholder template that the input does not define",
    why: "the pods stay Pending until the template is replaced, and whether both roles share one domain cannot be seen",
    fix: "create the ComputeDomain and put its resourceClaimTemplate name here",
    quiet_if: "the template or its ComputeDomain is in the input; the name is no placeholder",
    source: "NVIDIA DRA driver: ComputeDomain.spec.channel.resourceClaimTemplate",
};

const LIBFABRIC_WITHOUT_EFA: Cause = Cause {
    id: "libfabric-without-efa",
    what: "the NIXL backend is LIBFABRIC and no EFA device is asked for",
    why: "NIXL's LIBFABRIC backend picks cxi, efa, tcp or sockets, never verbs; without EFA or Slingshot only TCP is left",
    fix: "request vpc.amazonaws.com/efa on both roles, or use the UCX backend on InfiniBand and RoCE",
    quiet_if: "EFA is requested, or the host's devices are visible",
    source: "ai-dynamo/nixl src/utils/libfabric/libfabric_common.cpp:36-125",
};

pub(crate) const LIBFABRIC_ON_IB: Cause = Cause {
    id: "libfabric-on-ib-is-tcp",
    what: "the NIXL backend is LIBFABRIC and the worker asks for InfiniBand or RoCE devices, not for EFA",
    why: "NIXL's LIBFABRIC backend picks cxi, efa, tcp or sockets, never verbs: the NICs that are asked for carry nothing and KV goes over TCP",
    fix: "use the UCX backend on InfiniBand and RoCE",
    quiet_if: "EFA or Slingshot devices are there; device claims and the host's own devices, whose kind the file does not show",
    source: "ai-dynamo/nixl src/utils/libfabric/libfabric_common.cpp:36-125",
};

const GKE_ANNOTATION: Cause = Cause {
    id: "gke-rdma-annotations",
    what: "GKE's rdma-N networks are asked for without the annotation networking.gke.io/interfaces",
    why: "GKE attaches the NICs of these networks through the annotation networking.gke.io/interfaces, which is not in the file",
    fix: "add the annotation with the same networks",
    quiet_if: "the annotation is there; device claims; the host's network",
    source: "Google Cloud: A3 Ultra, A4 and A4X with GPUDirect RDMA",
};

const NVLINK_BETWEEN_PODS: Cause = Cause {
    id: "nvlink-not-between-pods",
    what: "prefill and decode on one host, in pods of their own, without a fabric",
    why: "pods do not share IPC or PID namespaces and do not see each other's GPUs, so NVLink between them is not certain; without it KV goes over TCP inside the host",
    fix: "request RDMA devices for the same-host case too, or put both roles into one pod",
    quiet_if: "one pod; a fabric is asked for",
    source: "CUDA IPC: same PID namespace and mutually visible GPUs; upstream's pages contradict each other",
};

const ROCE_ROUTES: Cause = Cause {
    id: "ucx-roce-reachability-unset",
    what: "RoCE NICs of GKE or of device claims, and UCX_IB_ROCE_REACHABILITY_MODE is not set",
    why: "from 1.19 on UCX checks routes before it uses a RoCE device; where the log names the device and the lanes are tcp, UCX_IB_ROCE_REACHABILITY_MODE=all skips that check",
    fix: "set UCX_IB_ROCE_REACHABILITY_MODE=all if the lanes are tcp",
    quiet_if: "it is set; another library carries KV",
    source: "llm-d/llm-d#2423",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    if view.kv.is_empty() {
        return;
    }
    if view.is_part() {
        return part(view, findings);
    }
    if view.kv.iter().all(WorkerView::is_mock) {
        findings.push(
            Finding::ok(NAME, "a mock engine: no KV cache moves")
                .workers(view.kv.iter().map(|w| w.worker)),
        );
        return;
    }
    placeholders(view, findings);
    if open_claims(view, findings) {
        return;
    }
    let with: Vec<&WorkerView<'_>> = view.kv.iter().filter(|w| w.fabric.any()).collect();
    let without: Vec<&WorkerView<'_>> = view.kv.iter().filter(|w| !w.fabric.any()).collect();
    if with.is_empty() {
        return nobody(view, findings);
    }
    if !without.is_empty() {
        return one_role(&with, &without, findings);
    }
    if nothing_in_common(view, findings) || uneven(view, findings) {
        return;
    }
    for kv in &with {
        if !libfabric_on_ib(kv, findings) {
            requested(kv, findings);
        }
    }
}

/// Claims on something that cannot be told may be the fabric that a role seems to lack.
fn open_claims(view: &View<'_>, findings: &mut Findings) -> bool {
    let lacking: Vec<&WorkerView<'_>> = view.kv.iter().filter(|w| !w.fabric.any()).collect();
    let open: Vec<(&WorkerView<'_>, &model::Claim)> = lacking
        .iter()
        .filter_map(|w| Some((*w, w.fabric.open_claim?)))
        .collect();
    if open.is_empty() || open.len() < lacking.len() || view.is_single_host() {
        return false;
    }
    for (kv, claim) in open {
        let role = kv.worker.role.as_str();
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "{role} claims {}, and what that gives is not in the input: it may be the fabric, or not",
                    fabric::claim_name(claim)
                ),
            )
            .worker(kv.worker)
            .at(&claim.place, role),
        );
    }
    for kv in view.kv.iter().filter(|w| w.fabric.any()) {
        requested(kv, findings);
    }
    true
}

/// NICs that NIXL's LIBFABRIC backend does not use. True where a finding says so.
fn libfabric_on_ib(kv: &WorkerView<'_>, findings: &mut Findings) -> bool {
    let place = match kv.fabric.rdma {
        // A device claim's name does not tell what its NIC is.
        Some(Rdma::Resource(r)) if !is_slingshot(&r.name) => &r.place,
        _ => return false,
    };
    if !kv.path.uses_libfabric() || kv.fabric.efa.is_some() || kv.worker.privileged {
        return false;
    }
    let role = kv.worker.role.as_str();
    findings.push(
        Finding::fail(
            NAME,
            &LIBFABRIC_ON_IB,
            format!(
                "{role} asks for {}, which NIXL's LIBFABRIC backend does not use: KV goes over TCP",
                kv.fabric.summary()
            ),
        )
        .worker(kv.worker)
        .at(place, format!("{role}: not used by LIBFABRIC")),
    );
    true
}

/// Names of HPE Slingshot devices, and of EFA by other ways than its plugin.
fn is_slingshot(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["efa", "cxi", "slingshot", "hsn"]
        .iter()
        .any(|w| name.contains(w))
}

/// A patch: what it sets is reported, what it leaves out is somewhere else.
fn part(view: &View<'_>, findings: &mut Findings) {
    for kv in view.kv.iter().filter(|w| w.fabric.any()) {
        requested(kv, findings);
    }
}

fn requested(kv: &WorkerView<'_>, findings: &mut Findings) {
    let mut finding =
        Finding::ok(NAME, format!("asks for {}", kv.fabric.summary())).worker(kv.worker);
    if matches!(kv.fabric.rdma, Some(Rdma::Claim { seen: false, .. })) {
        finding = finding.grade(Grade::Assumed);
    }
    let place = kv
        .fabric
        .rdma
        .map(Rdma::place)
        .or(kv.fabric.efa.map(|r| &r.place))
        .or(kv.fabric.compute_domain.map(|c| &c.place));
    if let Some(place) = place {
        finding = finding.at(place, kv.worker.role.as_str());
    }
    if kv.fabric.gke_networks
        && !kv
            .worker
            .annotations
            .iter()
            .any(|(n, _)| n == "networking.gke.io/interfaces")
    {
        finding = finding.told(&GKE_ANNOTATION);
    }
    let policy_routed =
        kv.fabric.gke_networks || matches!(kv.fabric.rdma, Some(Rdma::Claim { .. }));
    if policy_routed
        && kv.path.may_use_ucx()
        && kv.worker.setting("UCX_IB_ROCE_REACHABILITY_MODE").is_none()
    {
        finding = finding.told(&ROCE_ROUTES);
    }
    findings.push(finding);
}

/// Both roles ask for a fabric, but not for the same one.
fn nothing_in_common(view: &View<'_>, findings: &mut Findings) -> bool {
    let kinds = |w: &WorkerView<'_>| {
        [
            w.fabric.rdma.is_some(),
            w.fabric.efa.is_some(),
            w.fabric.compute_domain.is_some(),
        ]
    };
    // EFA carries KV through LIBFABRIC; what else is there does not help.
    let needed: [bool; 3] = if view.kv.iter().all(|w| w.path.uses_libfabric()) {
        [false, true, false]
    } else {
        [true; 3]
    };
    let common = |p: &WorkerView<'_>, d: &WorkerView<'_>| {
        let (p, d) = (kinds(p), kinds(d));
        p.iter().zip(d).zip(needed).any(|((a, b), n)| *a && b && n)
    };
    let usable = |w: &WorkerView<'_>| kinds(w).iter().zip(needed).any(|(k, n)| *k && n);
    let differ = |p: &WorkerView<'_>, d: &WorkerView<'_>| !common(p, d) && (usable(p) || usable(d));
    let Some((prefill, decode)) = misfits(view, differ) else {
        return false;
    };
    let mut finding = Finding::fail(
        NAME,
        &ONE_ROLE,
        format!(
            "{} asks for {}, {} asks for {}: no fabric in common",
            who(view, prefill),
            prefill.fabric.summary(),
            who(view, decode),
            decode.fabric.summary()
        ),
    );
    for kv in [prefill, decode] {
        let place = fabric_place(kv).unwrap_or(&kv.worker.place);
        finding = finding.at(place, format!("{}: {}", who(view, kv), kv.fabric.summary()));
    }
    findings.push(finding.workers([prefill.worker, decode.worker]));
    true
}

/// One role requests its RDMA devices, the other only sees the host's: whether that is enough shows in the pod.
fn uneven(view: &View<'_>, findings: &mut Findings) -> bool {
    let requests =
        |w: &&WorkerView<'_>| matches!(w.fabric.rdma, Some(Rdma::Resource(_) | Rdma::Claim { .. }));
    let only_host = |w: &&WorkerView<'_>| {
        matches!(w.fabric.rdma, Some(Rdma::HostDevices(_)))
            && !w.worker.host_network
            && w.fabric.efa.is_none()
            && w.fabric.compute_domain.is_none()
    };
    for (one, other) in [(Role::Prefill, Role::Decode), (Role::Decode, Role::Prefill)] {
        let (Some(has), Some(sees)) = (
            view.role(one).find(requests),
            view.role(other).find(only_host),
        ) else {
            continue;
        };
        let mut finding = Finding::warn(
            NAME,
            &PRIVILEGED_ONLY,
            format!(
                "{} asks for {}, {} asks for nothing and relies on the host's devices",
                one.as_str(),
                has.fabric.summary(),
                other.as_str()
            ),
        );
        for kv in [has, sees] {
            let place = fabric_place(kv).unwrap_or(&kv.worker.place);
            finding = finding.at(
                place,
                format!("{}: {}", kv.worker.role.as_str(), kv.fabric.summary()),
            );
        }
        findings.push(finding.workers([has.worker, sees.worker]));
        return true;
    }
    false
}

fn fabric_place<'f>(kv: &WorkerView<'f>) -> Option<&'f model::Place> {
    kv.fabric
        .rdma
        .map(Rdma::place)
        .or(kv.fabric.efa.map(|r| &r.place))
        .or(kv.fabric.compute_domain.map(|c| &c.place))
}

/// Some workers ask for a fabric and others do not: whole roles, or single pools of a role. Each pool that lacks it is named,
/// once for each role and excuse.
fn one_role(with: &[&WorkerView<'_>], without: &[&WorkerView<'_>], findings: &mut Findings) {
    for excused in [false, true] {
        let lacking: Vec<&WorkerView<'_>> = without
            .iter()
            .copied()
            .filter(|w| (w.fabric.privileged || w.worker.host_network) == excused)
            .collect();
        let Some(first) = lacking.first() else {
            continue;
        };
        // The other role is what it has to reach.
        let has = with
            .iter()
            .find(|w| w.worker.role != first.worker.role)
            .or(with.first());
        if let Some(has) = has {
            lacks(has, with, &lacking, excused, findings);
        }
    }
}

fn lacks(
    has: &WorkerView<'_>,
    with: &[&WorkerView<'_>],
    lacking: &[&WorkerView<'_>],
    excused: bool,
    findings: &mut Findings,
) {
    let mut names: Vec<String> = Vec::new();
    for kv in lacking {
        let role = kv.worker.role;
        // A role that has it elsewhere is not told by its name alone.
        let name = if with.iter().any(|w| w.worker.role == role) {
            format!("{} ({})", kv.worker.name, role.as_str())
        } else {
            role.as_str().to_owned()
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let verb = if names.len() == 1 { "asks" } else { "ask" };
    let detail = format!(
        "{} asks for {}, {} {verb} for no fabric",
        has.worker.role.as_str(),
        has.fabric.summary(),
        names.join(" and ")
    );
    let mut finding = if excused {
        Finding::warn(
            NAME,
            &PRIVILEGED_ONLY,
            format!(
                "{detail}; it is privileged or on the host's network, so the devices may still be visible"
            ),
        )
    } else {
        Finding::fail(NAME, &ONE_ROLE, detail)
    };
    if let Some(place) = fabric_place(has) {
        finding = finding.at(
            place,
            format!("{}: {}", has.worker.role.as_str(), has.fabric.summary()),
        );
    }
    for kv in lacking {
        finding = finding.at(
            &kv.worker.place,
            format!(
                "{} ({}): nothing of the kind",
                kv.worker.role.as_str(),
                kv.worker.name
            ),
        );
    }
    findings
        .push(finding.workers(std::iter::once(has.worker).chain(lacking.iter().map(|w| w.worker))));
}

/// No worker asks for a fabric.
fn nobody(view: &View<'_>, findings: &mut Findings) {
    let workers = || view.kv.iter().map(|w| w.worker);
    if view.is_single_host() {
        let how = view
            .kv
            .iter()
            .find_map(|w| w.worker.pod().same_host.as_ref());
        let mut finding = Finding::ok(
            NAME,
            "both roles are kept on one host: no fabric between nodes is needed",
        )
        .workers(workers());
        if let Some(how) = how {
            finding = finding.at(&how.place, how.value.clone());
            if how.value.starts_with("preferred") {
                finding = finding.note("a preferred affinity is not a guarantee");
            }
        }
        if !view.is_one_pod() {
            finding = finding.told(&NVLINK_BETWEEN_PODS);
        }
        findings.push(finding);
        return;
    }
    // One pod with both roles: nothing leaves the host.
    let kind = view.kv.iter().find_map(|w| w.worker.accelerator);
    match kind {
        Some(Accelerator::Nvidia | Accelerator::Amd) | None => {}
        Some(other) => {
            findings.push(
                Finding::ok(
                    NAME,
                    format!(
                        "{}: no rule of this tool says what fabric it needs",
                        other.as_str()
                    ),
                )
                .workers(workers())
                .grade(Grade::Assumed),
            );
            return;
        }
    }
    if view
        .kv
        .iter()
        .all(|w| matches!(w.path.connector, Connector::Other(_)) && w.path.backend.is_none())
    {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                view.kv.iter().find_map(|w| w.path.open()).map_or_else(
                    || "no rule for this connector says what fabric it needs".to_owned(),
                    |why| format!("what fabric is needed cannot be told: {why}"),
                ),
            )
            .workers(workers()),
        );
        return;
    }
    if let Some(kv) = view.kv.iter().find(|w| w.path.uses_libfabric()) {
        let mut finding = Finding::warn(
            NAME,
            &LIBFABRIC_WITHOUT_EFA,
            "the NIXL backend is LIBFABRIC and no EFA device is asked for: KV goes over TCP",
        )
        .workers(workers());
        if let Some(setting) = kv
            .worker
            .setting("kv_connector_extra_config.backends")
            .or_else(|| kv.worker.setting("SGLANG_DISAGGREGATION_NIXL_BACKEND"))
        {
            finding = finding.at(
                &setting.place,
                format!("{}: LIBFABRIC", kv.worker.role.as_str()),
            );
        }
        findings.push(finding);
        return;
    }
    // A list that leaves only TCP is one finding, about the list.
    if view.kv.iter().any(|w| {
        w.path.may_use_ucx()
            && w.tls
                .as_ref()
                .is_some_and(|t| !t.rdma && !t.ud_only && t.tcp)
    }) {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotApplicable,
                "no fabric is asked for; UCX_TLS allows none either and is judged by env/ucx-tls",
            )
            .workers(workers()),
        );
        return;
    }
    if view.deployment.partial == Some(model::Partial::Values) {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                "no fabric in these values; what the chart adds is not in the input",
            )
            .workers(workers()),
        );
        return;
    }
    let what = match view.kv.first().and_then(|w| w.path.backend.as_ref()) {
        Some(Backend::Mooncake) => "Mooncake",
        _ => "UCX",
    };
    let both = if view.has_both_roles() {
        "neither role asks"
    } else {
        "the role shown does not ask"
    };
    let privileged = view.kv.iter().all(|w| w.fabric.privileged);
    let mut finding = if privileged {
        Finding::warn(
            NAME,
            &PRIVILEGED_ONLY,
            format!(
                "{both} for an RDMA device; the containers are privileged, so host devices may be visible, or KV goes over TCP"
            ),
        )
    } else {
        Finding::warn(
            NAME,
            &RESOURCE_MISSING,
            format!("{both} for an RDMA device: {what} then moves KV over TCP between nodes"),
        )
    };
    for role in [Role::Prefill, Role::Decode] {
        if let Some(kv) = view.role(role).next() {
            finding = finding.at(
                &kv.worker.place,
                format!(
                    "{}: no RDMA resource, EFA, device claim or host device",
                    role.as_str()
                ),
            );
        }
    }
    findings.push(finding.workers(workers()));
}

/// Claims on templates whose name says that they are to be replaced.
fn placeholders(view: &View<'_>, findings: &mut Findings) {
    for kv in &view.kv {
        let Some(claim) = kv.fabric.compute_domain else {
            continue;
        };
        let Some(template) = claim.template.as_deref() else {
            continue;
        };
        let defined = view
            .deployment
            .claim_templates()
            .any(|t| t.name == template)
            || view
                .deployment
                .compute_domains()
                .any(|d| d.template.as_deref() == Some(template));
        if !defined && is_placeholder(template) {
            findings.push(
                Finding::warn(
                    NAME,
                    &CLAIM_PLACEHOLDER,
                    format!(
                        "{} claims from {template}, a placeholder that the input does not define",
                        kv.worker.role.as_str()
                    ),
                )
                .worker(kv.worker)
                .at(
                    &claim.place,
                    format!("{}: to be replaced", kv.worker.role.as_str()),
                ),
            );
        }
    }
}

/// Names that ask to be replaced.
fn is_placeholder(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(['-', '_', '.']).any(|w| {
        matches!(
            w,
            "your" | "my" | "changeme" | "placeholder" | "todo" | "example" | "xxx"
        )
    }) || name.contains('<')
        || name.contains("change-me")
        || name.contains("set-me")
}

#[cfg(test)]
mod tests {
    use super::is_placeholder;

    #[test]
    fn placeholders_are_words() {
        assert!(is_placeholder("your-compute-domain-channel"));
        assert!(!is_placeholder("yourcompany-compute-domain-channel"));
        assert!(is_placeholder("<template>"));
    }
}
