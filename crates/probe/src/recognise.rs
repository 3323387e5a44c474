//! Finds out which tool printed which lines.

use std::collections::VecDeque;
use std::sync::Arc;

use model::Observation;
use model::observation::{
    Completeness, Merge as _, NotRead, Provenance, Section, Tool, Unrecognised,
};

use crate::clean;
use crate::command::{Command, prompt};
use crate::log::LogReader;
use crate::parser::{At, Parser};
use crate::text::keep;
use crate::tools::{KINDS, Kind, kind_of_command};

/// Lines of different pods that one file interleaves are told apart, up to so many pods.
const MAX_STREAMS: usize = 256;
/// Lines that are looked at before one is taken.
const LOOK_AHEAD: usize = 24;
/// Outputs of one file that are kept.
const MAX_SECTIONS: u32 = 20_000;

/// Reads one file line by line.
pub struct Recogniser {
    file: String,
    line: u32,
    text_seen: bool,
    bytes_seen: bool,
    sections: u32,
    streams: Vec<(Option<String>, Stream)>,
}

impl Recogniser {
    /// Begins a file; the name is what sources will say.
    pub fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            line: 0,
            text_seen: false,
            bytes_seen: false,
            sections: 0,
            streams: vec![(None, Stream::default())],
        }
    }

    /// Takes the next line, with or without its end.
    pub fn line(&mut self, raw: &str) {
        self.line = self.line.saturating_add(1);
        self.bytes_seen |= !raw.is_empty();
        match clean::of_record(raw) {
            // What one record holds may be several lines.
            Some(inside) => {
                for part in inside.split('\n') {
                    self.part(part);
                }
            }
            None => self.part(raw),
        }
    }

    fn part(&mut self, raw: &str) {
        let visible = clean::visible(raw);
        let text = clean::unescape_html(&visible);
        let (rest, pod) = clean::without_prefix(&text);
        let (rest, pod) = match pod {
            None => self
                .host_prefix(rest)
                .map_or((rest, None), |(host, rest)| (rest, Some(host))),
            pod => (rest, pod),
        };
        if !rest.trim().is_empty() {
            self.text_seen = true;
        }
        let at = match pod {
            None => 0,
            Some(pod) => match self
                .streams
                .iter()
                .position(|(name, _)| name.as_deref() == Some(pod))
            {
                Some(at) => at,
                None if self.streams.len() < MAX_STREAMS => {
                    let stream = Stream {
                        place: Some(keep(pod)),
                        machine: Some(keep(pod)),
                        ..Stream::default()
                    };
                    self.streams.push((Some(pod.to_owned()), stream));
                    self.streams.len().saturating_sub(1)
                }
                None => 0,
            },
        };
        if let Some((_, stream)) = self.streams.get_mut(at) {
            stream.feed(&self.file, &mut self.sections, self.line, rest.to_owned());
        }
    }

    /// `node-1: text`, as pdsh and clush print it. Many tools print `word: value` themselves, so this counts only
    /// where the rest begins an output, or the host is known by then.
    fn host_prefix<'a>(&self, line: &'a str) -> Option<(&'a str, &'a str)> {
        if !line.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let (host, rest) = line.split_once(": ")?;
        let host_like = host.len() <= 64
            && host.chars().any(|c| c.is_ascii_digit())
            && host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
        if !host_like {
            return None;
        }
        let known = self
            .streams
            .iter()
            .any(|(name, _)| name.as_deref() == Some(host));
        let begins = known
            || KINDS.iter().any(|kind| {
                !matches!(kind.tool, Tool::Lsmod | Tool::GpudJson) && (kind.starts)(rest, "")
            });
        begins.then_some((host, rest))
    }

    /// Ends the file.
    pub fn finish(mut self) -> Observation {
        let mut whole = Observation::default();
        let mut first_unknown: Option<(u32, String)> = None;
        let several = self.streams.len() > 1;
        for (_, mut stream) in self.streams {
            stream.end(&self.file, &mut self.sections);
            if let Some(unknown) = stream.first_unknown
                && first_unknown
                    .as_ref()
                    .is_none_or(|(line, _)| unknown.0 < *line)
            {
                first_unknown = Some(unknown);
            }
            let last = (stream.machine, stream.out);
            let apart = !stream.parts.is_empty() || last.0.is_some();
            for (place, part) in stream.parts.into_iter().chain([last]) {
                // Without any name there is one place, which is the whole.
                if apart || several {
                    let place = place.unwrap_or_default();
                    whole.places.entry(place).or_default().merge(part.clone());
                }
                whole.merge(part);
            }
        }
        whole.sections.sort_by_key(|section| section.lines);
        if whole.sections.is_empty() {
            let why = match (self.bytes_seen, self.text_seen) {
                (false, _) if self.line <= 1 => NotRead::Empty,
                (_, false) => NotRead::Blank,
                _ => NotRead::Unknown,
            };
            whole.unrecognised.push(Unrecognised {
                file: self.file,
                why,
                first_line: first_unknown.map(|(_, line)| line).unwrap_or_default(),
            });
        }
        whole
    }
}

