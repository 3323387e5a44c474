//! EFA devices and libfabric's `efa` provider.
//!
//! EFA has neither GUIDs nor LIDs nor link layers, which is normal. One device is listed several times, once per
//! endpoint type, so devices are counted by name. The right number depends on the instance type and is not judged here.
//! Libfabric prints `-61` (no data) where no provider matches what was asked for.

use std::collections::BTreeSet;

use model::Reason;
use model::observation::software::FabricListing;

use super::ports::{is_efa, list};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/efa";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "EFA is usable through libfabric",
    source: include_str!("efa.rs"),
    causes: &[UNUSABLE, PLUGIN_COUNT],
    notes: &[],
    run: Run::Place(run),
};

const UNUSABLE: Cause = Cause {
    id: "efa-provider-no-device",
    what: "EFA devices are listed, and libfabric's efa provider offers none",
    why: "the LIBFABRIC backend of NIXL then uses TCP or nothing",
    fix: "request vpc.amazonaws.com/efa so that the device plugin adds the nodes; do not mount /dev/infiniband over them; use an image with the EFA build of libfabric",
    quiet_if: "no EFA device is listed, another listing shows the efa provider, or another provider was asked for",
    source: "libfabric fi_getinfo(3) (FI_ENODATA is 61); fi_efa(7)",
};

const PLUGIN_COUNT: Cause = Cause {
    id: "efa-plugin-counts-nvlink-controllers",
    what: "devices named ibp… of Mellanox stand beside EFA devices: controllers of NVLink switches, not network cards",
    why: "device plugins before 0.5.10 count them as EFA devices, and pods get a device that carries nothing",
    fix: "update the EFA device plugin to 0.5.10 or newer",
    quiet_if: "no EFA device is beside them",
    source: "aws/sagemaker-hyperpod-cli#282",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let devices: Vec<String> = view
        .seen
        .rdma
        .devices
        .iter()
        .filter(|(name, device)| is_efa(name, device))
        .map(|(name, _)| name.clone())
        .collect();
    controllers(view, &devices, findings);
    let listings: Vec<&FabricListing> = view.seen.software.libfabric.iter().collect();
    let offered: BTreeSet<&str> = listings
        .iter()
        .filter(|l| !l.providers_only)
        .flat_map(|l| &l.entries)
        .filter(|e| e.provider == "efa")
        .filter_map(|e| e.device())
        .collect();
    if !offered.is_empty() {
        findings.push(usable(&listings, &offered));
        return;
    }
    let Some(listing) = listings.iter().find(|l| !l.providers_only) else {
        if !devices.is_empty() {
            findings.push(Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "EFA devices: {}; whether libfabric can use them is not shown (fi_info -p efa)",
                    list(&devices)
                ),
            ));
        }
        return;
    };
    // A question about another provider says nothing about EFA.
    let asked_for_other = listing
        .origin
        .from
        .command
        .as_deref()
        .is_some_and(|c| c.contains("-p ") && !c.contains("efa"));
    let place = std::slice::from_ref(&listing.origin);
    if !devices.is_empty() && !asked_for_other {
        findings.push(
            Finding::fail(
                NAME,
                &UNUSABLE,
                format!(
                    "EFA devices are listed ({}), and libfabric offers none",
                    list(&devices)
                ),
            )
            .read_at(place, "no efa"),
        );
        return;
    }
    let detail = match (listing.errno, &listing.error) {
        (Some(errno), _) => format!(
            "libfabric found no provider for what was asked ({errno}: no data); on a machine with EFA that is a fault, elsewhere normal"
        ),
        (None, Some(error)) => format!("libfabric: {error}"),
        (None, None) => {
            let providers: BTreeSet<&str> = listing
                .entries
                .iter()
                .map(|e| e.provider.as_str())
                .collect();
            format!(
                "libfabric offers no efa provider; it offers {}",
                providers
                    .into_iter()
                    .take(16)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
    };
    // Devices that are listed, and none of them EFA: then nobody needs the provider.
    let reason = if view.seen.rdma.devices.is_empty() {
        Reason::NotVisible
    } else {
        Reason::NotApplicable
    };
    findings.push(Finding::skipped(NAME, reason, detail).read_at(place, "fi_info"));
}

fn usable(listings: &[&FabricListing], offered: &BTreeSet<&str>) -> Finding {
    let names: Vec<String> = offered.iter().map(ToString::to_string).collect();
    let count = names.len();
    let mut finding = Finding::ok(
        NAME,
        format!(
            "{count} EFA device{} through libfabric: {}",
            if count == 1 { "" } else { "s" },
            list(&names)
        ),
    );
    let versions: BTreeSet<&str> = listings
        .iter()
        .flat_map(|l| &l.entries)
        .filter(|e| e.provider == "efa")
        .filter_map(|e| e.version.as_deref())
        .collect();
    if let Some(version) = versions.first().copied()
        && let Some(libfabric) = libfabric_version(version)
    {
        finding = finding.note(if libfabric < (1, 22) {
            format!(
                "efa provider {version} is of libfabric {}.{}, which is old: GPU memory needs a newer one",
                libfabric.0, libfabric.1
            )
        } else {
            format!("efa provider {version}")
        });
    }
    let origins: Vec<_> = listings.iter().map(|l| l.origin.clone()).collect();
    finding.read_at(&origins, "fi_info")
}

/// Providers count as libfabric does, with 100 added: `111.20` is of 1.11, `200.10` of 2.0.
fn libfabric_version(provider: &str) -> Option<(u32, u32)> {
    let number: u32 = provider.split('.').next()?.parse().ok()?;
    (100..1000)
        .contains(&number)
        .then_some((number / 100, number % 100))
}

fn controllers(view: &NodeView<'_>, efa: &[String], findings: &mut Findings) {
    if efa.is_empty() {
        return;
    }
    let odd: Vec<String> = view
        .seen
        .rdma
        .devices
        .iter()
        .filter(|(name, device)| name.starts_with("ibp") && !is_efa(name, device))
        .map(|(name, _)| name.clone())
        .collect();
    if odd.is_empty() {
        return;
    }
    findings.push(
        Finding::warn(
            NAME,
            &PLUGIN_COUNT,
            format!(
                "{} beside EFA: controllers of NVLink switches, not network cards",
                list(&odd)
            ),
        )
        .grade(model::Grade::Observed),
    );
}

#[cfg(test)]
mod tests {
    use super::libfabric_version;

    #[test]
    fn versions_of_providers() {
        assert_eq!(libfabric_version("111.20"), Some((1, 11)));
        assert_eq!(libfabric_version("200.10"), Some((2, 0)));
        assert_eq!(libfabric_version("203.0"), Some((2, 3)));
        assert_eq!(libfabric_version("1.2"), None);
    }
}
