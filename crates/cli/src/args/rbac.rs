//! Arguments of `rbac`.

use clap::Args;

/// Arguments of `rbac`.
#[derive(Debug, Args)]
#[command(after_help = RBAC_HELP)]
pub struct RbacArgs {
    /// Namespace of the workers
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: String,
    /// Name of the Role and of its binding
    #[arg(long, value_name = "NAME", default_value = "check-interconnect")]
    pub name: String,
    /// User who gets the rights; may be given several times
    #[arg(long, value_name = "USER")]
    pub user: Vec<String>,
    /// Group that gets them; may be given several times
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Service account that gets them; may be given several times
    #[arg(long, value_name = "NAMESPACE:NAME")]
    pub service_account: Vec<String>,
    /// Also a ClusterRole that lists nodes: what they offer, and why a worker waits for one
    #[arg(long)]
    pub nodes: bool,
}

const RBAC_HELP: &str = "\
Examples:
  check-interconnect rbac -n serving --user alice | kubectl apply -f -
  check-interconnect rbac -n serving --service-account ci:runner --nodes
  check-interconnect rbac -n serving

Without a user, a group or a service account a service account of its own is printed too; then: \
check-interconnect check -n serving --as system:serviceaccount:serving:check-interconnect.

The rights are those that check uses, and no others. Running a command in a pod is the strong one among them: RBAC knows no \
smaller right that looks into one, so it is granted in one namespace. Where that is too much, manifest prints what collects \
from inside.";
