//! UCX is built for RDMA and CUDA, and new enough.
//!
//! A UCX without verbs can never use InfiniBand or RoCE, whatever UCX_TLS says. Several copies can live in one image
//! (the distribution's, `/usr/local/ucx`, HPC-X, the one in NIXL's wheel): what `ucx_info` says is then about one of
//! them, and only the engine's own log or its mapped libraries say which one carries KV.

use std::collections::BTreeSet;

use model::observation::software::UcxBuild;
use settings::version::UcxVersion;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/ucx-build";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "UCX is built for RDMA and CUDA",
    source: include_str!("ucx_build.rs"),
    causes: &[NO_VERBS, NO_CUDA, OLD],
    notes: &[TWO, GDR_COPY],
    run: Run::Place(run),
};

const NO_VERBS: Cause = Cause {
    id: "image-no-verbs",
    what: "UCX is built without verbs, or its modules or the providers of libibverbs are not there",
    why: "this UCX can never use InfiniBand or RoCE: TCP is all that it has between nodes",
    fix: "use an image whose UCX has verbs (ucx_info -v shows --with-verbs), with libibverbs and its providers",
    quiet_if: "NIXL uses another copy of UCX that has them",
    source: "ucx_info -v, ucx_info -b; the libucx wheels of PyPI are built without verbs",
};

const NO_CUDA: Cause = Cause {
    id: "image-no-cuda",
    what: "UCX is built without CUDA",
    why: "this UCX takes GPU memory for host memory; NIXL refuses to register it",
    fix: "use an image whose UCX has CUDA (ucx_info -v shows --with-cuda)",
    quiet_if: "accelerators of another vendor; KV buffers in host memory; NIXL uses another copy",
    source: "ucx_info -v, ucx_info -b",
};

pub(crate) const OLD: Cause = Cause {
    id: "ucx-version-below-119",
    what: "UCX is older than 1.19",
    why: "CUDA support is limited: no several GPUs in one process, a faulty gdr_copy; up to 1.17 no cuda_ipc with NIXL",
    fix: "use UCX 1.19 or newer on both roles",
    quiet_if: "1.19 and newer",
    source: "NIXL ucx_utils.cpp",
};

const TWO: Cause = Cause {
    id: "image-two-ucx",
    what: "several copies of UCX",
    why: "several copies of UCX are there: which one carries KV shows only in the engine's log (bound to UCX … at …) or in its mapped libraries",
    fix: "read /proc/PID/maps of the engine for libucp and libuct_ib",
    quiet_if: "always a note",
    source: "NIXL's wheel brings its own UCX",
};

const GDR_COPY: Cause = Cause {
    id: "gdr-ucx-118-gdr-copy-bug",
    what: "UCX 1.18 or older with gdr_copy",
    why: "gdr_copy of UCX up to 1.18 is known to fail with NIXL",
    fix: "UCX 1.19 or newer, or UCX_TLS without gdr_copy",
    quiet_if: "1.19 and newer",
    source: "NIXL",
};

/// The folder that a library lies in: libucp and libucs of one copy share it.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(folder, _)| folder)
}

/// `uct_MODULES` of `ucx_info -b`: what was built as a module.
fn has_module(build: &UcxBuild, name: &str) -> Option<bool> {
    let modules = build.definitions.get("uct_MODULES")?;
    Some(modules.split(':').any(|m| m == name))
}

