//! The collecting script, with the names filled in that may leave a machine.

use std::collections::BTreeSet;
use std::sync::LazyLock;

const TEMPLATE: &str = include_str!("probe.sh");

/// The script as it is to be run, by `sh -s` on its standard input or by `sh -c`.
///
/// Its arguments are `limit=SECONDS` for all tools together, `tool_limit=SECONDS` for each, `tools=no`, `sockets=yes` for
/// the engine's sockets and queue pairs, for trees of files that are not this machine's `root=DIR` and `path=DIR`, and
/// `watch=yes`, with which it ends itself and what it has started as soon as its standard input ends.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(render);
    &TEXT
}

fn render() -> String {
    let variables: BTreeSet<&str> = settings::catalogue::allowed_names()
        .filter(|name| is_plain(name))
        .collect();
    let families: BTreeSet<String> = variables
        .iter()
        .map(|name| match name.split_once('_') {
            // The rest of the name is looked at in the long list only.
            Some((family, _)) => format!("{family}_*"),
            None => (*name).to_owned(),
        })
        .collect();
    let switches = both_spellings(&recipe::ENGINE_SWITCHES);
    let flags = both_spellings(&recipe::ENGINE_FLAGS);
    let mut out = String::with_capacity(TEMPLATE.len().saturating_add(64 * 1024));
    for line in TEMPLATE.lines() {
        // The comments are for readers of the source, and every byte travels to every pod.
        let code = line.trim_start();
        if code.starts_with('#') && !code.starts_with("#!") {
            continue;
        }
        match code.split_once(')') {
            Some(("@VARIABLES@", rest)) => push(&mut out, variables.iter(), rest),
            Some(("@FAMILIES@", rest)) => push(&mut out, families.iter(), rest),
            Some(("@SWITCHES@", rest)) => push(&mut out, switches.iter(), rest),
            Some(("@FLAGS@", rest)) => push(&mut out, flags.iter(), rest),
            Some(("@JSON_KEYS@", rest)) => push(&mut out, recipe::kept_keys(), rest),
            _ => out.push_str(code),
        }
        out.push('\n');
    }
    out
}

/// A name that is the same as a pattern of the shell: nothing in it is special there.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Engines take `_` for `-` in a flag.
fn both_spellings(flags: &[&str]) -> BTreeSet<String> {
    flags
        .iter()
        .filter(|flag| is_plain(flag))
        .flat_map(|flag| {
            let body = flag.trim_start_matches('-');
            let dashes = flag.strip_suffix(body).unwrap_or("");
            [
                (*flag).to_owned(),
                format!("{dashes}{}", body.replace('-', "_")),
            ]
        })
        .collect()
}

/// One pattern with all names.
fn push<S: AsRef<str>>(out: &mut String, names: impl Iterator<Item = S>, rest: &str) {
    for (at, name) in names.enumerate() {
        if at > 0 {
            out.push('|');
        }
        out.push_str(name.as_ref());
    }
    out.push(')');
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_catalogue() {
        let text = text();
        assert!(!text.contains("@VARIABLES@") && !text.contains("@F"));
        for name in ["UCX_TLS", "NCCL_IB_HCA", "VLLM_NIXL_SIDE_CHANNEL_HOST"] {
            assert!(text.contains(&format!("|{name}|")), "{name}");
        }
        assert!(!text.contains("NIXL_ETCD_ENDPOINTS"));
        assert!(text.contains("|--kv-transfer-config|") && text.contains("|--kv_transfer_config|"));
        // It has to travel to every pod.
        assert!(text.len() < 96 * 1024, "{} bytes", text.len());
    }

    #[test]
    fn the_source_alone_lets_nothing_out() {
        for (mark, times) in [
            ("@VARIABLES@)", 1),
            ("@FAMILIES@)", 1),
            ("@SWITCHES@)", 1),
            ("@FLAGS@)", 1),
            ("@JSON_KEYS@)", 2),
        ] {
            assert_eq!(TEMPLATE.matches(mark).count(), times, "{mark}");
        }
    }
}
