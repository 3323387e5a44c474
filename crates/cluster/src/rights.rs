//! What whoever asks may do, asked before anything is tried, so that all that is missing is told at once.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::door::Cluster;
use crate::patience::patiently;
use crate::stop::Stop;

/// A right, as a Role grants it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// `get`, `list`, `create`.
    pub verb: &'static str,
    /// API group; empty for the core.
    pub group: &'static str,
    /// Plural name.
    pub resource: &'static str,
    /// Part of the resource, such as `exec`.
    pub subresource: &'static str,
    /// Namespace; `None` for what belongs to the cluster as a whole.
    pub namespace: Option<String>,
}

impl Right {
    fn review(&self) -> String {
        let attributes = serde_json::json!({
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "namespace": self.namespace.as_deref().unwrap_or_default(),
        });
        serde_json::json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        })
        .to_string()
    }
}

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// What the API server says of each right, all asked at once; `None` where it gives no answer: the attempt itself will
/// tell.
pub async fn granted(
    cluster: &Arc<dyn Cluster>,
    rights: &[Right],
    stop: &Stop,
) -> Vec<Option<bool>> {
    let mut tasks = JoinSet::new();
    for (index, right) in rights.iter().enumerate() {
        let (cluster, stop, review) = (Arc::clone(cluster), stop.clone(), right.review());
        tasks.spawn(async move {
            let answer = patiently(&stop, || cluster.ask(REVIEWS, review.clone())).await;
            (index, answer.ok().and_then(|text| allowed(&text)))
        });
    }
    let mut granted = vec![None; rights.len()];
    while let Some(done) = tasks.join_next().await {
        if let Ok((index, answer)) = done
            && let Some(place) = granted.get_mut(index)
        {
            *place = answer;
        }
    }
    granted
}

/// What an answer says; something else than an answer says nothing.
fn allowed(text: &str) -> Option<bool> {
    let review: serde_json::Value = serde_json::from_str(text).ok()?;
    review.pointer("/status/allowed")?.as_bool()
}
