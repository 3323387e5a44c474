//! Who may do what, in the words of RBAC.

use std::time::Instant;

use serde_json::{Value, json};

use crate::status::Wanted;

/// A set of verbs on a set of resources.
#[derive(Clone, Debug)]
struct Rule {
    verbs: Vec<String>,
    resources: Vec<String>,
    namespace: Option<String>,
}

impl Rule {
    fn covers(&self, verb: &str, what: &Wanted<'_>) -> bool {
        let resource = match what.subresource {
            "" => what.plural.to_owned(),
            sub => format!("{}/{sub}", what.plural),
        };
        let qualified = format!("{resource}.{}", what.group);
        self.namespace
            .as_deref()
            .is_none_or(|n| n == what.namespace)
            && self.verbs.iter().any(|v| v == "*" || v == verb)
            && self
                .resources
                .iter()
                .any(|r| r == "*" || *r == resource || *r == qualified)
    }
}

/// What a user may do. RBAC knows no denials; they are here because most tests take one right away.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    allowed: Vec<Rule>,
    denied: Vec<Rule>,
}

impl Rights {
    /// Everything, as `cluster-admin`.
    pub fn all() -> Self {
        Self::none().allow("*", "*")
    }

    /// Nothing but discovery and questions about one's own rights.
    pub fn none() -> Self {
        Self::default()
    }

    /// Both are lists with commas: verbs (`get,list` or `*`) and resources (`pods`, `pods/exec`,
    /// `dynamographdeployments.nvidia.com` or `*`).
    #[must_use]
    pub fn allow(mut self, verbs: &str, resources: &str) -> Self {
        self.allowed.push(rule(verbs, resources, None));
        self
    }

    /// The same in one namespace only, as a Role and a RoleBinding would give it.
    #[must_use]
    pub fn allow_in(mut self, namespace: &str, verbs: &str, resources: &str) -> Self {
        self.allowed.push(rule(verbs, resources, Some(namespace)));
        self
    }

    /// Takes it away, whatever is allowed.
    #[must_use]
    pub fn deny(mut self, verbs: &str, resources: &str) -> Self {
        self.denied.push(rule(verbs, resources, None));
        self
    }

    pub(crate) fn permits(&self, verb: &str, what: &Wanted<'_>) -> bool {
        !self.denied.iter().any(|rule| rule.covers(verb, what))
            && self.allowed.iter().any(|rule| rule.covers(verb, what))
    }

    /// The rules for a SelfSubjectRulesReview. Denials are spelled out, resource by resource.
    pub(crate) fn review(&self, namespace: &str, resources: &[(String, String)]) -> Vec<Value> {
        const VERBS: [&str; 8] = [
            "get",
            "list",
            "watch",
            "create",
            "update",
            "patch",
            "delete",
            "deletecollection",
        ];
        let here = |rule: &&Rule| rule.namespace.as_deref().is_none_or(|n| n == namespace);
        if self.denied.is_empty() {
            return self
                .allowed
                .iter()
                .filter(here)
                .map(|rule| json!({ "verbs": rule.verbs, "apiGroups": ["*"], "resources": rule.resources }))
                .collect();
        }
        let left = |group: &str, resource: &str| -> Vec<&str> {
            let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let what = Wanted {
                group,
                plural,
                subresource,
                namespace,
                name: "",
            };
            VERBS
                .into_iter()
                .filter(|verb| subresource.is_empty() || matches!(*verb, "get" | "create"))
                .filter(|verb| self.permits(verb, &what))
                .collect()
        };
        resources
            .iter()
            .map(|(group, resource)| (group, resource, left(group, resource)))
            .filter(|(_, _, verbs)| !verbs.is_empty())
            .map(|(group, resource, verbs)| json!({ "verbs": verbs, "apiGroups": [group], "resources": [resource] }))
            .collect()
    }
}

fn rule(verbs: &str, resources: &str, namespace: Option<&str>) -> Rule {
    let list = |text: &str| text.split(',').map(|part| part.trim().to_owned()).collect();
    Rule {
        verbs: list(verbs),
        resources: list(resources),
        namespace: namespace.map(str::to_owned),
    }
}

/// Somebody who can log in, or be impersonated.
#[derive(Clone, Debug)]
pub struct User {
    pub(crate) name: String,
    pub(crate) rights: Rights,
}

impl User {
    /// A user with all rights.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rights: Rights::all(),
        }
    }

    /// Narrows what the user may do.
    #[must_use]
    pub fn rights(mut self, rights: Rights) -> Self {
        self.rights = rights;
        self
    }
}

/// A bearer token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) user: String,
    pub(crate) expires: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exec(namespace: &'static str) -> Wanted<'static> {
        Wanted {
            group: "",
            plural: "pods",
            subresource: "exec",
            namespace,
            name: "x",
        }
    }

    #[test]
    fn a_denied_right_is_gone_and_the_others_stay() {
        let rights = Rights::all().deny("create", "pods/exec");
        assert!(!rights.permits("create", &exec("a")));
        assert!(rights.permits("get", &exec("a")));
        let listed = rights.review(
            "a",
            &[
                (String::new(), "pods".to_owned()),
                (String::new(), "pods/exec".to_owned()),
            ],
        );
        assert_eq!(listed.len(), 2);
        assert!(!listed[1]["verbs"].to_string().contains("create"));
        assert!(listed[0]["verbs"].to_string().contains("create"));
    }

    #[test]
    fn a_right_in_one_namespace_is_not_one_in_another() {
        let rights = Rights::none().allow_in("a", "get,create", "pods/exec");
        assert!(rights.permits("create", &exec("a")));
        assert!(!rights.permits("create", &exec("b")));
        assert!(rights.review("b", &[]).is_empty());
    }
}
