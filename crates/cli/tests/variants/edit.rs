//! Reading a manifest as values, finding its containers, and writing single nodes back in place.

use std::ops::Range;

use model::{Facts, Role, Worker};
use serde_json::{Map, Value, json};
use yaml::{Document, Kind, Limits, Node, Stream};

pub fn parse(text: &str) -> Stream<'_> {
    yaml::parse(text, &Limits::default())
}

pub fn facts(name: &str, text: &str) -> Facts {
    recipe::assemble(vec![recipe::read(name, text)])
}

/// A node as a value, aliases and merge keys resolved.
pub fn value(node: Node<'_>) -> Value {
    match node.kind() {
        Kind::Mapping => Value::Object(
            node.entries()
                .map(|(k, v)| (k.raw().into_owned(), value(v)))
                .collect(),
        ),
        Kind::Sequence => Value::Array(node.items().map(value).collect()),
        Kind::Null => Value::Null,
        Kind::Scalar => {
            if let Some(b) = node.as_bool() {
                json!(b)
            } else if node.is_number() {
                serde_json::from_str(&node.raw()).unwrap_or_else(|_| json!(node.raw()))
            } else {
                json!(node.raw())
            }
        }
    }
}

fn scalar(v: &Value, indent: usize) -> String {
    let Value::String(text) = v else {
        return v.to_string();
    };
    let pad = " ".repeat(indent);
    let block = text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text.contains(['\t', '\r'])
        && !text.ends_with("\n\n")
        && text
            .lines()
            .all(|l| !l.ends_with(' ') || !l.trim().is_empty());
    if !block {
        return v.to_string();
    }
    let head = if text.ends_with('\n') { "|" } else { "|-" };
    let lines: Vec<String> = text
        .lines()
        .map(|l| {
            if l.is_empty() {
                String::new()
            } else {
                format!("{pad}{l}")
            }
        })
        .collect();
    format!("{head}\n{}", lines.join("\n"))
}

/// A value in block style; the first line starts where the cursor is, later ones at `indent`.
pub fn block(v: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match v {
        Value::Object(map) if !map.is_empty() => map
            .iter()
            .map(|(k, v)| {
                format!(
                    "{}: {}",
                    json!(k)
                        .as_str()
                        .filter(|k| plain(k))
                        .map_or_else(|| json!(k).to_string(), str::to_owned),
                    inner(v, indent)
                )
            })
            .collect::<Vec<_>>()
            .join(&format!("\n{pad}")),
        Value::Array(list) if !list.is_empty() => list
            .iter()
            .map(|v| format!("- {}", block(v, indent + 2)))
            .collect::<Vec<_>>()
            .join(&format!("\n{pad}")),
        _ => scalar(v, indent + 2),
    }
}

fn inner(v: &Value, indent: usize) -> String {
    let nested = matches!(v, Value::Object(m) if !m.is_empty())
        || matches!(v, Value::Array(l) if !l.is_empty());
    if nested {
        format!("\n{}{}", " ".repeat(indent + 2), block(v, indent + 2))
    } else {
        scalar(v, indent + 2)
    }
}

fn plain(key: &str) -> bool {
    !key.is_empty()
        && !matches!(
            key,
            "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
        )
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/'))
}

/// Replacements of byte ranges, applied together.
#[derive(Default, Clone)]
pub struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub fn replace(&mut self, range: Range<u32>, with: impl Into<String>) {
        self.0
            .push((range.start as usize..range.end as usize, with.into()));
    }

    pub fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(r, _)| (r.start, r.end));
        let mut out = String::new();
        let mut at = 0;
        for (range, with) in self.0 {
            assert!(range.start >= at, "edits overlap at {}", range.start);
            out.push_str(&text[at..range.start]);
            out.push_str(&with);
            at = range.end;
        }
        out.push_str(&text[at..]);
        out
    }
}

/// Where a node stands on its line.
pub fn column(text: &str, at: u32) -> usize {
    let at = at as usize;
    at - text[..at].rfind('\n').map_or(0, |i| i + 1)
}

/// One container of a prefill or decode worker.
#[derive(Clone)]
pub struct Site<'d> {
    pub role: Role,
    pub container: Node<'d>,
    /// The mapping with `containers`, or `extraPodSpec`.
    pub pod: Node<'d>,
    /// The component, service, role or workload, with its key.
    pub owner: Node<'d>,
    pub owner_range: Range<u32>,
    /// It is a component or service of a Dynamo graph.
    pub in_graph: bool,
    pub root: Node<'d>,
}

struct Up<'d> {
    node: Node<'d>,
    key: Option<Node<'d>>,
}

