//! `fi_info`, also `-v` and `-l`.

use model::Observation;
use model::observation::software::{FabricEntry, FabricListing};
use model::observation::{Completeness, Tool};

use super::Kind;
use crate::command::Command;
use crate::parser::{At, Parser};
use crate::text::{keep, key_value};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::FiInfo,
    programs: &["fi_info"],
    command: |_| true,
    starts: |line, next| {
        let text = line.trim();
        text.starts_with("fi_getinfo:")
            || key_value(text).is_some_and(|(key, value)| {
                (key == "provider" && !value.is_empty() && next.trim().starts_with("fabric:"))
                    || (value.is_empty()
                        && next.trim().starts_with("version: ")
                        && next.starts_with([' ', '\t']))
            })
            || (text == "fi_info:" || (text == "---" && next.trim() == "fi_info:"))
    },
    open: |command| Box::new(FiInfo::new(command)),
};

/// Entries that are kept.
const MAX_ENTRIES: usize = 8192;

struct FiInfo {
    providers_only: bool,
    asked: bool,
    verbose: bool,
    entries: Vec<FabricEntry>,
    errno: Option<i32>,
    error: Option<String>,
    block: String,
    any: bool,
}

impl FiInfo {
    fn new(command: Option<&Command>) -> Self {
        Self {
            providers_only: command.is_some_and(|c| c.has("-l") || c.has("--list")),
            asked: command.is_some_and(|c| !c.filtered),
            verbose: false,
            entries: Vec::new(),
            errno: None,
            error: None,
            block: String::new(),
            any: false,
        }
    }

    fn entry(&mut self, provider: &str) {
        if self.entries.len() < MAX_ENTRIES {
            self.entries.push(FabricEntry {
                provider: keep(provider),
                ..FabricEntry::default()
            });
        }
    }

    fn field(&mut self, key: &str, value: &str) -> bool {
        let text = (!value.is_empty()).then(|| keep(value));
        let Some(entry) = self.entries.last_mut() else {
            return matches!(key, "fabric" | "domain" | "version" | "type" | "protocol");
        };
        match key {
            "fabric" => entry.fabric = text,
            "domain" => entry.domain = text,
            "version" => entry.version = text,
            "type" => entry.endpoint_type = text,
            "protocol" => entry.protocol = text,
            _ => return false,
        }
        true
    }
}

impl Parser for FiInfo {
    fn take(&mut self, line: &str, _: At<'_>, _: &mut Observation) -> bool {
        let text = line.trim();
        if let Some(rest) = text.strip_prefix("fi_getinfo:") {
            let digits: String = rest
                .trim()
                .chars()
                .take_while(|c| c.is_ascii_digit() || *c == '-')
                .collect();
            self.errno = digits.parse().ok();
            self.error = Some(keep(text));
            self.any = true;
            return true;
        }
        if text == "---" {
            return true;
        }
        if text == "fi_info:" {
            self.any = true;
            self.verbose = true;
            self.block.clear();
            self.entry("");
            return true;
        }
        let Some((key, value)) = key_value(text) else {
            // Long values of `-v` go over several lines.
            return self.verbose && !text.is_empty();
        };
        if self.verbose {
            if value.is_empty() && key.starts_with("fi_") {
                key.clone_into(&mut self.block);
                return true;
            }
            let Some(entry) = self.entries.last_mut() else {
                return true;
            };
            let text = Some(keep(value)).filter(|v| !v.is_empty());
            match (self.block.as_str(), key) {
                ("fi_fabric_attr", "name") => entry.fabric = text,
                ("fi_fabric_attr", "prov_name") => entry.provider = keep(value),
                ("fi_fabric_attr", "prov_version") => entry.version = text,
                ("fi_domain_attr", "name") => entry.domain = text,
                ("fi_ep_attr", "type") => entry.endpoint_type = text,
                ("fi_ep_attr", "protocol") => entry.protocol = text,
                _ => {}
            }
            return true;
        }
        if key == "provider" {
            self.any = true;
            self.entry(value);
            return true;
        }
        // `efa:` and an indented version below, as `-l` prints it.
        if value.is_empty() && !line.starts_with([' ', '\t']) && crate::text::is_name(key) {
            self.any = true;
            self.providers_only = true;
            self.entry(key);
            return true;
        }
        self.field(key, value)
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        if !self.any && !self.asked {
            return Completeness::Cut("no entry follows".to_owned());
        }
        let cut = self
            .entries
            .last()
            .is_some_and(|entry| !self.providers_only && !self.verbose && entry.protocol.is_none());
        out.software.libfabric.push(FabricListing {
            origin: at.origin(),
            providers_only: self.providers_only,
            entries: std::mem::take(&mut self.entries),
            errno: self.errno,
            error: self.error.clone(),
        });
        match self.error.take() {
            Some(error) => Completeness::ToolError(error),
            None if cut => Completeness::Cut("the last entry ends early".to_owned()),
            None => Completeness::Whole,
        }
    }
}
