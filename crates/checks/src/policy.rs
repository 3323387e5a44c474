//! What a team decided about findings enters here, before readiness and verdict follow from them.

use model::{Accepted, CheckResult, Deployment, Input};

/// Decides what findings count as.
pub trait Policy {
    /// May turn findings of a deployment into ok results with a note, change their level, or add some. Tells how
    /// many it accepted. A skipped result stays skipped: missing evidence cannot be accepted away.
    fn deployment(&mut self, deployment: &Deployment, results: &mut Vec<CheckResult>) -> Accepted;

    /// Options that another run needs to see the same: what renders a chart decides what is judged.
    fn options(&self) -> &[String] {
        &[]
    }

    /// After the last deployment: what is to be said about the policy itself.
    fn finish(&mut self, inputs: &[Input]) -> OfPolicy;
}

/// What a policy says about itself.
#[derive(Debug, Default)]
pub struct OfPolicy {
    /// Its results.
    pub results: Vec<CheckResult>,
    /// How many of them it accepted.
    pub accepted: Accepted,
}

/// Every finding counts as it was found.
#[derive(Debug)]
pub struct Unchanged;

impl Policy for Unchanged {
    fn deployment(&mut self, _: &Deployment, _: &mut Vec<CheckResult>) -> Accepted {
        Accepted::default()
    }

    fn finish(&mut self, _: &[Input]) -> OfPolicy {
        OfPolicy::default()
    }
}
