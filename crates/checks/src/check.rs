//! What a check is.

use crate::compare::view::GroupView;
use crate::finding::Findings;
use crate::nixl::live::view::NixlView;
use crate::nixl::observed_traffic::ObservedView;
use crate::nixl::sides::Side;
use crate::nixl::transfer::TransferView;
use crate::node_view::NodeView;
use crate::pairs::PairTried;
use crate::pod::view::{PodView, PodsView};
use crate::view::View;

/// One property that is judged. Its documentation is the doc text of its own file.
pub struct Check {
    /// Name of the property, such as `env/ucx-tls`.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// The text of the file that the check is written in.
    pub source: &'static str,
    /// Failure modes that it can name.
    pub causes: &'static [Cause],
    /// Things worth knowing that it tells as notes; they change no verdict.
    pub notes: &'static [Cause],
    /// What it looks at, and how.
    pub(crate) run: Run,
}

/// What a check looks at.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// One deployment of a recipe.
    Recipe(fn(&View<'_>, &mut Findings)),
    /// What was observed in one place: a host, a container, or saved outputs.
    Place(fn(&NodeView<'_>, &mut Findings)),
    /// Both ends of the transfers, as their logs show them.
    Sides(fn(&[Side], &mut Findings)),
    /// NIXL in an engine that runs: in a container, or on this host.
    Nixl(fn(&NixlView<'_>, &mut Findings)),
    /// One container of a pod: what the API server says of it beside what is seen inside.
    Pod(fn(&PodView<'_>, &mut Findings)),
    /// All pods that were asked for, and the cluster's nodes.
    Pods(fn(&PodsView<'_>, &mut Findings)),
    /// The workers of one deployment, held against each other.
    Group(fn(&GroupView<'_>, &mut Findings)),
    /// A transfer that was measured between two workers.
    Transfer(fn(&TransferView<'_>, &mut Findings)),
    /// Transfers that were measured between the workers of a deployment.
    Pairs(fn(&[PairTried], &mut Findings)),
    /// What moved between workers while their engines ran.
    Observed(fn(&ObservedView<'_>, &mut Findings)),
}

/// One failure mode.
pub struct Cause {
    /// Its name, such as `ucx-tls-tcp-only`.
    pub id: &'static str,
    /// What is seen.
    pub what: &'static str,
    /// What it does to KV transfer.
    pub why: &'static str,
    /// What to do.
    pub fix: &'static str,
    /// When it is no problem, so nothing is said.
    pub quiet_if: &'static str,
    /// Where the knowledge comes from.
    pub source: &'static str,
}

impl Check {
    /// The documentation: the file's leading `//!` lines.
    pub fn doc(&self) -> String {
        let mut doc = String::new();
        for line in self.source.lines() {
            let Some(text) = line.strip_prefix("//!") else {
                break;
            };
            doc.push_str(text.strip_prefix(' ').unwrap_or(text));
            doc.push('\n');
        }
        doc
    }

    /// One of its causes or notes.
    pub fn cause(&self, id: &str) -> Option<&'static Cause> {
        self.causes.iter().chain(self.notes).find(|c| c.id == id)
    }
}
