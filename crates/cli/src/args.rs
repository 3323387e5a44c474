//! Command line arguments. Help, completions and man pages are made from these definitions.

mod check;
mod collect;
mod manifest;
mod rbac;
mod transfer;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use check::{CheckArgs, ChoiceArgs, Depth, PairArgs, ReplayArgs};
pub use collect::CollectArgs;
pub(crate) use manifest::SCHEDULE;
pub use manifest::{ManifestArgs, ManifestKind};
pub use rbac::RbacArgs;
pub use transfer::TransferArgs;

/// Says from evidence whether KV transfer between prefill and decode workers runs over RDMA or NVLink,
/// and what to fix first.
#[derive(Debug, Parser)]
#[command(name = "check-interconnect", version, max_term_width = 100, after_help = EXIT_CODES, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The exit codes, as every help page lists them.
pub const EXIT_CODES: &str = "\
Exit codes, the same for every output format:
  0    nothing failed
  1    a check failed (--fail-on moves the line)
  2    wrong usage or configuration, or a path that does not exist
  3    inconclusive: required evidence is missing, or part of the input was broken
  4    nothing to check: no manifest, no pod
  5    the cluster cannot be reached or refuses access
  130  interrupted; 143 terminated";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge recipes: Kubernetes manifests, before anything is deployed
    Env(EnvArgs),
    /// RDMA, GPUDirect, NVLink and limits: of this host or container, of pods, or of saved outputs
    Node(NodeArgs),
    /// NIXL in an engine that runs, here or in pods; between two pods; or in saved logs of one or both sides
    Nixl(NixlArgs),
    /// A whole deployment: its workers, each and held against each other, prefill against decode
    Check(CheckArgs),
    /// Save everything that check would judge, of workers of a cluster or of this host, and judge nothing
    Collect(CollectArgs),
    /// Judge a bundle that collect or check --bundle saved, with the same output
    Replay(ReplayArgs),
    /// Print the rights that check needs as a Role and a RoleBinding (YAML); nothing is applied
    Rbac(RbacArgs),
    /// Print what collects from inside a pod where nobody may run a command in it (YAML); nothing is applied
    Manifest(ManifestArgs),
    /// What a check or a cause means, when it is no problem, and how to fix it
    Explain(ExplainArgs),
    /// Transport variables: what they do, and what a value does
    Vars(VarsArgs),
    /// Print a completion script
    Completions {
        /// The shell to complete for.
        shell: Shell,
    },
    /// Print the manual page (roff)
    Man {
        /// Page of one command; the main page without it.
        command: Option<String>,
    },
    /// Print the JSON Schema of the report, or of the configuration file
    Schema {
        /// What it describes.
        #[arg(value_enum, default_value_t = SchemaOf::Json)]
        of: SchemaOf,
    },
}

/// What a schema describes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SchemaOf {
    /// `-o json`
    Json,
    /// One line of `-o jsonl`
    Jsonl,
    /// The file check-interconnect.toml
    Config,
}

/// When to color.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// From which readiness on the exit code is 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOnArg {
    /// A failed check.
    #[default]
    Fail,
    /// Also a warning.
    Warn,
    /// Also a deployment that nothing has proven.
    Unproven,
    /// Never: 1 and 3 become 0.
    Never,
}

/// How results are printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Format, and a file to write it to; may be given several times: text, short, json, jsonl, prometheus
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]")]
    pub output: Vec<OsString>,
    /// When to color text
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// From what on to exit with 1
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    pub fail_on: FailOnArg,
    /// Tell every result in full
    #[arg(short, long)]
    pub verbose: bool,
}

