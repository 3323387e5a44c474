//! What one file refers to and another file of the input holds: the resources of a kustomization, and the objects
//! behind device claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{ClaimTemplate, ComputeDomain, Deployment, InputProblem, Outcome, Surroundings};
use yaml::Node;

use crate::draft::FileDraft;
use crate::engine;
use crate::place::Text;
use crate::resources;

/// A path that a kustomization names.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) path: String,
    /// Line and column.
    pub(crate) position: (u32, u32),
}

/// Whether a document without a kind is a kustomization, which needs none.
pub(crate) fn is_kustomization(text: &Text<'_>, root: Node<'_>) -> bool {
    let base = text.path.rsplit('/').next().unwrap_or_default();
    match root.get("apiVersion").and_then(Node::text) {
        Some(version) => version.starts_with("kustomize.config.k8s.io/"),
        None => {
            matches!(
                base,
                "kustomization.yaml" | "kustomization.yml" | "Kustomization"
            ) || ["resources", "bases"].iter().any(|key| {
                root.get(key).is_some_and(|list| {
                    list.items().next().is_some() && list.items().all(Node::is_scalar)
                })
            })
        }
    }
}

/// The resources that a kustomization names.
pub(crate) fn references(text: &Text<'_>, root: Node<'_>, file: &mut FileDraft) {
    for key in ["resources", "bases", "components"] {
        let Some(list) = root.get(key) else { continue };
        for item in list.items().filter(|_| file.spend(1)).collect::<Vec<_>>() {
            if let Some(path) = item.text() {
                file.references.push(Reference {
                    path: path.to_owned(),
                    position: text.line_column(item.span().start),
                });
            }
        }
    }
}

/// Says which kustomizations name something that is not in the input.
pub(crate) fn missing(files: &mut [FileDraft]) {
    if files.iter().all(|f| f.references.is_empty()) {
        return;
    }
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for file in files.iter() {
        let path = plain("", &file.path);
        let mut end = path.len();
        // The file, and every directory above it.
        while let Some(part) = path.get(..end) {
            if !seen.insert(part.to_owned()) {
                break;
            }
            let Some(slash) = part.rfind('/') else { break };
            end = slash;
        }
    }
    for file in files.iter_mut() {
        let directory = file.path.rsplit_once('/').map_or("", |(d, _)| d).to_owned();
        let gone = file.references.iter().find(|r| {
            let remote = r.path.contains("://") || r.path.contains("?ref=") || r.path.contains('@');
            remote || !seen.contains(&plain(&directory, &r.path))
        });
        if let Some(gone) = gone {
            file.problems.push(InputProblem {
                cause: "input-kustomization-not-rendered".into(),
                detail: "a kustomization names something that is not in the input: what it deploys cannot be seen"
                    .into(),
                fix: "render it: kubectl kustomize DIRECTORY | check-interconnect env -".into(),
                position: Some(gone.position),
                outcome: Outcome::Skipped,
            });
        }
    }
}

/// Gives patches in files of their own the name of the object that the kustomization applies them to: a list of
/// operations names none.
pub(crate) fn targets(files: &mut [FileDraft]) {
    let targets: BTreeMap<String, String> = files
        .iter()
        .flat_map(|file| {
            let directory = file.path.rsplit_once('/').map_or("", |(d, _)| d);
            let of = move |(path, name): &(String, String)| (plain(directory, path), name.clone());
            file.targets.iter().map(of)
        })
        .collect();
    if targets.is_empty() {
        return;
    }
    for file in files.iter_mut() {
        let Some(name) = targets.get(&plain("", &file.path)) else {
            continue;
        };
        let role = engine::role_of_name(name);
        for draft in file
            .containers
            .iter_mut()
            .filter(|d| d.patch && d.name.is_empty())
        {
            draft.name.clone_from(name);
            draft.hinted = draft.hinted.or(role);
        }
        for made in file
            .resolved
            .iter_mut()
            .filter(|r| r.patch && r.worker.name.is_empty())
        {
            made.worker.name.clone_from(name);
            made.hinted = made.hinted.or(role);
        }
    }
}

/// A path without `.` and `..` as far as they can be resolved.
fn plain(directory: &str, path: &str) -> String {
    let whole = if path.starts_with('/') || directory.is_empty() {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let root = if whole.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Objects behind device claims, by the name of the template that claims refer to.
#[derive(Default)]
pub(crate) struct ClaimObjects {
    domains: BTreeMap<String, ComputeDomain>,
    templates: BTreeMap<String, ClaimTemplate>,
}

impl ClaimObjects {
    /// Those of all files; of several by one name the first.
    pub(crate) fn of(files: &[FileDraft]) -> Self {
        let mut all = Self::default();
        for file in files {
            for domain in &file.around.compute_domains {
                if let Some(name) = &domain.template {
                    all.domains
                        .entry(name.clone())
                        .or_insert_with(|| domain.clone());
                }
            }
            for template in &file.around.claim_templates {
                all.templates
                    .entry(template.name.clone())
                    .or_insert_with(|| template.clone());
            }
        }
        all
    }

    /// Gives a deployment the objects that its workers claim from and that its own files do not hold, and its workers
    /// the kind of accelerator that their claims are on.
    pub(crate) fn complete(&self, deployment: &mut Deployment) {
        if self.domains.is_empty() && self.templates.is_empty() {
            return;
        }
        let more = self.missing(deployment);
        if more != Surroundings::default() {
            deployment.around.push(Arc::new(more));
        }
        let mut workers = std::mem::take(&mut deployment.workers);
        for worker in workers.iter_mut().filter(|w| w.accelerator.is_none()) {
            worker.accelerator = worker
                .claims
                .iter()
                .filter_map(|c| c.template.as_ref())
                .filter_map(|name| deployment.claim_templates().find(|t| t.name == *name))
                .flat_map(|t| &t.devices)
                .find_map(|class| resources::accelerator_of_class(class));
        }
        deployment.workers = workers;
    }

    fn missing(&self, deployment: &Deployment) -> Surroundings {
        let claimed: BTreeSet<&str> = deployment
            .workers
            .iter()
            .flat_map(|w| w.claims.iter().chain(&w.pod().unlisted_claims))
            .filter_map(|c| c.template.as_deref())
            .collect();
        let mut more = Surroundings::default();
        for name in claimed {
            if let Some(domain) = self.domains.get(name)
                && !deployment
                    .compute_domains()
                    .any(|d| d.template.as_deref() == Some(name))
            {
                more.compute_domains.push(domain.clone());
            }
            if let Some(template) = self.templates.get(name)
                && !deployment.claim_templates().any(|t| t.name == name)
            {
                more.claim_templates.push(template.clone());
            }
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(plain("a/b", "../base"), "a/base");
        assert_eq!(plain("./a", "./x.yaml"), "a/x.yaml");
        assert_eq!(plain("", "../base"), "../base");
        assert_eq!(plain("/a/b", "../../c/"), "/c");
        assert_eq!(plain("a", "/b"), "/b");
    }
}
