//! NIXL has its backend, its plugin and its hardware.
//!
//! `Backend UCX was instantiated` and `Initialized NIXL agent` are printed on machines without GPU and RDMA too, so
//! they are no evidence. The number of an error says where to look: BACKEND is the transport, NOT_FOUND a plugin or
//! metadata, MISMATCH descriptors, REMOTE_DISCONNECT the peer or the link.

use model::Reason;
use model::observation::log::Event;

use crate::check::{Cause, Check, Run};
use crate::env::prefill_decode::VERSION_SKEW;
use crate::env::setting_notes::PLUGIN_DIR;
use crate::env::setting_values::INVALID;
use crate::env::ucx_tls::NO_GPU_MEMORY;
use crate::finding::{Finding, Findings};
use crate::node::ucx_build::OLD;
use crate::node_view::NodeView;

const NAME: &str = "nixl/messages";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "NIXL has its backend, its plugin and its hardware",
    source: include_str!("messages.rs"),
    causes: &[CUDA, HARDWARE, ERRORS, NO_EVIDENCE],
    notes: &[],
    run: Run::Place(run),
};

const CUDA: Cause = Cause {
    id: "nixl-cuda-missing",
    what: "NIXL says that UCX has no CUDA support, or takes GPU memory for host memory, or the CUDA driver is not there",
    why: "GPU memory cannot be registered: no KV transfer, or one through the host",
    fix: "use an image whose UCX has CUDA, and see that libcuda is mounted; add cuda_copy where UCX_TLS is a list",
    quiet_if: "KV buffers in host memory",
    source: "NIXL ucx_utils.cpp",
};

const HARDWARE: Cause = Cause {
    id: "nixl-ib-warning-limits",
    what: "NIXL counts network cards on the PCI bus for which this UCX has no transport",
    why: "the host has the hardware, and this process cannot use it: no device in the container, or a UCX without it",
    fix: "look at node/rdma-devices and node/ucx-build",
    quiet_if: "router pods; its absence proves nothing: RoCE cards are not counted",
    source: "NIXL hw_info: counts PCI class 0207 and EFA",
};

/// What to do where a plugin is missing, whether or not the variable is set.
const PLUGIN_FIX: &str = "remove NIXL_PLUGIN_DIR or point it to the folder of libplugin_UCX.so; install the libraries that the plugin needs (NIXL_LOG_LEVEL=INFO names them)";

const ERRORS: Cause = Cause {
    id: "nixl-err-codes",
    what: "NIXL reports an error",
    why: "a transfer or a connection failed",
    fix: "BACKEND: the transport, look at UCX's lines before it; NOT_FOUND: plugin or metadata; MISMATCH: descriptors of both sides; REMOTE_DISCONNECT: peer or link",
    quiet_if: "REMOTE_DISCONNECT while workers are scaled down; a more special line tells the cause",
    source: "NIXL nixl_types.h",
};

pub(crate) const NO_EVIDENCE: Cause = Cause {
    id: "nixl-backend-instantiated-proves-nothing",
    what: "NIXL says that a backend was instantiated, and nothing tells what carried the payload",
    why: "printed on machines without GPU and RDMA as well: no evidence of a transport",
    fix: "start both sides with UCX_PROTO_INFO=y (log level info is not needed), transfer once, and read the side that starts the transfers",
    quiet_if: "a protocol table, a line of lanes or an error tells more",
    source: "NIXL 1.5.1",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let before = findings.results().len();
    for event in &view.seen.log.events {
        let at = std::slice::from_ref(&event.origin);
        if let Some(mut finding) = of(event, view) {
            if finding.cause() == Some(PLUGIN_DIR.id) {
                finding = finding.fix(PLUGIN_FIX);
            }
            findings.push(finding.read_at(at, "log line"));
        }
    }
    let special = findings
        .results()
        .iter()
        .any(|r| r.name.starts_with("nixl/") && r.cause.is_some());
    if findings.results().len() == before && !special {
        errors(view, findings);
    }
    let payload = findings
        .results()
        .iter()
        .any(|r| r.name == "nixl/payload-transport");
    if findings.results().len() == before && !payload {
        no_evidence(view, findings);
    }
}