/// Arguments about decisions on findings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Adoption")]
pub struct PolicyArgs {
    /// Configuration file, instead of check-interconnect.toml here or above, up to the repository's root
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    pub config: Option<PathBuf>,
    /// Use no configuration file
    #[arg(long)]
    pub no_config: bool,
    /// Findings in this file are known and count as ok
    #[arg(long, value_name = "FILE", conflicts_with = "write_baseline")]
    pub baseline: Option<PathBuf>,
    /// Write all findings that count into this file, and count them as known
    #[arg(long, value_name = "FILE")]
    pub write_baseline: Option<PathBuf>,
    /// Put right what has only one right text, such as a space in UCX_TLS, and judge the result
    #[arg(long)]
    pub fix: bool,
    /// Print what --fix would change, as a patch, and change nothing; it has no other format
    #[arg(long, conflicts_with_all = ["output", "write_baseline"])]
    pub diff: bool,
}

/// Arguments of `env`.
#[derive(Debug, Args)]
#[command(after_help = ENV_HELP)]
pub struct EnvArgs {
    /// Files, directories (searched for .yaml, .yml and .json), kustomizations, charts, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Do not render kustomizations and Helm charts; judge their parts as they are
    #[arg(long)]
    pub no_render: bool,
    /// How long kubectl, kustomize or helm may take for one of them
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub render_timeout: u64,
    /// Values for the Helm charts, as helm's option of that name; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "no_render")]
    pub values: Vec<PathBuf>,
    /// What was decided about findings.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// How results are printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

const ENV_HELP: &str = "\
Examples:
  check-interconnect env deploy.yaml
  check-interconnect env recipes/ -o short --fail-on warn
  check-interconnect env overlays/production
  check-interconnect env ./chart --values production.yaml
  helm template ./chart | check-interconnect env - -o json
  check-interconnect env deploy.yaml -o text -o json=report.json
  check-interconnect env recipes/ --write-baseline known.json
  check-interconnect env recipes/ --diff

Exit codes: 0 nothing failed, 1 a check failed, 2 usage or missing path, 3 part of the input was \
broken, 4 no manifest. With --diff: 1 something would change, 0 nothing. Reads files only; --fix and \
--write-baseline write some.

A kustomization is judged as what kubectl kustomize or kustomize build prints, a Helm chart as what \
helm template prints, where the program is there and has nothing to fetch. Otherwise their parts \
are judged as they are, and a result says so. Nothing else is run, and nothing is fetched.";

/// Arguments of `node`.
#[derive(Debug, Args)]
#[command(after_help = NODE_HELP)]
pub struct NodeArgs {
    /// Judge saved or pasted outputs of tools and logs instead, as one picture; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["pod", "selector", "all"])]
    pub from: Vec<PathBuf>,
    /// What runs there, where nothing else tells: the lack of a fabric is then a failure
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<RoleArg>,
    /// Print which network card serves which GPU, and over what, instead of a verdict; as text or json
    #[arg(long)]
    pub topology: bool,
    /// Which pods, and how to reach them.
    #[command(flatten)]
    pub pods: PodArgs,
    /// How results are printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments about pods of a cluster.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Pods of a cluster")]
pub struct PodArgs {
    /// Pod to look into; may be given several times
    #[arg(long, value_name = "POD", conflicts_with_all = ["selector", "all"])]
    pub pod: Vec<String>,
    /// Pods with these labels, as kubectl's option of that name
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "all")]
    pub selector: Option<String>,
    /// Every pod of the namespace that looks like a KV worker, by its labels or its engine's flags
    #[arg(long)]
    pub all: bool,
    /// Container; without it main, else the one that asks for accelerators
    #[arg(short, long, value_name = "CONTAINER")]
    pub container: Option<String>,
    /// Namespace; that of the kubeconfig's context without it
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Kubeconfig file, instead of $KUBECONFIG, ~/.kube/config or the pod's own service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// User to act as
    #[arg(long = "as", value_name = "USER")]
    pub as_user: Option<String>,
    /// Group to act as; may be given several times
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user")]
    pub as_group: Vec<String>,
    /// Go through this program, which takes the arguments of kubectl, instead of speaking to the API server
    #[arg(long, value_name = "PROGRAM")]
    pub via: Option<String>,
    /// How long one request to the API server may take (30, 30s, 1m); 0 is without end, as with kubectl
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration_or_none)]
    pub request_timeout: Duration,
    /// How long one container may take (60s, 2m); with nixl --transfer and --observe all of the command, with check --transfer
    /// each pair
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Containers that are looked into at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrency: u16,
}

