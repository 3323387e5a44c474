//! `jsonl`: every result on a line of its own, then the summary.

use std::io::{self, Write};

use model::Report;
use model::report_v1::{CheckV1, DeploymentV1, LineV1};
use model::verdict::DeploymentSummary;
use serde::{Serialize, ser};

use crate::outline::{self, Asked, Outcome};
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
    #[serde(flatten)]
    asked: Asked,
    #[serde(flatten)]
    outcome: Outcome<Deployments<'r>>,
}

impl<'r> Summary<'r> {
    fn of(report: &'r Report, version: &str) -> Self {
        let (asked, outcome) = outline::of(report, version, Deployments(&report.deployments));
        Self {
            r#type: "summary",
            asked,
            outcome,
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
