//! Answers to questions about one's own rights.

use serde_json::{Value, json};

use crate::hub::Caller;
use crate::objects::World;
use crate::protobuf;
use crate::rights::Rights;
use crate::status::Wanted;

/// Answers a SelfSubjectAccessReview or a SelfSubjectRulesReview, in JSON or in protobuf.
pub(crate) fn answer(world: &World, plural: &str, body: &[u8], caller: &Caller) -> Value {
    let mut review: Value = protobuf::review(body)
        .or_else(|| serde_json::from_slice(body).ok())
        .unwrap_or_else(|| json!({}));
    let status = if plural == "selfsubjectaccessreviews" {
        let allowed = match review.pointer("/spec/resourceAttributes") {
            Some(attributes) => permitted(&caller.rights, attributes),
            None => true,
        };
        json!({ "allowed": allowed })
    } else {
        let namespace = review
            .pointer("/spec/namespace")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let resources: Vec<(String, String)> = world
            .kinds()
            .iter()
            .flat_map(|kind| {
                let subs = kind
                    .subresources
                    .iter()
                    .map(|(sub, _)| format!("{}/{sub}", kind.plural));
                std::iter::once(kind.plural.clone())
                    .chain(subs)
                    .map(|resource| (kind.group.clone(), resource))
                    .collect::<Vec<_>>()
            })
            .collect();
        let rules = caller.rights.review(namespace, &resources);
        json!({ "resourceRules": rules, "nonResourceRules": [], "incomplete": false })
    };
    if let Some(map) = review.as_object_mut() {
        let kind = match plural {
            "selfsubjectaccessreviews" => "SelfSubjectAccessReview",
            _ => "SelfSubjectRulesReview",
        };
        map.insert("kind".into(), kind.into());
        map.insert("apiVersion".into(), "authorization.k8s.io/v1".into());
        map.entry("metadata").or_insert_with(|| json!({}));
        map.insert("status".into(), status);
    }
    review
}

fn permitted(rights: &Rights, attributes: &Value) -> bool {
    let text = |name: &str| {
        attributes
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let wanted = Wanted {
        group: text("group"),
        plural: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
    };
    rights.permits(text("verb"), &wanted)
}
