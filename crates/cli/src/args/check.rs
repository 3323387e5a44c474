//! Arguments of `check` and of what belongs to it.

use std::path::PathBuf;

use clap::Args;

use super::{OutputArgs, PodArgs};

/// Which workers of a cluster.
#[derive(Debug, Clone, Args)]
pub struct ChoiceArgs {
    /// Name of the deployment: a DynamoGraphDeployment, LeaderWorkerSet, LLMInferenceService, …; without it all KV workers
    /// of the namespace
    #[arg(value_name = "NAME", conflicts_with_all = ["pod", "selector", "all"])]
    pub name: Option<String>,
    /// Labels of the prefill workers, where neither labels nor flags that are known tell roles
    #[arg(long, value_name = "SELECTOR", requires = "decode", conflicts_with_all = ["name", "pod", "selector", "all"])]
    pub prefill: Option<String>,
    /// Labels of the decode workers
    #[arg(long, value_name = "SELECTOR", requires = "prefill")]
    pub decode: Option<String>,
    /// Which pods, and how to reach them.
    #[command(flatten)]
    pub pods: PodArgs,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub struct CheckArgs {
    /// Which workers.
    #[command(flatten)]
    pub choice: ChoiceArgs,
    /// Judge logs of what manifest prints, without any cluster; - is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["name", "prefill", "decode", "pod", "selector", "all", "namespace", "container", "context", "kubeconfig", "as_user", "via"])]
    pub from_logs: Vec<PathBuf>,
    /// Save everything that was observed into this file; replay judges it anywhere
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// How results are printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

const CHECK_HELP: &str = "\
Examples:
  check-interconnect check llama -n serving
  check-interconnect check -n serving
  check-interconnect check -n serving -l app=llama -o text -o json=report.json
  check-interconnect check -n serving --prefill role=p --decode role=d
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
    /// How results are printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

const REPLAY_HELP: &str = "\
Examples:
  check-interconnect replay llama.tar.gz
  check-interconnect replay llama.tar.gz -o json
  check-interconnect replay node-a.tar.gz node-b.tar.gz

It reads the files and nothing else. Of one bundle it prints what check printed when the bundle was made, byte for byte.";
