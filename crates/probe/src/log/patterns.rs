//! The lines that mean something: which words, and what they name.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use model::observation::log::Component::{
    self, Engine, FabricManager, Gloo, Kernel, Libfabric, Nccl, Nixl, Ucx, Verbs,
};

use super::header::Header;
use super::template::{Fields, matches};

/// One kind of line.
pub(super) struct Pattern {
    pub(super) id: &'static str,
    pub(super) component: Component,
    words: &'static str,
}

const fn line(id: &'static str, component: Component, words: &'static str) -> Pattern {
    Pattern {
        id,
        component,
        words,
    }
}

/// Every kind, the more special ones first.
static PATTERNS: &[Pattern] = &[
    // UCX: configuration.
    line(
        "ucx-version",
        Ucx,
        "Version {version} (loaded from {library})",
    ),
    line("ucx-environment", Ucx, "UCX_* env variables: {variables}"),
    line("ucx-environment", Ucx, "UCX_* env variable: {variables}"),
    line(
        "ucx-device-not-available",
        Ucx,
        "device {names} is not available, please use one or more of: {offered}",
    ),
    line(
        "ucx-device-not-available",
        Ucx,
        "devices {names} are not available, please use one or more of: {offered}",
    ),
    line(
        "ucx-transport-not-available",
        Ucx,
        "transport {names} is not available, please use one or more of: {offered}",
    ),
    line(
        "ucx-transport-not-available",
        Ucx,
        "transports {names} are not available, please use one or more of: {offered}",
    ),
    line(
        "ucx-no-usable-transport",
        Ucx,
        "no usable transports/devices (asked {asked})",
    ),
    line("ucx-tls-empty", Ucx, "The TLs list is empty"),
    line(
        "ucx-invalid-value",
        Ucx,
        "Invalid value for {name}: '{value}'. Expected: {expected}",
    ),
    line(
        "ucx-unused-variable",
        Ucx,
        "unused environment variable: {names}",
    ),
    line(
        "ucx-unused-variable",
        Ucx,
        "unused environment variables: {names}",
    ),
    line("ucx-md-config", Ucx, "Failed to read MD config"),
    line(
        "ucx-module-not-loaded",
        Ucx,
        "dlopen('{library}', mode={}) failed: {error}",
    ),
    // UCX: connection.
    line(
        "ucx-no-transport-to-peer",
        Ucx,
        "no {kind} transport to {peer}: {reasons}",
    ),
    line(
        "ucx-connect-failed",
        Ucx,
        "connect(fd={}, dest_addr={peer}) failed: {error}",
    ),
    line(
        "ucx-retry-exceeded",
        Ucx,
        "Transport retry count exceeded on {port}/{link} (synd {syndrome} vend {vendor} hw_synd {})",
    ),
    line(
        "ucx-completion-error",
        Ucx,
        "{what} on {port}/{link} (synd {syndrome} vend {vendor} hw_synd {})",
    ),
    line(
        "ucx-queue-pair",
        Ucx,
        "{transport} QP {} wqe[{}]: {op} [rqpn {} rmac {} sgix {sgid_index} dgid {dgid} tc {traffic_class}]",
    ),
    line(
        "ucx-queue-pair",
        Ucx,
        "{transport} QP {} wqe[{}]: {op} [rqpn {} rlid {rlid}]",
    ),
    line(
        "ucx-zero-copy-missing",
        Ucx,
        "No zero-copy protocol found for {op} into {to} from {from}, {#length} bytes",
    ),
    line(
        "ucx-api-incompatible",
        Ucx,
        "UCP API version is incompatible: required >= {required}, actual {actual}",
    ),
    line(
        "ucx-api-incompatible",
        Ucx,
        "UCP version is incompatible, required: {required}, actual: {actual}",
    ),
    line(
        "ucx-cm-not-opened",
        Ucx,
        "failed to open CM on component {component} with status {error}",
    ),
    line(
        "ucx-cm-not-opened",
        Ucx,
        "rdma_create_event_channel failed: {error}",
    ),
    line(
        "ucx-endpoint-timeout",
        Ucx,
        "{transport} endpoint {} to {peer}: unhandled timeout error",
    ),
    // UCX: memory and GPU.
    line(
        "ucx-memlock",
        Ucx,
        "{call}(address={}, length={length}, access={}) failed: {error} : Please set max locked memory (ulimit -l) to 'unlimited' (current: {current})",
    ),
    line(
        "ucx-dmabuf-registration-failed",
        Ucx,
        "ibv_reg_dmabuf_mr(address={}, length={length}, {}) failed: {error}",
    ),
    line(
        "ucx-dmabuf-not-supported",
        Ucx,
        "{device}: ibv_reg_dmabuf_mr(fd={}) returned {error}, dmabuf is not supported",
    ),
    line(
        "ucx-dmabuf-supported",
        Ucx,
        "{device}: ibv_reg_dmabuf_mr(fd={}) returned {error}, dmabuf is supported",
    ),
    line(
        "ucx-cuda-dmabuf-not-supported",
        Ucx,
        "dmabuf is not supported on cuda device {#device}",
    ),
    line(
        "ucx-registration-failed",
        Ucx,
        "failed to register address {} ({memory}) length {length} dmabuf_fd {dmabuf_fd} on md[{#md_index}]={md}: {error}",
    ),
    line(
        "ucx-registration-failed",
        Ucx,
        "ibv_reg_mr(address={}, length={length}, {}) failed: {error}",
    ),
    line(
        "ucx-gpudirect-disabled",
        Ucx,
        "{device}: {memory} GPUDirect RDMA is disabled",
    ),
    line(
        "ucx-gpudirect-enabled",
        Ucx,
        "{device}: {memory} GPUDirect RDMA is enabled",
    ),
    line(
        "ucx-queue-creation-failed",
        Ucx,
        "{call}(cqe={#entries}) failed: {error}",
    ),
    line(
        "ucx-devx-failed",
        Ucx,
        "mlx5dv_devx_obj_{call} failed{error}",
    ),
    line(
        "ucx-memory-pool",
        Ucx,
        "Failed to allocate memory pool (name={pool}) chunk: {error}",
    ),
    line("ucx-pkey", Ucx, "there is no valid pkey to use on {port}"),
    line("ucx-pkey", Ucx, "unable to find specified pkey {pkey}"),
    line(
        "ucx-mnnvl-not-supported",
        Ucx,
        "multi-node NVLINK support is requested but not supported",
    ),
    line("ucx-no-fabric-handle", Ucx, "does not have fabric property"),
    line(
        "ucx-cuda-ipc-get-off",
        Ucx,
        "cuda-ipc get zcopy disabled as no nvlinks detected",
    ),
    line("ucx-no-ib-devices", Ucx, "no devices are found"),
    line(
        "ucx-verbs-connect-timed-out",
        Ucx,
        "connect on {device} failed: {error}",
    ),
    // libibverbs.
    line(
        "verbs-driver-abi",
        Verbs,
        "libibverbs: Warning: Driver {driver} does not support the kernel ABI of {#kernel_abi} (supports {#first} to {#last}) for device {device}",
    ),
    line(
        "verbs-driver-not-loaded",
        Verbs,
        "libibverbs: Warning: couldn't load driver '{driver}': {error}",
    ),
    line(
        "verbs-no-driver",
        Verbs,
        "libibverbs: Warning: no userspace device-specific driver found for {device}",
    ),
    line(
        "verbs-memlock",
        Verbs,
        "libibverbs: Warning: RLIMIT_MEMLOCK is {#bytes} bytes",
    ),
    line("verbs-message", Verbs, "libibverbs: {text}"),
    line(
        "verbs-symbol",
        Verbs,
        "libmlx5.so{}: undefined symbol: {symbol}",
    ),
    // NIXL.
    line(
        "nixl-cuda-missing",
        Nixl,
        "{#count} NVIDIA GPU(s) were detected, but UCX CUDA support was not found",
    ),
    line(
        "nixl-ib-missing",
        Nixl,
        "{#count} IB device(s) were detected, but accelerated IB support was not found",
    ),
    line(
        "nixl-efa-missing",
        Nixl,
        "{#count} EFA device(s) were detected, but {text}",
    ),
    line(
        "nixl-ucx-tls-invalid",
        Nixl,
        "Invalid UCX_TLS={value} for NIXL UCX backend: {error}",
    ),
    line(
        "nixl-vram-as-host",
        Nixl,
        "VRAM memory is detected as host by UCX",
    ),
    line(
        "nixl-vram-as-host",
        Nixl,
        "memory is detected as host, check that UCX is configured",
    ),
    line(
        "nixl-ucx-version-old",
        Nixl,
        "UCX version is {version} which is less than {minimum}, ",
    ),
    line(
        "nixl-ucx-version-old",
        Nixl,
        "UCX version is less than {minimum}, ",
    ),
    line(
        "nixl-backend-unsupported",
        Nixl,
        "createBackend: unsupported backend '{backend}'",
    ),
    line(
        "nixl-backend-failed",
        Nixl,
        "createBackend: backend creation failed for '{backend}'",
    ),
    line(
        "nixl-backend-failed",
        Nixl,
        "createBackend: backend '{backend}' encountered error during {stage} with status {status}",
    ),
    line(
        "nixl-engine-failed",
        Nixl,
        "Failed to create engine: {error}",
    ),
    line(
        "nixl-remote-load-failed",
        Nixl,
        "loadRemoteMD: error loading connection info for backend '{backend}' with status {status}",
    ),
    line(
        "nixl-remote-disconnected",
        Nixl,
        "remote agent '{agent}' was disconnected",
    ),
    line(
        "nixl-endpoint-failed",
        Nixl,
        "UCX endpoint create failed: {error}",
    ),
    line(
        "nixl-unexpected-ucx-error",
        Nixl,
        "Unexpected UCX error: {error}",
    ),
    line(
        "nixl-backend-instantiated",
        Nixl,
        "Backend {backend} was instantiated",
    ),
    line("nixl-agent", Nixl, "Initialized NIXL agent: {agent}"),
    line("nixl-version", Nixl, "NIXL version: {version} (git"),
    line(
        "nixl-ucx-bound",
        Nixl,
        "NIXL UCX backend bound to UCX {version} at {library}",
    ),
    line(
        "nixl-remote-metadata-failed",
        Nixl,
        "loadRemoteMD: error loading remote metadata for agent '{agent}' with status {status}",
    ),
    line(
        "nixl-plugin-params",
        Nixl,
        "getPluginParams: backend '{backend}' not found",
    ),
    line("nixl-config-file", Nixl, "reading TOML config file {path}"),
    line(
        "nixl-bench-worker",
        Nixl,
        "Init nixl worker, dev {} rank {}, type {type}, hostname {host}",
    ),
    line("nixl-bench-inconsistent", Nixl, "Consistency check failed"),
    line(
        "nixl-cuda-driver",
        Nixl,
        "Error: libcuda.so.1: cannot open shared object file",
    ),
    line(
        "nixl-plugin-directory",
        Nixl,
        "Error accessing directory(\"{directory}\"): {error}",
    ),
    line("nixl-no-plugins", Nixl, "No plugins available for NIXL"),
    line(
        "nixl-plugin-not-loaded",
        Nixl,
        "Failed to load plugin from {path}: {error}",
    ),
    line(
        "nixl-plugin-missing",
        Nixl,
        "Skipping backend registration {backend} due to the missing plugin",
    ),
    line(
        "nixl-log-level",
        Nixl,
        "Invalid NIXL_LOG_LEVEL environment variable",
    ),
    line(
        "nixl-soname",
        Nixl,
        "NIXL_UCX_EXPECTED_SONAME={expected} but NIXL UCX backend bound to {path}",
    ),
    line(
        "nixl-telemetry-plugin",
        Nixl,
        "Failed to load telemetry plugin: {plugin}",
    ),
    line(
        "nixl-boolean",
        Nixl,
        "Conversion to bool failed for string '{value}'",
    ),
    line(
        "nixl-libfabric-devices",
        Nixl,
        "Discovered {#count} {provider} devices",
    ),
    line(
        "nixl-libfabric-topology",
        Nixl,
        "Using simplified topology for {provider}",
    ),
    line("nixl-rail-tag", Nixl, "Deserialization of tag {key} failed"),
    line(
        "nixl-rail-key",
        Nixl,
        "Key {key} not found or has invalid length: {length}",
    ),
    line("nixl-rail-endpoints", Nixl, "Failed to deserialize {what}"),
    line("nixl-error", Nixl, "NIXL_ERR_{code}"),
    // Engines.
    line(
        "engine-kv-metrics",
        Engine,
        "KV Transfer metrics: {metrics}",
    ),
    line("engine-handshake-hash", Engine, "compatibility hash {text}"),
    line("engine-kv-transfer-error", Engine, "KVTransferError{text}"),
    line(
        "engine-mooncake-topology",
        Engine,
        "Topology discovery complete. Found {#count} HCAs",
    ),
    line(
        "engine-mooncake-device",
        Engine,
        "RDMA device: {device}, LID: {lid}, GID: {gid}",
    ),
    line(
        "engine-mooncake-no-device",
        Engine,
        "No matched device found",
    ),
    line(
        "engine-mooncake-port",
        Engine,
        "Device {device} port not active",
    ),
    line(
        "engine-mooncake-registration",
        Engine,
        "Failed to register memory {}: {error}",
    ),
    line(
        "engine-mooncake-queue-pair",
        Engine,
        "Failed to modify QP to {state}, {text}",
    ),
    line(
        "engine-mooncake-retry",
        Engine,
        "Process failed for slice {}: transport retry counter exceeded",
    ),
    line(
        "engine-trtllm-agent",
        Engine,
        "Assertion failed: status == NIXL_SUCCESS",
    ),
    line(
        "engine-trtllm-buffer",
        Engine,
        "getOrAllocateBuffers: bufferCoverTargetNum{text}",
    ),
    // NCCL.
    line(
        "nccl-set-by-environment",
        Nccl,
        "NCCL_{name} set by environment to {value}",
    ),
    line(
        "nccl-device-not-opened",
        Nccl,
        "NET/IB : Unable to open device {device}",
    ),
    line("nccl-call-failed", Nccl, "Call to {call} failed"),
    line("nccl-no-ib-device", Nccl, "NET/IB : No device found"),
    line("nccl-ib", Nccl, "NET/IB : Using {devices}"),
    line(
        "nccl-gpudirect",
        Nccl,
        "GPU Direct RDMA {state} for {devices}",
    ),
    line("nccl-socket", Nccl, "NET/Socket : Using {interfaces}"),
    line("nccl-network", Nccl, "Using network {network}"),
    line("nccl-plugin-path", Nccl, "Plugin Path : {path}"),
    line("nccl-plugin", Nccl, "P2P plugin {plugin}"),
    line("nccl-plugin", Nccl, "Loaded net plugin {plugin}"),
    line("nccl-plugin", Nccl, "Initialized NET plugin {plugin}"),
    line(
        "nccl-plugin-missing",
        Nccl,
        "NET/Plugin: Could not find: {library}",
    ),
    line(
        "nccl-ofi-version",
        Nccl,
        "NET/OFI Using aws-ofi-nccl {version}",
    ),
    line(
        "nccl-ofi-provider",
        Nccl,
        "NET/OFI Selected Provider is {provider}",
    ),
    line(
        "nccl-ofi-provider",
        Nccl,
        "NET/OFI Selected provider is {provider}",
    ),
    line(
        "nccl-libibverbs",
        Nccl,
        "Failed to open libibverbs.so{text}",
    ),
    line(
        "nccl-no-socket-interface",
        Nccl,
        "no socket interface found",
    ),
    line("nccl-channel", Nccl, " via {path}"),
    line("nccl-mnnvl", Nccl, "MNNVL {text} healthMask {mask}"),
    line("nccl-nvls", Nccl, "Failed to bind NVLink SHARP{text}"),
    line("nccl-version", Nccl, "NCCL version {version}"),
    line("nccl-bootstrap", Nccl, "Bootstrap : Using {interface}"),
    line(
        "nccl-completion-error",
        Nccl,
        "Got completion from peer {peer} with {error}",
    ),
    line("nccl-warning", Nccl, "{text}"),
    // Gloo.
    line(
        "gloo-loopback",
        Gloo,
        "rank{#rank}: Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback",
    ),
    line(
        "gloo-loopback",
        Gloo,
        "Unable to resolve hostname to a (local) address. Using the loopback address as fallback",
    ),
    line(
        "gloo-connect-failed",
        Gloo,
        "Gloo connectFullMesh failed {detail}, remote=[{host}]:{#port}",
    ),
    line(
        "gloo-no-address",
        Gloo,
        "Unable to find address for: {interface}",
    ),
    // libfabric.
    line(
        "libfabric-registration-failed",
        Libfabric,
        "fi_mr_reg{call} failed{error}",
    ),
    line(
        "libfabric-retrying",
        Libfabric,
        "fi_read still retrying EAGAIN",
    ),
    // Fabric manager.
    line(
        "nvlink-controller",
        FabricManager,
        "found NVSwitch LPF: device={device}",
    ),
    // Kernel.
    line(
        "kernel-peermem-not-loaded",
        Kernel,
        "could not insert '{module}': {error}",
    ),
    line("kernel-xid", Kernel, "NVRM: Xid (PCI:{pci}): {#xid}"),
    line("kernel-mlx5-link-up", Kernel, "mlx5_core {device}: Link up"),
    line(
        "kernel-mlx5-link-down",
        Kernel,
        "mlx5_core {device}: Link down",
    ),
    line(
        "kernel-mlx5-cable",
        Kernel,
        "mlx5_core {device}: Port module event{text}",
    ),
    line(
        "kernel-mlx5-health",
        Kernel,
        "mlx5_core {device}: {} health compromised{text}",
    ),
    line(
        "kernel-mlx5-health",
        Kernel,
        "mlx5_core {device}: health_recovery{text}",
    ),
    line(
        "kernel-mlx5-health",
        Kernel,
        "mlx5_core {device}: assert_var[{text}",
    ),
    line(
        "kernel-mlx5-health",
        Kernel,
        "mlx5_core {device}: {}irmware internal error{text}",
    ),
    line(
        "kernel-mlx5-command",
        Kernel,
        "mlx5_core {device}: mlx5_cmd_{text}",
    ),
    line(
        "kernel-mlx5-pcie-power",
        Kernel,
        "mlx5_core {device}: Detected insufficient power{text}",
    ),
    line(
        "kernel-mlx5-pcie",
        Kernel,
        "mlx5_core {device}: {bandwidth} available PCIe bandwidth{text}",
    ),
    line(
        "kernel-speed-unknown",
        Kernel,
        "{interface} speed is unknown, defaulting to {#speed}",
    ),
    line("kernel-symbol", Kernel, "{module}: Unknown symbol {symbol}"),
    line(
        "kernel-symbol-version",
        Kernel,
        "{module}: disagrees about version of symbol {symbol}",
    ),
    line(
        "kernel-pcie-error",
        Kernel,
        "pcieport {device}: AER: {text}",
    ),
    line("kernel-iommu-fault", Kernel, "DMAR: [DMA {text}"),
    line(
        "kernel-out-of-memory",
        Kernel,
        "Out of memory: Killed process {#pid}",
    ),
];

