//! Arguments of `check` and of what belongs to it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::transfer::{block, bytes};
use super::{OutputArgs, PodArgs, duration};
use crate::transfer::rounds::Pairs;

/// Which workers of a cluster.
#[derive(Debug, Clone, Args)]
pub struct ChoiceArgs {
    /// Name of the deployment: a DynamoGraphDeployment, LeaderWorkerSet, LLMInferenceService, …; without it all KV workers
    /// of the namespace
    #[arg(value_name = "NAME", conflicts_with_all = ["pod", "selector", "all"])]
    pub name: Option<String>,
    /// The recipe that was deployed: its deployments are looked for in the cluster, and held against what runs
    #[arg(short, long = "filename", value_name = "PATH")]
    pub filename: Vec<PathBuf>,
    /// Labels of the prefill workers, where neither labels nor flags that are known tell roles
    #[arg(long, value_name = "SELECTOR", requires = "decode", conflicts_with_all = ["name", "pod", "selector", "all"])]
    pub prefill: Option<String>,
    /// Labels of the decode workers
    #[arg(long, value_name = "SELECTOR", requires = "prefill")]
    pub decode: Option<String>,
    /// What is looked at beside each worker's own.
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub depth: Depth,
    /// How long all of it may take (10m); what is not there by then is told as missing. No limit without it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub run_timeout: Option<Duration>,
    /// Which pods, and how to reach them.
    #[command(flatten)]
    pub pods: PodArgs,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub struct CheckArgs {
    /// Judge logs of what manifest prints, without any cluster; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["name", "filename", "prefill", "decode", "transfer", "pod", "selector", "all", "namespace", "container", "context", "kubeconfig", "as_user", "via", "depth", "run_timeout", "request_timeout", "timeout", "concurrency"])]
    pub from_logs: Vec<PathBuf>,
    /// Which workers.
    #[command(flatten)]
    pub choice: ChoiceArgs,
    /// What is measured between them.
    #[command(flatten)]
    pub pairs: PairArgs,
    /// Save everything that was observed into this file; replay judges it anywhere
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub bundle: Option<PathBuf>,
    /// How results are printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// In which workers logs are read and NIXL agents are made, which takes more than one exec.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Depth {
    /// In all, up to 16 workers; else in one of each workload and role.
    #[default]
    Auto,
    /// In one of each workload and role.
    Sample,
    /// In all.
    All,
}

/// Arguments about transfers between the workers of a deployment.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measured transfers")]
pub struct PairArgs {
    /// Measure real transfers between prefill and decode workers with their own NIXL and their engines' settings, in rounds in
    /// which no worker takes part twice. Each moves some hundred MiB and takes 64 MiB of memory in each; --timeout bounds
    /// each
    #[arg(long)]
    pub transfer: bool,
    /// Which pairs: all, ring (each worker at least once), or so many
    #[arg(long, value_name = "all|ring|N", default_value_t = Pairs::Ring, requires = "transfer")]
    pub pairs: Pairs,
    /// Move so many bytes a second at most in each pair, on average (500M, 2G)
    #[arg(long, value_name = "BYTES", requires = "transfer", value_parser = bytes)]
    pub rate: Option<u64>,
    /// Transfer blocks of so many bytes at most (64M without it); below 16M no rate is judged
    #[arg(long, value_name = "BYTES", requires = "transfer", value_parser = block)]
    pub largest: Option<u64>,
    /// Print what would run where, and run nothing in a worker but the look
    #[arg(long, requires = "transfer")]
    pub dry_run: bool,
}

const CHECK_HELP: &str = "\
Examples:
  check-interconnect check llama -n serving
  check-interconnect check -n serving
  check-interconnect check -n serving -l app=llama -o text -o json=report.json
  check-interconnect check -n serving --prefill role=p --decode role=d
  check-interconnect check -f deploy.yaml -n serving
  check-interconnect check llama -n serving --transfer --pairs ring
  check-interconnect check llama -n serving --bundle llama.tar.gz
  kubectl logs -n serving -l app=llama -c check-interconnect --tail=-1 --prefix | check-interconnect check --from-logs -

Everything that node and nixl see in each worker, and what only several views show: which worker of a workload is not like \
the others, and whether prefill and decode fit: fabric, subnet, partition, NVLink clique, NIXL versions, side channels.

It needs get and list on pods, create and get on pods/exec; get on pods/log and on nodes if it may.

Exit codes: 0 nothing failed, 1 a check failed, 2 usage, 3 too little could be seen for a verdict, 4 no such deployment, \
5 the cluster cannot be reached or refuses access, 130 interrupted.";

/// Arguments of `replay`.
#[derive(Debug, Args)]
#[command(after_help = REPLAY_HELP)]
pub struct ReplayArgs {
    /// Bundles; several are judged together, as one deployment
    #[arg(required = true, value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
    /// Tell only what changed since this earlier bundle (several are one deployment here, too); as text or json
    #[arg(long, value_name = "BUNDLE", num_args = 1..)]
    pub against: Vec<PathBuf>,
    /// How results are printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

const REPLAY_HELP: &str = "\
Examples:
  check-interconnect replay llama.tar.gz
  check-interconnect replay llama.tar.gz -o json
  check-interconnect replay node-a.tar.gz node-b.tar.gz
  check-interconnect replay today.tar.gz --against yesterday.tar.gz

It reads the files and nothing else. Of one bundle it prints what check printed when the bundle was made, byte for byte.";
