//! `ucx_info -d`, `-v` and `-b`.

use model::Observation;
use model::observation::software::{MemoryDomain, UcxBuild, UcxResources, UcxTransport};
use model::observation::{Completeness, Tool};

use super::Kind;
use crate::command::Command;
use crate::parser::{At, Parser};
use crate::text::{keep, key_value};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::UcxInfo,
    programs: &["ucx_info"],
    command: |_| true,
    starts: |line, next| {
        let Some(text) = comment(line) else {
            return line.starts_with("#define UCX_")
                || line.starts_with("#define UCS_")
                || line.starts_with("#define HAVE_UCX");
        };
        field(text).is_some()
            || marker(text).is_some()
            || (text.is_empty() && comment(next).is_some_and(|t| field(t).is_some()))
    },
    open: |command| Box::new(UcxInfo::new(command)),
};

/// Entries of one list that are kept.
const MAX_ENTRIES: usize = 4096;
/// Error lines that are kept.
const MAX_ERROR_LINES: usize = 64;

/// The text after `#`.
fn comment(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?;
    (!rest.starts_with("define")).then(|| rest.trim())
}

/// `< failed to open interface >`
fn marker(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?.strip_suffix('>')?.trim();
    (inner.starts_with("failed to open") || inner.starts_with("no supported devices"))
        .then_some(inner)
}

/// A field that this tool prints.
fn field(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix("Git branch") {
        return Some(("Git branch", rest.trim()));
    }
    if text.starts_with("UCT version=") || text.starts_with("UCX version=") {
        return Some(("version=", text));
    }
    let (key, value) = key_value(text)?;
    KEYS.contains(&key).then_some((key, value))
}

const KEYS: &[&str] = &[
    "Library version",
    "Library path",
    "API headers version",
    "Configured with",
    "configured with",
    "Memory domain",
    "Component",
    "Transport",
    "Device",
    "Type",
    "System device",
    "allocate",
    "register",
    "memory types",
    "dmabuf",
    "Connection manager",
];

struct UcxInfo {
    command_shows_devices: bool,
    build: Option<UcxBuild>,
    domains: Vec<MemoryDomain>,
    transports: Vec<UcxTransport>,
    errors: Vec<String>,
    failures: u32,
    first: Option<u32>,
    in_capabilities: bool,
    started_within: bool,
    last: String,
}

impl UcxInfo {
    fn new(command: Option<&Command>) -> Self {
        Self {
            command_shows_devices: command.is_some_and(|c| {
                !c.filtered
                    && c.arguments
                        .iter()
                        .any(|a| a.starts_with('-') && a.contains('d'))
            }),
            build: None,
            domains: Vec::new(),
            transports: Vec::new(),
            errors: Vec::new(),
            failures: 0,
            first: None,
            in_capabilities: false,
            started_within: false,
            last: String::new(),
        }
    }

    fn build(&mut self, at: At<'_>) -> &mut UcxBuild {
        self.build.get_or_insert_with(|| UcxBuild::new(at.origin()))
    }

    fn failed(&mut self, text: &str) {
        self.failures = self.failures.saturating_add(1);
        if text.contains("interface") {
            match self.transports.last_mut() {
                Some(transport) => transport.failed_to_open = true,
                None => self.started_within = true,
            }
        } else if text.contains("memory domain") || text.contains(" md") {
            match self.domains.last_mut() {
                Some(domain) => domain.failed_to_open = true,
                None => self.started_within = true,
            }
        }
    }

    fn resource(&mut self, key: &str, value: &str) {
        let text = keep(value);
        match key {
            "Memory domain" => {
                self.in_capabilities = false;
                if self.domains.len() < MAX_ENTRIES {
                    self.domains.push(MemoryDomain {
                        name: text,
                        ..MemoryDomain::default()
                    });
                }
            }
            "Transport" => {
                self.in_capabilities = false;
                if self.transports.len() < MAX_ENTRIES {
                    self.transports.push(UcxTransport {
                        domain: self.domains.last().map(|d| d.name.clone()),
                        name: text,
                        ..UcxTransport::default()
                    });
                }
            }
            "Device" | "Type" | "System device" => {
                if let Some(transport) = self.transports.last_mut() {
                    match key {
                        "Device" => transport.device = Some(text),
                        "Type" => transport.device_type = Some(text),
                        _ => transport.system_device = Some(text),
                    }
                } else {
                    self.started_within = true;
                }
            }
            "Component" | "register" | "memory types" | "dmabuf" => {
                let Some(domain) = self.domains.last_mut() else {
                    self.started_within = true;
                    return;
                };
                match key {
                    "Component" => domain.component = Some(text),
                    "register" => {
                        domain.registers_dmabuf =
                            text.split([',', ' ']).any(|word| word == "dmabuf");
                        domain.register = Some(text);
                    }
                    "dmabuf" => domain.exports_dmabuf = Some(text),
                    _ => domain.memory_types = Some(text),
                }
            }
            _ => {}
        }
    }
}