/// Names of all kinds, for those who judge events.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|pattern| pattern.id)
}

/// Words that excerpts of other texts contain by chance: these kinds count only with the writer's own prefix.
fn needs_prefix(pattern: &Pattern, header: &Header<'_>) -> bool {
    let nccl = header.line.contains("NCCL");
    match pattern.id {
        "nccl-warning" => {
            !(nccl
                && header
                    .severity
                    .is_some_and(|s| s >= model::observation::log::Severity::Warn))
        }
        "nccl-channel" | "nccl-call-failed" | "nccl-network" | "nccl-plugin" | "nccl-mnnvl" => {
            !nccl
        }
        "ucx-version" | "ucx-no-ib-devices" | "ucx-invalid-value" | "ucx-completion-error" => {
            !header.ucx_prefix && !header.line.contains("UCX")
        }
        "nixl-rail-endpoints" => !header.rest.contains("rail"),
        "engine-handshake-hash" => !header.line.to_ascii_lowercase().contains("nixl"),
        "kernel-symbol" | "kernel-symbol-version" => {
            !header.rest.contains("nv") && !header.rest.contains("mlx5")
        }
        _ => false,
    }
}

/// The longest words between gaps.
fn longest_words(template: &'static str) -> &'static str {
    template
        .split('{')
        .enumerate()
        .map(|(n, part)| match (n, part.split_once('}')) {
            (1.., Some((_, words))) => words,
            _ => part,
        })
        .max_by_key(|words| words.len())
        .unwrap_or_default()
}

/// What stands in lanes and in tables.
const MARKS: [&str; 2] = ["cfg#", "remote memory"];

/// What a line can be.
#[derive(Default)]
pub(super) struct Possible {
    /// Kinds whose longest words are in it, in order.
    kinds: Vec<usize>,
    /// It has a word of lanes or tables.
    pub(super) marked: bool,
}

impl Possible {
    /// It can be nothing that stands in a line of its own.
    pub(super) fn nothing(&self) -> bool {
        self.kinds.is_empty() && !self.marked
    }
}

/// What a line can be; a log of a million lines cannot try every kind on each.
pub(super) fn possible(line: &str) -> Possible {
    static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let words = PATTERNS.iter().map(|p| match longest_words(p.words) {
            // Warnings of NCCL, whatever they say.
            "" => "NCCL",
            words => words,
        });
        AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .build(words.chain(MARKS))
            .ok()
    });
    let mut possible = Possible::default();
    let Some(words) = WORDS.as_ref() else {
        possible.kinds = (0..PATTERNS.len()).collect();
        possible.marked = true;
        return possible;
    };
    for found in words.find_overlapping_iter(line) {
        let at = found.pattern().as_usize();
        if at < PATTERNS.len() {
            possible.kinds.push(at);
        } else {
            possible.marked = true;
        }
    }
    possible.kinds.sort_unstable();
    possible.kinds.dedup();
    possible
}