/// What NIXL says of itself, which tells no transport.
fn no_evidence(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let Some(event) = log
        .of("nixl-backend-instantiated")
        .chain(log.of("nixl-ucx-bound"))
        .chain(log.of("nixl-agent"))
        .next()
    else {
        return;
    };
    let mut what = match event.field("backend") {
        Some(backend) => format!("the {} backend was instantiated", backend.trim()),
        None => "NIXL was started".to_owned(),
    };
    if let Some(version) = log.of("nixl-version").find_map(|e| e.field("version")) {
        what.push_str(" (NIXL ");
        what.push_str(version.trim());
        if let Some(ucx) = log.of("nixl-ucx-bound").find_map(|e| e.field("version")) {
            what.push_str(" with UCX ");
            what.push_str(ucx.trim());
        }
        what.push(')');
    }
    findings.push(
        Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!("{what}, which says nothing about the transport; UCX_PROTO_INFO=y prints what carries the payload"),
        )
        .because(&NO_EVIDENCE)
        .required()
        .read_at(std::slice::from_ref(&event.origin), "log line"),
    );
}

fn of(event: &Event, view: &NodeView<'_>) -> Option<Finding> {
    let field = |name: &str| event.field(name).unwrap_or_default().trim();
    Some(match event.pattern.as_ref() {
        "nixl-cuda-missing" => Finding::fail(
            NAME,
            &CUDA,
            format!(
                "NIXL counts {} NVIDIA GPUs and finds no CUDA support in UCX",
                field("count")
            ),
        ),
        "nixl-vram-as-host" => Finding::fail(NAME, &CUDA, "UCX takes GPU memory for host memory"),
        "nixl-ib-missing" => Finding::warn(
            NAME,
            &HARDWARE,
            format!(
                "NIXL counts {} InfiniBand cards and finds no InfiniBand support in UCX",
                field("count")
            ),
        ),
        "nixl-efa-missing" => Finding::warn(
            NAME,
            &HARDWARE,
            format!(
                "NIXL counts {} EFA devices that this backend does not use",
                field("count")
            ),
        ),
        "nixl-ucx-tls-invalid" => Finding::fail(
            NAME,
            &NO_GPU_MEMORY,
            format!(
                "NIXL refuses UCX_TLS={}: it does not enable GPU memory",
                field("value")
            ),
        ),
        "nixl-ucx-version-old" => Finding::warn(
            NAME,
            &OLD,
            if field("version").is_empty() {
                "NIXL finds a UCX older than 1.19".to_owned()
            } else {
                format!("NIXL finds UCX {}, older than 1.19", field("version"))
            },
        ),
        "nixl-backend-unsupported" => Finding::fail(
            NAME,
            &PLUGIN_DIR,
            format!(
                "NIXL: unsupported backend {}, which means that its plugin is not there or cannot be loaded",
                field("backend")
            ),
        ),
        "nixl-plugin-missing" => Finding::fail(
            NAME,
            &PLUGIN_DIR,
            format!(
                "NIXL skips the backend {}: its plugin is not there, and only a warning says so",
                field("backend")
            ),
        ),
        "nixl-plugin-directory" => Finding::fail(
            NAME,
            &PLUGIN_DIR,
            format!(
                "NIXL cannot read the plugin folder {}: {}",
                field("directory"),
                field("error")
            ),
        ),
        "nixl-no-plugins" => Finding::fail(NAME, &PLUGIN_DIR, "NIXL has no plugin at all"),
        "nixl-soname" => Finding::fail(
            NAME,
            &PLUGIN_DIR,
            format!(
                "NIXL is bound to another UCX than NIXL_UCX_EXPECTED_SONAME asks for: {}",
                field("path")
            ),
        ),
        "nixl-plugin-not-loaded" => return plugin(event, view),
        "nixl-plugin-params" if field("backend") == "UCX" => Finding::fail(
            NAME,
            &PLUGIN_DIR,
            "NIXL knows no plugin UCX: two copies of NIXL are mixed, or the plugin is not there",
        ),
        "nixl-cuda-driver" => Finding::fail(
            NAME,
            &CUDA,
            "the CUDA driver library libcuda.so.1 is not in this container: no GPU memory can be used",
        )
        .fix("run where the NVIDIA container runtime mounts the driver: a GPU must be requested, and NVIDIA_VISIBLE_DEVICES must not hide it"),
        "nixl-config-file" => Finding::fail(
            NAME,
            &INVALID,
            "NIXL cannot read the file that NIXL_CONFIG_FILE names",
        ),
        "nixl-telemetry-plugin" => Finding::warn(
            NAME,
            &INVALID,
            format!(
                "NIXL knows no telemetry exporter {} (NIXL_TELEMETRY_EXPORTER)",
                field("plugin")
            ),
        ),
        "nixl-log-level" => Finding::warn(
            NAME,
            &INVALID,
            "NIXL cannot read NIXL_LOG_LEVEL and uses WARN: it is quieter than was asked for",
        )
        .fix("TRACE, DEBUG, INFO, WARN, ERROR or FATAL"),
        "nixl-bench-inconsistent" => Finding::fail(
            NAME,
            &ERRORS,
            "nixlbench found other bytes than were sent (consistency check)",
        ),
        "nixl-boolean" => Finding::fail(
            NAME,
            &INVALID,
            format!("NIXL cannot read '{}' as yes or no", field("value")),
        ),
        "nixl-rail-tag" if !field("key").contains("_ep_") => Finding::fail(
            NAME,
            &VERSION_SKEW,
            format!(
                "NIXL cannot read its peer's metadata (tag mismatch at {}): the two sides have versions that do not fit",
                field("key")
            ),
        ),
        _ => return None,
    })
}

