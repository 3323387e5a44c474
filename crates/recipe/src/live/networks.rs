//! Annotations by which networks are attached to a pod (Kubernetes Network Plumbing Working Group, multi-network
//! specification: `networks` and `network-status`).

use serde_json::{Map, Value};

/// How many networks an annotation asks for: names separated by commas, or a JSON list of objects. `None` where it is
/// neither.
#[must_use]
pub fn networks_asked(text: &str) -> Option<usize> {
    let text = text.trim();
    if text.starts_with(['[', '{']) {
        let list: Vec<Map<String, Value>> = serde_json::from_str(text).ok()?;
        return Some(list.iter().filter(|n| n.contains_key("name")).count());
    }
    Some(text.split(',').filter(|n| !n.trim().is_empty()).count())
}

/// Names of interfaces in a network status, which is a JSON list; none where it is something else.
#[must_use]
pub fn networks_attached(status: &str) -> Vec<String> {
    let list: Vec<Value> = serde_json::from_str(status).unwrap_or_default();
    list.iter()
        .filter_map(|network| network.get("interface")?.as_str())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_counted() {
        assert_eq!(networks_asked("a, default/b"), Some(2));
        assert_eq!(networks_asked(" "), Some(0));
        let two = r#"[{"name":"a"},{"name": "b","namespace":"x"}]"#;
        assert_eq!(networks_asked(two), Some(2));
        // A name inside of one is none of its own.
        let one = r#"[{"name":"a","cni-args":{"name":"x"}},{"namespace":"b"}]"#;
        assert_eq!(networks_asked(one), Some(1));
        for odd in ["[", "[1]", r#"{"name": "a"}"#] {
            assert_eq!(networks_asked(odd), None, "{odd}");
        }
    }

    #[test]
    fn interfaces_are_found() {
        let status = r#"[{"name":"cbr0","default":true},{"name":"x","interface": "net1"},{"interface":"net2"},{"interface":""},7]"#;
        assert_eq!(networks_attached(status), ["net1", "net2"]);
        assert!(networks_attached("nothing").is_empty());
    }
}
