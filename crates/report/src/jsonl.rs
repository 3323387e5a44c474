//! `jsonl`: every result on a line of its own, then the summary.

use std::io::{self, Write};

use model::report_v1::{CheckV1, DeploymentV1, LineV1, SummaryV1, ToolV1};
use model::verdict::{Counts, DeploymentSummary};
use model::{Coverage, NextStep, Readiness, Report};
use serde::{Serialize, ser};

use crate::{Options, json};

/// Writes the lines. The summary comes last, so that a reader knows that nothing was cut off.
pub(crate) fn render(report: &Report, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    for result in &report.results {
        let check = CheckV1::from(result);
        let line = if result.collective {
            LineV1::Collective(check)
        } else {
            LineV1::Check(check)
        };
        write_line(&line, out)?;
    }
    write_line(&Summary::of(report, options.version), out)
}

/// `LineV1::Summary` on its way out: field by field the same, its deployments made one by one while they are written.
#[derive(Serialize)]
struct Summary<'r> {
    r#type: &'static str,
    schema: String,
    tool: ToolV1,
    command: String,
    scope: Vec<String>,
    counts: Counts,
    verdict: String,
    readiness: Readiness,
    transfer_validated: bool,
    coverage: Coverage,
    deployments: Deployments<'r>,
    next: Vec<NextStep>,
}

impl<'r> Summary<'r> {
    fn of(report: &'r Report, version: &str) -> Self {
        // Named one by one, so that a field that is added there cannot be forgotten here.
        let SummaryV1 {
            schema,
            tool,
            command,
            scope,
            counts,
            verdict,
            readiness,
            transfer_validated,
            coverage,
            deployments: _,
            next,
        } = SummaryV1::without_deployments(report, version);
        Self {
            r#type: "summary",
            schema,
            tool,
            command,
            scope,
            counts,
            verdict,
            readiness,
            transfer_validated,
            coverage,
            deployments: Deployments(&report.deployments),
            next,
        }
    }
}

struct Deployments<'r>(&'r [DeploymentSummary]);

impl Serialize for Deployments<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(DeploymentV1::from))
    }
}

fn write_line(line: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    json::write_compact(line, out)?;
    out.write_all(b"\n")
}