/// The first kind that a line is of. Lines of commands that search for such words are none.
pub(super) fn find(header: &Header<'_>, possible: &Possible) -> Option<(&'static Pattern, Fields)> {
    let text = header.rest;
    if text.len() < 8 || text.len() > 64 * 1024 {
        return None;
    }
    possible.kinds.iter().find_map(|n| {
        let pattern = PATTERNS.get(*n)?;
        if needs_prefix(pattern, header) {
            return None;
        }
        let fields = matches(pattern.words, text)
            // What stands before the words counts as well: names of plugins, `NCCL version`.
            .or_else(|| {
                (pattern.component != Ucx).then(|| matches(pattern.words, header.line))?
            })?;
        plausible(pattern, &fields).then_some((pattern, fields))
    })
}

/// Names of devices and transports are short and have no blanks.
fn plausible(pattern: &Pattern, fields: &Fields) -> bool {
    let word = |name: &str| {
        fields
            .get(name)
            .is_none_or(|v| !v.trim().is_empty() && !v.trim().contains(' ') && v.len() < 200)
    };
    match pattern.id {
        "ucx-no-transport-to-peer" => fields.get("kind").is_some_and(|k| k.len() < 60),
        "nccl-channel" => fields
            .get("path")
            .is_some_and(|p| p.contains('/') && !p.starts_with("http")),
        "nixl-libfabric-devices" | "nixl-libfabric-topology" => word("provider"),
        "nixl-error" => fields
            .get("code")
            .is_some_and(|c| c.starts_with(|c: char| c.is_ascii_uppercase())),
        "nixl-ucx-version-old" => word("minimum") && word("version"),
        "verbs-driver-not-loaded" => word("driver"),
        _ => true,
    }
}

