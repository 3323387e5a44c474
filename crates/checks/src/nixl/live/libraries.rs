//! Which NIXL and which UCX the engine's processes have loaded, of all that are in the image.
//!
//! Images hold several copies: of the distribution, of HPC-X, in a wheel. Only the ones that a process has mapped
//! (`/proc/PID/maps`) tell what carries KV there; tools such as `ucx_info` may use another. Two copies of libnixl or of
//! libucp in one process are trouble: plugins register with one copy and are looked for in the other. Two copies of
//! libibverbs are usual with some wheels and say nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use model::Reason;
use model::observation::process::{MappedLibrary, Process};

use super::view::{NixlView, has_nixl, libraries, who};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node::ucx_build::folder;

const NAME: &str = "nixl/libraries";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the engine has one NIXL and one UCX loaded, and which",
    source: include_str!("libraries.rs"),
    causes: &[NO_ENGINE, NO_NIXL, TWO_NIXL, TWO_UCX, OTHER_PLUGIN],
    notes: &[REPLACED],
    run: Run::Nixl(run),
};

const NO_ENGINE: Cause = Cause {
    id: "nixl-no-engine-process",
    what: "no process of an inference engine was seen",
    why: "what NIXL would do in an engine that does not run cannot be seen; nothing is validated",
    fix: "look again when the engine runs, in its own container (-c); its processes must be visible to whoever looks",
    quiet_if: "an engine's process is there",
    source: "/proc",
};

const NO_NIXL: Cause = Cause {
    id: "nixl-not-loaded",
    what: "an engine runs, and none of its processes has libnixl loaded",
    why: "no KV moves over NIXL in this process: the connector is another one, is off, or the engine has not come so far",
    fix: "look at the engine's connector (--kv-transfer-config, --disaggregation-transfer-backend) and at the end of its log",
    quiet_if: "a process has libnixl mapped",
    source: "/proc/PID/maps",
};

const TWO_NIXL: Cause = Cause {
    id: "nixl-two-copies-loaded",
    what: "one process has two copies of libnixl loaded",
    why: "plugins register with one copy and are looked for in the other: backend 'UCX' not found, or a crash later",
    fix: "load one copy: take the other wheel or path out of the image, LD_PRELOAD and LD_LIBRARY_PATH",
    quiet_if: "one copy, or two processes with one each",
    source: "/proc/PID/maps; ai-dynamo/dynamo#6671, #9299",
};

const TWO_UCX: Cause = Cause {
    id: "ucx-two-copies-loaded",
    what: "one process has two copies of libucp loaded",
    why: "MPI, torch or another library has brought its own UCX; two copies hook the same memory functions and have hung",
    fix: "let both use one UCX, or take the other library's UCX away",
    quiet_if: "one copy, or two processes with one each; several copies in the image that nobody loads",
    source: "/proc/PID/maps; ai-dynamo/nixl#1668",
};

const OTHER_PLUGIN: Cause = Cause {
    id: "nixl-plugin-of-another-copy",
    what: "a plugin that is loaded lies with another copy of NIXL than the libnixl that is loaded",
    why: "plugins fit the NIXL that they were built with; another one may refuse them or crash",
    fix: "unset NIXL_PLUGIN_DIR, or point it to the plugins of the loaded copy",
    quiet_if: "both are of one wheel or one prefix; a plugin that NIXL does not bring itself",
    source: "/proc/PID/maps; NIXL nixl_plugin_manager.cpp",
};

const REPLACED: Cause = Cause {
    id: "nixl-library-replaced",
    what: "a file that the process has loaded was deleted or replaced since",
    why: "the process keeps the old one until it is started again",
    fix: "start the worker again",
    quiet_if: "always a note",
    source: "/proc/PID/maps",
};

/// What one copy of NIXL has in common: the package of a wheel, else the prefix of an installation.
pub(super) fn home(path: &str) -> String {
    let folder = folder(path);
    // SITE/.nixl_cu13.mesonpy.libs/plugins, SITE/nixl_cu13.libs/ucx, SITE/nixl_cu13
    let mut parts: Vec<&str> = folder.split('/').collect();
    for at in (0..parts.len()).rev() {
        let Some(part) = parts.get(at) else { continue };
        let name = part.trim_start_matches('.');
        let name = name.strip_suffix(".mesonpy.libs").unwrap_or(name);
        let name = name.strip_suffix(".libs").unwrap_or(name);
        if name == "nixl" && part.len() == name.len() {
            // A prefix such as /opt/nixl, and no wheel.
            continue;
        }
        if (name == "nixl" || name.starts_with("nixl_cu") || name.starts_with("nixl_rocm"))
            && at > 0
        {
            let name = name.to_owned();
            parts.truncate(at);
            return format!("{}/{name}", parts.join("/"));
        }
    }
    folder.trim_end_matches("/plugins").to_owned()
}

fn homes<'l>(of: impl Iterator<Item = &'l MappedLibrary>) -> BTreeSet<String> {
    of.map(|library| home(&library.path)).collect()
}

fn named<'l>(all: &'l [MappedLibrary], name: &'l str) -> impl Iterator<Item = &'l MappedLibrary> {
    all.iter().filter(move |library| library.library == name)
}