fn lacks(build: &UcxBuild, feature: &str, module: &str) -> bool {
    build.with(feature) == Some(false)
        || (build.with(feature).is_none() && has_module(build, module) == Some(false))
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let software = &view.seen.software;
    let mut copies: BTreeSet<(&str, &str)> = BTreeSet::new();
    for build in &software.ucx {
        if let Some(library) = build.library.as_deref() {
            copies.insert((folder(library), build.version.as_deref().unwrap_or("")));
        }
    }
    for process in view.seen.process.processes.values() {
        for library in process.libraries.value().into_iter().flatten() {
            if library.library == "libucp" {
                copies.insert((folder(&library.path), ""));
            }
        }
    }
    let folders: BTreeSet<&str> = copies.iter().map(|(f, _)| *f).collect();
    // A log names its UCX once for each process.
    let mut told: BTreeSet<(Option<&str>, Option<&str>, bool)> = BTreeSet::new();
    for build in &software.ucx {
        let version = build.version.as_deref();
        let known = build.configure.is_empty() && build.definitions.is_empty();
        if told.insert((version, build.library.as_deref(), known)) || !known {
            of(build, folders.len() > 1, view, findings);
        }
    }
    if let (Some(files), Some(libraries)) = (
        software.verbs_providers.value(),
        software.verbs_provider_libraries.value(),
    ) && files.is_empty()
        && libraries.is_empty()
        // Without a device nobody needs one.
        && !view.seen.rdma.devices.is_empty()
    {
        findings.push(
            Finding::warn(
                NAME,
                &NO_VERBS,
                "libibverbs has no provider here (/etc/libibverbs.d is empty)",
            )
            .note("NIXL's wheel brings one for mlx5 of its own")
            .seen(&software.verbs_providers, "no provider"),
        );
    }
}

/// `UCX 1.22.0 (/usr/lib/libucp.so.0)`.
fn who(build: &UcxBuild) -> String {
    let version = build.version.as_deref().unwrap_or("of unknown version");
    match build.library.as_deref() {
        Some(library) => format!("UCX {version} ({library})"),
        None => format!("UCX {version}"),
    }
}

fn of(build: &UcxBuild, several: bool, view: &NodeView<'_>, findings: &mut Findings) {
    let at = std::slice::from_ref(&build.origin);
    let who = who(build);
    if !view.ucx_info_is_the_engines() {
        let other = Finding::ok(NAME, format!("{who} is what ucx_info uses here"));
        findings.push(
            other
                .note("not shown to be the engine's UCX, so nothing of it is judged")
                .read_at(at, "version"),
        );
        return;
    }
    let mut bad = false;
    if lacks(build, "verbs", "ib") {
        bad = true;
        let what = format!("{who} is built without verbs: it can never use InfiniBand or RoCE");
        let finding = if several {
            Finding::warn(NAME, &NO_VERBS, what).told(&TWO)
        } else {
            Finding::fail(NAME, &NO_VERBS, what)
        };
        findings.push(finding.read_at(at, "built without verbs"));
    }
    let other_gpus = !super::gpu::others(view).is_empty()
        || build.with("rocm") == Some(true)
        || build.with("ze") == Some(true);
    if lacks(build, "cuda", "cuda") && !other_gpus {
        bad = true;
        let what = format!("{who} is built without CUDA: it does not know GPU memory");
        let gpu = view.is_kv_worker() || !view.seen.gpu.gpus.is_empty();
        let finding = if gpu && !several {
            Finding::fail(NAME, &NO_CUDA, what)
        } else {
            Finding::warn(NAME, &NO_CUDA, what)
        };
        findings.push(finding.read_at(at, "built without CUDA"));
    }
    let number: Option<UcxVersion> = build.version.as_deref().and_then(|v| v.parse().ok());
    if number.is_some_and(|v| v < UcxVersion::new(1, 19)) {
        bad = true;
        let mut finding = Finding::warn(NAME, &OLD, format!("{who} is older than 1.19"));
        if build.with("gdrcopy") == Some(true) {
            finding = finding.told(&GDR_COPY);
        }
        findings.push(finding.read_at(at, "version"));
    }
    if bad || number.is_none() {
        return;
    }
    let mut has = Vec::new();
    for (feature, module, word) in [("verbs", "ib", "verbs"), ("cuda", "cuda", "CUDA")] {
        if build.with(feature) == Some(true) || has_module(build, module) == Some(true) {
            has.push(word);
        }
    }
    let mut finding = Finding::ok(
        NAME,
        if has.is_empty() {
            who
        } else {
            format!("{who}, built with {}", has.join(" and "))
        },
    );
    if several {
        finding = finding.told(&TWO);
    }
    if number.is_some_and(|v| v > UcxVersion::LATEST) {
        finding = finding.note(format!(
            "newer than {}, the last release that these rules know",
            UcxVersion::LATEST
        ));
    }
    findings.push(finding.read_at(at, "version"));
}
