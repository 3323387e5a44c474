//! Where one role is, the other is too.
//!
//! KV cache moves from prefill to decode. A deployment whose workers all have one role transfers nothing: decode
//! workers compute every prefill themselves, prefill workers have nobody to hand over to. One worker group alone is
//! no finding, since the other half often stands in another file or graph.

use std::collections::BTreeSet;

use model::Role;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::view::{View, WorkerView};

const NAME: &str = "env/roles";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode are both there",
    source: include_str!("roles.rs"),
    causes: &[ROLE_MISSING],
    notes: &[],
    run: Run::Recipe(run),
};

const ROLE_MISSING: Cause = Cause {
    id: "role-missing",
    what: "several worker groups have the same role and none has the other",
    why: "there is nobody to transfer KV cache from, or to",
    fix: "give one of the groups the other role: --disaggregation-mode prefill or decode, or the type of its component",
    quiet_if: "only one worker group is in the input (the other half is elsewhere); a patch; a mock engine",
    source: "the meaning of disaggregation; ai-dynamo/dynamo falls back to local prefill without prefill workers",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    if view.is_part() || view.kv.iter().any(WorkerView::is_mock) {
        return;
    }
    let present: BTreeSet<Role> = view.kv.iter().map(|w| w.worker.role).collect();
    let groups: BTreeSet<&str> = view.kv.iter().map(|w| w.worker.name.as_str()).collect();
    let (Some(role), 1) = (present.first(), present.len()) else {
        return;
    };
    if groups.len() < 2 {
        return;
    }
    let missing = if *role == Role::Prefill {
        "decode"
    } else {
        "prefill"
    };
    let mut finding = Finding::warn(
        NAME,
        &ROLE_MISSING,
        format!(
            "every worker group is {}: there is no {missing} worker, so nothing is transferred",
            role.as_str()
        ),
    )
    .workers(view.kv.iter().map(|w| w.worker));
    for kv in &view.kv {
        let worker = kv.worker;
        let told = [
            "--disaggregation-mode",
            "--is-decode-worker",
            "--is-prefill-worker",
            "kv_role",
        ]
        .iter()
        .find_map(|n| worker.setting(n))
        .map(|s| &s.place);
        finding = finding.at(
            told.unwrap_or(&worker.place),
            format!("{}: {}", worker.name, role.as_str()),
        );
    }
    findings.push(finding);
}