/// Plugins that NIXL brings itself: whoever writes one of their own may put it anywhere.
const OWN_PLUGINS: [&str; 6] = [
    "libplugin_UCX",
    "libplugin_LIBFABRIC",
    "libplugin_UCX_MO",
    "libplugin_GDS",
    "libplugin_POSIX",
    "libplugin_Mooncake",
];

fn run(view: &NixlView<'_>, findings: &mut Findings) {
    let processes: Vec<(u32, &Process)> = view.processes().collect();
    if processes.is_empty() {
        let looked = &view.seen.process.looked;
        let finding = match looked.get() {
            Ok(_) => Finding::skipped(
                NAME,
                Reason::NotRunning,
                "no engine process was seen here: NIXL in a worker was not looked at",
            ),
            Err(missing) => Finding::lacking(NAME, missing, "no engine process was seen here"),
        };
        findings.push(finding.because(&NO_ENGINE).required());
        return;
    }
    if view.with_nixl().next().is_none() {
        no_nixl(view, &processes, findings);
        return;
    }
    // Processes of one engine have mostly the same: one line tells of all.
    let mut alike: BTreeMap<String, Vec<(u32, &Process)>> = BTreeMap::new();
    for (pid, process) in view.with_nixl() {
        alike
            .entry(what(view, process))
            .or_default()
            .push((pid, process));
    }
    for (what, of) in &alike {
        let Some((pid, process)) = of.first() else {
            continue;
        };
        let whose = match of.len() {
            1 => format!("{} has", who(*pid, process)),
            n => format!(
                "{} and {} more have",
                who(*pid, process),
                n.saturating_sub(1)
            ),
        };
        let mut finding = Finding::ok(NAME, format!("{whose} {what}"));
        if libraries(process)
            .iter()
            .any(|library| library.deleted && is_of_the_path(library))
        {
            finding = finding.told(&REPLACED);
        }
        findings.push(finding.seen(&process.libraries, "mapped"));
        faults(*pid, process, findings);
    }
}

fn is_of_the_path(library: &MappedLibrary) -> bool {
    ["libnixl", "libuc", "libplugin_", "libibverbs", "libfabric"]
        .iter()
        .any(|begin| library.library.starts_with(begin))
}

/// `NIXL 1.5.1 (/x/libnixl.so) with UCX 1.23.0 (/x/libucp-1a2b3c4d.so), one of 3 copies of UCX in the image`.
fn what(view: &NixlView<'_>, process: &Process) -> String {
    let all = libraries(process);
    let path = |name: &'static str| named(all, name).map(|l| l.path.as_str()).next();
    let software = &view.seen.software;
    let mut words = String::from("NIXL");
    let version = path("libnixl").and_then(|path| nixl_version(view, path));
    if let Some(version) = version {
        words.push(' ');
        words.push_str(version);
    }
    if let Some(path) = path("libnixl") {
        let _ = write!(words, " ({path})");
    }
    match path("libucp") {
        Some(path) => {
            words.push_str(" with UCX");
            if let Some(version) = version_of(view, path) {
                words.push(' ');
                words.push_str(&version);
            }
            let _ = write!(words, " ({path})");
        }
        None if path("libfabric").is_some() => {}
        None => words.push_str(" and no UCX"),
    }
    if let Some(path) = path("libfabric") {
        let _ = write!(words, " and libfabric ({path})");
    }
    let copies: BTreeSet<&str> = software
        .ucx
        .iter()
        .filter_map(|build| build.library.as_deref())
        .map(folder)
        .chain(named(all, "libucp").map(|library| folder(&library.path)))
        .collect();
    if copies.len() > 1 {
        let _ = write!(words, "; {} copies of UCX are in the image", copies.len());
    }
    words
}

/// The version of the NIXL that has this file: of the package beside it, or of an agent that loaded the same.
fn nixl_version<'v>(view: &NixlView<'v>, path: &str) -> Option<&'v str> {
    let own = home(path);
    let site = folder(&own);
    let packages = view.seen.software.nixl_version.readings();
    let beside = packages
        .filter(|reading| {
            let mut sources = reading.sources.iter();
            sources.any(|origin| folder(&origin.from.file) == site)
        })
        .map(|reading| reading.value.as_str())
        .next();
    beside.or_else(|| {
        let trial = &view.trial()?.trial;
        homes(named(&trial.libraries, "libnixl"))
            .contains(&own)
            .then_some(trial.version.as_deref())?
    })
}

/// The version of the UCX in that folder, where anything that uses it tells.
pub(super) fn version_of(view: &NixlView<'_>, path: &str) -> Option<String> {
    let log = view.beside.log.as_ref().and_then(|log| log.as_ref().ok());
    let builds = view
        .trial()
        .map(|t| &t.printed.software.ucx)
        .into_iter()
        .chain(log.map(|log| &log.seen.software.ucx))
        .chain([&view.seen.software.ucx]);
    builds
        .flatten()
        .find(|build| {
            build
                .library
                .as_deref()
                .is_some_and(|library| same_file(library, path))
        })
        .and_then(|build| build.version.clone())
}

