//! What is worth knowing about a setting that is neither right nor wrong: told as a note beside it.

use model::{Engine, Setting, Worker};
use settings::nccl_ib_hca::NameList;
use settings::nccl_int::NcclInt;
use settings::nccl_level::Level;
use settings::ucx_value::{Ternary, parse_ternary};
use settings::version::NcclVersion;

use crate::check::Cause;
use crate::kv_path::Connector;
use crate::view::{View, WorkerView};

/// Every note about a setting.
pub(crate) const ALL: &[Cause] = &[
    GDR_YES,
    WARNINGS_OFF,
    ADDR_TYPE,
    GID_INDEX,
    ROCE_REACHABILITY,
    RNDV,
    MEMTYPE_CACHE,
    MNNVL_WITHOUT_DOMAIN,
    RELAXED_ORDERING,
    TRAFFIC_CLASS,
    PLUGIN_DIR,
    KVBM_BACKEND,
    NIC_MAPPING,
    MOONCAKE_POOL,
    MOONCAKE_STORE,
    FI_PROVIDER,
    NCCL_IB_OFF,
    NCCL_NOT_NIXL,
    NCCL_HCA_PREFIX,
    NCCL_EXCLUDE,
    NCCL_P2P,
    NCCL_GDR,
    NCCL_IFNAME,
    GLOO_CARET,
    NCCL_SOCKET,
    NCCL_GID,
    NCCL_MNNVL,
    NCCL_DMABUF,
];

macro_rules! notes {
    ($($name:ident = $id:literal, $what:literal, $why:literal, $fix:literal, $quiet_if:literal, $source:literal;)*) => {
        $(pub(crate) const $name: Cause = Cause {
            id: $id,
            what: $what,
            why: $why,
            fix: $fix,
            quiet_if: $quiet_if,
            source: $source,
        };)*
    };
}

