//! `rbac`: the rights that `check` needs, as objects to be applied. Nothing is applied here.

use checks::{Needed, RIGHTS};
use serde_json::{Value, json};

use crate::args::RbacArgs;
use crate::yaml_text::yaml;

const API: &str = "rbac.authorization.k8s.io";

/// What is printed.
pub(crate) fn text(args: &RbacArgs) -> Result<String, String> {
    let namespace = name(&args.namespace, "namespace")?;
    let role = name(&args.name, "name of a Role")?;
    let mut objects = Vec::new();
    let mut subjects = subjects(args)?;
    if subjects.is_empty() {
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": role, "namespace": namespace},
        }));
        subjects.push(account(namespace, role));
    }
    let here = json!({"name": role, "namespace": namespace});
    objects.push(of_kind("Role", &here, "rules", rules(false)));
    objects.push(binding("RoleBinding", &here, ("Role", role), &subjects));
    if args.nodes {
        let whole = format!("{role}-nodes");
        objects.push(of_kind(
            "ClusterRole",
            &json!({"name": whole}),
            "rules",
            rules(true),
        ));
        // Another namespace's binding is another object.
        let bound = json!({"name": format!("{whole}-{namespace}")});
        objects.push(binding(
            "ClusterRoleBinding",
            &bound,
            ("ClusterRole", &whole),
            &subjects,
        ));
    }
    let mut out = format!(
        "# What check-interconnect check needs to look into the workers of namespace {namespace}.\n\
         # It reads; but whoever has pods/exec may run any command in the pods of this namespace.\n"
    );
    for object in &objects {
        out.push_str("---\n");
        yaml(object, 0, &mut out);
    }
    Ok(out)
}

fn of_kind(kind: &str, metadata: &Value, key: &str, what: Vec<Value>) -> Value {
    let mut object = json!({
        "apiVersion": format!("{API}/v1"),
        "kind": kind,
        "metadata": metadata,
    });
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), what.into());
    }
    object
}

fn binding(kind: &str, metadata: &Value, of: (&str, &str), subjects: &[Value]) -> Value {
    let mut object = of_kind(kind, metadata, "subjects", subjects.to_vec());
    if let Some(map) = object.as_object_mut() {
        map.insert(
            "roleRef".to_owned(),
            json!({"apiGroup": API, "kind": of.0, "name": of.1}),
        );
    }
    object
}

/// Verbs of one resource together.
fn rules(of_cluster: bool) -> Vec<Value> {
    let mut rules: Vec<(&Needed, Vec<&str>)> = Vec::new();
    for right in RIGHTS.iter().filter(|r| r.of_cluster == of_cluster) {
        match rules
            .iter_mut()
            .find(|(held, _)| held.group == right.group && held.what() == right.what())
        {
            Some((_, verbs)) => verbs.push(right.verb),
            None => rules.push((right, vec![right.verb])),
        }
    }
    rules
        .into_iter()
        .map(|(right, verbs)| {
            let mut resource = right.resource.to_owned();
            if !right.subresource.is_empty() {
                resource.push('/');
                resource.push_str(right.subresource);
            }
            json!({"apiGroups": [right.group], "resources": [resource], "verbs": verbs})
        })
        .collect()
}

fn subjects(args: &RbacArgs) -> Result<Vec<Value>, String> {
    let mut subjects = Vec::new();
    for (kind, names) in [("User", &args.user), ("Group", &args.group)] {
        for name in names {
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(format!("'{name}' is no name of a user or a group"));
            }
            subjects.push(json!({"apiGroup": API, "kind": kind, "name": name}));
        }
    }
    for text in &args.service_account {
        let (namespace, own) = text
            .split_once(':')
            .ok_or_else(|| format!("'{text}' is no service account; expected NAMESPACE:NAME"))?;
        subjects.push(account(
            name(namespace, "namespace")?,
            name(own, "name of a service account")?,
        ));
    }
    Ok(subjects)
}

fn account(namespace: &str, name: &str) -> Value {
    json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
}

/// A name as Kubernetes takes it.
fn name<'n>(text: &'n str, what: &str) -> Result<&'n str, String> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let good = text.len() <= 200
        && text.bytes().all(|b| plain(b) || matches!(b, b'-' | b'.'))
        && text.bytes().next().is_some_and(plain)
        && text.bytes().last().is_some_and(plain);
    good.then_some(text)
        .ok_or_else(|| format!("'{text}' is no {what}"))
}
