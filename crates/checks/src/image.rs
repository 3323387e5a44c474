//! What an image reference tells of the software inside: its name and, where the tag is one, a version.
//!
//! A tag without a version (`latest`, a commit, a placeholder) tells nothing, and nothing then counts as old.

use settings::version::UcxVersion;

/// A version out of a tag; missing parts are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The reference without tag and digest, and the tag.
pub(crate) fn split(reference: &str) -> (&str, Option<&str>) {
    let name = reference.split('@').next().unwrap_or(reference);
    match name.rsplit_once(':') {
        // `host:5000/image` has a port and no tag.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    }
}

/// The version that a tag begins with: `v0.5.10-cu130`, `1.2.0rc1`.
pub(crate) fn version(reference: &str) -> Option<Version> {
    let tag = split(reference).1?;
    let tag = tag.strip_prefix(['v', 'V']).unwrap_or(tag);
    let end = tag
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(tag.len());
    let mut parts = tag.get(..end)?.split('.').filter(|p| !p.is_empty());
    let mut next = || parts.next().map(str::parse::<u32>);
    let (major, minor) = (next()?.ok()?, next()?.ok()?);
    let patch = next().and_then(Result::ok).unwrap_or(0);
    Some(Version(major, minor, patch))
}

/// SGLang's version; images of other projects have tags of their own.
pub(crate) fn sglang(reference: &str) -> Option<Version> {
    split(reference)
        .0
        .ends_with("lmsysorg/sglang")
        .then(|| version(reference))
        .flatten()
}

/// The UCX inside, at the newest: where the tag names it (`…-ucx1.20`), and in Dynamo's images before 1.0, which are
/// built with UCX 1.19 or 1.20 (ai-dynamo/dynamo container/build.sh, NIXL_UCX_REF).
pub(crate) fn ucx(reference: &str) -> Option<UcxVersion> {
    let (name, tag) = split(reference);
    let tag = tag.unwrap_or_default().to_ascii_lowercase();
    let named = tag.match_indices("ucx").find_map(|(at, word)| {
        let rest = tag.get(at + word.len()..)?;
        rest.trim_start_matches(['-', '_', 'v']).parse().ok()
    });
    let dynamo = ["vllm-runtime", "sglang-runtime", "tensorrtllm-runtime"]
        .iter()
        .any(|n| name.ends_with(n));
    named.or_else(|| {
        (dynamo && version(reference)? < Version(1, 0, 0)).then_some(UcxVersion::new(1, 20))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ucx_is_known_where_the_image_tells() {
        let of = |reference| ucx(reference);
        assert_eq!(
            of("r.io/a/vllm:v0.10-ucx1.20.1"),
            Some(UcxVersion::new(1, 20))
        );
        assert_eq!(of("r.io/a/b:cu130-ucx_v1.22"), Some(UcxVersion::new(1, 22)));
        assert_eq!(
            of("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.0"),
            Some(UcxVersion::new(1, 20))
        );
        assert_eq!(of("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0"), None);
        assert_eq!(of("vllm/vllm-openai:v0.10.0"), None);
        assert_eq!(of("r.io/ucx:latest"), None);
    }

    #[test]
    fn versions_are_read_from_tags_only() {
        assert_eq!(version("r.io/a/b:v0.5.10-cu130"), Some(Version(0, 5, 10)));
        assert_eq!(version("r.io:5000/a/b:1.2.0rc1"), Some(Version(1, 2, 0)));
        assert_eq!(version("r.io:5000/a/b"), None);
        assert_eq!(version("a:latest"), None);
        assert_eq!(version("a:1"), None);
        assert_eq!(version("a:1.2@sha256:0"), Some(Version(1, 2, 0)));
        assert_eq!(
            sglang("docker.io/lmsysorg/sglang:v0.5.1"),
            Some(Version(0, 5, 1))
        );
        assert_eq!(
            sglang("nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.0.0"),
            None
        );
    }
}
