//! A second measurement with emulation switched off.

use model::Observation;
use settings::version::UcxVersion;

use crate::attribution::{Carrier, Evidence, EvidenceKind, Finding};
use crate::plan::{Leg, Operation};
use crate::record::Measurement;
use crate::table::{self, Row};

/// A READ that works without emulation has a one-sided path, where UCX knows the switch and took the same way.
pub(crate) fn without_emulation(
    leg: &Leg,
    carrier: &Carrier,
    row: &Row,
    control: &Measurement,
) -> Option<Evidence> {
    if leg.operation != Operation::Read {
        return None;
    }
    let same = |other: &Leg| {
        other.operation == leg.operation
            && other.initiator == leg.initiator
            && other.local == leg.local
            && other.remote == leg.remote
    };
    let ran = control.legs.iter().find(|record| same(&record.leg))?;
    let seen = probe::recognise("control", &control.ends.of(leg.initiator).output);
    let refused = seen.log.of("ucx-zero-copy-missing").next().is_some();
    let fast = matches!(carrier, Carrier::Rdma { .. } | Carrier::GpuIpc);
    let (finding, text) = if refused {
        (
            if fast {
                Finding::Contradicts
            } else {
                Finding::Fits
            },
            "with emulation switched off UCX refuses the READ: there is no one-sided path"
                .to_owned(),
        )
    } else if !ran.complete() {
        return None;
    } else if !knows_the_switch(&seen) {
        (
            Finding::Silent,
            "a READ worked with emulation switched off, and this UCX is not known to have that switch"
                .to_owned(),
        )
    } else if table::row(&seen, &ran.leg).map(|r| r.lanes).as_ref() != Ok(&row.lanes) {
        (
            Finding::Silent,
            "a READ worked with emulation switched off, and went another way".to_owned(),
        )
    } else if fast {
        (
            Finding::Agrees,
            "a READ works with emulation switched off: there is a one-sided path".to_owned(),
        )
    } else {
        (
            Finding::Fits,
            "a READ works with emulation switched off".to_owned(),
        )
    };
    Some(Evidence {
        kind: EvidenceKind::NoEmulation,
        finding,
        text,
    })
}

/// `UCX_PROTO_EMULATION_ENABLE` is in UCX 1.21 and later (UCX src/ucp/core/ucp_context.c).
fn knows_the_switch(seen: &Observation) -> bool {
    seen.software
        .ucx
        .iter()
        .rev()
        .find_map(|build| build.version.as_deref()?.parse::<UcxVersion>().ok())
        .is_some_and(|version| version >= UcxVersion::new(1, 21))
}