/// Brings fields into a form that needs no second reading.
pub(super) fn refine(id: &'static str, fields: &mut Fields) {
    let put = |fields: &mut Fields, name: &'static str, value: String| {
        fields.insert(Cow::Borrowed(name), value);
    };
    let last_word = |text: &str| {
        text.split_whitespace()
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    let first_word = |text: &str| {
        text.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    match id {
        "ucx-version" => {
            if let Some(text) = fields.get("library").cloned()
                && let Some((library, rest)) = text.split_once(", git branch")
            {
                let revision = rest
                    .split_once("revision ")
                    .map(|(_, r)| r.trim().to_owned());
                put(fields, "library", library.to_owned());
                if let Some(revision) = revision {
                    put(fields, "revision", revision);
                }
            }
        }
        "ucx-environment" => {
            // Only names of the catalogue keep their values.
            let kept: Vec<String> = fields
                .get("variables")
                .map(|text| {
                    text.split_whitespace()
                        .filter(|w| {
                            w.split_once('=')
                                .is_some_and(|(n, _)| settings::catalogue::is_allowed(n))
                        })
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default();
            put(fields, "variables", kept.join(" "));
        }
        "ucx-device-not-available" | "ucx-transport-not-available" => {
            if let Some(text) = fields.get("names") {
                let names = quoted(text).join(",");
                put(fields, "names", names);
            }
        }
        "ucx-no-usable-transport" => {
            // UCX 1.18 leaves out the blank before `on`.
            let found = fields.get("asked").and_then(|t| {
                t.split_once(" on ").or_else(|| {
                    let at = t.find("on network:")?;
                    Some((t.get(..at)?, t.get(at.saturating_add(3)..)?))
                })
            });
            if let Some((asked, on)) = found {
                let (asked, on) = (asked.to_owned(), on.to_owned());
                put(fields, "asked", asked);
                put(fields, "on", on);
            }
        }
        "ucx-unused-variable" => {
            let text = fields.get("names").cloned().unwrap_or_default();
            let mut names = Vec::new();
            let mut maybe = Vec::new();
            for part in text.split(';').take(64) {
                let part = part.split(" (set ").next().unwrap_or(part);
                let (name, rest) = part.split_once(" (maybe: ").unwrap_or((part, ""));
                // UCX looks at variables that begin with its prefix, and suggests such.
                let of_ucx = |text: &str| -> Option<String> {
                    let name = text
                        .trim()
                        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                        .next()?;
                    name.starts_with("UCX_").then(|| name.to_owned())
                };
                names.extend(of_ucx(name));
                maybe.extend(of_ucx(rest));
            }
            put(fields, "names", names.join(","));
            if !maybe.is_empty() {
                put(fields, "maybe", maybe.join(","));
            }
        }
        "ucx-dmabuf-registration-failed" => {
            if let Some((_, errno)) = fields
                .get("error")
                .and_then(|e| e.split_once("Unknown error "))
            {
                let errno: String = errno.chars().take_while(char::is_ascii_digit).collect();
                put(fields, "errno", errno);
            }
        }
        "ucx-queue-pair" => {
            if let Some(op) = fields.get("op").map(|t| first_word(t)) {
                put(fields, "op", op);
            }
        }
        "ucx-gpudirect-disabled"
        | "ucx-gpudirect-enabled"
        | "ucx-dmabuf-not-supported"
        | "ucx-dmabuf-supported"
        | "kernel-speed-unknown"
        | "kernel-symbol"
        | "kernel-symbol-version"
        | "ucx-queue-creation-failed"
        | "ucx-memlock" => {
            if let Some(symbol) = fields.get("symbol").map(|t| first_word(t)) {
                put(fields, "symbol", symbol);
            }
            for name in ["device", "interface", "module", "call"] {
                if let Some(value) = fields.get(name).map(|t| last_word(t)) {
                    put(fields, name, value);
                }
            }
        }
        "nccl-set-by-environment" => {
            if let Some(name) = fields.get("name").map(|n| format!("NCCL_{n}")) {
                let value = fields
                    .get("value")
                    .map(|v| v.trim_end_matches('.').to_owned())
                    .unwrap_or_default();
                let known = settings::catalogue::is_allowed(&name);
                put(fields, "name", name);
                put(fields, "value", if known { value } else { String::new() });
            }
        }
        "nccl-network" => {
            if let Some(network) = fields.get("network").map(|t| first_word(t)) {
                put(fields, "network", network);
            }
        }
        "nixl-error" => {
            if let Some(code) = fields.get("code") {
                let code: String = code
                    .chars()
                    .take_while(|c| c.is_ascii_uppercase() || *c == '_')
                    .collect();
                put(fields, "code", format!("NIXL_ERR_{code}"));
            }
        }
        _ => {}
    }
}

/// `'rc','ud'` as a list; blanks within the quotes stay.
fn quoted(text: &str) -> Vec<String> {
    let names: Vec<String> = text
        .split('\'')
        .skip(1)
        .step_by(2)
        .take(256)
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        vec![text.to_owned()]
    } else {
        names
    }
}
