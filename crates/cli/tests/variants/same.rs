//! Variants that mean the same: a setting in another form, other styles, other things beside it.

use model::{Facts, Form};
use serde_json::{Value, json};
use yaml::Style;

use crate::Variant;
use crate::edit::{
    self, Edits, Site, engine_start, env_literal, object, remove_env, rewrite, script, script_at,
    set_script, shell_quote, words,
};

/// Variables that decide the path and that are set in env lists of these containers.
fn movable(sites: &[Site<'_>], facts: &Facts) -> Vec<String> {
    let mut names: Vec<String> = facts
        .deployments
        .iter()
        .flat_map(model::Deployment::kv_workers)
        .flat_map(|w| &w.settings)
        .filter(|s| {
            matches!(s.form, Form::EnvEntry | Form::EnvFlow | Form::EnvAlias)
                && s.value.literal().is_some()
                && !s.name.contains("TELEMETRY")
                && !s.name.contains("DEBUG")
        })
        .map(|s| s.name.clone())
        .collect();
    names.sort();
    names.dedup();
    names.retain(|n| {
        sites
            .iter()
            .any(|s| env_literal(&edit::value(s.container), n).is_some())
    });
    // Those that carry KV first; a few are enough, since every form is tried with each.
    names.sort_by_key(|n| {
        let first = ["UCX_", "FI_", "SGLANG_", "TRTLLM_", "VLLM_", "MC_"];
        (!first.iter().any(|p| n.starts_with(p)), n.clone())
    });
    names.truncate(4);
    names
}

/// Changes each container of prefill and decode as a value.
fn each(
    text: &str,
    sites: &[Site<'_>],
    f: &mut dyn FnMut(&Site<'_>, &mut Value) -> Option<()>,
) -> Option<String> {
    let mut edits = Edits::default();
    let mut changed = false;
    for site in sites {
        let mut new = edit::value(site.container);
        if f(site, &mut new).is_some() {
            rewrite(&mut edits, text, site.container, &new);
            changed = true;
        }
    }
    changed.then(|| edits.apply(text))
}

fn config_map(name: &str, key: &str, value: &str) -> String {
    format!(
        "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  {key}: {}\n",
        json!(value)
    )
}

/// Puts lines at the start of a script, behind a `#!` line.
pub fn before_script(script: &str, lines: &str) -> String {
    if script.starts_with("#!") {
        let (first, rest) = script.split_once('\n').unwrap_or((script, ""));
        format!("{first}\n{lines}\n{rest}")
    } else {
        format!("{lines}\n{script}")
    }
}

/// The forms that one environment variable can take, in a container that has it as a literal.
pub const ENV_FORMS: &[&str] = &[
    "export",
    "assign, then export",
    "set -a",
    "sourced file written before",
    "prefix X=Y cmd",
    "prefix env X=Y cmd",
    "env X=Y in argv",
    "envFrom ConfigMap",
    "configMapKeyRef",
    "$(VAR) indirection",
    "export of another variable",
    "earlier duplicate is replaced",
    "env wins over envFrom",
    "export replaces env",
];

/// Moves one variable into a form; what has to be added behind the document comes back.
pub fn move_env(c: &mut Value, form: &str, name: &str, bad: &str) -> Option<String> {
    let value = env_literal(c, name)?;
    // A reference by the kubelet to other variables keeps its meaning only in env lists.
    let quoted = shell_quote(&value);
    let in_script = |c: &mut Value, lines: &str| -> Option<()> {
        let s = script(c)?;
        set_script(c, &before_script(&s, lines));
        Some(())
    };
    let plain = !value.contains("$(");
    match form {
        "export" if plain => {
            in_script(c, &format!("export {name}={quoted}"))?;
            remove_env(c, name);
        }
        "assign, then export" if plain => {
            in_script(c, &format!("{name}={quoted}\nexport {name}"))?;
            remove_env(c, name);
        }
        "set -a" if plain => {
            in_script(c, &format!("set -a; {name}={quoted}; set +a"))?;
            remove_env(c, name);
        }
        "sourced file written before" if plain => {
            in_script(
                c,
                &format!("cat > /tmp/kv.env <<'EOF'\nexport {name}={quoted}\nEOF\n. /tmp/kv.env"),
            )?;
            remove_env(c, name);
        }
        "prefix X=Y cmd" | "prefix env X=Y cmd" if plain => {
            let s = script(c)?;
            let at = engine_start(&s)?;
            // An assignment cannot stand behind exec.
            let env = form == "prefix env X=Y cmd" || s[..at].ends_with("exec ");
            let word = if env { "env " } else { "" };
            set_script(
                c,
                &format!("{}{word}{name}={quoted} {}", &s[..at], &s[at..]),
            );
            remove_env(c, name);
        }
        "env X=Y in argv" if plain => {
            if script_at(c).is_some() || words(c).is_empty() {
                return None;
            }
            let list = c["command"].as_array_mut().filter(|l| !l.is_empty())?;
            list.insert(0, json!(format!("{name}={value}")));
            list.insert(0, json!("env"));
            remove_env(c, name);
        }
        "envFrom ConfigMap" if plain => {
            if c["envFrom"].is_null() {
                c["envFrom"] = json!([]);
            }
            c["envFrom"]
                .as_array_mut()?
                .push(json!({"configMapRef": {"name": "kv-settings"}}));
            remove_env(c, name);
            return Some(config_map("kv-settings", name, &value));
        }
        "configMapKeyRef" if plain => {
            *c["env"]
                .as_array_mut()?
                .iter_mut()
                .find(|i| i["name"] == name)? = json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": "kv-settings", "key": "the.value"}}});
            return Some(config_map("kv-settings", "the.value", &value));
        }
        "$(VAR) indirection" => {
            let list = c["env"].as_array_mut()?;
            let at = list.iter().position(|i| i["name"] == name)?;
            list[at]["value"] = json!("$(KV_INDIRECT)");
            list.insert(at, json!({"name": "KV_INDIRECT", "value": value}));
        }
        "export of another variable" if plain => {
            in_script(c, &format!("export {name}=\"${{KV_INDIRECT}}\""))?;
            let list = c["env"].as_array_mut()?;
            let item = list.iter_mut().find(|i| i["name"] == name)?;
            *item = json!({"name": "KV_INDIRECT", "value": value});
        }
        "earlier duplicate is replaced" => {
            let list = c["env"].as_array_mut()?;
            list.insert(0, json!({"name": name, "value": bad}));
        }
        "env wins over envFrom" => {
            if c["envFrom"].is_null() {
                c["envFrom"] = json!([]);
            }
            c["envFrom"]
                .as_array_mut()?
                .push(json!({"configMapRef": {"name": "kv-settings"}}));
            return Some(config_map("kv-settings", name, bad));
        }
        "export replaces env" if plain => {
            in_script(c, &format!("export {name}={quoted}"))?;
            let list = c["env"].as_array_mut()?;
            list.iter_mut().find(|i| i["name"] == name)?["value"] = json!(bad);
        }
        _ => return None,
    }
    Some(String::new())
}

pub fn env_forms(text: &str, sites: &[Site<'_>], facts: &Facts, out: &mut Vec<Variant>) {
    for name in movable(sites, facts) {
        for form in ENV_FORMS {
            let mut tail = String::new();
            let made = each(text, sites, &mut |_, c| {
                let more = move_env(c, form, &name, "tcp")?;
                // One map serves all containers, so their values must be the same.
                if !more.is_empty() && !tail.is_empty() && tail != more {
                    return None;
                }
                tail = more;
                Some(())
            });
            if let Some(made) = made {
                out.push(Variant::same(form, &name, format!("{made}{tail}")));
            }
        }
        styles(text, sites, &name, out);
        outer(text, sites, &name, out);
    }
    aliases(text, sites, out);
}

/// From an entry and its value to what is replaced, and by what.
type Restyle<'f> =
    dyn Fn(yaml::Node<'_>, yaml::Node<'_>) -> Option<(std::ops::Range<u32>, String)> + 'f;

/// Byte-exact changes of one entry's style.
fn styles(text: &str, sites: &[Site<'_>], name: &str, out: &mut Vec<Variant>) {
    let items: Vec<_> = sites
        .iter()
        .filter_map(|s| {
            s.container
                .get("env")
                .filter(|e| e.is_sequence() && e.alias_span().is_none())
        })
        .flat_map(yaml::Node::items)
        .filter(|i| {
            i.get("name").and_then(yaml::Node::text) == Some(name) && i.alias_span().is_none()
        })
        .filter_map(|i| {
            Some((
                i,
                i.get("value")
                    .filter(|v| v.is_scalar() && v.alias_span().is_none())?,
            ))
        })
        .collect();
    let mut make = |kind: &'static str, f: &Restyle<'_>| {
        let mut edits = Edits::default();
        let mut any = false;
        for (item, value) in &items {
            if let Some((range, with)) = f(*item, *value) {
                any |= text[range.start as usize..range.end as usize] != *with;
                edits.replace(range, with);
            }
        }
        if any {
            out.push(Variant::same(kind, name, edits.apply(text)));
        }
    };
    make("flow entry", &|item, value| {
        Some((
            item.span(),
            format!("{{name: {name}, value: {}}}", json!(value.raw())),
        ))
    });
    make("flow entry over lines", &|item, value| {
        let pad = " ".repeat(edit::column(text, item.span().start));
        (item.style() != Style::Flow).then(|| {
            (
                item.span(),
                format!(
                    "{{\n{pad}  \"name\": \"{name}\",\n{pad}  \"value\": {}\n{pad}}}",
                    json!(value.raw())
                ),
            )
        })
    });
    make("double quotes", &|_, value| {
        scalar_style(value).then(|| (value.span(), json!(value.raw()).to_string()))
    });
    make("single quotes", &|_, value| {
        scalar_style(value).then(|| {
            (
                value.span(),
                format!("'{}'", value.raw().replace('\'', "''")),
            )
        })
    });
    make("no quotes", &|_, value| {
        let raw = value.raw();
        let safe = raw.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '^')
            && raw
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_,.:^-/".contains(&b))
            && !raw.ends_with(':');
        (scalar_style(value) && safe).then(|| (value.span(), raw.into_owned()))
    });
    for (kind, head) in [("literal block", "|-"), ("folded block", ">-")] {
        make(kind, &|item, value| {
            let ok = scalar_style(value)
                && item.style() != Style::Flow
                && !value.raw().is_empty()
                && !value.raw().starts_with(' ');
            let pad = " ".repeat(edit::column(text, item.span().start) + 2);
            ok.then(|| (value.span(), format!("{head}\n{pad}{}", value.raw())))
        });
    }
    make("value before name", &|item, value| {
        let pad = " ".repeat(edit::column(text, item.span().start));
        Some((
            item.span(),
            if item.style() == Style::Flow {
                format!("{{value: {}, name: {name}}}", json!(value.raw()))
            } else {
                format!("value: {}\n{pad}name: {name}", json!(value.raw()))
            },
        ))
    });
    // Anchors on the first, aliases on the others.
    if let [(first, first_value), rest @ ..] = items.as_slice()
        && !rest.is_empty()
        && rest.iter().all(|(_, v)| v.raw() == first_value.raw())
        && first.anchor().is_none()
        && first_value.anchor().is_none()
        && rest.iter().all(|(i, v)| {
            i.anchor().is_none()
                && v.anchor().is_none()
                && std::ptr::eq(i.document(), first.document())
        })
    {
        let safe = scalar_style(*first_value);
        let aliased = |item_level: bool, with: &dyn Fn(yaml::Node<'_>) -> String| {
            let mut edits = Edits::default();
            let node = if item_level { *first } else { *first_value };
            let own = &text[node.span().start as usize..node.span().end as usize];
            let own = if item_level {
                format!("{{name: {name}, value: {}}}", json!(first_value.raw()))
            } else {
                own.to_owned()
            };
            edits.replace(node.span(), format!("&kv_x {own}"));
            for (item, value) in rest {
                let node = if item_level { *item } else { *value };
                edits.replace(node.span(), with(node));
            }
            edits.apply(text)
        };
        if safe {
            out.push(Variant::same(
                "value by alias",
                name,
                aliased(false, &|_| "*kv_x".into()),
            ));
            out.push(Variant::same(
                "entry by alias",
                name,
                aliased(true, &|_| "*kv_x".into()),
            ));
            out.push(Variant::same(
                "entry by merge key",
                name,
                aliased(true, &|_| "{<<: *kv_x}".into()),
            ));
            let value = json!(first_value.raw());
            out.push(Variant::same(
                "merge key under own value",
                name,
                aliased(true, &|_| format!("{{<<: *kv_x, value: {value}}}")),
            ));
        }
    }
}

fn scalar_style(node: yaml::Node<'_>) -> bool {
    !matches!(node.style(), Style::Literal | Style::Folded) && node.is_scalar()
}

/// Whole env lists behind an anchor.
fn aliases(text: &str, sites: &[Site<'_>], out: &mut Vec<Variant>) {
    let entries: Vec<_> = sites
        .iter()
        .filter_map(|s| s.container.entry("env"))
        .filter(|(_, e)| e.alias_span().is_none() && e.style() != Style::Flow)
        .collect();
    let lists: Vec<_> = entries.iter().map(|(_, e)| *e).collect();
    let [first, rest @ ..] = lists.as_slice() else {
        return;
    };
    if first.span().is_empty() {
        return;
    }
    let pad = |n: &yaml::Node<'_>| " ".repeat(edit::column(text, n.span().start));
    let mut edits = Edits::default();
    let colon = entries[0].0.span().end + 1;
    edits.replace(colon..colon, " &kv_env");
    let mut any = false;
    for ((key, _), list) in entries.iter().skip(1).zip(rest) {
        if edit::value(*list) == edit::value(*first)
            && std::ptr::eq(list.document(), first.document())
            && list.anchor().is_none()
        {
            edits.replace(key.span().end + 1..list.span().end, " *kv_env");
            any = true;
        }
    }
    if any && first.anchor().is_none() {
        out.push(Variant::same("env list by alias", "env", edits.apply(text)));
    }
    // The same entries under a list of each role, each item an alias.
    let mut edits = Edits::default();
    let mut any = false;
    let second: Vec<_> = rest
        .first()
        .map(|l| l.items().collect())
        .unwrap_or_default();
    for (n, item) in first.items().enumerate() {
        let Some(twin) = second.iter().find(|i| {
            edit::value(**i) == edit::value(item)
                && i.alias_span().is_none()
                && i.anchor().is_none()
        }) else {
            continue;
        };
        if item.alias_span().is_some()
            || item.anchor().is_some()
            || item.style() == Style::Flow
            || !std::ptr::eq(item.document(), twin.document())
        {
            continue;
        }
        edits.replace(
            item.span().start..item.span().start,
            format!("&kv_{n}\n{}", pad(&item)),
        );
        edits.replace(twin.span(), format!("*kv_{n}"));
        any = true;
    }
    if any {
        out.push(Variant::same(
            "every entry by alias",
            "env",
            edits.apply(text),
        ));
    }
}

/// A variable at the level of the service or of the whole graph.
fn outer(text: &str, sites: &[Site<'_>], name: &str, out: &mut Vec<Variant>) {
    let graph: Vec<&Site<'_>> = sites
        .iter()
        .filter(|s| {
            s.in_graph
                && s.root.get("kind").and_then(yaml::Node::text) == Some("DynamoGraphDeployment")
        })
        .collect();
    if graph.len() != sites.len() || graph.is_empty() {
        return;
    }
    let values: Vec<Option<String>> = graph
        .iter()
        .map(|s| env_literal(&edit::value(s.container), name))
        .collect();
    for key in ["envs", "env"] {
        // Service level.
        let mut edits = Edits::default();
        for (site, value) in graph.iter().zip(&values) {
            let (Some(value), false) = (value, site.owner.get(key).is_some()) else {
                continue;
            };
            let mut c = edit::value(site.container);
            remove_env(&mut c, name);
            rewrite(&mut edits, text, site.container, &c);
            let start = site.owner.span().start;
            let pad = " ".repeat(edit::column(text, start));
            edits.replace(
                start..start,
                format!(
                    "{key}:\n{pad}- name: {name}\n{pad}  value: {}\n{pad}",
                    json!(value)
                ),
            );
        }
        out.push(Variant::same(
            if key == "envs" {
                "service level envs"
            } else {
                "service level env"
            },
            name,
            edits.apply(text),
        ));
        // Graph level.
        let Some(first) = values[0].clone() else {
            continue;
        };
        if values.iter().any(|v| v.as_ref() != Some(&first))
            || graph[0]
                .root
                .get("spec")
                .is_some_and(|s| s.get("env").is_some() || s.get("envs").is_some())
        {
            continue;
        }
        let mut edits = Edits::default();
        for site in &graph {
            let mut c = edit::value(site.container);
            remove_env(&mut c, name);
            rewrite(&mut edits, text, site.container, &c);
        }
        let Some(spec) = graph[0].root.get("spec") else {
            continue;
        };
        let start = spec.span().start;
        let pad = " ".repeat(edit::column(text, start));
        edits.replace(
            start..start,
            format!(
                "{key}:\n{pad}- name: {name}\n{pad}  value: {}\n{pad}",
                json!(first)
            ),
        );
        out.push(Variant::same(
            if key == "envs" {
                "graph level envs"
            } else {
                "graph level env"
            },
            name,
            edits.apply(text),
        ));
    }
}

/// The container's own command as one script; `None` where it has one already, or no command of its own.
pub fn to_script(c: &mut Value, separator: &str) -> Option<()> {
    if script_at(c).is_some() || !c["command"].is_array() {
        return None;
    }
    let all = words(c);
    if all.is_empty() || all.iter().any(|(_, i, _)| *i == usize::MAX) {
        return None;
    }
    let line: Vec<String> = all
        .iter()
        .map(|(_, _, w)| {
            if w.contains("$(") && !w.contains('\'') {
                format!("'{w}'")
            } else {
                shell_quote(w)
            }
        })
        .collect();
    c["command"] = json!(["/bin/sh", "-c"]);
    c["args"] = json!([format!("exec {}", line.join(separator))]);
    Some(())
}

const FLAGS: &[&str] = &[
    "--disaggregation-mode",
    "--kv-transfer-config",
    "--disaggregation-transfer-backend",
    "--extra-engine-args",
    "--config",
    "--is-prefill-worker",
    "--disaggregation-ib-device",
    "--kv-cache-dtype",
    "--block-size",
];

/// The flags of a container in other forms.
pub fn flag_forms(text: &str, sites: &[Site<'_>], out: &mut Vec<Variant>) {
    let mut push = |kind: &'static str, what: &str, made: Option<String>| {
        if let Some(made) = made {
            out.push(Variant::same(kind, what, made));
        }
    };
    for flag in FLAGS {
        push(
            "--x=y",
            flag,
            each(text, sites, &mut |_, c| equals(c, flag)),
        );
        push("--x y", flag, each(text, sites, &mut |_, c| apart(c, flag)));
        push(
            "--a_b",
            flag,
            each(text, sites, &mut |_, c| {
                let under = format!("--{}", flag[2..].replace('-', "_"));
                (under != *flag).then(|| rename_flag(c, flag, &under))?
            }),
        );
        push(
            "flag in a variable, $(X)",
            flag,
            each(text, sites, &mut |_, c| variable(c, flag)),
        );
    }
    push(
        "argv to shell string",
        "args",
        each(text, sites, &mut |_, c| to_script(c, " ")),
    );
    push(
        "argv to shell lines",
        "args",
        each(text, sites, &mut |_, c| to_script(c, " \\\n  ")),
    );
    push(
        "all in command",
        "args",
        each(text, sites, &mut |_, c| {
            let (command, args) = (
                c["command"].as_array()?.clone(),
                c["args"].as_array()?.clone(),
            );
            c["command"] = json!([command, args].concat());
            object(c).remove("args");
            Some(())
        }),
    );
    push(
        "all in args of an entry point",
        "args",
        each(text, sites, &mut |_, c| {
            let (command, args) = (
                c["command"].as_array()?.clone(),
                c["args"].as_array()?.clone(),
            );
            c["args"] = json!([command, args].concat());
            object(c).remove("command");
            Some(())
        }),
    );
    push(
        "bash -lc",
        "args",
        each(text, sites, &mut |_, c| {
            let s = script(c)?;
            c["command"] = json!(["/usr/bin/env", "bash", "-euxo", "pipefail", "-lc"]);
            c["args"] = json!([s]);
            Some(())
        }),
    );
    push(
        "script over lines without backslash, folded",
        "args",
        folded(text, sites),
    );
    for kind in [
        "JSON in env, $(KV)",
        "JSON in env, \"${KV}\"",
        "JSON by export",
        "JSON pretty",
        "JSON with spaces",
        "JSON in dotted flags",
        "JSON in dotted flags with =",
        "JSON in ConfigMap",
        "JSON in place",
    ] {
        let mut tail = String::new();
        let made = each(text, sites, &mut |_, c| {
            let more = move_json(c, kind)?;
            if !tail.is_empty() && tail != more {
                return None;
            }
            tail = more;
            Some(())
        });
        push(kind, "--kv-transfer-config", made.map(|m| m + &tail));
    }
}

/// In a script: the flag's start, the value's range.
fn in_script(s: &str, flag: &str) -> Option<(usize, std::ops::Range<usize>)> {
    let at = s
        .find(&format!("{flag} "))
        .or_else(|| s.find(&format!("{flag}=")))?;
    let start = at + flag.len() + 1;
    let rest = &s[start..];
    let mut quote = None;
    let mut end = rest.len();
    for (i, ch) in rest.char_indices() {
        match (quote, ch) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => quote = Some(ch),
            (None, c) if c.is_whitespace() => {
                end = i;
                break;
            }
            _ => {}
        }
    }
    Some((at, start..start + end))
}

/// In argument lists: key, index, and whether the value follows.
fn in_list(c: &Value, flag: &str) -> Option<(&'static str, usize, bool)> {
    for (key, index, word) in words(c) {
        if index == usize::MAX {
            continue;
        }
        if word == flag {
            return Some((key, index, true));
        }
        if word.strip_prefix(flag).is_some_and(|r| r.starts_with('=')) {
            return Some((key, index, false));
        }
    }
    None
}

fn equals(c: &mut Value, flag: &str) -> Option<()> {
    if let Some(s) = script(c) {
        let (at, value) = in_script(&s, flag)?;
        if s[at + flag.len()..].starts_with('=') {
            return None;
        }
        let mut s = s;
        s.replace_range(value.start - 1..value.start, "=");
        set_script(c, &s);
        return Some(());
    }
    let (key, index, follows) = in_list(c, flag)?;
    if !follows {
        return None;
    }
    let list = c[key].as_array_mut()?;
    let next = list
        .get(index + 1)?
        .as_str()
        .filter(|n| !n.starts_with('-'))?
        .to_owned();
    list[index] = json!(format!("{flag}={next}"));
    list.remove(index + 1);
    Some(())
}

fn apart(c: &mut Value, flag: &str) -> Option<()> {
    if let Some(s) = script(c) {
        let (at, value) = in_script(&s, flag)?;
        if !s[at + flag.len()..].starts_with('=') {
            return None;
        }
        let mut s = s;
        s.replace_range(value.start - 1..value.start, " ");
        set_script(c, &s);
        return Some(());
    }
    let (key, index, follows) = in_list(c, flag)?;
    if follows {
        return None;
    }
    let list = c[key].as_array_mut()?;
    let value = list[index].as_str()?[flag.len() + 1..].to_owned();
    list[index] = json!(flag);
    list.insert(index + 1, json!(value));
    Some(())
}

pub fn rename_flag(c: &mut Value, from: &str, to: &str) -> Option<()> {
    if let Some(s) = script(c) {
        let at = [' ', '=', '\n']
            .iter()
            .find_map(|e| s.find(&format!("{from}{e}")))?;
        let mut s = s;
        s.replace_range(at..at + from.len(), to);
        set_script(c, &s);
        return Some(());
    }
    let (key, index, _) = in_list(c, from)?;
    let word = c[key][index].as_str()?.replacen(from, to, 1);
    c[key][index] = json!(word);
    Some(())
}

/// The value of a flag.
pub fn flag_value(c: &Value, flag: &str) -> Option<String> {
    if let Some(s) = script(c) {
        let (_, range) = in_script(&s, flag)?;
        return Some(s[range].trim_matches(['\'', '"']).to_owned());
    }
    let (key, index, follows) = in_list(c, flag)?;
    if follows {
        c[key][index + 1].as_str().map(str::to_owned)
    } else {
        Some(c[key][index].as_str()?[flag.len() + 1..].to_owned())
    }
}

/// Replaces flag and value by other words; as quoted for a shell where there is a script.
pub fn replace_flag(c: &mut Value, flag: &str, with: &[String]) -> Option<()> {
    if let Some(mut s) = script(c) {
        let (at, value) = in_script(&s, flag)?;
        s.replace_range(at..value.end, &with.join(" "));
        set_script(c, &s);
        return Some(());
    }
    let (key, index, follows) = in_list(c, flag)?;
    let list = c[key].as_array_mut()?;
    let end = index + 1 + usize::from(follows);
    list.splice(index..end, with.iter().map(|w| json!(w)));
    Some(())
}

fn variable(c: &mut Value, flag: &str) -> Option<()> {
    let value = flag_value(c, flag)?;
    if value.contains('$') || value.contains('{') || value.starts_with("--") {
        return None;
    }
    let reference = if script(c).is_some() {
        "\"${KV_FLAG}\""
    } else {
        "$(KV_FLAG)"
    };
    replace_flag(c, flag, &[flag.to_owned(), reference.to_owned()])?;
    edit::set_env(c, "KV_FLAG", &value);
    Some(())
}

/// The literal JSON of the KV transfer configuration.
pub fn kv_json(c: &Value) -> Option<String> {
    let value = flag_value(c, "--kv-transfer-config")?;
    if value.trim_start().starts_with('{') {
        return Some(value);
    }
    let name = value
        .trim_start_matches(['$', '{', '('])
        .trim_end_matches(['}', ')']);
    env_literal(c, name)
}

fn move_json(c: &mut Value, kind: &str) -> Option<String> {
    const FLAG: &str = "--kv-transfer-config";
    let json_text = kv_json(c)?;
    let parsed: Value = serde_json::from_str(&json_text).ok()?;
    let literal = flag_value(c, FLAG)?.trim_start().starts_with('{');
    let shell = script(c).is_some();
    let put = |c: &mut Value, text: &str| {
        replace_flag(
            c,
            FLAG,
            &[
                FLAG.to_owned(),
                if shell {
                    format!("'{text}'")
                } else {
                    text.to_owned()
                },
            ],
        )
    };
    match kind {
        "JSON in env, $(KV)" if literal => {
            let reference = if shell {
                "'$(KV_CONFIG)'"
            } else {
                "$(KV_CONFIG)"
            };
            replace_flag(c, FLAG, &[FLAG.to_owned(), reference.to_owned()])?;
            edit::set_env(c, "KV_CONFIG", &json_text);
        }
        "JSON in env, \"${KV}\"" if literal && shell => {
            replace_flag(c, FLAG, &[FLAG.to_owned(), "\"${KV_CONFIG}\"".to_owned()])?;
            edit::set_env(c, "KV_CONFIG", &json_text);
        }
        "JSON by export" if shell => {
            replace_flag(c, FLAG, &[FLAG.to_owned(), "\"$KV_CONFIG\"".to_owned()])?;
            let s = script(c)?;
            set_script(c, &before_script(&s, &format!("KV_CONFIG='{json_text}'")));
        }
        "JSON pretty" => put(c, &serde_json::to_string_pretty(&parsed).ok()?)?,
        "JSON with spaces" => put(
            c,
            &parsed.to_string().replace(':', " : ").replace(',', " , "),
        )?,
        "JSON in place" if !literal => put(c, &json_text)?,
        "JSON in dotted flags" | "JSON in dotted flags with =" => {
            let mut words = Vec::new();
            dotted(FLAG, &parsed, kind.ends_with('='), shell, &mut words);
            replace_flag(c, FLAG, &words)?;
        }
        "JSON in ConfigMap" if literal => {
            let reference = if shell {
                "\"$KV_CONFIG\""
            } else {
                "$(KV_CONFIG)"
            };
            replace_flag(c, FLAG, &[FLAG.to_owned(), reference.to_owned()])?;
            if !c["env"].is_array() {
                c["env"] = json!([]);
            }
            let key = format!("kv-{:x}", json_text.len());
            c["env"].as_array_mut()?.push(json!({"name": "KV_CONFIG", "valueFrom": {"configMapKeyRef": {"name": "kv-settings", "key": key}}}));
            return Some(config_map(
                "kv-settings",
                &key,
                &serde_json::to_string_pretty(&parsed).ok()?,
            ));
        }
        _ => return None,
    }
    Some(String::new())
}

fn dotted(prefix: &str, v: &Value, equals: bool, shell: bool, out: &mut Vec<String>) {
    let mut word = |name: String, v: &str| {
        let v = if shell { shell_quote(v) } else { v.to_owned() };
        if equals {
            out.push(format!("{name}={v}"));
        } else {
            out.push(name);
            out.push(v);
        }
    };
    match v {
        Value::Object(map) => {
            for (k, v) in map {
                dotted(&format!("{prefix}.{k}"), v, equals, shell, out);
            }
        }
        Value::Array(list) => {
            for v in list {
                word(format!("{prefix}+"), v.as_str().unwrap_or_default());
            }
        }
        Value::String(s) => word(prefix.to_owned(), s),
        other => word(prefix.to_owned(), &other.to_string()),
    }
}

/// A literal script with continuation lines, or an argument list, as a folded scalar.
fn folded(text: &str, sites: &[Site<'_>]) -> Option<String> {
    let mut edits = Edits::default();
    let mut any = false;
    for site in sites {
        let mut c = edit::value(site.container);
        if to_script(&mut c, " ").is_none() {
            continue;
        }
        let script = script(&c)?;
        c["args"] = json!(["@@SCRIPT@@"]);
        let column = edit::column(text, site.container.span().start);
        if site.container.style() == Style::Flow || script.contains('\n') {
            return None;
        }
        let pad = format!("\n{}", " ".repeat(column + 6));
        let new = edit::block(&c, column).replace(
            "\"@@SCRIPT@@\"",
            &format!(">-{pad}{}", script.replace(" --", &format!("{pad}--"))),
        );
        edits.replace(site.container.span(), new);
        any = true;
    }
    any.then(|| edits.apply(text))
}

/// Things around the workers, and the file as a whole.
pub fn whole(name: &str, text: &str, sites: &[Site<'_>], out: &mut Vec<Variant>) {
    let stream = edit::parse(text);
    let documents: Vec<Value> = stream
        .documents
        .iter()
        .map(|d| edit::value(d.root()))
        .filter(|v| !v.is_null())
        .collect();
    let mut push = |kind: &'static str, made: String| out.push(Variant::same(kind, "file", made));
    let is_manifest = documents.iter().all(|d| d["kind"].is_string());
    if is_manifest {
        push(
            "documents reversed",
            documents
                .iter()
                .rev()
                .map(|d| edit::block(d, 0))
                .collect::<Vec<_>>()
                .join("\n---\n")
                + "\n",
        );
        push(
            "documents written again",
            documents
                .iter()
                .map(|d| edit::block(d, 0))
                .collect::<Vec<_>>()
                .join("\n---\n")
                + "\n",
        );
        push(
            "kind: List",
            edit::block(
                &json!({"apiVersion": "v1", "kind": "List", "items": documents}),
                0,
            ) + "\n",
        );
        push(
            "JSON list",
            serde_json::to_string_pretty(
                &json!({"apiVersion": "v1", "kind": "List", "items": documents}),
            )
            .unwrap(),
        );
        push(
            "JSON on one line",
            json!({"apiVersion": "v1", "kind": "List", "items": documents}).to_string(),
        );
        push(
            "JSON documents",
            documents
                .iter()
                .map(|d| serde_json::to_string_pretty(d).unwrap())
                .collect::<Vec<_>>()
                .join("\n---\n"),
        );
        // Everything moved to the right, byte for byte, under a list.
        if stream.documents.len() == 1
            && !text.contains('\t')
            && !text.trim_start_matches(['\n', ' ']).starts_with("---")
            && !text.contains("\n---")
        {
            let body: String = text
                .lines()
                .map(|l| {
                    if l.is_empty() {
                        "\n".to_owned()
                    } else {
                        format!("    {l}\n")
                    }
                })
                .collect();
            push(
                "indented under a List",
                format!("apiVersion: v1\nkind: List\nitems:\n  -\n{body}"),
            );
        }
    }
    push("CRLF", text.replace('\n', "\r\n"));
    push("harmful comments", comments(text, &stream));
    push("comment lines everywhere", {
        let mut t = String::from(
            "# export UCX_TLS=tcp\n# - name: UCX_TLS\n#   value: tcp\n# kind: DynamoGraphDeployment\n",
        );
        t.push_str(text);
        t.push_str("\n# UCX_NET_DEVICES=eth0 --disaggregation-mode prefill\n");
        t
    });
    if is_manifest {
        push(
            "beside a Job and an aggregated Deployment",
            format!("{text}\n---\n{BESIDE}"),
        );
        push(
            "behind a Job and an aggregated Deployment",
            format!("{BESIDE}\n---\n{text}"),
        );
    }
    let sidecar = json!({"name": "agent", "image": "busybox:1", "command": ["sleep", "infinity"], "env": [{"name": "UCX_TLS", "value": "tcp"}, {"name": "UCX_NET_DEVICES", "value": "eth0"}]});
    let mut edits = Edits::default();
    let mut any = false;
    for site in sites {
        let mut pod = edit::value(site.pod);
        if pod.get("mainContainer").is_none() && pod.get("containers").is_none() {
            continue;
        }
        if !pod["containers"].is_array() {
            pod["containers"] = json!([]);
        }
        pod["containers"]
            .as_array_mut()
            .unwrap()
            .push(sidecar.clone());
        pod["initContainers"] = json!([sidecar]);
        rewrite(&mut edits, text, site.pod, &pod);
        any = true;
    }
    let mut pods: Vec<u32> = sites.iter().map(|s| s.pod.id()).collect();
    pods.dedup();
    if any && pods.len() == sites.len() {
        push("beside a sidecar and an init container", edits.apply(text));
    }
    let _ = name;
    // What the script says or prints is no setting.
    let made = each(text, sites, &mut |_, c| {
        let s = script(c)?;
        set_script(
            c,
            &before_script(
                &s,
                "# export UCX_TLS=tcp\necho \"export UCX_TLS=tcp\"\necho UCX_NET_DEVICES=eth0\nprintf 'UCX_TLS=tcp\\n'",
            ),
        );
        Some(())
    });
    if let Some(made) = made {
        push("printed and commented in the script", made);
    }
    let made = each(text, sites, &mut |_, c| {
        for (name, value) in [
            ("NCCL_IB_HCAS", "mlx5_0"),
            ("NCCL_SOCKET_IFNAM", "lo"),
            ("NCCL_NET", "Socket"),
            ("NCCL_P2P_DISABLE", "1"),
            ("NCCL_IB_DISABLE", "1"),
            ("NCCL_SOCKET_IFNAME", "lo"),
        ] {
            edit::set_env(c, name, value);
        }
        Some(())
    });
    if let Some(made) = made {
        out.push(Variant::verdict_only("harmful NCCL settings", "NCCL", made));
    }
}

const BESIDE: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: bench
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: bench
        image: example.org/bench:1
        command: [\"/bin/sh\", \"-c\"]
        args:
        - |
          export UCX_TLS=tcp
          aiperf profile --url http://frontend:8000
        env:
        - {name: UCX_TLS, value: tcp}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
spec:
  replicas: 1
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
      - name: server
        image: vllm/vllm-openai:v0.11.0
        command: [vllm, serve, some/model]
        env:
        - {name: UCX_TLS, value: tcp}
        - {name: NCCL_IB_DISABLE, value: \"1\"}
        resources: {limits: {nvidia.com/gpu: 1}}
";

/// Comments behind and between lines, where a comment may stand.
fn comments(text: &str, stream: &yaml::Stream<'_>) -> String {
    let mut edits = Edits::default();
    for document in &stream.documents {
        let mut ends = Vec::new();
        yaml::walk(document.root(), u64::MAX, &mut |v| {
            let n = v.node;
            if n.alias_span().is_some() {
                return yaml::Step::Skip;
            }
            if n.style() == Style::Flow {
                return yaml::Step::Skip;
            }
            let at_line_end = text[n.span().end as usize..]
                .chars()
                .next()
                .is_some_and(|c| c == '\n');
            if n.is_scalar()
                && scalar_style(n)
                && !v.is_key
                && at_line_end
                && !text[n.span().start as usize..n.span().end as usize].contains('\n')
            {
                ends.push(n.span().end);
            }
            yaml::Step::Enter
        });
        ends.sort_unstable();
        ends.dedup();
        for end in ends {
            edits.replace(end..end, "  # UCX_TLS=tcp --disaggregation-mode prefill");
        }
    }
    edits.apply(text)
}

/// UCX settings where something else than UCX carries KV: no effect on the verdict.
pub fn without_effect(text: &str, sites: &[Site<'_>], out: &mut Vec<Variant>) {
    for (name, value) in [
        ("UCX_TLS", "tcp"),
        ("UCX_TLS", "cuda_copy,cuda_ipc"),
        ("UCX_NET_DEVICES", "eth0"),
        ("UCX_IB_GPU_DIRECT_RDMA", "n"),
        ("UCX_TSL", "tcp"),
        ("UCX_NET_DEVICE", "eth0"),
    ] {
        let made = each(text, sites, &mut |_, c| {
            edit::set_env(c, name, value);
            Some(())
        });
        if let Some(made) = made {
            out.push(Variant::verdict_only(
                "UCX settings beside another carrier",
                name,
                made,
            ));
        }
    }
}
