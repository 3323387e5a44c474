//! Libraries that are installed: providers of libibverbs, NIXL, UCX.

use std::collections::BTreeSet;

use model::observation::software::UcxBuild;
use model::observation::{Fact, Observation};

use super::facts::{Facts, origin, printable};

/// Packages whose version is told, by the name that their directory begins with.
const PACKAGES: [(&str, &str); 6] = [
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("tensorrt_llm", "tensorrt_llm"),
    ("ai_dynamo", "ai_dynamo"),
    ("mooncake_transfer_engine", "mooncake"),
    ("lmcache", "lmcache"),
];

pub(super) fn read(facts: &Facts<'_>, seen: &mut Observation) {
    if !facts.reached("device-nodes") {
        return;
    }
    let software = &mut seen.software;
    let file = |path: &&str| printable(path.rsplit('/').next().unwrap_or(path));
    let drivers: BTreeSet<String> = facts
        .listed("driver")
        .iter()
        .map(|path| file(path).trim_end_matches(".driver").to_owned())
        .collect();
    software.verbs_providers =
        Fact::seen(drivers.into_iter().collect(), origin("/etc/libibverbs.d"));
    let libraries: BTreeSet<String> = facts
        .listed("provider")
        .iter()
        .chain(facts.listed("wheel-provider"))
        // Wheels bring one without that ending.
        .filter(|path| path.contains("-rdmav") || file(path).starts_with("libmlx5"))
        .map(|path| printable(path))
        .collect();
    let from = libraries
        .first()
        .map_or_else(|| origin("/usr/lib"), |path| origin(path));
    software.verbs_provider_libraries = Fact::seen(libraries.into_iter().collect(), from);
    for path in facts.listed("package") {
        let Some((name, version)) = file(path)
            .strip_suffix(".dist-info")
            .and_then(|stem| stem.split_once('-'))
            .map(|(name, version)| (name.to_owned(), version.to_owned()))
        else {
            continue;
        };
        // `nixl` itself is often only a name for `nixl_cu12` or `nixl_cu13`.
        if name == "nixl" || name.starts_with("nixl_cu") {
            software.nixl_version.see(version, origin(path));
        } else if let Some((_, known)) = PACKAGES.iter().find(|(begin, _)| *begin == name) {
            software
                .versions
                .entry((*known).to_owned())
                .or_default()
                .see(version, origin(path));
        }
    }
    let plugins: BTreeSet<String> = facts
        .listed("nixl-plugin")
        .iter()
        .filter_map(|path| {
            let name = file(path);
            Some(
                name.strip_prefix("libplugin_")?
                    .split('.')
                    .next()?
                    .to_owned(),
            )
        })
        .collect();
    if !plugins.is_empty() {
        software.nixl_plugins = Fact::seen(
            plugins.into_iter().collect(),
            origin("/usr/local/lib/python3"),
        );
    }
    for path in facts
        .listed("ucx")
        .iter()
        .chain(facts.listed("wheel-provider"))
        .filter(|path| file(path).starts_with("libucp"))
    {
        // Links lead to the same file.
        if file(path) == "libucp.so" {
            continue;
        }
        let mut build = UcxBuild::new(origin(path));
        build.library = Some(printable(path));
        software.ucx.push(build);
    }
}
