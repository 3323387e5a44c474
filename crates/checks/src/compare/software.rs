//! Prefill and decode workers run NIXL versions that understand each other.
//!
//! NIXL hands the other side a description of its memory and of its UCX addresses. Releases of 1.x and late 0.x read
//! each other's; 0.4.1 and older and 1.5.1 do not (tried with real transfers). The versions are those that an agent in
//! the engine's place reports, else those of the installed package.

use std::collections::BTreeMap;

use model::{Grade, Role};

use super::listed;
use super::traits::nixl_version;
use super::view::{GroupView, about};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::pod::view::PodView;

const NAME: &str = "pair/nixl-versions";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode workers run NIXL versions that understand each other",
    source: include_str!("software.rs"),
    causes: &[INCOMPATIBLE, SKEW],
    notes: &[],
    run: Run::Group(run),
};

const INCOMPATIBLE: Cause = Cause {
    id: "nixl-versions-incompatible",
    what: "one role runs NIXL 0.4.1 or older, the other 1.0 or newer",
    why: "the old one cannot read the new one's metadata: the handshake fails, and no KV moves",
    fix: "run one NIXL on both roles, at best by one image",
    quiet_if: "both are older, or neither; a version could not be read",
    source: "tried: NIXL 0.4.1 and 0.1.1 against 1.5.1",
};

const SKEW: Cause = Cause {
    id: "nixl-versions-differ",
    what: "prefill and decode run NIXL of different major versions",
    why: "its metadata and its defaults may differ; such pairs have worked and are tested by nobody",
    fix: "run one NIXL on both roles, at best by one image",
    quiet_if: "the same major version (a note where the rest differs); a version could not be read",
    source: "tried: NIXL 0.10.1 with 1.5.1 and 1.0.1 with 1.5.1 work",
};

/// Major, minor, patch.
type Version = (u32, u32, u32);

fn parsed(text: &str) -> Option<Version> {
    let mut parts = text.split(['.', '+', '-']);
    let mut number = || parts.next()?.parse::<u32>().ok();
    Some((number()?, number()?, number().unwrap_or(0)))
}

const OLD: Version = (0, 4, 1);
const NEW: Version = (1, 0, 0);

fn run(view: &GroupView<'_>, findings: &mut Findings) {
    let of = |role| -> BTreeMap<Version, Vec<&PodView<'_>>> {
        let mut versions: BTreeMap<Version, Vec<&PodView<'_>>> = BTreeMap::new();
        for pod in view.role(role) {
            if let Some(version) = nixl_version(pod).as_deref().and_then(parsed) {
                versions.entry(version).or_default().push(pod);
            }
        }
        versions
    };
    let (prefill, decode) = (of(Role::Prefill), of(Role::Decode));
    if prefill.is_empty() || decode.is_empty() {
        return;
    }
    let words = |(major, minor, patch): &Version| format!("{major}.{minor}.{patch}");
    let who = |pods: &[&PodView<'_>], of: usize, role: &str| {
        if pods.len() == of {
            role.to_owned()
        } else {
            let names: Vec<&str> = pods.iter().map(|pod| pod.object.name.as_str()).collect();
            listed(&names)
        }
    };
    let total = |versions: &BTreeMap<Version, Vec<&PodView<'_>>>| -> usize {
        versions.values().map(Vec::len).sum()
    };
    let before = findings.results().len();
    for (p, p_pods) in &prefill {
        for (d, d_pods) in &decode {
            let (low, high) = (p.min(d), p.max(d));
            let cause = if *low <= OLD && *high >= NEW {
                &INCOMPATIBLE
            } else if p.0 != d.0 {
                &SKEW
            } else {
                continue;
            };
            let detail = format!(
                "{} runs NIXL {}, {} {}",
                who(p_pods, total(&prefill), "prefill"),
                words(p),
                who(d_pods, total(&decode), "decode"),
                words(d)
            );
            let finding = if cause.id == INCOMPATIBLE.id {
                Finding::fail(NAME, cause, detail)
            } else {
                Finding::warn(NAME, cause, detail)
            };
            // Where one of the roles has the others' version too, the pods that are named are the odd ones.
            let odd_prefill =
                decode.len() > 1 || prefill.len() > 1 && p_pods.len() < total(&prefill);
            let named: Vec<&PodView<'_>> = if prefill.len() > 1 && odd_prefill {
                p_pods.clone()
            } else if decode.len() > 1 {
                d_pods.clone()
            } else {
                p_pods.iter().chain(d_pods).copied().collect()
            };
            findings.push(about(finding.grade(Grade::Observed), named));
        }
    }
    if findings.results().len() > before {
        return;
    }
    let all: Vec<String> = prefill
        .keys()
        .chain(decode.keys())
        .map(words)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let pods = prefill.values().chain(decode.values()).flatten().copied();
    let finding = Finding::ok(
        NAME,
        format!("NIXL {} on prefill and decode", all.join(" and ")),
    );
    let finding = if all.len() > 1 {
        finding.note(
            "different releases of one major version, which have understood each other so far",
        )
    } else {
        finding
    };
    findings.push(about(finding.grade(Grade::Observed), pods));
}
