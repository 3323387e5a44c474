//! Arguments of `collect`.

use std::path::PathBuf;

use clap::Args;

use super::{ChoiceArgs, RoleArg};

/// Arguments of `collect`.
#[derive(Debug, Args)]
#[command(after_help = COLLECT_HELP)]
pub struct CollectArgs {
    /// File to save it in
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// What this host is for, where no engine that runs here tells
    #[arg(long, value_enum, value_name = "ROLE", conflicts_with_all = ["name", "prefill", "pod", "selector", "all", "namespace"])]
    pub role: Option<RoleArg>,
    /// Which workers of a cluster; this host without any.
    #[command(flatten)]
    pub choice: ChoiceArgs,
}

const COLLECT_HELP: &str = "\
Examples:
  check-interconnect collect -o llama.tar.gz llama -n serving
  check-interconnect collect -o all.tar.gz -n serving -l app=llama
  check-interconnect collect -o here.tar.gz --role decode
  srun sh -c 'check-interconnect collect -o $(hostname).tar.gz'; check-interconnect replay *.tar.gz

It judges nothing; check-interconnect replay does, anywhere. The bundle holds what check would look at, and no output of a \
tool: what is not on the list of what may be read never leaves a pod.

Exit codes: 0 saved, 2 usage, 3 saved, and something could not be looked at, 4 no such worker, 5 the cluster cannot be \
reached or refuses access, 130 interrupted.";
