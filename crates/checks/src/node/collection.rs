//! What a verdict about this place stands on could be read.
//!
//! An engine's settings are in its environment and command line, which only its own user and root may read. Where they
//! are closed, that no bad setting was seen means nothing, so there is no verdict. Tools that hang, print without
//! end, or find no time left are named with what is unknown because of them. A tool that is not installed, or that
//! has nothing to ask about, is normal and is not told.

use model::Reason;
use model::observation::process::Process;
use model::observation::{Fact, Missing, Unanswered};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/collection";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "What is needed for a verdict could be read",
    source: include_str!("collection.rs"),
    causes: &[HANGS],
    notes: &[],
    run: Run::Place(run),
};

const HANGS: Cause = Cause {
    id: "nvidia-smi-no-answer",
    what: "nvidia-smi gave no answer within its time and was ended",
    why: "the GPU driver hangs, or starts each GPU anew for every call: engines that start now wait as long",
    fix: "on the node look for Xid lines in the kernel log; where there are none, switch persistence mode on (nvidia-persistenced)",
    quiet_if: "it answers, its driver is not loaded, or it was not started because no time was left",
    source: "NVIDIA driver persistence documentation; NVIDIA Xid errors documentation",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    engines(view, findings);
    tools(view, findings);
}

/// What of an engine may be closed, in the order in which it is told.
fn parts(process: &Process) -> [(&'static str, Option<&Missing>); 3] {
    fn of<T>(fact: &Fact<T>) -> Option<&Missing> {
        // Saved outputs do not show it at all.
        fact.get().err().filter(|_| !fact.is_untouched())
    }
    [
        ("environment", of(&process.environment_read)),
        ("command line", of(&process.flags_read)),
        ("libraries", of(&process.libraries)),
    ]
}

fn engines(view: &NodeView<'_>, findings: &mut Findings) {
    // Workers of one engine are closed in the same way: one line for each kind of lack.
    let mut told: Vec<(Vec<&'static str>, Reason)> = Vec::new();
    for (pid, process) in &view.seen.process.processes {
        let closed: Vec<(&'static str, &Missing)> = parts(process)
            .into_iter()
            .filter_map(|(what, missing)| Some((what, missing?)))
            .collect();
        let Some((_, first)) = closed.first() else {
            continue;
        };
        let names: Vec<&'static str> = closed.iter().map(|(what, _)| *what).collect();
        let key = (names.clone(), first.reason);
        if told.contains(&key) {
            continue;
        }
        told.push(key);
        let name = process.name.value().map_or("engine", String::as_str);
        let detail = format!(
            "the {} of {name} (process {pid}) cannot be read: {}",
            names.join(" and the "),
            first.why
        );
        let settings = names.iter().any(|n| *n != "libraries");
        let finding = Finding::skipped(NAME, first.reason, detail);
        let finding = match first.reason {
            Reason::NoPermission => finding.fix("run it as the engine's user or as root"),
            Reason::NoTool => {
                finding.fix("run it where `tr` and `grep` are, such as on the node, as root")
            }
            _ => finding.fix("run it again as root; judge the recipe with check-interconnect env"),
        };
        findings.push(if settings {
            finding
                .note(
                    "its settings, such as UCX_TLS, are unknown: nothing seen is not nothing wrong",
                )
                .required()
        } else {
            finding.note("which UCX and NIXL it has loaded is unknown")
        });
    }
}

/// What nobody knows without the answer of a tool.
fn unknown(command: &str) -> &'static str {
    match command {
        "nvidia-smi -q" => "GPUs and the state of their fabric",
        "nvidia-smi topo -m" => {
            "which GPUs have NVLink to each other and which network cards are near"
        }
        "nvidia-smi nvlink -s" => "which NVLinks are up",
        "rdma system show" => "whether network namespaces share RDMA devices",
        "rdma link show" => "what rdma says of the ports",
        "ibv_devinfo" => "whether libibverbs can open the devices",
        "ucx_info -v" => "how UCX was built",
        "ucx_info -d" => "which transports UCX finds",
        "fi_info -l" => "which providers libfabric has",
        _ => "what it would have told",
    }
}

fn tools(view: &NodeView<'_>, findings: &mut Findings) {
    for (command, why) in &view.facts.unanswered {
        let fix = match why {
            Unanswered::Hangs | Unanswered::TooMuch => {
                format!("run `{command}` by hand, and see where it stops")
            }
            Unanswered::NoTimeLeft => format!("run `{command}` by hand: it was not started"),
            Unanswered::Unbounded => format!("run `{command}` by hand, where it is"),
            // Normal; and where collection as a whole ended, that is told once, elsewhere.
            Unanswered::Absent | Unanswered::LeftOut(_) | Unanswered::Lost(_) => continue,
        };
        findings.push(
            Finding::skipped(NAME, why.reason(), format!("{command}: {why}"))
                .note(format!("unknown because of it: {}", unknown(command)))
                .fix(fix),
        );
    }
    let hangs = view
        .facts
        .unanswered
        .iter()
        .find(|(command, why)| command.starts_with("nvidia-smi") && *why == Unanswered::Hangs);
    if let Some((command, _)) = hangs {
        findings.push(Finding::warn(
            NAME,
            &HANGS,
            format!("{command} gave no answer: the GPU driver does not answer, or very slowly"),
        ));
    }
}
