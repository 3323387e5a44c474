//! `json`: one document, `report-v1`.

use std::collections::HashMap;
use std::io::{self, Write};

use model::report_v1::{CheckV1, DeploymentV1, WorkerV1};
use model::verdict::DeploymentSummary;
use model::{CheckResult, Report, Status};
use serde::{Serialize, ser};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::fold::Entry;
use crate::outline::{self, Asked, Outcome};
use crate::{Options, escape, group, names};

/// Names, or workers, that a list holds before it is shortened. Nobody writes so many by hand.
const LIST_KEPT: usize = 16;

/// Bytes from which on the document is shortened: readers cut what is longer, at the soonest here.
const BUDGET: usize = 30_000;

/// Deployments from which on a document is longer than that, whatever is left out.
const MANY: usize = 40;

/// Writes the document.
pub(crate) fn render(report: &Report, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let folded = group::folded(report);
    let mut document = Document::of(report, options.version, &folded);
    // So many deployments do not fit in any case; writing them several times to find out takes time.
    if report.deployments.len() > MANY {
        document.sources_of_ok(0);
        let mut out = io::BufWriter::with_capacity(64 * 1024, out);
        write_pretty(&document, &mut out)?;
        out.write_all(b"\n")?;
        return out.flush();
    }
    let mut text = pretty(&document)?;
    for kept in [1, 0] {
        if text.len() < BUDGET {
            break;
        }
        document.sources_of_ok(kept);
        text = pretty(&document)?;
    }
    out.write_all(&text)
}

fn pretty(document: &Document<'_>) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(BUDGET);
    write_pretty(document, &mut text)?;
    text.push(b'\n');
    Ok(text)
}

/// `ReportV1` on its way out: field by field the same, its long lists made entry by entry while they are written.
#[derive(Serialize)]
struct Document<'r> {
    #[serde(flatten)]
    asked: Asked,
    checks: Checks<'r>,
    #[serde(skip_serializing_if = "Checks::is_empty")]
    collectives: Checks<'r>,
    #[serde(flatten)]
    outcome: Outcome<Deployments<'r>>,
}

impl<'r> Document<'r> {
    fn of(report: &'r Report, version: &str, folded: &'r [Entry<'r>]) -> Self {
        let checks = |collective| Checks {
            results: folded
                .iter()
                .map(|r| &**r)
                .filter(|r| r.collective == collective)
                .collect(),
            sources_of_ok: usize::MAX,
        };
        let (asked, outcome) = outline::of(report, version, Deployments(&report.deployments));
        Self {
            asked,
            checks: checks(false),
            collectives: checks(true),
            outcome,
        }
    }

    /// Where the document would be too long, the lines behind results that are ok go first: nobody has to act on them.
    fn sources_of_ok(&mut self, kept: usize) {
        self.checks.sources_of_ok = kept;
        self.collectives.sources_of_ok = kept;
    }
}

/// Results. Lists of workers are kept short whatever their number: readers of the document (agents, above all)
/// cut what is long, and then the verdict is lost. `jsonl` has everything.
struct Checks<'r> {
    results: Vec<&'r CheckResult>,
    /// Sources that a result which is ok keeps.
    sources_of_ok: usize,
}

impl Checks<'_> {
    fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    fn entry(&self, result: &CheckResult) -> CheckV1 {
        let mut check = CheckV1::from(result);
        for names in [&mut check.subject.workers, &mut check.subject.pods] {
            if names.len() > LIST_KEPT {
                *names = shortened(names.iter().map(String::as_str));
            }
        }
        if check.status == Status::Ok {
            check.sources.truncate(self.sources_of_ok);
        }
        check
    }
}

impl Serialize for Checks<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.results.iter().map(|r| self.entry(r)))
    }
}

/// Verdicts per deployment, with workers that differ in nothing but their name in one entry where they are many.
struct Deployments<'r>(&'r [DeploymentSummary]);

impl Serialize for Deployments<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|summary| {
            let mut deployment = DeploymentV1::from(summary);
            if deployment.workers.len() > LIST_KEPT {
                deployment.workers = folded_workers(&deployment.workers);
            }
            deployment
        }))
    }
}

fn shortened<'n>(all: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let (mut shown, hidden) = names::capped(all, LIST_KEPT);
    if hidden > 0 {
        shown.push(format!("and {hidden} more"));
    }
    shown
}

/// Workers that differ in nothing but their name become one, in the order of first occurrence.
fn folded_workers(workers: &[WorkerV1]) -> Vec<WorkerV1> {
    let mut kinds: Vec<(&WorkerV1, Vec<&str>)> = Vec::new();
    let mut known = HashMap::new();
    for worker in workers {
        let kind = (
            (&worker.role, &worker.engine, worker.engine_assumed),
            &worker.connector,
            (&worker.fabric, worker.replicas),
            (worker.nodes, worker.accelerators),
        );
        let next = kinds.len();
        let at = *known.entry(kind).or_insert(next);
        match kinds.get_mut(at) {
            Some((_, members)) => members.push(&worker.name),
            None => kinds.push((worker, vec![&worker.name])),
        }
    }
    kinds
        .into_iter()
        .map(|(first, members)| WorkerV1 {
            name: shortened(members).join(", "),
            ..first.clone()
        })
        .collect()
}

/// Pretty JSON with two spaces.
pub(crate) fn write_pretty(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(out, Safe(PrettyFormatter::new()));
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// JSON on one line.
pub(crate) fn write_compact(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(out, Safe(CompactFormatter));
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// A formatter that also escapes what JSON allows and a terminal or a reviewer does not: DEL, C1,
/// directional and invisible characters. The value stays the same for whoever parses it.
struct Safe<F>(F);

impl<F: Formatter> Formatter for Safe<F> {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // Nearly all text is plain, and a report of a large directory is much text.
        if fragment.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| escape::is_hidden(*c)) {
            let (before, from) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = from.strip_prefix(c).unwrap_or_default();
        }
        writer.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}