/// The containers of prefill and decode workers.
pub fn sites<'d>(documents: &'d [Document<'d>], facts: &Facts, text: &str) -> Vec<Site<'d>> {
    let index = yaml::LineIndex::new(text);
    let mut out = Vec::new();
    for document in documents {
        let root = document.root();
        let mut path = vec![Up {
            node: root,
            key: None,
        }];
        collect(root, &mut path, &mut |path, container, pod_depth| {
            let pod = path[pod_depth].node;
            let graph_owner = path.iter().position(|u| {
                u.node.get("extraPodSpec").is_some() || u.node.get("podTemplate").is_some()
            });
            let owner_at = graph_owner.unwrap_or_else(|| {
                // The mapping with the pod template, and what is around it where that names a role.
                (0..=pod_depth)
                    .rev()
                    .find(|i| {
                        let n = path[*i].node;
                        *i == 0 || n.get("replicas").is_some() || n.get("kind").is_some()
                    })
                    .unwrap_or(0)
            });
            let owner = path[owner_at].node;
            let start = path[owner_at]
                .key
                .map_or(owner.span().start, |k| k.span().start);
            let owner_range = start..owner.span().end;
            let lines = |r: &Range<u32>| index.line_column(r.start).0..=index.line_column(r.end).0;
            let within = |r: &Range<u32>| {
                let lines = lines(r);
                facts
                    .deployments
                    .iter()
                    .flat_map(|d| &d.workers)
                    .filter(|w| w.role.moves_kv())
                    .find(move |w| lines.contains(&w.place.line))
            };
            let worker: Option<&Worker> = within(&container.span())
                .or_else(|| graph_owner.and_then(|_| within(&owner_range)));
            if let Some(worker) = worker {
                out.push(Site {
                    role: worker.role,
                    container,
                    pod,
                    owner,
                    owner_range,
                    in_graph: graph_owner.is_some(),
                    root,
                });
            }
        });
    }
    out
}

fn collect<'d>(
    node: Node<'d>,
    path: &mut Vec<Up<'d>>,
    found: &mut dyn FnMut(&[Up<'d>], Node<'d>, usize),
) {
    match node.kind() {
        Kind::Mapping => {
            for (key, child) in node.entries() {
                let depth = path.len() - 1;
                match key.text() {
                    Some("mainContainer") => found(path, child, depth),
                    Some("containers") if child.is_sequence() => {
                        // The one that starts an engine.
                        let mut list: Vec<_> = child.items().filter(|c| c.is_mapping()).collect();
                        list.retain(|c| {
                            c.get("args").is_some()
                                || c.get("command").is_some()
                                || c.get("env").is_some()
                        });
                        for one in list {
                            found(path, one, depth);
                        }
                    }
                    _ => {
                        path.push(Up {
                            node: child,
                            key: Some(key),
                        });
                        collect(child, path, found);
                        path.pop();
                    }
                }
            }
        }
        Kind::Sequence => {
            for item in node.items() {
                path.push(Up {
                    node: item,
                    key: None,
                });
                collect(item, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Writes a changed node in place of the old one.
pub fn rewrite(edits: &mut Edits, text: &str, node: Node<'_>, new: &Value) {
    let mut span = node.span();
    // What ends with a block scalar may reach up to the next token.
    let written = &text[span.start as usize..span.end as usize];
    span.end = span.start + u32::try_from(written.trim_end().len()).unwrap();
    let flow = matches!(node.style(), yaml::Style::Flow);
    let new = if flow {
        new.to_string()
    } else {
        block(new, column(text, span.start))
    };
    edits.replace(span, new);
}

pub fn env_item<'v>(container: &'v Value, name: &str) -> Option<&'v Value> {
    container["env"]
        .as_array()?
        .iter()
        .rev()
        .find(|i| i["name"] == name)
}

/// The literal value of a variable of a container.
pub fn env_literal(container: &Value, name: &str) -> Option<String> {
    env_item(container, name)?["value"]
        .as_str()
        .map(str::to_owned)
}

pub fn remove_env(container: &mut Value, name: &str) {
    if let Some(list) = container["env"].as_array_mut() {
        list.retain(|i| i["name"] != name);
    }
}

pub fn set_env(container: &mut Value, name: &str, value: &str) {
    if !container["env"].is_array() {
        container["env"] = json!([]);
    }
    let list = container["env"].as_array_mut().unwrap();
    let item = json!({"name": name, "value": value});
    match list.iter_mut().find(|i| i["name"] == name) {
        Some(old) => *old = item,
        None => list.push(item),
    }
}

/// The words of the start command.
pub fn words(container: &Value) -> Vec<(&'static str, usize, String)> {
    let mut out = Vec::new();
    for key in ["command", "args"] {
        match &container[key] {
            Value::Array(list) => {
                for (i, v) in list.iter().enumerate() {
                    let text = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
                    out.push((key, i, text));
                }
            }
            Value::String(s) => out.push((key, usize::MAX, s.clone())),
            _ => {}
        }
    }
    out
}

/// Where the script of `sh -c SCRIPT` stands.
pub fn script_at(container: &Value) -> Option<(&'static str, usize)> {
    let words = words(container);
    let shell = words
        .iter()
        .position(|(_, _, w)| matches!(w.rsplit('/').next(), Some("sh" | "bash")))?;
    let flag = words[shell + 1..]
        .iter()
        .position(|(_, _, w)| w.starts_with('-') && w.ends_with('c'))?;
    let (key, index, _) = words.get(shell + 1 + flag + 1)?;
    Some((key, *index))
}

pub fn script(container: &Value) -> Option<String> {
    let (key, index) = script_at(container)?;
    if index == usize::MAX {
        container[key].as_str()
    } else {
        container[key][index].as_str()
    }
    .map(str::to_owned)
}

pub fn set_script(container: &mut Value, text: &str) {
    let (key, index) = script_at(container).unwrap();
    if index == usize::MAX {
        container[key] = json!(text);
    } else {
        container[key][index] = json!(text);
    }
}

/// A word for a shell.
pub fn shell_quote(word: &str) -> String {
    if !word.is_empty()
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_=./:,@%+$()^".contains(&b))
        && !word.contains('$')
        && !word.contains('(')
    {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Where the engine's own command starts in a script.
pub fn engine_start(script: &str) -> Option<usize> {
    [
        "python3 -m dynamo.",
        "python3 -m sglang",
        "python3 -m vllm",
        "python -m",
        "vllm serve",
        "trtllm-llmapi-launch",
        "trtllm-serve",
        "python3 -u -m",
    ]
    .iter()
    .filter_map(|p| script.find(p))
    .min()
}

pub fn object(v: &mut Value) -> &mut Map<String, Value> {
    v.as_object_mut().unwrap()
}