notes! {
    GDR_YES = "ucx-gdr-forced-yes",
        "UCX_IB_GPU_DIRECT_RDMA is yes",
        "without a driver for GPUDirect the RDMA device fails to open, so a gap shows at once instead of being staged",
        "none; unset tries as well",
        "try, or unset",
        "UCX ib_md.c:119";
    WARNINGS_OFF = "ucx-warn-unused-suppressed",
        "UCX's warnings are off: UCX_WARN_UNUSED_ENV_VARS=n, UCX_WARN_INVALID_CONFIG=n, or UCX_LOG_LEVEL=error or fatal",
        "it hides the only messages that tell of a misspelt variable, a missing device or a missing module",
        "keep the level warn while KV transfer is being checked",
        "the level is warn or more",
        "UCX parser.c:2493-2578";
    ADDR_TYPE = "ucx-ib-addr-type-deprecated",
        "UCX_IB_ADDR_TYPE is set",
        "deprecated: UCX finds the address type by itself; UCX_IB_IS_GLOBAL=y is the way across subnets",
        "remove it, or use UCX_IB_IS_GLOBAL=y across subnets",
        "unset",
        "UCX ib_iface.c:158, 1835; ai-dynamo/dynamo's guide asks for it on RoCE";
    GID_INDEX = "ucx-gid-index-pinned",
        "UCX_IB_GID_INDEX is a fixed number",
        "the RoCE v2 slot differs from pod to pod with macvlan and SR-IOV: a fixed number can be an empty, link-local or v1 slot; whether it fits shows only in the pod",
        "remove it: UCX picks a RoCE v2 address",
        "auto or unset; InfiniBand; identical hosts with hostNetwork",
        "UCX ib_device.c (GID selection)";
    ROCE_REACHABILITY = "ucx-roce-reachability-mode",
        "UCX_IB_ROCE_REACHABILITY_MODE is set",
        "from 1.19 on UCX checks routes before it uses a RoCE device; `all` skips that check, which policy routing and device claims on NICs can mislead",
        "none; set all where the log names the device and the lanes are tcp",
        "unset",
        "UCX; llm-d/llm-d#2423";
    RNDV = "ucx-rndv-settings-no-effect",
        "a rendezvous setting of UCX in a worker whose KV goes over NIXL",
        "NIXL uses one-sided put and get, which rendezvous settings do not touch",
        "none",
        "TensorRT-LLM's own UCX transceiver, which uses rendezvous; EFA, where a finite threshold costs zero copy and is judged",
        "ai-dynamo/nixl src/plugins/ucx";
    MEMTYPE_CACHE = "ucx-memtype-cache-off",
        "UCX_MEMTYPE_CACHE or UCX_MEMTYPE_REG_WHOLE is off",
        "pointer look-ups are a little slower; it works around memory hooks that miss allocations",
        "none",
        "unset or on",
        "UCX ucp_context.c";
    MNNVL_WITHOUT_DOMAIN = "ucx-mnnvl-option-without-domain",
        "UCX_CUDA_IPC_ENABLE_MNNVL is set and no compute domain is claimed",
        "it does nothing without an IMEX channel; UCX from 1.19 on tries by itself",
        "remove it",
        "a compute domain is claimed",
        "UCX cuda_ipc_md.c:56";
    RELAXED_ORDERING = "pcie-relaxed-ordering",
        "PCIe relaxed ordering is set",
        "NIXL already sets try; on some virtual machines it has to be on",
        "none",
        "unset",
        "ai-dynamo/nixl src/plugins/ucx";
    TRAFFIC_CLASS = "roce-traffic-class-ucx-vs-nccl",
        "NCCL_IB_TC is set and UCX_IB_TRAFFIC_CLASS is not",
        "NCCL's traffic class does not reach UCX: KV runs in the default class, which the network may not protect",
        "set UCX_IB_TRAFFIC_CLASS to the same value where the network sorts by it",
        "both are set; another library carries KV",
        "UCX ib_iface.c; NCCL net_ib";
    PLUGIN_DIR = "nixl-plugin-dir",
        "NIXL_PLUGIN_DIR is set, or a log says that NIXL has no plugin for a backend",
        "NIXL finds its backends in that directory only: without libplugin_UCX.so of the same version there the backend cannot be made",
        "remove it, or check the directory in the image",
        "unset",
        "ai-dynamo/nixl plugin manager";
    KVBM_BACKEND = "dynamo-kvbm-backend",
        "DYN_KVBM_NIXL_BACKEND_* is set",
        "only KVBM, the offloading of KV, reads it; transfer between prefill and decode has its own switch",
        "none",
        "unset",
        "ai-dynamo/dynamo docs, efa-on-aws";
    NIC_MAPPING = "vllm-gpu-nic-mapping-env",
        "NICs are assigned to GPUs by VLLM_GPU_NIC_PCIE_MAPPING or MX_RDMA_NIC_PIN",
        "each rank gets its own UCX_NET_DEVICES at start, which the file does not show",
        "none",
        "unset",
        "vLLM envs.py";
    MOONCAKE_POOL = "mooncake-nvlink-pool",
        "SGLANG_MOONCAKE_CUSTOM_MEM_POOL or MC_FORCE_MNNVL is set",
        "the pool allocates KV memory with fabric handles, for NIXL too; MC_FORCE_MNNVL alone does not",
        "none",
        "unset",
        "SGLang srt/environ.py";
    MOONCAKE_STORE = "mooncake-store-protocol-tcp",
        "MOONCAKE_PROTOCOL is tcp",
        "only the Mooncake store reads it: what is cached in the store goes over TCP, the transfer between prefill and decode does not",
        "set it to rdma where the store's nodes have RDMA devices",
        "rdma, or unset",
        "SGLang mem_cache/storage/mooncake_store (MooncakeStoreConfig)";
    FI_PROVIDER = "efa-fi-provider-not-needed",
        "FI_PROVIDER=efa",
        "NIXL and libfabric find EFA without it",
        "none",
        "unset",
        "ai-dynamo/nixl libfabric_common.cpp:36-125";
    NCCL_IB_OFF = "nccl-ib-disable-1",
        "NCCL_IB_DISABLE=1 in a worker that spans nodes",
        "NCCL uses sockets between the nodes of this worker; it has no effect on KV over NIXL",
        "remove NCCL_IB_DISABLE",
        "the worker's GPUs are in one pod; EFA, whose plugin carries it; a compute domain",
        "NCCL transport/net_ib";
    NCCL_NOT_NIXL = "nccl-env-does-not-steer-nixl",
        "NCCL_IB_HCA is set and UCX_NET_DEVICES is not",
        "NCCL's device list does not reach NIXL: UCX uses every device",
        "UCX_NET_DEVICES for KV, where a pin is needed",
        "UCX_NET_DEVICES is set too; another library carries KV",
        "vLLM documentation, NixlConnector";
    NCCL_HCA_PREFIX = "nccl-ib-hca-prefix",
        "a name in NCCL_IB_HCA ends with a digit and is a prefix",
        "names are prefixes without a leading =: mlx5_1 takes mlx5_10 to mlx5_19 as well",
        "write =mlx5_1,…",
        "a leading =; a port after the name; the prefix is meant (mlx5, ibp)",
        "NCCL misc/socket.cc parseStringList";
    NCCL_EXCLUDE = "nccl-exclude-ib-hca-not-a-variable",
        "NCCL_EXCLUDE_IB_HCA is set",
        "NCCL does not read it",
        "use NCCL_IB_HCA=^…",
        "a wrapper of the site reads it",
        "absent from NCCL's source";
    NCCL_P2P = "nccl-p2p-disable",
        "NCCL_P2P_DISABLE=1 or NCCL_P2P_LEVEL=LOC",
        "NCCL does not use NVLink inside the node: tensor parallelism is slow; KV over NIXL is not touched",
        "remove it",
        "GPUs without working peer access",
        "NCCL graph/paths.cc";
    NCCL_GDR = "nccl-net-gdr-level",
        "NCCL_NET_GDR_LEVEL is LOC",
        "NCCL does not use GPUDirect RDMA; KV over NIXL is not touched",
        "remove it; on virtual machines SYS or a topology file",
        "any other level, or unset",
        "NCCL graph/paths.cc";
    NCCL_IFNAME = "nccl-socket-ifname-wrong",
        "NCCL_SOCKET_IFNAME names a virtual interface, or NCCL finds no interface that it allows",
        "lo, docker0, virbr0 and the like reach no other pod: NCCL's ranks do not meet",
        "name the pod's interface (eth0), or leave it out",
        "one pod; another interface is named",
        "NCCL misc/socket.cc, bootstrap.cc (no socket interface found)";
    GLOO_CARET = "gloo-socket-ifname-caret",
        "GLOO_SOCKET_IFNAME begins with ^, or names no interface of the pod",
        "Gloo knows no deny lists: it looks for an interface of that very name and stops",
        "name one interface",
        "a plain name of an interface that is there",
        "PyTorch ProcessGroupGloo; gloo transport/tcp/device.cc (Unable to find address for)";
    NCCL_SOCKET = "nccl-net-socket",
        "NCCL_NET=Socket in a worker that spans nodes, or NCCL's log says that it uses sockets",
        "NCCL uses TCP between the nodes of this worker; it has no effect on KV over NIXL",
        "remove NCCL_NET",
        "one node, or a later line of the same process names another network",
        "NCCL plugin/net.cc, transport/net_ib (No device found); NVIDIA/nccl#451, #941";
    NCCL_GID = "nccl-gid-index-set-new",
        "NCCL_IB_GID_INDEX is set",
        "NCCL 2.21 and later find the address by themselves, and a fixed number can be wrong in pods",
        "remove it, unless the provider documents it for the machine type",
        "a provider documents the value (OCI: 3)",
        "NCCL transport/net_ib";
    NCCL_MNNVL = "nccl-mnnvl-cumem-off",
        "NCCL_MNNVL_ENABLE=0 or NCCL_CUMEM_ENABLE=0 with a compute domain",
        "NCCL does not use NVLink between nodes; cuMem off blocks it too",
        "remove it",
        "no compute domain",
        "NCCL mnnvl.cc";
    NCCL_DMABUF = "nccl-dmabuf-off",
        "NCCL_DMABUF_ENABLE=0",
        "without nvidia_peermem on the node NCCL then has no GPUDirect",
        "remove it",
        "nvidia_peermem is loaded, which the file does not show",
        "NCCL transport/net_ib";
}