/// Reads one text.
pub fn recognise(file: &str, text: &str) -> Observation {
    let mut recogniser = Recogniser::new(file);
    for line in text.split_inclusive('\n') {
        recogniser.line(line);
    }
    recogniser.finish()
}

/// Reads one file of any encoding; UTF-16 with its mark is decoded, invalid bytes are left out.
pub fn recognise_bytes(file: &str, bytes: &[u8]) -> Observation {
    let units = |swap: bool| -> String {
        let units = bytes
            .get(2..)
            .unwrap_or_default()
            .chunks_exact(2)
            .map(|pair| {
                let pair = <[u8; 2]>::try_from(pair).unwrap_or_default();
                if swap {
                    u16::from_be_bytes(pair)
                } else {
                    u16::from_le_bytes(pair)
                }
            });
        char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    if bytes.starts_with(&[0xff, 0xfe]) {
        return recognise(file, &units(false));
    }
    if bytes.starts_with(&[0xfe, 0xff]) {
        return recognise(file, &units(true));
    }
    if is_binary(bytes.get(..4096).unwrap_or(bytes)) {
        let mut out = Observation::default();
        out.unrecognised.push(Unrecognised {
            file: file.to_owned(),
            why: NotRead::Binary,
            first_line: String::new(),
        });
        return out;
    }
    recognise(file, &String::from_utf8_lossy(bytes))
}

/// The beginning of a file is text that can be read line by line: neither UTF-16 nor binary.
pub fn is_plain(sample: &[u8]) -> bool {
    !(sample.starts_with(&[0xff, 0xfe]) || sample.starts_with(&[0xfe, 0xff]) || is_binary(sample))
}

fn is_binary(sample: &[u8]) -> bool {
    // A sample of 4 KiB: no crate is worth counting it faster.
    let zeros = sample
        .iter()
        .fold(0_usize, |n, b| n.saturating_add(usize::from(*b == 0)));
    zeros.saturating_mul(20) > sample.len() && zeros > 0
}

/// Reads several files as one picture, in the order given.
pub fn recognise_all<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Observation {
    let mut whole = Observation::default();
    for (file, bytes) in files {
        whole.merge(recognise_bytes(file, bytes));
    }
    whole
}

/// The lines of one pod, or all lines where none is named.
#[derive(Default)]
struct Stream {
    out: Observation,
    held: VecDeque<(u32, String)>,
    current: Option<Current>,
    command: Option<Command>,
    place: Option<String>,
    /// The place, where it is a pod or host and no caption of another kind (`=== after ===`).
    machine: Option<String>,
    /// What was read at the places before this one, in order.
    parts: Vec<(Option<String>, Observation)>,
    log: LogReader,
    first_unknown: Option<(u32, String)>,
    last_line: u32,
    /// Log lines just before this one: `ucx_info` prints errors above the entry that they belong to.
    before: Vec<(u32, String)>,
}

/// Changes of place within one file that are followed.
const MAX_PARTS: usize = 512;

/// Log lines that are remembered for the output that follows them.
const MAX_BEFORE: usize = 8;

struct Current {
    kind: &'static Kind,
    parser: Box<dyn Parser>,
    from: Arc<Provenance>,
    first: u32,
    last: u32,
    taken: u32,
    cut_front: bool,
}

impl Stream {
    fn feed(&mut self, file: &str, sections: &mut u32, line: u32, text: String) {
        if text.trim().is_empty() {
            return;
        }
        self.held.push_back((line, text));
        if self.held.len() > LOOK_AHEAD {
            self.next(file, sections);
        }
    }

    /// Takes the oldest line that is held.
    fn next(&mut self, file: &str, sections: &mut u32) {
        let Some((at, line)) = self.held.pop_front() else {
            return;
        };
        // Lines of logs begin no output of a tool, whatever comes after them.
        let next = if of_log(&line) {
            String::new()
        } else {
            // JSON tells what it is some lines later; for all else the next line is enough.
            let json = line.trim_start().starts_with(['[', '{', '"']);
            let ahead = if json { LOOK_AHEAD } else { 1 };
            self.held
                .iter()
                .take(ahead)
                .map(|(_, text)| text.get(..4096).unwrap_or(text))
                .collect::<Vec<_>>()
                .join("\n")
        };
        self.one(file, sections, at, &line, &next);
    }

    fn end(&mut self, file: &str, sections: &mut u32) {
        while !self.held.is_empty() {
            self.next(file, sections);
        }
        self.close(false);
        self.log.finish(&mut self.out);
        let at = self.last_line;
        for (from, first, last) in self.log.sections() {
            self.out.sections.push(Section {
                from,
                lines: (first, last.max(first).min(at.max(first))),
                completeness: Completeness::Whole,
            });
        }
    }

    fn one(&mut self, file: &str, sections: &mut u32, line: u32, text: &str, next: &str) {
        self.last_line = line;
        let trimmed = text.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            return;
        }
        if let Some(code) = trimmed
            .strip_prefix("[exit ")
            .and_then(|rest| rest.strip_suffix(']'))
            && code.parse::<i32>().is_ok()
        {
            self.close(false);
            self.command = None;
            return;
        }
        if matches!(
            trimmed,
            "..." | "...." | "....." | "[...]" | "…" | "<snip>" | "[snip]"
        ) {
            match &mut self.current {
                Some(current) if current.taken == 0 => current.cut_front = true,
                _ => {}
            }
            return;
        }
        let of_log = of_log(text);
        if !of_log && let Some((command, host)) = prompt(text) {
            self.close(false);
            if let Some(host) = host {
                self.go_to(host);
            }
            if let Some(kind) = kind_of_command(&command) {
                self.open(file, sections, line, kind, Some(&command));
            }
            self.command = Some(command);
            return;
        }
        if !of_log && let Some(program) = not_found(trimmed) {
            self.close(true);
            self.tool_error(file, sections, line, program, trimmed);
            return;
        }
        if self.log.take(
            file,
            sections,
            self.place.as_deref(),
            line,
            text,
            &mut self.out,
        ) {
            if let Some(current) = &mut self.current
                && current.kind.tool == Tool::UcxInfo
            {
                let at = At {
                    from: &current.from,
                    line,
                };
                if current.parser.take(text, at, &mut self.out) {
                    current.taken = current.taken.saturating_add(1);
                    current.last = line;
                }
            } else if self.before.len() < MAX_BEFORE {
                self.before.push((line, text.to_owned()));
            }
            return;
        }
        let before = std::mem::take(&mut self.before);
        if self.offer(line, text) {
            return;
        }
        if of_log {
            self.unknown(line, text);
            return;
        }
        if let Some(kind) = KINDS.iter().find(|kind| (kind.starts)(text, next)) {
            let command = self.command.take();
            self.close(true);
            self.open(file, sections, line, kind, command.as_ref());
            if kind.tool == Tool::UcxInfo {
                for (line, text) in before {
                    self.offer(line, &text);
                }
            }
            if self.offer(line, text) {
                return;
            }
            self.close(true);
        }
        if let Some(place) = caption(trimmed) {
            self.close(true);
            if names_machine(&place) {
                self.go_to(place);
            } else {
                self.place = Some(place);
            }
            return;
        }
        self.unknown(line, text);
    }

    fn unknown(&mut self, line: u32, text: &str) {
        if self.first_unknown.is_none() {
            self.first_unknown = Some((line, hint(text)));
        }
    }

    /// What follows was printed at another place.
    fn go_to(&mut self, place: String) {
        if self.machine.as_deref() != Some(&place) && self.parts.len() < MAX_PARTS {
            let out = std::mem::take(&mut self.out);
            self.parts.push((self.machine.take(), out));
            self.machine = Some(place.clone());
        }
        self.place = Some(place);
    }

    fn offer(&mut self, line: u32, text: &str) -> bool {
        let Some(current) = &mut self.current else {
            return false;
        };
        let at = At {
            from: &current.from,
            line,
        };
        let taken = current.parser.take(text, at, &mut self.out);
        if taken {
            current.taken = current.taken.saturating_add(1);
            current.last = line;
            // What the command printed is here; another tool's output has another command.
            self.command = None;
        }
        taken
    }

    fn open(
        &mut self,
        file: &str,
        sections: &mut u32,
        line: u32,
        kind: &'static Kind,
        command: Option<&Command>,
    ) {
        let from = Arc::new(Provenance {
            file: file.to_owned(),
            tool: kind.tool,
            section: *sections,
            place: self.place.clone(),
            command: command.map(Command::shown),
        });
        *sections = sections.saturating_add(1);
        self.current = Some(Current {
            kind,
            parser: (kind.open)(command),
            from,
            first: line,
            last: line,
            taken: 0,
            cut_front: false,
        });
    }

    /// Ends the current output. One that a command announced and that then is another tool's is no output at all.
    fn close(&mut self, superseded: bool) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        if current.taken == 0 && superseded {
            return;
        }
        let at = At {
            from: &current.from,
            line: current.last,
        };
        let mut completeness = current.parser.finish(at, &mut self.out);
        if current.cut_front && completeness == Completeness::Whole {
            completeness = Completeness::Cut("dots stand before the first entry".to_owned());
        }
        if current.from.section < MAX_SECTIONS {
            self.out.sections.push(Section {
                from: current.from,
                lines: (current.first, current.last),
                completeness,
            });
        }
    }

    fn tool_error(&mut self, file: &str, sections: &mut u32, line: u32, program: &str, text: &str) {
        let Some(kind) = KINDS.iter().find(|kind| kind.programs.contains(&program)) else {
            return;
        };
        self.open(file, sections, line, kind, None);
        if let Some(current) = self.current.take() {
            self.out.sections.push(Section {
                from: current.from,
                lines: (line, line),
                completeness: Completeness::ToolError(keep(text)),
            });
        }
    }
}

