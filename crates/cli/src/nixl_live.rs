//! `nixl` where something runs: in pods, or on this host.

use std::process::ExitCode;

use checks::{Beside, NodeFacts};

use crate::args::NixlArgs;
use crate::beside::Look;
use crate::node::{collected, role};
use crate::pods;

pub(crate) fn run(args: &NixlArgs) -> Result<ExitCode, String> {
    let in_pods = pods::are_meant(&args.pods)?;
    let role = args.role.map(role);
    if in_pods {
        let look = Look::Inside { force: args.force };
        return crate::finish(&pods::nixl(&args.pods, role, look)?, &args.output);
    }
    let facts = NodeFacts {
        role,
        nixl: Some(Box::new(Beside::default())),
        ..collected(true)
    };
    let report = checks::judge_nixl_here(&facts, Vec::new());
    crate::finish(&report, &args.output)
}
