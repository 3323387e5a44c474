//! Files that NCCL reads beside its environment.
//!
//! NCCL takes settings from `/etc/nccl.conf`, from `~/.nccl.conf` and from the file that `NCCL_CONF_FILE` names, so its
//! environment is not all that holds. `NCCL_TOPO_FILE` describes the machine; where it names a file that is not there,
//! NCCL says so once and goes on with what it finds itself. None of this moves KV.

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "collectives/nccl-files";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "Files that NCCL reads beside its environment",
    source: include_str!("nccl_files.rs"),
    causes: &[TOPOLOGY],
    notes: &[SETTINGS],
    run: Run::Place(run),
};

const TOPOLOGY: Cause = Cause {
    id: "nccl-topo-file-missing",
    what: "NCCL_TOPO_FILE names a file that is not there",
    why: "NCCL then pairs GPUs and cards by what the container shows, which in a virtual machine can be wrong",
    fix: "put the file of this type of machine into the image, or remove the setting",
    quiet_if: "the file is there, or how the process sees its files cannot be seen",
    source: "nccl src/graph/topo.cc (NCCL_TOPO_FILE), src/graph/xml.cc",
};

const SETTINGS: Cause = Cause {
    id: "nccl-conf-file",
    what: "NCCL reads settings from a file",
    why: "NCCL takes settings from this file too, so its environment is not all that holds; UCX and NIXL do not read it",
    fix: "none; look into the file where NCCL does other than its environment says",
    quiet_if: "there is no such file",
    source: "nccl src/misc/param.cc (initEnv)",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    for process in view.seen.process.processes.values() {
        let named = |variable: &str| process.environment.get(variable).and_then(|f| f.value());
        if let Some(path) = named("NCCL_TOPO_FILE")
            && let Some(there) = process.files.get(path)
            && there.value() == Some(&false)
        {
            let finding = Finding::warn(
                NAME,
                &TOPOLOGY,
                format!("NCCL_TOPO_FILE={path} is not there"),
            );
            let finding = match process.environment.get("NCCL_TOPO_FILE") {
                Some(fact) => finding.seen(fact, "setting"),
                None => finding,
            };
            findings.push(finding.collective());
        }
        for (path, there) in &process.files {
            if there.value() == Some(&true) && Some(path) != named("NCCL_TOPO_FILE") {
                findings.push(
                    Finding::ok(NAME, format!("NCCL reads settings from {path}"))
                        .told(&SETTINGS)
                        .seen(there, "file")
                        .collective(),
                );
            }
        }
    }
}
