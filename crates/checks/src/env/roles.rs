//! Where one role is, the other is too.
//!
//! KV cache moves from prefill to decode. A deployment whose workers all have one role transfers nothing: decode
//! workers compute every prefill themselves, prefill workers have nobody to hand over to. One worker group alone is
//! no finding, since the other half often stands in another file or graph. The role that counts is the one that the
//! engine was told; where a label or a name says the other one, requests go to the wrong workers.

use std::collections::BTreeSet;

use model::{Named, NamedBy, Place, Reason, Role, Worker};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::view::{View, WorkerView};

const NAME: &str = "env/roles";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode are both there, and called what they are",
    source: include_str!("roles.rs"),
    causes: &[ROLE_MISSING, ROLE_CONTRADICTED],
    notes: &[],
    run: Run::Recipe(run),
};

const ROLE_MISSING: Cause = Cause {
    id: "role-missing",
    what: "several worker groups have the same role and none has the other",
    why: "there is nobody to transfer KV cache from, or to",
    fix: "give one of the groups the other role: --disaggregation-mode prefill or decode, kv_role kv_producer or kv_consumer, or the type of its component",
    quiet_if: "only one worker group is in the input (the other half is elsewhere); a patch; a mock engine; a failure only where names or labels say that the other role is meant",
    source: "the meaning of disaggregation; ai-dynamo/dynamo falls back to local prefill without prefill workers",
};

const ROLE_CONTRADICTED: Cause = Cause {
    id: "role-contradicts-name",
    what: "the engine is told one role, and the worker's label, field or name says the other",
    why: "KV cache moves from the worker that is told to prefill, and routers send requests by label or Service: where they follow the name, prefill requests reach the worker that only receives, and nothing is transferred",
    fix: "tell the engine the role that its label says (--disaggregation-mode, kv_role), or change the label and the name",
    quiet_if: "NixlConnector, whose kv_role decides nothing (vllm-kv-role tells it); only one role is told on all workers (role-missing says it); a warning where only a name or a label of one's own says it, since no router need follow it",
    source: "llm-d, kthena and SGLang routers select workers by label or address, not by kv_role; vLLM kv_role",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    if view.is_part() || view.kv.iter().any(WorkerView::is_mock) {
        return;
    }
    let present: BTreeSet<Role> = view.kv.iter().map(|w| w.worker.role).collect();
    let groups: BTreeSet<&str> = view.kv.iter().map(|w| w.worker.name.as_str()).collect();
    unseen(view, findings);
    match present.first() {
        Some(Role::Unknown) => {}
        Some(role) if present.len() == 1 && groups.len() > 1 => missing(view, *role, findings),
        Some(role) if present.len() == 1 && view.deployment.partial.is_none() => {
            other_half(view, *role, findings);
            contradicted(view, findings);
        }
        _ => contradicted(view, findings),
    }
}

/// Workers with a connector between prefill and decode, of which nothing tells which of the two they are.
fn unseen(view: &View<'_>, findings: &mut Findings) {
    for kv in view.role(Role::Unknown) {
        let worker = kv.worker;
        let place = kv.path.place.as_ref().unwrap_or(&worker.place);
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "{} has a KV connector, and nothing tells whether it prefills or decodes",
                    worker.name
                ),
            )
            .required()
            .fix("say its role where its stack reads it: a label (llm-d.ai/role), --disaggregation-mode, kv_role kv_producer or kv_consumer, or its name; --disaggregation-mode agg or no connector where it does both")
            .worker(worker)
            .at(place, "this connector is of prefill or decode"),
        );
    }
}

/// One half alone can be without a fault and still not fit the other one.
fn other_half(view: &View<'_>, role: Role, findings: &mut Findings) {
    let missing = other(role);
    findings.push(
        Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "{missing} is not in the input: what it asks for, and whether it fits {}, cannot be judged",
                role.as_str()
            ),
        )
        .fix(format!("give the manifest of {missing} too"))
        .workers(view.kv.iter().map(|w| w.worker)),
    );
}

/// The name of the other half.
fn other(role: Role) -> &'static str {
    if role == Role::Prefill {
        "decode"
    } else {
        "prefill"
    }
}

/// The line that tells a worker's engine its role.
fn told(worker: &Worker) -> Option<&Place> {
    [
        "--disaggregation-mode",
        "--server-role",
        "--is-decode-worker",
        "--is-prefill-worker",
        "kv_role",
        model::VLLM_MODE,
        model::TRTLLM_MODE,
        "DYN_VLLM_IS_PREFILL_WORKER",
        "DYN_VLLM_IS_DECODE_WORKER",
    ]
    .iter()
    .find_map(|n| worker.setting(n))
    .map(|s| &s.place)
}

/// The role that a worker is called by, where its engine was told the other one.
fn other_name(worker: &Worker) -> Option<&Named> {
    worker
        .named
        .as_deref()
        .filter(|n| n.role.moves_kv() && n.role != worker.role && worker.role != Role::Unknown)
}

fn missing(view: &View<'_>, role: Role, findings: &mut Findings) {
    let missing = other(role);
    let detail = format!(
        "every worker group is {}: there is no {missing} worker, so nothing is transferred",
        role.as_str()
    );
    // Without a name that says so, the other half may stand elsewhere.
    let meant = view.kv.iter().any(|w| other_name(w.worker).is_some());
    let mut finding = if meant {
        Finding::fail(NAME, &ROLE_MISSING, detail)
    } else {
        Finding::warn(NAME, &ROLE_MISSING, detail)
    }
    .workers(view.kv.iter().map(|w| w.worker));
    for kv in &view.kv {
        let worker = kv.worker;
        let label = match other_name(worker) {
            Some(named) => format!(
                "{}: {}, and {} says {}",
                worker.name,
                role.as_str(),
                named.by.as_str(),
                named.role.as_str()
            ),
            None => format!("{}: {}", worker.name, role.as_str()),
        };
        finding = finding.at(told(worker).unwrap_or(&worker.place), label);
    }
    findings.push(finding);
}

fn contradicted(view: &View<'_>, findings: &mut Findings) {
    for kv in &view.kv {
        let worker = kv.worker;
        let (Some(named), Some(place)) = (other_name(worker), told(worker)) else {
            continue;
        };
        let role = worker.role.as_str();
        let detail = format!(
            "{} is told to be {role}, and {} says {}: requests for one role reach the other",
            worker.name,
            named.by.as_str(),
            named.role.as_str()
        );
        let finding = if named.by == NamedBy::Selector {
            Finding::fail(NAME, &ROLE_CONTRADICTED, detail)
        } else {
            Finding::warn(NAME, &ROLE_CONTRADICTED, detail)
        };
        findings.push(
            finding
                .worker(worker)
                .at(place, format!("the engine is told {role}"))
                .context(
                    &named.place,
                    format!("{} says {}", named.by.as_str(), named.role.as_str()),
                ),
        );
    }
}
