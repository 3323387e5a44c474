//! Arguments of `manifest`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{PodArgs, RoleArg};

/// Arguments of `manifest`.
#[derive(Debug, Args)]
#[command(after_help = MANIFEST_HELP)]
pub struct ManifestArgs {
    /// Pod of a worker, or a workload with a pod template, as YAML or JSON; - is standard input
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with_all = ["pod", "selector", "all"])]
    pub filename: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    pub kind: ManifestKind,
    /// Image, where no worker is given or another than the worker's is meant; one with check-interconnect for a cronjob
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Extended resource that the workers ask for (rdma/ib=1), where no worker is given; may be given several times
    #[arg(long, value_name = "NAME=N", requires = "image", conflicts_with_all = ["filename", "pod", "selector", "all"])]
    pub resource: Vec<String>,
    /// Role of the worker, where nothing else tells
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<RoleArg>,
    /// Directory of the node from which its Prometheus exporter reads text files; for a cronjob
    #[arg(long, value_name = "DIR")]
    pub textfile_dir: Option<String>,
    /// When a cronjob runs
    #[arg(long, value_name = "CRON", default_value = SCHEDULE)]
    pub schedule: String,
    /// Which pods, and how to reach them.
    #[command(flatten)]
    pub pods: PodArgs,
}

/// When a cronjob runs, where nothing else is said.
pub(crate) const SCHEDULE: &str = "*/15 * * * *";

/// What `manifest` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ManifestKind {
    /// A patch for the worker's pod template: it collects in the worker's own pod, before its engine starts
    #[default]
    InitContainer,
    /// A Job beside the worker: same image, node, resources, claims and networks
    Job,
    /// A CronJob that runs check-interconnect node there, and writes what it says for Prometheus
    Cronjob,
}

const MANIFEST_HELP: &str = "\
Examples:
  check-interconnect manifest -n serving --pod decode-0
  check-interconnect manifest -n serving --pod decode-0 --kind job | kubectl apply -f -
  check-interconnect manifest -f decode.yaml
  check-interconnect manifest --image vllm:1.0 --role decode --resource rdma/ib=1 --kind job
  check-interconnect manifest -n serving --pod decode-0 --kind cronjob --image tools:1 --textfile-dir /var/lib/node_exporter
  kubectl logs -n serving -l app=decode -c check-interconnect --tail=-1 --prefix | check-interconnect check --from-logs -

For clusters in which nobody may run a command in a pod: what is printed runs the same read-only script, and its facts go to \
the container's log, from which check --from-logs judges them. Nothing is applied, and pods are only read.

No other container can see the worker's engine: an init container ends before the engine begins, and a Job is another pod. \
What only the engine's process shows (its variables and flags, NIXL in it) is skipped then, and told as that.";