/// A line begins as lines of logs do: with UCX's time and process, a date, or a level. No tool prints such a line, and
/// logs have millions of them.
fn of_log(line: &str) -> bool {
    let line = line.trim_start();
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let date = |text: &str| {
        let year = digits(text);
        let rest = text.get(year..).unwrap_or_default();
        (year == 4 || year == 2) && rest.starts_with(['-', '/']) && {
            let rest = rest.get(1..).unwrap_or_default();
            digits(rest) == 2
                && rest
                    .get(2..)
                    .is_some_and(|r| r.starts_with(['-', '/', ' ']))
        }
    };
    if let Some(inside) = line.strip_prefix('[') {
        // `[1796019604.858141] [vm:1519 :0]`, `[2026-01-02 03:04:05]`
        return date(inside)
            || (digits(inside) >= 10
                && inside
                    .get(digits(inside)..)
                    .is_some_and(|r| r.starts_with('.')));
    }
    if line.starts_with(|c: char| c.is_ascii_digit()) {
        return date(line);
    }
    let word = line.split([' ', ':', '\t']).next().unwrap_or_default();
    matches!(
        word,
        "INFO" | "WARN" | "WARNING" | "ERROR" | "DEBUG" | "TRACE" | "CRITICAL"
    )
}

/// What may be shown of a line that nobody knows: its first words, nothing behind `=` or `:`, no long words, so
/// that no secret gets out.
fn hint(text: &str) -> String {
    let end = text.find(['=', ':']).unwrap_or(text.len());
    text.get(..end)
        .unwrap_or_default()
        .split_whitespace()
        .take_while(|word| word.len() <= 20)
        .take(8)
        .collect::<Vec<_>>()
        .join(" ")
}