impl PodArgs {
    /// The namespace that is meant.
    pub(crate) fn namespace_of(&self, cluster: &dyn cluster::Cluster) -> String {
        self.namespace
            .clone()
            .unwrap_or_else(|| cluster.namespace().to_owned())
    }
}

/// A length of time as kubectl takes it: `30s`, `2m`, `1h30m`, or seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let odd = || format!("'{text}' is no length of time; expected one like 30s, 2m or 1h30m");
    let time = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => text
            .parse::<jiff::SignedDuration>()
            .ok()
            .and_then(|time| Duration::try_from(time).ok())
            .ok_or_else(odd)?,
    };
    if time.is_zero() || time > Duration::from_hours(24) {
        return Err(format!("'{text}' is not between 1ms and 24h"));
    }
    Ok(time)
}

/// The same; 0 stands for a time that nobody waits for.
fn duration_or_none(text: &str) -> Result<Duration, String> {
    let is_zero = match text.parse::<u64>() {
        Ok(seconds) => seconds == 0,
        Err(_) => text
            .parse::<jiff::SignedDuration>()
            .is_ok_and(|time| time.is_zero()),
    };
    if is_zero {
        Ok(WITHOUT_END)
    } else {
        duration(text)
    }
}

/// Far enough away, and near enough for every clock to hold.
const WITHOUT_END: Duration = Duration::from_hours(24 * 365);

/// A role that can be given by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleArg {
    /// Computes the KV cache.
    Prefill,
    /// Fetches the KV cache.
    Decode,
    /// Does both; nothing is transferred.
    Aggregated,
}

const NODE_HELP: &str = "\
Examples:
  check-interconnect node
  check-interconnect node --role decode -o json
  check-interconnect node -n serving --pod decode-0
  check-interconnect node -n serving -l app=llama -o text -o json=report.json
  check-interconnect node -n serving --all --via 'tsh kubectl'
  check-interconnect node --from ibstat.txt topo.txt worker.log
  nvidia-smi topo -m | check-interconnect node --from -
  check-interconnect node --from topo.txt --topology

Knows ibstat, ibstatus, ibv_devinfo, ibv_devices, ibdev2netdev, rdma link, show_gids, lsmod, nvidia-smi \
(topo, nvlink, -q), dcgmi nvlink, gpud, ucx_info, fi_info, lspci, listings of /dev/infiniband, dumps of sysfs, \
ulimit, and log lines of UCX, NIXL, NCCL, Gloo, libfabric and the kernel. Several files are one picture.

In a pod it reads /sys, /proc and what tools there print, by one exec of a shell script in the container; it \
writes nothing and leaves nothing running. Values of variables that are not in the catalogue never leave the \
pod. It needs get and list on pods and create and get on pods/exec; get and list on nodes if it may.

Exit codes: 0 nothing failed, 1 a check failed, 2 usage or missing path, 3 too little could be read for a \
verdict, 4 no such pod, 5 the cluster cannot be reached or refuses access, 130 interrupted.";

