//! PCIe links of GPUs and network cards run as fast and as wide as they can.
//!
//! A GPU lowers its speed while it is idle, so its speed counts only beside a width that is lowered too. Network cards
//! do not do that. Where all cards of one kind are alike, the slot sets the limit and nothing is broken.

use std::collections::BTreeMap;

use model::Reason;
use model::observation::pci::PcieLink;

use super::words::{count, label, listed};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/pcie-link";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "PCIe links run at full speed and width",
    source: include_str!("pcie_link.rs"),
    causes: &[DEGRADED],
    notes: &[],
    run: Run::Place(run),
};

const DEGRADED: Cause = Cause {
    id: "pcie-link-degraded",
    what: "a PCIe link of a GPU or a network card has fewer lanes than it could have, or a card's link is slower",
    why: "half the lanes or half the speed are half the bandwidth for KV",
    fix: "reseat the card or riser, check the slot's width and the firmware settings; lspci -vv shows both ends",
    quiet_if: "an idle GPU at low speed; all cards of a kind alike, which is the slot's limit",
    source: "LnkCap and LnkSta of lspci -vv; current_link_speed and current_link_width in sysfs",
};

/// What a link belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Gpu,
    Card,
    Unknown,
}

struct Link<'v> {
    who: String,
    kind: Kind,
    /// Cards of one model have the same.
    model: String,
    pcie: &'v PcieLink,
}

/// Every link by the PCI address, so that two views of one device are one.
fn links<'v>(view: &NodeView<'v>) -> Vec<Link<'v>> {
    let mut all: BTreeMap<String, Link<'v>> = BTreeMap::new();
    for (address, function) in &view.seen.host.pci {
        let class = function.class.value().map(|c| c >> 8);
        let name = function.name.value().map_or("", String::as_str);
        let word = function
            .class_name
            .value()
            .map_or("", String::as_str)
            .to_ascii_lowercase();
        let kind = if address.is_empty() {
            Kind::Unknown
        } else if class == Some(0x03) || word.contains("3d controller") || word.contains("vga") {
            Kind::Gpu
        } else if class == Some(0x02) || word.contains("ethernet") || word.contains("infiniband") {
            Kind::Card
        } else {
            continue;
        };
        let who = if address.is_empty() {
            String::new()
        } else {
            address.clone()
        };
        all.insert(
            address.clone(),
            Link {
                who,
                kind,
                model: name.to_owned(),
                pcie: &function.pcie,
            },
        );
    }
    for (name, device) in &view.seen.rdma.devices {
        let model = device.hca_type.value().cloned().unwrap_or_default();
        let key = device.pci.value().cloned().unwrap_or_else(|| name.clone());
        if device.pcie.width.is_seen() || !all.contains_key(&key) {
            all.insert(
                key,
                Link {
                    who: name.clone(),
                    kind: Kind::Card,
                    model,
                    pcie: &device.pcie,
                },
            );
        }
    }
    for gpu in &view.seen.gpu.gpus {
        let model = gpu.name.value().cloned().unwrap_or_default();
        let key = gpu.pci.value().cloned().unwrap_or_else(|| label(gpu));
        if gpu.pcie.width.is_seen() || !all.contains_key(&key) {
            all.insert(
                key,
                Link {
                    who: label(gpu),
                    kind: Kind::Gpu,
                    model,
                    pcie: &gpu.pcie,
                },
            );
        }
    }
    all.into_values()
        .filter(|l| l.pcie.width.is_seen() || l.pcie.speed_mts.is_seen())
        .collect()
}

/// `16`, `2.5`, in GT/s.
fn gt(mts: u32) -> String {
    if mts.is_multiple_of(1000) {
        format!("{}", mts / 1000)
    } else {
        format!("{}.{}", mts / 1000, mts % 1000 / 100)
    }
}

fn below(now: Option<&u32>, most: Option<&u32>, told: Option<&bool>) -> bool {
    if let Some(told) = told {
        return *told;
    }
    matches!((now, most), (Some(now), Some(most)) if now < most)
}

fn narrow(link: &PcieLink) -> bool {
    below(
        link.width.value(),
        link.max_width.value(),
        link.width_downgraded.value(),
    )
}

fn slow(link: &PcieLink) -> bool {
    below(
        link.speed_mts.value(),
        link.max_speed_mts.value(),
        link.speed_downgraded.value(),
    )
}

/// `2.5 of 16 GT/s, x16 of x16`.
fn words(link: &PcieLink) -> String {
    let mut parts = Vec::new();
    match (link.speed_mts.value(), link.max_speed_mts.value()) {
        (Some(now), Some(most)) => parts.push(format!("{} of {} GT/s", gt(*now), gt(*most))),
        (Some(now), None) => parts.push(format!("{} GT/s", gt(*now))),
        _ => {}
    }
    match (link.width.value(), link.max_width.value()) {
        (Some(now), Some(most)) => parts.push(format!("x{now} of x{most}")),
        (Some(now), None) => parts.push(format!("x{now}")),
        _ => {}
    }
    parts.join(", ")
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let links = links(view);
    let mut good: BTreeMap<(Kind, String), Vec<&Link<'_>>> = BTreeMap::new();
    for link in &links {
        let (narrow_here, slow_here) = (narrow(link.pcie), slow(link.pcie));
        let words = words(link.pcie);
        let peers: Vec<&Link<'_>> = links
            .iter()
            .filter(|l| l.kind == link.kind && l.model == link.model)
            .collect();
        let alike = peers.len() >= 2
            && peers.iter().all(|l| {
                l.pcie.width.value() == link.pcie.width.value()
                    && (link.kind == Kind::Gpu
                        || l.pcie.speed_mts.value() == link.pcie.speed_mts.value())
            });
        let fact = &link.pcie.width;
        let finding = match link.kind {
            Kind::Unknown if narrow_here => Finding::warn(
                NAME,
                &DEGRADED,
                format!("a device that is not named: PCIe {words}"),
            ),
            Kind::Unknown if slow_here => Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "a device that is not named: PCIe {words}; a low speed is normal for an idle GPU and a fault on a network card"
                ),
            ),
            Kind::Card if (narrow_here || slow_here) && !alike => {
                Finding::warn(NAME, &DEGRADED, format!("{}: PCIe {words}", link.who))
                    .device(link.who.clone())
            }
            Kind::Gpu if narrow_here && !alike => {
                Finding::warn(NAME, &DEGRADED, format!("{}: PCIe {words}", link.who))
                    .device(link.who.clone())
            }
            _ => {
                good.entry((link.kind, words)).or_default().push(link);
                continue;
            }
        };
        findings.push(if fact.is_seen() {
            finding.seen(fact, "link")
        } else {
            finding.seen(&link.pcie.speed_mts, "link")
        });
    }
    for ((kind, words), alike) in good {
        let names: Vec<&str> = alike.iter().map(|l| l.who.as_str()).collect();
        let what = match kind {
            Kind::Gpu => count(names.len(), "GPU"),
            Kind::Card => count(names.len(), "card"),
            Kind::Unknown => "a device that is not named".to_owned(),
        };
        let mut finding = Finding::ok(NAME, format!("{what} at PCIe {words}: {}", listed(&names)));
        if let Some(first) = alike.first() {
            if slow(first.pcie) && kind == Kind::Gpu {
                finding = finding.note("an idle GPU lowers its speed");
            } else if narrow(first.pcie) || slow(first.pcie) {
                finding = finding.note("all of a kind are alike, so this is what the slots give");
            }
            finding = finding.seen(&first.pcie.width, "link");
        }
        findings.push(finding);
    }
}
