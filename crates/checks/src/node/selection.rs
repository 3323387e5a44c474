//! Which RDMA devices settings in force select.

use model::observation::Fact;
use settings::ucx_net_devices::{DeviceList, ItemKind, classify};
use settings::version::UcxVersion;

use crate::node_view::NodeView;

/// Flags of engines that name RDMA devices for KV, separated by commas.
const FLAGS: &[&str] = &["--disaggregation-ib-device", "--mooncake-ib-device"];
/// Variables that name RDMA devices for KV without ports, separated by commas.
const VARIABLES: &[&str] = &["MOONCAKE_DEVICE", "SGLANG_MOONCAKE_IB_DEVICE"];

/// One device that a setting names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) device: String,
    pub(crate) port: Option<u32>,
}

/// A setting that selects devices.
pub(crate) struct Selector<'f> {
    /// `UCX_NET_DEVICES`, `--disaggregation-ib-device`.
    pub(crate) name: &'static str,
    pub(crate) fact: &'f Fact<String>,
    pub(crate) value: &'f str,
    /// Devices that it names one by one; empty for deny lists and `all`.
    pub(crate) named: Vec<Named>,
    /// It says which ones, and not only which ones not.
    picks: bool,
    list: Option<DeviceList<'f>>,
}

/// Everything that selects devices for KV.
pub(crate) struct Selection<'f> {
    pub(crate) selectors: Vec<Selector<'f>>,
}

impl<'f> Selection<'f> {
    pub(crate) fn of(view: &NodeView<'f>) -> Self {
        let mut selectors = Vec::new();
        for fact in view.settings("UCX_NET_DEVICES") {
            if let Some(value) = fact.value() {
                selectors.push(ucx(fact, value, ucx_version(view)));
            }
        }
        for name in VARIABLES {
            for fact in view.settings(name) {
                if let Some(value) = fact.value() {
                    selectors.push(plain(name, fact, value));
                }
            }
        }
        for name in FLAGS {
            let fact = view
                .seen
                .process
                .processes
                .values()
                .find_map(|process| process.flags.get(*name));
            if let Some(fact) = fact
                && let Some(value) = fact.value()
            {
                selectors.push(plain(name, fact, value));
            }
        }
        Self { selectors }
    }

    /// Whether a setting names this port. A list that only excludes selects nothing in particular.
    pub(crate) fn names(&self, device: &str, port: u32) -> bool {
        self.selectors.iter().any(|s| {
            s.picks
                && match &s.list {
                    Some(list) => list.keeps(&format!("{device}:{port}")),
                    None => s
                        .named
                        .iter()
                        .any(|n| n.device == device && n.port.is_none_or(|p| p == port)),
                }
        })
    }
}

/// The UCX that is there, else the newest whose grammar is known.
pub(crate) fn ucx_version(view: &NodeView<'_>) -> UcxVersion {
    view.seen
        .software
        .ucx
        .iter()
        .rev()
        .find_map(|build| build.version.as_deref()?.parse().ok())
        .unwrap_or(UcxVersion::LATEST)
}

fn ucx<'f>(fact: &'f Fact<String>, value: &'f str, version: UcxVersion) -> Selector<'f> {
    let picks = !value.starts_with('^')
        && !value.is_empty()
        && !classify(value).iter().any(|i| i.kind == ItemKind::All);
    let named = if !picks {
        Vec::new()
    } else {
        classify(value)
            .into_iter()
            .filter_map(|item| match item.kind {
                ItemKind::Port { hca, port } => Some(Named {
                    device: hca,
                    port: port.parse().ok(),
                }),
                ItemKind::BareHca => Some(Named {
                    device: item.text.to_owned(),
                    port: None,
                }),
                // The list itself tells which devices a range stands for.
                _ => None,
            })
            .collect()
    };
    Selector {
        name: "UCX_NET_DEVICES",
        fact,
        value,
        named,
        picks,
        list: DeviceList::parse(value, version).ok(),
    }
}

/// `mlx5_0,mlx5_1`: names, perhaps with a port.
fn plain<'f>(name: &'static str, fact: &'f Fact<String>, value: &'f str) -> Selector<'f> {
    // A JSON object maps GPUs to devices: its strings that are no numbers are device names.
    let words: Vec<&str> = if value.trim_start().starts_with('{') {
        value
            .split('"')
            .skip(1)
            .step_by(2)
            .filter(|w| w.parse::<u32>().is_err())
            .flat_map(|w| w.split(','))
            .collect()
    } else {
        value.split(',').collect()
    };
    let named = words
        .into_iter()
        .map(str::trim)
        .filter(|w| !w.is_empty() && !w.contains(['/', '$', '{']))
        .take(256)
        .map(|word| match word.split_once(':') {
            Some((device, port)) => Named {
                device: device.to_owned(),
                port: port.parse().ok(),
            },
            None => Named {
                device: word.to_owned(),
                port: None,
            },
        })
        .collect::<Vec<Named>>();
    Selector {
        name,
        fact,
        value,
        picks: !named.is_empty(),
        named,
        list: None,
    }
}
