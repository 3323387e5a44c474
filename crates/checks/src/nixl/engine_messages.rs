//! The engine's own words about KV transfer.
//!
//! vLLM prints how much it moved and how fast, SGLang that a transfer failed, Mooncake which devices it took. A rate
//! alone proves no transport: small blocks are slow on the best network.

use model::Reason;
use model::observation::log::Event;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "nixl/engine-messages";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the engine's own words about KV transfer",
    source: include_str!("engine_messages.rs"),
    causes: &[
        SLOW,
        HASH,
        TRANSFER,
        DEVICE,
        REGISTRATION,
        QUEUE_PAIR,
        BUFFER,
        AGENT,
    ],
    notes: &[],
    run: Run::Place(run),
};

const SLOW: Cause = Cause {
    id: "vllm-kv-metrics-line",
    what: "large KV transfers run below 2 GB/s",
    why: "about 1 GB/s is what TCP gives; RDMA and NVLink are many times faster",
    fix: "look at the protocol table (UCX_PROTO_INFO=y): it names the transport",
    quiet_if: "a few megabytes for each transfer, where the start-up dominates",
    source: "vLLM NixlConnector: KV Transfer metrics",
};

const HASH: Cause = Cause {
    id: "vllm-hash-mismatch",
    what: "prefill and decode do not fit each other (compatibility hash)",
    why: "vLLM refuses the handshake: versions, model, cache type or attention backend differ",
    fix: "one image and the same model and cache settings on both roles",
    quiet_if: "never",
    source: "vLLM NixlConnector",
};

const TRANSFER: Cause = Cause {
    id: "bootstrap-room-timeouts",
    what: "SGLang says that a KV transfer failed",
    why: "the request is lost or computed again; the peer may be gone, or cannot be reached",
    fix: "look at the lines of UCX, NIXL or Mooncake before it, and at the other side's log",
    quiet_if: "the peer was stopped just then",
    source: "SGLang: KVTransferError",
};

const DEVICE: Cause = Cause {
    id: "mooncake-device-wrong",
    what: "Mooncake finds no device of the name that it was given, or its port is not active",
    why: "transfers fail, or the device is left out",
    fix: "name active RDMA devices of this container (ibv_devices)",
    quiet_if: "never",
    source: "Mooncake transfer engine",
};

const REGISTRATION: Cause = Cause {
    id: "mooncake-reg-fail",
    what: "Mooncake cannot register memory",
    why: "no transfer from or to this memory",
    fix: "look at locked memory, at GPUDirect (node/gpudirect), and at the kernel log of the card",
    quiet_if: "never",
    source: "Mooncake transfer engine",
};

const QUEUE_PAIR: Cause = Cause {
    id: "mooncake-qp-rtr",
    what: "Mooncake cannot connect a queue pair",
    why: "the peer's address does not fit: GID, MTU or link layer",
    fix: "check GIDs and MTU of both ends",
    quiet_if: "never",
    source: "Mooncake transfer engine",
};

const BUFFER: Cause = Cause {
    id: "trtllm-buffer-small",
    what: "TensorRT-LLM's transfer buffer is smaller than a request",
    why: "the transfer is cut into parts and takes longer",
    fix: "raise max_tokens_in_buffer of cache_transceiver_config to the longest input",
    quiet_if: "short requests",
    source: "TensorRT-LLM cacheTransBuffer.cpp",
};

const AGENT: Cause = Cause {
    id: "trtllm-nixl-agent-failed",
    what: "TensorRT-LLM stops because a call to NIXL failed",
    why: "no KV transfer; most often two copies of libnixl are loaded, and the plugins belong to the other one",
    fix: "look at the NIXL line before it; load one libnixl and point NIXL_PLUGIN_DIR to its plugins",
    quiet_if: "never",
    source: "TensorRT-LLM transferAgent.cpp; ai-dynamo/dynamo#6671, #9299",
};

/// Megabytes of one transfer from which a low rate means something.
const LARGE_MB: f64 = 64.0;
/// Megabytes per second that RDMA passes easily and TCP hardly.
const SLOW_MB_S: f64 = 2000.0;

/// A number behind `name=`.
fn number(text: &str, name: &str) -> Option<f64> {
    let (_, rest) = text.split_once(name)?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest.get(..end)?.trim_end_matches('.').parse().ok()
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let mut metrics: Option<(&Event, f64, f64)> = None;
    let mut told: Vec<&str> = Vec::new();
    for event in &view.seen.log.events {
        let field = |name: &str| event.field(name).unwrap_or_default().trim();
        let pattern = event.pattern.as_ref();
        if pattern == "engine-kv-metrics" {
            let text = field("metrics");
            if let (Some(size), Some(rate)) = (
                number(text, "Avg MB per transfer="),
                number(text, "Throughput (MB/s)="),
            ) {
                // The largest transfers say most.
                if metrics.is_none_or(|(_, most, _)| size > most) {
                    metrics = Some((event, size, rate));
                }
            }
            continue;
        }
        let finding = match pattern {
            "engine-handshake-hash" => Finding::fail(
                NAME,
                &HASH,
                "prefill and decode have different compatibility hashes",
            ),
            "engine-kv-transfer-error" => {
                Finding::fail(NAME, &TRANSFER, "a KV transfer failed (KVTransferError)")
            }
            "engine-mooncake-no-device" => {
                Finding::fail(NAME, &DEVICE, "Mooncake: no device of that name")
            }
            "engine-mooncake-port" => Finding::fail(
                NAME,
                &DEVICE,
                format!("Mooncake: the port of {} is not active", field("device")),
            ),
            "engine-mooncake-registration" => Finding::fail(
                NAME,
                &REGISTRATION,
                format!("Mooncake cannot register memory: {}", field("error")),
            ),
            "engine-mooncake-queue-pair" => Finding::fail(
                NAME,
                &QUEUE_PAIR,
                format!("Mooncake cannot connect a queue pair ({})", field("state")),
            ),
            "engine-mooncake-retry" => Finding::fail(
                NAME,
                &QUEUE_PAIR,
                "Mooncake sent over RDMA and the peer did not answer (transport retry counter exceeded)",
            ),
            "engine-trtllm-agent" => Finding::fail(
                NAME,
                &AGENT,
                "TensorRT-LLM's NIXL agent failed (status is not NIXL_SUCCESS)",
            ),
            "engine-trtllm-buffer" => Finding::warn(
                NAME,
                &BUFFER,
                "TensorRT-LLM's transfer buffer is smaller than a request",
            ),
            "engine-mooncake-device" => {
                Finding::ok(NAME, format!("Mooncake uses {}", field("device")))
            }
            _ => continue,
        };
        // One line of a kind is enough, devices apart.
        if pattern == "engine-mooncake-device"
            || pattern == "engine-mooncake-port"
            || !told.contains(&pattern)
        {
            told.push(pattern);
            findings.push(finding.read_at(std::slice::from_ref(&event.origin), "log line"));
        }
    }
    if let Some((event, size, rate)) = metrics {
        let what = format!("vLLM moved {size:.1} MB per transfer at {rate:.0} MB/s");
        let finding = if size >= LARGE_MB && rate < SLOW_MB_S {
            Finding::warn(NAME, &SLOW, what)
        } else {
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!("{what}: a rate alone does not tell the transport"),
            )
        };
        findings.push(finding.read_at(std::slice::from_ref(&event.origin), "log line"));
    }
}