/// A plugin that does not load matters where its backend was asked for.
fn plugin(event: &Event, view: &NodeView<'_>) -> Option<Finding> {
    let path = event.field("path").unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or(path);
    let backend = file.strip_prefix("libplugin_")?.split('.').next()?;
    let error = event.field("error").unwrap_or_default();
    let what = format!("NIXL's plugin {backend} cannot be loaded: {error}");
    let log = &view.seen.log;
    let asked = log
        .of("nixl-backend-unsupported")
        .chain(log.of("nixl-backend-failed"))
        .any(|e| e.field("backend").map(str::trim) == Some(backend))
        || view.seen.process.processes.values().any(|p| {
            p.flags
                .values()
                .any(|v| v.value().is_some_and(|v| v.contains(backend)))
        });
    match backend {
        "UCX" => Some(Finding::fail(NAME, &PLUGIN_DIR, what)),
        // nixl/libfabric tells it.
        "LIBFABRIC" => None,
        _ if asked => Some(Finding::fail(NAME, &PLUGIN_DIR, what)),
        _ => None,
    }
}

/// Errors that no other line explains.
fn errors(view: &NodeView<'_>, findings: &mut Findings) {
    let mut told: Vec<String> = Vec::new();
    for event in &view.seen.log.events {
        let field = |name: &str| event.field(name).unwrap_or_default().trim();
        let (detail, peer_gone) = match event.pattern.as_ref() {
            "nixl-error" => (
                field("code").to_owned(),
                field("code").ends_with("REMOTE_DISCONNECT"),
            ),
            "nixl-backend-failed" => (
                format!("the backend {} could not be made", field("backend")),
                false,
            ),
            "nixl-engine-failed" => (
                format!("the backend's engine could not be made: {}", field("error")),
                false,
            ),
            "nixl-remote-load-failed" => (
                format!(
                    "the peer's connection data could not be loaded ({})",
                    field("status")
                ),
                false,
            ),
            "nixl-remote-metadata-failed" => (
                format!(
                    "the peer's metadata could not be read ({})",
                    field("status")
                ),
                false,
            ),
            "nixl-endpoint-failed" => (
                format!("an endpoint could not be made: {}", field("error")),
                false,
            ),
            "nixl-remote-disconnected" => ("a peer was disconnected".to_owned(), true),
            _ => continue,
        };
        if told.contains(&detail) || told.len() >= 64 {
            continue;
        }
        let finding = if peer_gone {
            Finding::warn(NAME, &ERRORS, format!("NIXL: {detail}"))
        } else {
            Finding::fail(NAME, &ERRORS, format!("NIXL: {detail}"))
        };
        told.push(detail);
        findings.push(finding.read_at(std::slice::from_ref(&event.origin), "log line"));
    }
}
