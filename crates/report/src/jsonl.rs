//! `jsonl`: every result on a line of its own, then the summary.

use std::io::{self, Write};

use model::Report;
use model::report_v1::{CheckV1, LineV1, SummaryV1};

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
    let summary = SummaryV1::of(report, options.version);
    write_line(&LineV1::Summary(Box::new(summary)), out)
}

fn write_line(line: &LineV1, out: &mut dyn Write) -> io::Result<()> {
    json::write_compact(line, out)?;
    out.write_all(b"\n")
}
