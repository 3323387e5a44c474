//! `prometheus`: gauges in the text exposition format, for an exporter that reads files, such as node_exporter's textfile
//! collector.
//!
//! Names of workers and pods are left out: they come and go, and each would be a series of its own. What a run found is
//! told by cause.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::{Readiness, Report, Status};

use crate::Options;

const READINESS: [Readiness; 6] = [
    Readiness::Blocked,
    Readiness::Inconclusive,
    Readiness::Degraded,
    Readiness::Unproven,
    Readiness::Trusted,
    Readiness::NotApplicable,
];

/// The gauges.
pub(crate) fn render(report: &Report, options: &Options) -> String {
    let mut out = Gauges {
        text: String::new(),
        command: report.command,
    };
    out.head("info", "The program that wrote this.");
    out.gauge("info", &[("version", options.version)], 1);
    out.head(
        "readiness",
        "1 for the readiness of the last run, 0 for the others.",
    );
    for readiness in READINESS {
        let value = u64::from(readiness == report.readiness);
        out.gauge("readiness", &[("readiness", readiness.as_str())], value);
    }
    out.head(
        "transfer_validated",
        "1 where measured transfers prove the path.",
    );
    out.gauge(
        "transfer_validated",
        &[],
        u64::from(report.readiness == Readiness::Trusted),
    );
    let counts = report.counts();
    out.head("checks", "Checks by status.");
    for (status, count) in [
        (Status::Fail, counts.fail),
        (Status::Warn, counts.warn),
        (Status::Ok, counts.ok),
        (Status::Skipped, counts.skipped),
    ] {
        out.gauge("checks", &[("status", word(status))], u64::from(count));
    }
    let coverage = &report.coverage;
    out.head(
        "workers",
        "Workers that were found, and those of them that were looked at.",
    );
    for (state, count) in [
        ("found", coverage.workers_found),
        ("probed", coverage.workers_probed),
    ] {
        out.gauge("workers", &[("state", state)], u64::from(count));
    }
    out.head(
        "pairs",
        "Pairs of prefill and decode: required for a proof, tested, proven.",
    );
    for (state, count) in [
        ("required", coverage.pairs_required),
        ("tested", coverage.pairs_tested),
        ("proven", coverage.pairs_proven),
    ] {
        out.gauge("pairs", &[("state", state)], u64::from(count));
    }
    let mut causes: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for result in &report.results {
        if let (Some(cause), false) = (result.cause, result.status == Status::Ok) {
            let kind = if result.collective {
                "collectives"
            } else {
                "kv"
            };
            let count = causes
                .entry((cause, word(result.status), kind))
                .or_default();
            *count = count.saturating_add(1);
        }
    }
    out.head(
        "cause",
        "Findings by cause; none is written where nothing was found.",
    );
    for ((cause, status, kind), count) in causes {
        out.gauge(
            "cause",
            &[("cause", cause), ("status", status), ("of", kind)],
            count,
        );
    }
    out.text
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Warn => "warn",
        Status::Fail => "fail",
        Status::Skipped => "skipped",
    }
}

struct Gauges {
    text: String,
    command: &'static str,
}

impl Gauges {
    fn head(&mut self, name: &str, help: &str) {
        let _infallible = write!(
            self.text,
            "# HELP check_interconnect_{name} {help}\n# TYPE check_interconnect_{name} gauge\n"
        );
    }

    fn gauge(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        let _infallible = write!(self.text, "check_interconnect_{name}{{command=\"");
        escaped(self.command, &mut self.text);
        for (label, value) in labels {
            let _infallible = write!(self.text, "\",{label}=\"");
            escaped(value, &mut self.text);
        }
        let _infallible = writeln!(self.text, "\"}} {value}");
    }
}

/// A label's value: backslash, quote and line feed are escaped (Prometheus, exposition formats, text-based format).
fn escaped(value: &str, out: &mut String) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{result, subject};
    use model::{CheckResult, Role};

    #[test]
    fn labels_are_escaped() {
        let mut out = String::new();
        escaped("a\"b\\c\nd", &mut out);
        assert_eq!(out, r#"a\"b\\c\nd"#);
    }

    /// Every line is a comment or a sample, every sample has its type before it, and no series is written twice.
    #[test]
    fn what_is_written_is_the_format() {
        let mut report = crate::samples::clean();
        let who = || subject("d", &[(Role::Decode, "w")]);
        let with = |cause, status| CheckResult {
            cause: Some(cause),
            ..result("env/ucx-tls", status, "words", who(), Vec::new())
        };
        report.results = vec![
            with("ucx-tls-tcp-only", Status::Fail),
            with("ucx-tls-tcp-only", Status::Fail),
            with("other", Status::Skipped),
        ];
        report.readiness = Readiness::Blocked;
        let text = render(&report, &Options::default());
        let mut types = Vec::new();
        let mut series = std::collections::BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                types.push(rest.split(' ').next().unwrap().to_owned());
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<u64>().is_ok(), "{line}");
                let metric = name.split('{').next().unwrap();
                assert!(types.iter().any(|t| t == metric), "{line}");
                assert!(series.insert(name.to_owned()), "{line}");
            }
        }
        assert!(text.contains(
            "check_interconnect_cause{command=\"env\",cause=\"ucx-tls-tcp-only\",status=\"fail\",of=\"kv\"} 2\n"
        ));
        assert!(text.contains("readiness=\"blocked\"} 1\n"));
        assert!(text.contains("readiness=\"trusted\"} 0\n"));
        assert!(text.ends_with('\n'));
    }
}
