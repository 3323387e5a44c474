//! The rights that looking into a deployment needs: one table for the question what is granted, for the Role that `rbac`
//! prints, and for what is told when one is missing.

use serde::{Deserialize, Serialize};

use crate::declaring::{self, DeclaringKind};

/// A right, in the words of RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needed {
    /// `get`, `list`, `create`.
    pub verb: &'static str,
    /// API group; empty for the core.
    pub group: &'static str,
    /// Plural name.
    pub resource: &'static str,
    /// Part of the resource, such as `exec`; empty for all of it.
    pub subresource: &'static str,
    /// Whether it is one on the whole cluster, which no Role of a namespace can grant.
    pub of_cluster: bool,
    /// Which runs need it.
    pub by: By,
    /// What is not judged without it.
    pub without: &'static str,
}

/// Which runs need a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// All of them.
    All,
    /// Those that look for workers.
    Search,
    /// None: a run without it says less.
    Nobody,
}

/// Every right. What reads another kind of object has its lines here.
pub const RIGHTS: &[Needed] = &[
    Needed {
        by: By::Search,
        ..core(
            "list",
            "pods",
            "",
            "nobody can tell which workers there are",
        )
    },
    core(
        "get",
        "pods",
        "",
        "a pod that is named cannot be read, one that was lost cannot be read again to say why, and kubectl looks into none",
    ),
    core(
        "create",
        "pods",
        "exec",
        "nothing can be looked into from Kubernetes 1.35 on, and by older programs",
    ),
    core(
        "get",
        "pods",
        "exec",
        "nothing can be looked into, since an exec over WebSocket is a get",
    ),
    Needed {
        by: By::Nobody,
        ..core(
            "get",
            "pods",
            "log",
            "what the engines, NIXL and UCX said in their logs is not judged",
        )
    },
    Needed {
        by: By::Nobody,
        of_cluster: true,
        ..core(
            "list",
            "nodes",
            "",
            "what the nodes offer, and why a worker finds none, is not judged",
        )
    },
    object(&declaring::GRAPHS),
    object(&declaring::DISAGGREGATED_SETS),
    object(&declaring::ROLE_BASED_GROUPS),
    object(&declaring::LLM_SERVICES),
    object(&declaring::LEADER_WORKER_SETS),
    object(&declaring::REPLICA_SETS),
    object(&declaring::STATEFUL_SETS),
];

/// An object that pods are made from.
const fn object(kind: &DeclaringKind) -> Needed {
    Needed {
        by: By::Nobody,
        group: kind.group,
        ..core(
            "get",
            kind.resource,
            "",
            "whether the operator or a webhook has changed what these objects declare is not judged",
        )
    }
}

const fn core(
    verb: &'static str,
    resource: &'static str,
    subresource: &'static str,
    without: &'static str,
) -> Needed {
    Needed {
        verb,
        group: "",
        resource,
        subresource,
        of_cluster: false,
        by: By::All,
        without,
    }
}

impl Needed {
    /// `create pods/exec`, as `kubectl auth can-i` takes it.
    pub fn words(&self) -> String {
        format!("{} {}", self.verb, self.what())
    }

    /// `pods/exec`, `replicasets.apps`.
    pub fn what(&self) -> String {
        let mut words = self.resource.to_owned();
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

    /// The kind of object that pods are made from, where the right is to read one.
    pub(crate) fn declaring(&self) -> Option<&'static DeclaringKind> {
        declaring::KINDS
            .iter()
            .find(|kind| (kind.group, kind.resource) == (self.group, self.resource))
    }
}

/// Which of the rights an API server said are granted. One that it did not answer for is in neither list: the attempt
/// itself tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RightsSeen {
    /// The namespace that was asked about.
    pub namespace: String,
    /// Those that are granted, each as [`Needed::words`].
    pub granted: Vec<String>,
    /// Those that are not.
    pub missing: Vec<String>,
}

impl RightsSeen {
    /// Adds what was answered for other workers: what is missing for some is told.
    pub fn join(&mut self, other: Self) {
        if self.namespace != other.namespace && !other.namespace.is_empty() {
            self.namespace = format!("{}, {}", self.namespace, other.namespace);
        }
        for words in other.missing {
            if !self.missing.contains(&words) {
                self.missing.push(words);
            }
        }
        for words in other.granted {
            if !self.granted.contains(&words) {
                self.granted.push(words);
            }
        }
        self.granted.retain(|words| !self.missing.contains(words));
    }

    /// Whether the server said that a right is missing.
    pub fn lacks(&self, words: &str) -> bool {
        self.missing.iter().any(|known| known == words)
    }
}

/// The right of these words.
pub(crate) fn of_words(words: &str) -> Option<&'static Needed> {
    RIGHTS.iter().find(|right| right.words() == words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_for_some_is_missing() {
        let of = |granted: &[&str], missing: &[&str]| RightsSeen {
            namespace: "a".to_owned(),
            granted: granted.iter().map(|w| (*w).to_owned()).collect(),
            missing: missing.iter().map(|w| (*w).to_owned()).collect(),
        };
        let mut all = of(&["list pods", "list nodes"], &[]);
        all.join(of(&["list pods"], &["list nodes"]));
        assert_eq!(all, of(&["list pods"], &["list nodes"]));
    }

    #[test]
    fn every_right_has_words_of_its_own_and_says_what_it_is_for() {
        let mut words: Vec<String> = RIGHTS.iter().map(Needed::words).collect();
        assert!(words.contains(&"create pods/exec".to_owned()));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), RIGHTS.len());
        for right in RIGHTS {
            assert!(right.without.len() > 20, "{right:?}");
            assert_eq!(of_words(&right.words()), Some(right));
        }
    }
}
