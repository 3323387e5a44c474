//! Which NIXL backends can be made in the engine's place.
//!
//! `get_plugin_list()` lists files, and a plugin whose libraries are missing is in the list all the same. So an agent is
//! made beside the engine, with the engine's interpreter, libraries and settings, and makes each backend that the
//! engine's configuration names, and UCX. It moves nothing.

use model::Reason;
use model::pod::FaultScope;

use super::view::{NixlView, NoTrial, libraries};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::pod::access;

const NAME: &str = "nixl/backends";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the NIXL backends that the engine names can be made here",
    source: include_str!("backends.rs"),
    causes: &[NOT_MADE, NOT_TRIED],
    notes: &[LISTED],
    run: Run::Nixl(run),
};

const NOT_MADE: Cause = Cause {
    id: "nixl-backend-not-made",
    what: "NIXL cannot make a backend that the engine's configuration names, in the engine's own place",
    why: "without its backend the engine starts with none, or not at all",
    fix: "look at the reason: a library that the plugin needs and that is not in the image (libcudart, libfabric), UCX_TLS or UCX_NET_DEVICES that leave nothing",
    quiet_if: "the engine does not name the backend and the default is another one; a warning where the engine itself has the plugin loaded",
    source: "NIXL nixl_agent.cpp createBackend, tried beside the engine",
};

const NOT_TRIED: Cause = Cause {
    id: "nixl-backend-not-tried",
    what: "no agent was made in the engine's place",
    why: "which plugins load, and what this UCX offers here, is not known",
    fix: "run it where Python and NIXL are those of the engine: in the engine's container, as its user",
    quiet_if: "an agent was made",
    source: "check-interconnect",
};

const LISTED: Cause = Cause {
    id: "nixl-plugin-list-is-of-files",
    what: "NIXL lists plugins",
    why: "the list is of files, and not of what loads",
    fix: "none",
    quiet_if: "always a note",
    source: "NIXL nixl_plugin_manager.cpp; checked with NIXL 1.5.1",
};

fn run(view: &NixlView<'_>, findings: &mut Findings) {
    let seen = match &view.beside.trial {
        None => return,
        Some(Err(why)) => {
            findings.push(not_tried(why));
            return;
        }
        Some(Ok(seen)) => seen,
    };
    let trial = &seen.trial;
    let nixl = match &trial.version {
        Some(version) => format!("NIXL {version}"),
        None => "NIXL".to_owned(),
    };
    let place = format!("in the place of process {}", trial.process);
    for backend in &trial.backends {
        let plugin = format!("libplugin_{}", backend.name);
        let loaded = view
            .processes()
            .any(|(_, process)| libraries(process).iter().any(|l| l.library == plugin));
        let Some(error) = &backend.error else {
            let mut finding = Finding::ok(
                NAME,
                format!("{nixl} makes its backend {} {place}", backend.name),
            )
            .grade(model::Grade::Observed);
            if !trial.listed.is_empty() {
                finding = finding
                    .note(format!("it lists {}", trial.listed.join(", ")))
                    .told(&LISTED);
            }
            findings.push(finding);
            continue;
        };
        let mut what = format!(
            "{nixl} cannot make its backend {} {place}: {error}",
            backend.name
        );
        if let Some(why) = reason(view, &backend.name) {
            what = format!("{what} ({why})");
        }
        let finding = if loaded {
            Finding::warn(NAME, &NOT_MADE, what).note("the engine itself has the plugin loaded")
        } else {
            Finding::fail(NAME, &NOT_MADE, what)
        };
        findings.push(finding.grade(model::Grade::Observed));
    }
    if let Some(why) = &trial.stopped {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::Unreadable,
                format!("the agent {place} did not come to its end: {why}"),
            )
            .because(&NOT_TRIED),
        );
    }
}

/// What NIXL printed about a plugin that it could not load.
fn reason(view: &NixlView<'_>, backend: &str) -> Option<String> {
    let file = format!("libplugin_{backend}.so");
    let seen = view.trial()?;
    seen.printed
        .log
        .of("nixl-plugin-not-loaded")
        .find(|event| {
            event
                .field("path")
                .is_some_and(|path| path.ends_with(&file))
        })
        .and_then(|event| event.field("error"))
        .map(str::to_owned)
}

fn not_tried(why: &NoTrial) -> Finding {
    let words = |reason, what: &str| {
        Finding::skipped(
            NAME,
            reason,
            format!("which backends can be made here was not tried: {what}"),
        )
        .because(&NOT_TRIED)
    };
    match why {
        NoTrial::NotAKvWorker(what) => words(Reason::NotApplicable, what)
            .fix("give --force to make an agent there all the same"),
        NoTrial::NoEngine(what) => words(Reason::NotRunning, what),
        NoTrial::CouldNotRun(what) => words(Reason::NoTool, what),
        NoTrial::Fault(fault) if fault.kind.scope() == FaultScope::Access => access::told(fault),
        NoTrial::Fault(fault) => words(fault.kind.reason(), &fault.detail),
    }
}