/// `bash: ibstat: command not found`, `sh: 1: ibstat: not found`, `exec: "ibstat": executable file not found in $PATH`.
fn not_found(line: &str) -> Option<&'static str> {
    let says = line.contains("command not found")
        || line.ends_with(": not found")
        || line.contains("executable file not found");
    if !says || line.len() > 300 {
        return None;
    }
    KINDS
        .iter()
        .flat_map(|kind| kind.programs)
        .copied()
        .find(|program| {
            line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
                .any(|word| word == *program)
        })
}

/// A caption that names a pod or host: `prefill-0`, `gpu17`, `node A`; not `before`, `run 2` or the name of a tool.
fn names_machine(caption: &str) -> bool {
    let mut words = caption.split_whitespace();
    let first = words.next().unwrap_or_default().to_ascii_lowercase();
    if [
        "pod",
        "node",
        "host",
        "container",
        "worker",
        "prefill",
        "decode",
    ]
    .iter()
    .any(|word| first.starts_with(word))
    {
        return true;
    }
    words.next().is_none()
        && first.chars().any(|c| c.is_ascii_digit())
        && !KINDS
            .iter()
            .any(|kind| kind.programs.contains(&first.as_str()))
}

/// `pod A:`, `node gpu-3:`, `=== decode-0 ===`.
fn caption(line: &str) -> Option<String> {
    let inner = if let Some(inner) = line.strip_suffix(':') {
        let first = inner.split_whitespace().next()?.to_ascii_lowercase();
        let known = ["pod", "node", "host", "container", "worker"].contains(&first.as_str())
            || ["prefill", "decode"]
                .iter()
                .any(|role| first.starts_with(role));
        known.then_some(inner)?
    } else {
        let inner = line.trim_matches(['=', '-', '*', '#', ' ']);
        let rule = line.len().checked_sub(inner.len())? >= 4
            && line.starts_with(['=', '-', '*', '#'])
            && line.ends_with(['=', '-', '*', '#']);
        rule.then_some(inner)?
    };
    let words = inner.split_whitespace().count();
    ((1..=4).contains(&words) && inner.len() <= 80).then(|| keep(inner))
}
