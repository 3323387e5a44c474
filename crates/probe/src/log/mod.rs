//! Log lines of UCX, NIXL, NCCL, Gloo, libfabric, libibverbs and the kernel, as events with fields.
//!
//! Lines are known by their words wherever they stand, because excerpts lose their prefixes.

mod header;
mod lanes;
mod patterns;
mod secrets;
mod table;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::observation::log::{Component, Event};
use model::observation::software::{ProviderProblem, UcxBuild};
use model::observation::{Origin, Provenance, Tool};
use model::{Merge as _, Observation};

use crate::text::{keep, small};
use table::Tables;

/// Variables of one process that are kept.
const MAX_VARIABLES: usize = 1024;
/// Builds and problems that are kept.
const MAX_KEPT: usize = 1024;

/// Names of all kinds of log events ([`Event::pattern`]); some come more than once, for several wordings.
pub fn log_patterns() -> impl Iterator<Item = &'static str> {
    patterns::names()
}

/// Reads log lines; what is no log line is left to the parsers of tools.
#[derive(Default)]
pub(crate) struct LogReader {
    logs: Vec<Log>,
    tables: Tables,
}

struct Log {
    tool: Tool,
    place: Option<String>,
    from: Arc<Provenance>,
    first: u32,
    last: u32,
}

fn tool(component: Component) -> Tool {
    match component {
        Component::Ucx => Tool::UcxLog,
        Component::Nixl | Component::Engine => Tool::NixlLog,
        Component::Nccl => Tool::NcclLog,
        Component::Gloo => Tool::GlooLog,
        Component::Libfabric | Component::Verbs => Tool::FabricLog,
        // Both write to the journal of the system.
        Component::Kernel | Component::FabricManager => Tool::KernelLog,
    }
}

impl LogReader {
    /// Takes a line that means something in a log.
    pub(crate) fn take(
        &mut self,
        file: &str,
        sections: &mut u32,
        place: Option<&str>,
        line: u32,
        text: &str,
        out: &mut Observation,
    ) -> bool {
        let possible = patterns::possible(text);
        if possible.nothing() && !table::can_be(text) && assignment(text).is_none() {
            return false;
        }
        let header = header::read(text);
        if let Some(row) = table::content(header.rest) {
            // Rows between `|` are tables of UCX only behind its prefix or a `#`.
            if header.ucx_prefix
                || text.trim_start().starts_with('#')
                || table::is_title(&row)
                || self.tables.building(&header.process)
            {
                let from = self.provenance(file, sections, place, line, Component::Ucx);
                if self
                    .tables
                    .row(&row, Origin::line(&from, line), &header.process, out)
                {
                    return true;
                }
                return header.ucx_prefix;
            }
        }
        if (possible.marked || !text.is_ascii()) && table::shows(header.rest) {
            let from = self.provenance(file, sections, place, line, Component::Ucx);
            out.log
                .unread_table
                .get_or_insert_with(|| Origin::line(&from, line));
            return true;
        }
        if possible.marked
            && let Some(found) = lanes::read(header.rest)
        {
            let from = self.provenance(file, sections, place, line, Component::Ucx);
            out.log
                .add_lanes(found.with(Origin::line(&from, line), header.process));
            return true;
        }
        if let Some((name, value)) = assignment(text) {
            let component = if name.starts_with("NCCL_") {
                Component::Nccl
            } else {
                Component::Ucx
            };
            let from = self.provenance(file, sections, place, line, component);
            variable(name, value, &Origin::line(&from, line), out);
            return true;
        }
        let Some((pattern, mut fields)) = patterns::find(&header, &possible) else {
            return false;
        };
        let from = self.provenance(file, sections, place, line, pattern.component);
        let origin = Origin::line(&from, line);
        patterns::refine(pattern.id, &mut fields);
        for value in fields.values_mut() {
            if let std::borrow::Cow::Owned(kept) = secrets::without(value) {
                *value = kept;
            }
        }
        side_facts(pattern.id, &fields, &header, &origin, out);
        let mut process = header.process;
        if let Some(rank) = fields.get("rank").and_then(|r| small(r)) {
            process.rank = Some(rank);
        }
        out.log.add(Event {
            origin,
            last_line: line,
            count: 1,
            component: pattern.component,
            severity: header.severity,
            pattern: pattern.id.into(),
            fields,
            process,
        });
        true
    }

