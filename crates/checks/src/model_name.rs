//! Whether two models, as engines are told them, are the same.
//!
//! A model is told as the name of a repository (`org/name`), as a path, or as an address of a store. The same weights
//! have many such names, so that only what can be compared is compared, and what is left open counts as the same.

/// What can be said of two models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Same {
    /// They differ for certain.
    No,
    /// They differ, unless one is a copy of the other under another name.
    Unlikely,
    /// They are the same, or nothing tells.
    MayBe,
}

/// Words that tell how the weights are stored; the KV cache of the same model does not depend on them.
const STORAGE: [&str; 26] = [
    "4bit",
    "8bit",
    "autoround",
    "mlx",
    "nf4",
    "awq",
    "bf16",
    "bnb",
    "compressed",
    "dynamic",
    "fp16",
    "fp4",
    "fp8",
    "gguf",
    "gptq",
    "int4",
    "int8",
    "marlin",
    "mxfp4",
    "mxfp8",
    "nvfp4",
    "quantized",
    "w4a16",
    "w4a8",
    "w8a16",
    "w8a8",
];

/// Compares two models.
pub(crate) fn same(a: &str, b: &str) -> Same {
    // What is masked, computed or empty cannot be compared.
    let open = |m: &str| m.trim().is_empty() || m.contains(['…', '$', '{', '<', '*']);
    if open(a) || open(b) || words(a) == words(b) {
        return Same::MayBe;
    }
    match (repository(a), repository(b)) {
        (Some((org, name)), Some((other_org, other))) => {
            if words(name) == words(other) {
                Same::MayBe
            } else if org.eq_ignore_ascii_case(other_org) {
                Same::No
            } else {
                Same::Unlikely
            }
        }
        _ => Same::MayBe,
    }
}

/// Organization and name of a repository; of a path only that of a hub's cache tells both.
fn repository(model: &str) -> Option<(&str, &str)> {
    let model = model.trim().trim_end_matches('/');
    let model = model.strip_prefix("hf://").unwrap_or(model);
    if let Some((_, cached)) = model.split_once("models--") {
        return cached.split('/').next()?.split_once("--");
    }
    if model.starts_with(['/', '.', '~']) || model.contains("://") {
        return None;
    }
    // A revision is no other model.
    let model = model.split(['@', ':']).next().unwrap_or(model);
    let (org, name) = model.split_once('/')?;
    (!org.is_empty() && !name.is_empty() && !name.contains('/')).then_some((org, name))
}

/// The words of a name that make the model.
fn words(name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase();
    let mut words = Vec::new();
    let mut stored = false;
    for word in lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '/') {
        // `FP4-v2` is the second set of files, not a second model.
        let version = stored
            && word
                .strip_prefix('v')
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        stored = STORAGE.contains(&word);
        if !word.is_empty() && !stored && !version {
            words.push(word.to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{Same, same};

    #[test]
    fn only_what_can_be_compared_differs() {
        for (a, b, wanted) in [
            ("team/Big-8B", "team/Big-70B", Same::No),
            ("team/Big-8B", "team/Big-8B-Instruct", Same::No),
            ("hf://team/Big-8B", "team/Small-1B", Same::No),
            (
                "/hub/models--team--Big-8B/snapshots/1",
                "team/Small-1B",
                Same::No,
            ),
            ("team/Big-8B", "mirror/prod", Same::Unlikely),
            ("team/Big-8B", "team/big-8b", Same::MayBe),
            ("team/Big-8B", "mirror/Big-8B", Same::MayBe),
            ("team/Big-8B", "team/Big-8B-FP8", Same::MayBe),
            ("team/Big-8B-FP8-dynamic", "other/Big-8B-NVFP4", Same::MayBe),
            ("team/Big-8B-FP4", "team/Big-8B-FP4-v2", Same::MayBe),
            ("team/Big-v1", "team/Big-v2", Same::No),
            ("team/Big-8B", "/models/small", Same::MayBe),
            ("/models/a", "/models/b", Same::MayBe),
            (
                "/hub/models--team--Big-8B/snapshots/1",
                "team/Big-8B",
                Same::MayBe,
            ),
            ("s3://bucket/a", "s3://bucket/b", Same::MayBe),
            ("big", "small", Same::MayBe),
            ("team/Big-8B@main", "team/Big-8B", Same::MayBe),
            ("$(MODEL)", "team/Big-8B", Same::MayBe),
            ("", "team/Big-8B", Same::MayBe),
        ] {
            assert_eq!(same(a, b), wanted, "{a} {b}");
            assert_eq!(same(b, a), wanted, "{b} {a}");
        }
    }
}
