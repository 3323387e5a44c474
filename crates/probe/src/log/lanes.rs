//! `ucp_context_0 inter-node cfg#1 rma(rc_mlx5/mlx5_0:1)  am(rc_mlx5/mlx5_0:1 tcp/eth0)`.

use model::observation::Origin;
use model::observation::log::{Lane, LaneLine, Process, Scope};

use crate::text::keep;

/// Lanes and uses of one line that are kept.
const MAX_LANES: usize = 256;

/// A line of lanes, without its place.
pub(super) struct Found {
    context: String,
    scope: Scope,
    config: Option<u32>,
    uses: Vec<(String, Vec<Lane>)>,
}

impl Found {
    pub(super) fn with(self, origin: Origin, process: Process) -> LaneLine {
        LaneLine {
            origin,
            context: self.context,
            scope: self.scope,
            config: self.config,
            uses: self.uses,
            process,
        }
    }
}

/// `self`, `intra-node`, `inter-node`.
pub(super) fn scope(word: &str) -> Option<Scope> {
    match word {
        "self" => Some(Scope::SelfEndpoint),
        "intra-node" => Some(Scope::IntraNode),
        "inter-node" => Some(Scope::InterNode),
        _ => None,
    }
}

/// `ucp_context_0 inter-node cfg#1` and what follows: context, scope, number, rest.
pub(super) fn title(text: &str) -> Option<(String, Scope, Option<u32>, &str)> {
    let (before, after) = text.split_once("cfg#")?;
    let end = after
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(after.len());
    let (digits, rest) = after.split_at_checked(end)?;
    let before = before.trim();
    let (context, word) = before.rsplit_once(' ').unwrap_or(("", before));
    let (context, scope) = match scope(word) {
        Some(scope) => (context, scope),
        None => (before, Scope::Unknown),
    };
    Some((keep(context), scope, digits.parse().ok(), rest))
}

pub(super) fn read(text: &str) -> Option<Found> {
    if text.starts_with(['|', '#']) {
        return None;
    }
    let (context, scope, config, rest) = title(text)?;
    let mut uses = Vec::new();
    let mut rest = rest.trim_start();
    while let Some((name, after)) = rest.split_once('(') {
        let (inside, next) = after.split_once(')').unwrap_or((after, ""));
        let name = name.trim();
        if name.is_empty() || name.contains(' ') || uses.len() >= MAX_LANES {
            break;
        }
        let lanes: Vec<Lane> = inside
            .split_whitespace()
            .take(MAX_LANES)
            .filter_map(lane)
            .collect();
        uses.push((keep(name), lanes));
        rest = next.trim_start();
    }
    (!uses.is_empty()).then_some(Found {
        context,
        scope,
        config,
        uses,
    })
}

/// `rc_mlx5/mlx5_0:1`, also with a path behind it.
pub(super) fn lane(word: &str) -> Option<Lane> {
    let word = word.trim_matches([',', ';']);
    let (transport, device) = word.split_once('/')?;
    let device = device.split('/').next()?;
    let good = !transport.is_empty()
        && !device.is_empty()
        && transport
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_');
    good.then(|| Lane {
        transport: keep(transport),
        device: keep(device),
    })
}
