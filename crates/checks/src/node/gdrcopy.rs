//! GDRCopy, where it is needed.
//!
//! GDRCopy is for small copies that the CPU drives. KV in bulk over NIXL and UCX does without it, and NIXL's own wheel
//! has no use for it. NIXL's LIBFABRIC backend on EFA lists it as a requirement.

use model::observation::modules::Presence;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/gdrcopy";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "GDRCopy is there where it is needed",
    source: include_str!("gdrcopy.rs"),
    causes: &[MISSING],
    notes: &[],
    run: Run::Place(run),
};

const MISSING: Cause = Cause {
    id: "gdrcopy-missing",
    what: "no GDRCopy (module gdrdrv, /dev/gdrdrv) where KV goes over LIBFABRIC on EFA",
    why: "NIXL's LIBFABRIC backend lists it as a requirement for GPU memory on EFA",
    fix: "GPU operator: gdrcopy.enabled=true; newer kernels need a newer GDRCopy",
    quiet_if: "NIXL over UCX, which moves bulk data by RDMA; no EFA",
    source: "NIXL libfabric plugin",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let modules = &view.seen.modules;
    let direct = &view.seen.gpudirect;
    let node = direct.gdrcopy_node.exists.value().copied();
    let module = modules.presence("gdrdrv");
    if module == Presence::Loaded
        || node == Some(true)
        || direct.gdrcopy_registered.value() == Some(&true)
    {
        let what = match (module == Presence::Loaded, node) {
            (_, Some(true)) => "GDRCopy is there (/dev/gdrdrv)",
            (_, Some(false)) => {
                "GDRCopy is loaded on the node, and /dev/gdrdrv is not in this container"
            }
            _ => "GDRCopy is there (module gdrdrv)",
        };
        let finding = Finding::ok(NAME, what);
        findings.push(match modules.modules.get("gdrdrv") {
            Some(entry) => finding.seen(&entry.loaded, "loaded"),
            None => finding.seen(&direct.gdrcopy_node.exists, "there"),
        });
        return;
    }
    let absent = node == Some(false) || module == Presence::Absent;
    if !absent || !efa(view) || !libfabric(view) {
        return;
    }
    let origins: Vec<_> = modules.listings.iter().map(|l| l.origin.clone()).collect();
    findings.push(
        Finding::warn(
            NAME,
            &MISSING,
            "no GDRCopy here, and KV goes over LIBFABRIC on EFA",
        )
        .read_at(&origins, "modules"),
    );
}

fn efa(view: &NodeView<'_>) -> bool {
    view.seen.modules.presence("efa") == Presence::Loaded
        || view.seen.rdma.devices.iter().any(|(name, d)| {
            name.starts_with("rdmap") || d.driver.value().is_some_and(|d| d == "efa")
        })
}

/// The backend is chosen by a flag, or speaks in the log.
fn libfabric(view: &NodeView<'_>) -> bool {
    let flag = view.seen.process.processes.values().any(|p| {
        p.flags
            .values()
            .any(|v| v.value().is_some_and(|v| v.contains("LIBFABRIC")))
    });
    let log = &view.seen.log;
    flag || log.of("nixl-libfabric-devices").next().is_some()
        || log
            .of("nixl-backend-instantiated")
            .any(|e| e.field("backend").is_some_and(|b| b.trim() == "LIBFABRIC"))
}
