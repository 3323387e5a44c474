//! `--timeout` of what takes several steps in two pods: one bound for all of them together.

use std::time::Duration;

use checks::{Around, ProbedPod};
use cluster::{Access, Cluster, Stop};
use model::pod::{Fault, FaultKind};
use std::sync::Arc;
use tokio::time::Instant;

use crate::args::PodArgs;
use crate::pods;

/// When everything is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    whole: Duration,
    begin: Instant,
}

impl Deadline {
    /// From now on.
    pub(crate) fn of(args: &PodArgs) -> Self {
        Self {
            whole: args.timeout,
            begin: Instant::now(),
        }
    }

    /// When it is over.
    pub(crate) fn end(&self) -> Instant {
        self.begin + self.whole
    }

    /// What is left, less what an orderly end takes.
    pub(crate) fn left(&self) -> Duration {
        let end = self.end() - self.margin();
        end.saturating_duration_since(Instant::now())
    }

    /// What is kept for the steps that come after one.
    fn margin(&self) -> Duration {
        (self.whole / 10).min(Duration::from_secs(2))
    }

    /// `--timeout 60s`.
    pub(crate) fn words(&self) -> String {
        match self.whole.as_secs() {
            0 => format!("--timeout {}ms", self.whole.as_millis()),
            whole => format!("--timeout {whole}s"),
        }
    }

    /// The way into the cluster, and a look into pods by it. A container that does not answer has `until`; what is not
    /// there even then is the API server's answer.
    pub(crate) async fn look<F>(
        &self,
        access: &Access,
        around: &mut Around,
        stop: &Stop,
        look: F,
    ) -> (Option<Arc<dyn Cluster>>, Vec<ProbedPod>)
    where
        F: AsyncFnOnce(&Arc<dyn Cluster>, &mut Around, Instant) -> Vec<ProbedPod>,
    {
        let mut access = access.clone();
        access.request_timeout = Some(
            access
                .request_timeout
                .map_or(self.whole, |one| one.min(self.whole)),
        );
        let until = self.end() - self.margin();
        let looked = async {
            match pods::open(&access, stop).await {
                Ok(cluster) => {
                    let looked = look(&cluster, around, until - self.margin()).await;
                    (Some(cluster), looked)
                }
                Err(fault) => {
                    around.faults.push(fault);
                    (None, Vec::new())
                }
            }
        };
        match tokio::time::timeout_at(until, looked).await {
            Ok(looked) => looked,
            Err(_) => {
                cluster::end_programs();
                around.faults.push(Fault::new(
                    FaultKind::Unreachable,
                    format!("no answer in time ({})", self.words()),
                ));
                (None, Vec::new())
            }
        }
    }
}