/// The note about this setting of this worker.
pub(crate) fn about(view: &View<'_>, worker: &Worker, setting: &Setting) -> Option<&'static Cause> {
    let kv = view.kv.iter().find(|w| std::ptr::eq(w.worker, worker));
    let value = setting.value.literal()?;
    let off = || parse_ternary(value) == Ok(Ternary::No);
    let name = setting.name.as_str();
    let on_ucx = kv.is_some_and(|w| w.path.may_use_ucx());
    let hit = |condition: bool, note: &'static Cause| condition.then_some(note);
    match name {
        "UCX_IB_GPU_DIRECT_RDMA" => {
            hit(on_ucx && parse_ternary(value) == Ok(Ternary::Yes), &GDR_YES)
        }
        "UCX_WARN_UNUSED_ENV_VARS" | "UCX_WARN_INVALID_CONFIG" => hit(off(), &WARNINGS_OFF),
        "UCX_LOG_LEVEL" => hit(
            ["error", "fatal"]
                .iter()
                .any(|l| value.eq_ignore_ascii_case(l)),
            &WARNINGS_OFF,
        ),
        "UCX_IB_ADDR_TYPE" => hit(on_ucx, &ADDR_TYPE),
        "UCX_IB_GID_INDEX" => hit(on_ucx && value.parse::<u32>().is_ok(), &GID_INDEX),
        "UCX_IB_ROCE_REACHABILITY_MODE" => hit(on_ucx, &ROCE_REACHABILITY),
        "UCX_RNDV_SCHEME" | "UCX_RNDV_THRESH" | "UCX_MAX_RNDV_RAILS" => hit(
            kv.is_some_and(|w| w.path.connector == Connector::Nixl && w.path.may_use_ucx()),
            &RNDV,
        ),
        "UCX_MEMTYPE_CACHE" | "UCX_MEMTYPE_REG_WHOLE" => hit(on_ucx && off(), &MEMTYPE_CACHE),
        "UCX_CUDA_IPC_ENABLE_MNNVL" => hit(
            kv.is_some_and(|w| w.fabric.compute_domain.is_none() && w.fabric.open_claim.is_none())
                && !view.is_part(),
            &MNNVL_WITHOUT_DOMAIN,
        ),
        "UCX_IB_PCI_RELAXED_ORDERING" | "NCCL_IB_PCI_RELAXED_ORDERING" => Some(&RELAXED_ORDERING),
        "NIXL_PLUGIN_DIR" => Some(&PLUGIN_DIR),
        "VLLM_GPU_NIC_PCIE_MAPPING" | "MX_RDMA_NIC_PIN" => Some(&NIC_MAPPING),
        "SGLANG_MOONCAKE_CUSTOM_MEM_POOL" | "MC_FORCE_MNNVL" => {
            hit(worker.engine == Engine::Sglang, &MOONCAKE_POOL)
        }
        "MOONCAKE_PROTOCOL" => hit(value.trim().eq_ignore_ascii_case("tcp"), &MOONCAKE_STORE),
        "FI_PROVIDER" => hit(value.eq_ignore_ascii_case("efa"), &FI_PROVIDER),
        _ if name.starts_with("DYN_KVBM_NIXL_BACKEND") => Some(&KVBM_BACKEND),
        _ => collective(view, kv, worker, name, value),
    }
}

/// Notes about settings of collective communication. None of them is about KV, but the two that say so.
fn collective(
    view: &View<'_>,
    kv: Option<&WorkerView<'_>>,
    worker: &Worker,
    name: &str,
    value: &str,
) -> Option<&'static Cause> {
    let fabric = crate::fabric::of(worker, view.deployment);
    let spans_nodes = worker.nodes > 1
        || worker
            .literal("--nnodes")
            .and_then(|n| n.parse::<u64>().ok())
            .is_some_and(|n| n > 1);
    let is = |number: i64| NcclInt::parse(value) == NcclInt::Number(number);
    let on_ucx = kv.is_some_and(|w| w.path.may_use_ucx());
    let hit = |condition: bool, note: &'static Cause| condition.then_some(note);
    match name {
        "NCCL_IB_DISABLE" => hit(
            is(1) && spans_nodes && fabric.efa.is_none() && fabric.compute_domain.is_none(),
            &NCCL_IB_OFF,
        ),
        "NCCL_IB_HCA" if prefix_of_more(value) => Some(&NCCL_HCA_PREFIX),
        "NCCL_IB_HCA" => hit(
            on_ucx && worker.setting("UCX_NET_DEVICES").is_none(),
            &NCCL_NOT_NIXL,
        ),
        "NCCL_EXCLUDE_IB_HCA" => Some(&NCCL_EXCLUDE),
        "NCCL_P2P_DISABLE" => hit(is(1), &NCCL_P2P),
        "NCCL_P2P_LEVEL" => hit(Level::parse(value) == Some(Level::Loc), &NCCL_P2P),
        "NCCL_NET_GDR_LEVEL" => hit(Level::parse(value) == Some(Level::Loc), &NCCL_GDR),
        "NCCL_SOCKET_IFNAME" => {
            let names = value.trim_start_matches('=').split(',').map(str::trim);
            let of_others =
                |n: &str| n == "lo" || ["docker", "virbr", "veth"].iter().any(|p| n.starts_with(p));
            hit(
                spans_nodes
                    && !value.starts_with('^')
                    && !value.is_empty()
                    && names.clone().all(of_others),
                &NCCL_IFNAME,
            )
        }
        "GLOO_SOCKET_IFNAME" => hit(value.trim_start().starts_with('^'), &GLOO_CARET),
        "NCCL_NET" => hit(
            value.eq_ignore_ascii_case("socket") && spans_nodes,
            &NCCL_SOCKET,
        ),
        "NCCL_IB_GID_INDEX" => hit(
            matches!(NcclInt::parse(value), NcclInt::Number(n) if n >= 0),
            &NCCL_GID,
        ),
        "NCCL_MNNVL_ENABLE" | "NCCL_CUMEM_ENABLE" => {
            hit(is(0) && fabric.compute_domain.is_some(), &NCCL_MNNVL)
        }
        "NCCL_DMABUF_ENABLE" => hit(is(0), &NCCL_DMABUF),
        "NCCL_IB_TC" => hit(
            on_ucx && worker.setting("UCX_IB_TRAFFIC_CLASS").is_none(),
            &TRAFFIC_CLASS,
        ),
        _ => None,
    }
}

/// A name that ends with a digit and stands for others too.
fn prefix_of_more(value: &str) -> bool {
    let list = NameList::parse(value, NcclVersion::LATEST);
    !list.is_exact()
        && !value.contains(':')
        // mlx5_1 is mlx5_10 to mlx5_19 as well; no machine has so many devices that mlx5_3 is more than one.
        && list.names().any(|n| n.ends_with("_1") || n.ends_with("_2"))
}