    /// Where lines of a component come from: one output per component of a file and place.
    fn provenance(
        &mut self,
        file: &str,
        sections: &mut u32,
        place: Option<&str>,
        line: u32,
        component: Component,
    ) -> Arc<Provenance> {
        let tool = tool(component);
        if let Some(log) = self
            .logs
            .iter_mut()
            .find(|log| log.tool == tool && log.place.as_deref() == place)
        {
            log.last = line;
            return Arc::clone(&log.from);
        }
        let from = Arc::new(Provenance {
            file: file.to_owned(),
            tool,
            section: *sections,
            place: place.map(keep),
            command: None,
        });
        *sections = sections.saturating_add(1);
        if self.logs.len() < MAX_KEPT {
            self.logs.push(Log {
                tool,
                place: place.map(keep),
                from: Arc::clone(&from),
                first: line,
                last: line,
            });
        }
        from
    }

    /// Ends what is open.
    pub(crate) fn finish(&mut self, out: &mut Observation) {
        self.tables.finish(out);
    }

    /// The logs that were read, with their first and last line.
    pub(crate) fn sections(&mut self) -> Vec<(Arc<Provenance>, u32, u32)> {
        std::mem::take(&mut self.logs)
            .into_iter()
            .map(|log| (log.from, log.first, log.last))
            .collect()
    }
}

/// Facts beside the event: versions, settings in force, providers that do not load.
fn side_facts(
    id: &str,
    fields: &BTreeMap<std::borrow::Cow<'static, str>, String>,
    header: &header::Header<'_>,
    origin: &Origin,
    out: &mut Observation,
) {
    let field = |name: &str| fields.get(name).cloned();
    match id {
        "ucx-version" | "nixl-ucx-bound" if out.software.ucx.len() < MAX_KEPT => {
            let mut build = UcxBuild::new(origin.clone());
            build.version = field("version");
            build.library = field("library");
            build.revision = field("revision");
            out.software.ucx.push(build);
        }
        "ucx-environment" => {
            for word in field("variables").unwrap_or_default().split_whitespace() {
                if let Some((name, value)) = word.split_once('=') {
                    variable(name, value, origin, out);
                }
            }
        }
        "nccl-set-by-environment" => {
            if let (Some(name), Some(value)) = (field("name"), field("value")) {
                variable(&name, &value, origin, out);
            }
        }
        "verbs-driver-abi" | "verbs-driver-not-loaded" | "verbs-no-driver"
            if out.software.verbs_problems.len() < MAX_KEPT =>
        {
            let number = |name: &str| fields.get(name).and_then(|t| small(t));
            out.software.verbs_problems.push(ProviderProblem {
                origin: origin.clone(),
                driver: field("driver").unwrap_or_default(),
                device: field("device"),
                kernel_abi: number("kernel_abi"),
                supported_abi: number("first").zip(number("last")),
                text: keep(&secrets::without(header.rest)),
            });
        }
        _ => {}
    }
}

/// `UCX_TLS=rc,cuda_copy`, as `env` and `ucx_info -c` print it; also after `export` or `declare -x`. Only names of the
/// catalogue that begin as transports' do, and nothing else may stand in the line.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let text = text
        .strip_prefix("export ")
        .or_else(|| text.strip_prefix("declare -x "))
        .unwrap_or(text);
    if !PREFIXES.iter().any(|prefix| text.starts_with(prefix)) {
        return None;
    }
    let (name, value) = text.split_once('=')?;
    let value = match value.strip_prefix(['"', '\'']) {
        Some(inside) => inside.strip_suffix(['"', '\''])?,
        None if value.contains([' ', '\t', '$', ';']) => return None,
        None => value,
    };
    settings::catalogue::is_allowed(name).then_some((name, value))
}

/// How variables about transports begin.
const PREFIXES: [&str; 6] = ["UCX_", "NIXL_", "NCCL_", "MOONCAKE_", "FI_", "VLLM_NIXL_"];

/// A setting in force; only names of the catalogue are kept.
fn variable(name: &str, value: &str, origin: &Origin, out: &mut Observation) {
    let all = &mut out.process.environment;
    if settings::catalogue::is_allowed(name)
        && (all.len() < MAX_VARIABLES || all.contains_key(name))
    {
        let mut fact = model::Fact::default();
        fact.see(keep(value), origin.clone());
        all.entry(name.to_owned()).or_default().merge(fact);
    }
}
