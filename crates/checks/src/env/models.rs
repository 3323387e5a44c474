//! Prefill and decode serve the same model. A part of the check that compares the two.

use model::{GroupPart, Role, Setting, Worker};

use crate::check::Cause;
use crate::env::prefill_decode::NAME;
use crate::finding::{Finding, Findings};
use crate::model_name::{self, Same};
use crate::view::{View, WorkerView};

/// More pairs than any deployment has.
pub(super) const MAX_PAIRS: usize = 10_000;

pub(super) const MODEL_DIFFERS: Cause = Cause {
    id: "model-differs",
    what: "prefill and decode serve different models",
    why: "KV cache of one model means nothing to another: the handshake refuses it, or decode goes on from numbers that are not its own",
    fix: "serve the same model on both roles",
    quiet_if: "the names differ in capitals, in the organization, in a revision or in how the weights are stored (fp8, awq); a path, an address or a name without an organization on one side, which cannot be compared; a variable; a warning where the organizations differ too, since one can be a copy of the other; --served-model-name does not count",
    source: "vLLM NixlConnector compatibility hash (model architecture and shape)",
};

/// The models that the roles serve. A worker may have its partner anywhere on the other side.
pub(super) fn compare(view: &View<'_>, findings: &mut Findings) {
    let of = |role| -> Vec<(&Worker, &Setting, &str)> {
        leaders(view, role)
            .filter_map(|w| {
                let setting = w.worker.setting(model::MODEL)?;
                Some((w.worker, setting, setting.value.literal()?))
            })
            .collect()
    };
    let (prefill, decode) = (of(Role::Prefill), of(Role::Decode));
    let seen = |role, n: usize| leaders(view, role).count() == n;
    if !seen(Role::Prefill, prefill.len()) || !seen(Role::Decode, decode.len()) {
        return;
    }
    // Every worker is compared with every other one: real deployments have few kinds.
    if prefill.len().saturating_mul(decode.len()) > MAX_PAIRS {
        return;
    }
    let differs = |(p, d): (usize, usize)| {
        let (one, other) = (prefill.get(p)?, decode.get(d)?);
        let same = model_name::same(one.2, other.2);
        (same != Same::MayBe).then_some((one, other, same))
    };
    let lonely_prefill = (0..prefill.len())
        .find(|p| (0..decode.len()).all(|d| differs((*p, d)).is_some()))
        .map(|p| (p, 0));
    let lonely_decode = (0..decode.len())
        .find(|d| (0..prefill.len()).all(|p| differs((p, *d)).is_some()))
        .map(|d| (0, d));
    let Some((one, other, same)) = lonely_prefill.or(lonely_decode).and_then(differs) else {
        return;
    };
    let (p, d) = (one.2, other.2);
    let finding = if same == Same::No {
        Finding::fail(
            NAME,
            &MODEL_DIFFERS,
            format!(
                "prefill serves {p} and decode {d}: the KV cache of one is of no use to the other"
            ),
        )
    } else {
        Finding::warn(
            NAME,
            &MODEL_DIFFERS,
            format!(
                "prefill serves {p} and decode {d}, which are the same only if one is a copy of the other"
            ),
        )
    };
    findings.push(
        finding
            .workers([one.0, other.0])
            .at(&one.1.place, format!("prefill: {p}"))
            .at(&other.1.place, format!("decode: {d}")),
    );
}

/// Workers of a role; the members of a group are ranks of their leader's engine, where there is one: without a template
/// of its own the leader is made from that of the others.
pub(super) fn leaders<'v, 'f>(
    view: &'v View<'f>,
    role: Role,
) -> impl Iterator<Item = &'v WorkerView<'f>> + use<'v, 'f> {
    let led = move |w: &WorkerView<'f>| {
        w.worker.part == Some(GroupPart::Member)
            && view.role(role).any(|o| {
                o.worker.part == Some(GroupPart::Leader)
                    && o.worker.name == w.worker.name
                    && o.worker.kind == w.worker.kind
            })
    };
    view.role(role).filter(move |w| !led(w))
}