/// UCX names its file by the way that it was found: `/a/b/../c/libucp.so` is `/a/c/libucp.so`.
fn same_file(one: &str, other: &str) -> bool {
    let plain = |path: &str| {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                ".." => {
                    parts.pop();
                }
                "." => {}
                part => parts.push(part),
            }
        }
        parts.join("/")
    };
    plain(one) == plain(other)
}

fn faults(pid: u32, process: &Process, findings: &mut Findings) {
    let all = libraries(process);
    let whose = who(pid, process);
    let list = |homes: &BTreeSet<String>| {
        let words: Vec<&str> = homes.iter().map(String::as_str).collect();
        words.join(" and ")
    };
    let nixl = homes(named(all, "libnixl"));
    if nixl.len() > 1 {
        findings.push(
            Finding::warn(
                NAME,
                &TWO_NIXL,
                format!("{whose} has two copies of libnixl loaded: {}", list(&nixl)),
            )
            .seen(&process.libraries, "mapped"),
        );
    }
    let ucx: BTreeSet<String> = named(all, "libucp")
        .map(|library| folder(&library.path).to_owned())
        .collect();
    if ucx.len() > 1 {
        findings.push(
            Finding::warn(
                NAME,
                &TWO_UCX,
                format!("{whose} has two copies of libucp loaded: {}", list(&ucx)),
            )
            .seen(&process.libraries, "mapped"),
        );
    }
    for plugin in all
        .iter()
        .filter(|library| OWN_PLUGINS.contains(&library.library.as_str()))
    {
        let own = home(&plugin.path);
        if !nixl.contains(&own) {
            findings.push(
                Finding::warn(
                    NAME,
                    &OTHER_PLUGIN,
                    format!(
                        "{whose} has {} of {own} loaded, and libnixl of {}",
                        plugin.library,
                        list(&nixl)
                    ),
                )
                .seen(&process.libraries, "mapped"),
            );
        }
    }
}

fn no_nixl(view: &NixlView<'_>, processes: &[(u32, &Process)], findings: &mut Findings) {
    let unread = processes
        .iter()
        .find_map(|(_, process)| process.libraries.get().err());
    if let Some(missing) = unread {
        findings.push(
            Finding::lacking(NAME, missing, "what the engine has loaded is not known").required(),
        );
        return;
    }
    let Some((pid, process)) = processes.first() else {
        return;
    };
    let other = processes.iter().find_map(|(_, process)| {
        libraries(process)
            .iter()
            .find(|library| library.library.starts_with("libmooncake"))
    });
    let mut finding = Finding::skipped(
        NAME,
        Reason::NotRunning,
        format!("{} has no libnixl loaded", who(*pid, process)),
    )
    .because(&NO_NIXL)
    .required();
    if let Some(library) = other {
        finding = finding.note(format!("it has Mooncake loaded ({})", library.path));
    }
    let installed = view.seen.software.nixl_version.value();
    if let Some(version) = installed {
        finding = finding.note(format!("NIXL {version} is installed"));
    }
    findings.push(finding.seen(&process.libraries, "mapped"));
}

/// Whether some process has NIXL.
pub(super) fn any_nixl(view: &NixlView<'_>) -> bool {
    view.processes().any(|(_, process)| has_nixl(process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_copy_have_one_home() {
        for (one, other) in [
            (
                "/s/.nixl_cu13.mesonpy.libs/libnixl.so",
                "/s/.nixl_cu13.mesonpy.libs/plugins/libplugin_UCX.so",
            ),
            (
                "/s/.nixl_cu13.mesonpy.libs/libnixl.so",
                "/s/nixl_cu13.libs/nixl/libplugin_UCX.so",
            ),
            (
                "/s/.nixl.mesonpy.libs/libnixl.so",
                "/s/nixl.libs/nixl/libplugin_UCX.so",
            ),
            (
                "/opt/nvidia/nvda_nixl/lib64/libnixl.so",
                "/opt/nvidia/nvda_nixl/lib64/plugins/libplugin_UCX.so",
            ),
            (
                "/usr/local/nixl/lib/x86_64-linux-gnu/libnixl.so",
                "/usr/local/nixl/lib/x86_64-linux-gnu/plugins/libplugin_UCX.so",
            ),
            (
                "/s/tensorrt_llm/libs/nixl/libnixl.so",
                "/s/tensorrt_llm/libs/nixl/plugins/libplugin_UCX.so",
            ),
        ] {
            assert_eq!(home(one), home(other), "{one} {other}");
        }
        for (one, other) in [
            (
                "/s/.nixl_cu13.mesonpy.libs/libnixl.so",
                "/s/.nixl_cu12.mesonpy.libs/plugins/libplugin_UCX.so",
            ),
            (
                "/opt/nvidia/nvda_nixl/lib64/libnixl.so",
                "/s/.nixl_cu12.mesonpy.libs/plugins/libplugin_UCX.so",
            ),
        ] {
            assert_ne!(home(one), home(other), "{one} {other}");
        }
        assert!(same_file("/a/b/../c/./l.so", "/a/c/l.so"));
    }
}
