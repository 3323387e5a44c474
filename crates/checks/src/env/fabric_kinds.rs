//! The roles ask for fabrics that can reach each other. A part of the check that compares the two.

use model::{Role, Worker};

use crate::check::Cause;
use crate::env::prefill_decode::NAME;
use crate::fabric;
use crate::finding::{Finding, Findings};
use crate::view::View;

pub(super) const FABRICS_DIFFER: Cause = Cause {
    id: "fabrics-differ",
    what: "one role asks for InfiniBand and the other for RoCE, or one for EFA and the other for an RDMA device",
    why: "the names of the resources say two networks: a device of one does not reach a device of the other, so KV goes over TCP or the roles cannot connect",
    fix: "ask for the same resource on both roles",
    quiet_if: "a name that does not tell the fabric, such as rdma/hca_shared_devices_a; a role that asks for both; both roles on one host",
    source: "the resource names of RDMA device plugins; UCX wireup (ucp/wireup/select.c): a lane needs a device that reaches the other end",
};

/// What resource names tell of a network.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Infiniband,
    Roce,
    Efa,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Infiniband => "InfiniBand",
            Self::Roce => "RoCE",
            Self::Efa => "EFA",
        }
    }

    /// `None` where the name does not tell.
    fn of(name: &str) -> Option<Self> {
        if name == fabric::EFA {
            return Some(Self::Efa);
        }
        let lower = name.to_ascii_lowercase();
        let says = |word: &str| {
            lower
                .split(|c: char| !c.is_ascii_alphanumeric())
                .any(|w| w.trim_end_matches(|c: char| c.is_ascii_digit()) == word)
        };
        match (says("ib") || says("infiniband"), says("roce")) {
            (true, false) => Some(Self::Infiniband),
            (false, true) => Some(Self::Roce),
            _ => None,
        }
    }
}

/// What one worker asks for; `None` where a part of it can be anything.
fn kinds(worker: &Worker) -> Option<Vec<(Kind, &model::Resource)>> {
    let asked = worker.resources.iter().filter(|r| {
        r.is_requested() && (r.name == fabric::EFA || fabric::is_rdma_resource(&r.name))
    });
    asked
        .map(|resource| Some((Kind::of(&resource.name)?, resource)))
        .collect::<Option<Vec<_>>>()
        .filter(|kinds| !kinds.is_empty())
}

/// Holds the two roles' requests against each other.
pub(super) fn compare(view: &View<'_>, findings: &mut Findings) {
    if view.is_single_host() {
        return;
    }
    let of = |role| {
        view.role(role)
            .filter_map(|w| Some((w.worker, kinds(w.worker)?)))
            .collect::<Vec<_>>()
    };
    let (prefill, decode) = (of(Role::Prefill), of(Role::Decode));
    let apart = prefill.iter().find_map(|(p, ps)| {
        // A partner on the same network may be any of the others.
        let partner = decode
            .iter()
            .find(|(_, ds)| ps.iter().any(|(a, _)| ds.iter().any(|(b, _)| a == b)));
        match (partner, decode.first()) {
            (None, Some((d, ds))) => Some((*p, ps.first()?, *d, ds.first()?)),
            _ => None,
        }
    });
    let Some((p, (a, first), d, (b, second))) = apart else {
        return;
    };
    findings.push(
        Finding::warn(
            NAME,
            &FABRICS_DIFFER,
            format!(
                "prefill asks for {} ({}) and decode for {} ({})",
                first.name,
                a.as_str(),
                second.name,
                b.as_str()
            ),
        )
        .workers([p, d])
        .at(&first.place, format!("prefill: {}", a.as_str()))
        .at(&second.place, format!("decode: {}", b.as_str())),
    );
}