/// Arguments of `nixl`.
#[derive(Debug, Args)]
#[command(after_help = NIXL_HELP)]
pub struct NixlArgs {
    /// Judge saved logs of one or both sides; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["pod", "selector", "all"])]
    pub from: Vec<PathBuf>,
    /// What the process is for, where nothing else tells: settings that leave only TCP are then a failure
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<RoleArg>,
    /// Which pods, and how to reach them.
    #[command(flatten)]
    pub pods: PodArgs,
    /// Print a pod (YAML) for each of the pods, with the same node, resources, claims and networks and another image, for
    /// workers whose image has no NIXL; nothing is applied
    #[arg(long, conflicts_with_all = ["from", "transfer", "dry_run"])]
    pub debug_pods: bool,
    /// What moves between two of them.
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// How results are printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

const NIXL_HELP: &str = "\
Examples:
  check-interconnect nixl
  check-interconnect nixl -n serving --pod decode-0
  check-interconnect nixl -n serving --all -o text -o json=report.json
  check-interconnect nixl -n serving --pod decode-0 --dry-run
  check-interconnect nixl -n serving --pod decode-0 --peer prefill-0 --transfer
  check-interconnect nixl --from decode.log prefill.log
  kubectl logs -l app=vllm --prefix | check-interconnect nixl --from - -o json
  check-interconnect nixl -n serving --pod decode-0 --peer prefill-0 --transfer --dry-run
  check-interconnect nixl -n serving --pod decode-0 --peer prefill-0 --transfer -o text -o json=transfer.json
  check-interconnect nixl -n serving --pod decode-0 --peer prefill-0 --observe 30s

Of an engine that runs, here or in pods: which NIXL and UCX it has loaded, which backends can be made in its place and \
which transports its UCX offers there, its side channel, what it uses now, its log and its metrics. In a pod that is one \
exec of a shell script that reads /sys and /proc, and, where a KV worker has libnixl loaded, a second one of a Python \
program with the engine's interpreter, libraries and settings, which makes an agent, moves nothing and writes nothing. \
It reads /metrics of the engine's ports inside of the pod. Nothing is left running.

With --from it reads logs of engines (vLLM, SGLang, TensorRT-LLM, Mooncake) and what UCX, NIXL, libfabric and NCCL print. \
Only the protocol table that UCX prints with UCX_PROTO_INFO=y names what carries the payload, for each operation (READ, \
WRITE) and memory kind; a line of lanes (cfg#1 rma(...)) is a hint. Files of one process, and lines of one pod or host, \
are one side; both sides are told apart by the names of pods, hosts, agents and files.

It needs get and list on pods, create and get on pods/exec; get on pods/log and on nodes if it may.

Exit codes: 0 nothing failed, 1 a check failed, 2 usage or missing path, 3 no engine, no NIXL, or the logs do not tell \
what carried the payload, 4 no such pod, 5 the cluster cannot be reached or refuses access, 130 interrupted.";

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Name of a check (env/ucx-tls) or of a cause (ucx-tls-tcp-only); a list of all without it
    pub name: Option<String>,
}

/// Arguments of `vars`.
#[derive(Debug, Args)]
#[command(after_help = VARS_HELP)]
pub struct VarsArgs {
    /// A variable, or a variable with a value; a list of all without it
    #[arg(value_name = "NAME[=VALUE]")]
    pub name: Option<String>,
    /// Judge the unset variable
    #[arg(long, requires = "name")]
    pub unset: bool,
    /// Library build or version to judge for: full-1.23, nixl-1.5.1-wheel, efa-1.23, no-hca-1.23 and
    /// so on for UCX_TLS; a UCX version for UCX_NET_DEVICES; an NCCL version for NCCL_IB_HCA
    #[arg(long)]
    pub build: Option<String>,
    /// text or json; json where a value is judged for a build
    #[arg(short, long = "output", value_name = "FORMAT")]
    pub output: Option<String>,
}

const VARS_HELP: &str = "\
Examples:
  check-interconnect vars UCX_TLS
  check-interconnect vars UCX_TLS=tcp,cuda_copy
  check-interconnect vars UCX_TLS=dc,cuda_copy --build nixl-1.5.1-wheel
  check-interconnect vars UCX_TLS --unset --build full-1.23
  check-interconnect vars UCX_TLS= (the empty value)";