impl Parser for UcxInfo {
    fn take(&mut self, line: &str, at: At<'_>, _: &mut Observation) -> bool {
        if let Some(rest) = line.trim_start().strip_prefix("#define ") {
            let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let build = self.build(at);
            if build.definitions.len() < MAX_ENTRIES {
                build
                    .definitions
                    .insert(keep(name), keep(value.trim().trim_matches('"')));
            }
            return true;
        }
        let Some(text) = comment(line) else {
            if line.contains("UCX")
                && (line.contains("ERROR") || line.contains("WARN") || line.contains("DIAG"))
            {
                if self.errors.len() < MAX_ERROR_LINES {
                    let words = line.split_once("UCX").map_or(line, |(_, rest)| rest);
                    self.errors.push(keep(words));
                }
                return true;
            }
            return false;
        };
        if text.starts_with(['|', '+']) || text.starts_with("UCP endpoint") {
            // Tables of `ucx_info -e` are read as protocol tables.
            return true;
        }
        if let Some(text) = marker(text) {
            self.first.get_or_insert(at.line);
            if text.starts_with("no supported devices") {
                if let Some(domain) = self.domains.last_mut() {
                    domain.no_devices = true;
                }
            } else {
                self.failed(text);
            }
            return true;
        }
        self.last = keep(text);
        let Some((key, value)) = field(text) else {
            if text.starts_with("capabilities") {
                self.in_capabilities = true;
            }
            if self.in_capabilities
                && let Some(("bandwidth", value)) = key_value(text)
                && let Some(transport) = self.transports.last_mut()
            {
                transport.bandwidth.get_or_insert_with(|| keep(value));
            }
            return true;
        };
        match key {
            "Library version" => self.build(at).version = Some(keep(value)),
            "API headers version" => self.build(at).api_version = Some(keep(value)),
            "Library path" => self.build(at).library = Some(keep(value)),
            "Git branch" => {
                let revision = value.split_once("revision").map(|(_, r)| keep(r));
                self.build(at).revision = revision;
            }
            "version=" => {
                let version = text
                    .split_once('=')
                    .and_then(|(_, r)| r.split_whitespace().next());
                let revision = text.split_once("revision").map(|(_, r)| keep(r));
                let build = self.build(at);
                build.version = version.map(keep);
                build.revision = revision;
            }
            "Configured with" | "configured with" => {
                self.build(at).configure = value.split_whitespace().take(512).map(keep).collect();
            }
            _ => {
                self.first.get_or_insert(at.line);
                self.resource(key, value);
            }
        }
        true
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        let has_build = self.build.is_some();
        if let Some(build) = self.build.take() {
            out.software.ucx.push(build);
        }
        let shown = self.first.is_some() || (self.command_shows_devices && !has_build);
        if !shown {
            return Completeness::Whole;
        }
        // An entry has at least its type and system device; and one that opens has capabilities after them.
        let orphan = self.started_within
            || (self.domains.is_empty() && !self.transports.is_empty())
            || self.transports.last().is_some_and(|t| t.device.is_none());
        let mut origin = at.origin();
        origin.line = self.first.or(origin.line);
        out.software.ucx_resources.push(UcxResources {
            origin,
            domains: std::mem::take(&mut self.domains),
            transports: std::mem::take(&mut self.transports),
            failed_to_open: self.failures,
            errors: std::mem::take(&mut self.errors),
            cut: orphan,
        });
        if orphan {
            Completeness::Cut("it is filtered, or begins or ends within an entry".to_owned())
        } else {
            Completeness::Whole
        }
    }
}
