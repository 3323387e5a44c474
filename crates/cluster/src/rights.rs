//! What whoever asks may do, asked before anything is tried, so that all that is missing is told at once.

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
    /// `create pods/exec`, as `kubectl auth can-i` takes it.
    pub fn words(&self) -> String {
        let mut words = format!("{} {}", self.verb, self.resource);
        if !self.group.is_empty() {
            words.push('.');
            words.push_str(self.group);
        }
        if !self.subresource.is_empty() {
            words.push('/');
            words.push_str(self.subresource);
        }
        words
    }

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

/// Those of the rights that the API server denies. One that it does not answer for counts as there: the attempt itself
/// will tell.
pub async fn missing_rights(cluster: &dyn Cluster, rights: &[Right], stop: &Stop) -> Vec<Right> {
    let mut missing = Vec::new();
    for right in rights {
        let answer = patiently(stop, || cluster.ask(REVIEWS, right.review())).await;
        let allowed = answer
            .ok()
            .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
            .and_then(|review| review.pointer("/status/allowed")?.as_bool());
        if allowed == Some(false) {
            missing.push(right.clone());
        }
    }
    missing
}
