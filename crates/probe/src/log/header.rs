//! What stands before the words of a log line: time, host, process, source file, severity.

use model::observation::log::{Process, Severity};

use crate::text::keep;

/// A line without what stands before its words.
pub(super) struct Header<'a> {
    /// The whole line.
    pub(super) line: &'a str,
    /// The words.
    pub(super) rest: &'a str,
    /// It has the prefix of UCX: time and process in brackets.
    pub(super) ucx_prefix: bool,
    pub(super) severity: Option<Severity>,
    pub(super) process: Process,
}

/// `[1796019604.858141] [vm:1519 :0]   ucp_context.c:1492 UCX  WARN  words`, `host:pid:tid [0] NCCL INFO words`,
/// `W0506 07:08:09.1234  55 file.cpp:12] words`, and plain words.
pub(super) fn read(line: &str) -> Header<'_> {
    let mut header = Header {
        line,
        rest: line.trim(),
        ucx_prefix: false,
        severity: None,
        process: Process::default(),
    };
    let mut rest = line.trim_start();
    if let Some((process, after)) = ucx_part(line) {
        rest = after;
        header.process = process;
        header.ucx_prefix = true;
        header.rest = rest;
    } else if let Some((stamp, after)) = bracket(rest)
        && is_time(stamp)
    {
        rest = after;
        header.ucx_prefix = true;
        header.rest = rest;
    }
    if let Some((before, after)) = rest.split_once("UCX ")
        && before.trim().len() < 80
        && let Some((severity, words)) = level(after)
    {
        header.severity = Some(severity);
        header.rest = words;
    } else if header.ucx_prefix
        && let Some((file, words)) = rest.split_once("  ")
        && file.contains(".c:")
    {
        // Completion errors have a source file and no severity.
        header.rest = words.trim_start();
    } else if let Some((before, after)) = rest.split_once("NCCL ")
        && let Some((severity, words)) = level(after)
    {
        header.severity = Some(severity);
        header.rest = words;
        nccl_process(before, &mut header.process);
    } else if let Some(severity) = glog(rest) {
        header.severity = Some(severity);
        if let Some((_, words)) = rest.split_once("] ") {
            header.rest = words.trim();
        }
    }
    header
}

/// The process that the prefix of UCX names, and what follows it. Collectors of logs put all kinds of words before.
fn ucx_part(line: &str) -> Option<(Process, &str)> {
    line.match_indices('[')
        .take(16)
        .filter_map(|(at, _)| line.get(at..))
        .find_map(|part| {
            let (inside, after) = bracket(part)?;
            if let Some(process) = process(inside) {
                return Some((process, after));
            }
            if !is_time(inside) {
                return None;
            }
            let (who, after) = bracket(after)?;
            Some((process(who)?, after))
        })
}

/// `[text] rest`
fn bracket(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('[')?;
    let (inside, rest) = inside.split_once(']')?;
    Some((inside.trim(), rest.trim_start()))
}

fn is_time(text: &str) -> bool {
    text.len() >= 10 && text.contains('.') && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// `node-b:13245:0`, `vm:1519 :0`, `host:pid:rank:tid`.
fn process(text: &str) -> Option<Process> {
    let mut parts = text.split(':');
    let host = parts.next()?.trim();
    let pid = parts.next()?.trim().parse().ok()?;
    let thread = parts.next()?.trim();
    // `[2026-01-02 03:04:05]` and `[03:04:05]` are times.
    let time = host.contains(' ')
        || (!host.is_empty() && host.len() <= 2 && host.chars().all(|c| c.is_ascii_digit()));
    if time || !thread.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    Some(Process {
        host: (!host.is_empty()).then(|| keep(host)),
        pid: Some(pid),
        rank: None,
    })
}

fn level(text: &str) -> Option<(Severity, &str)> {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let severity = match word {
        "FATAL" => Severity::Fatal,
        "ERROR" => Severity::Error,
        "WARN" => Severity::Warn,
        "INFO" | "DIAG" | "NOTICE" => Severity::Info,
        "DEBUG" | "TRACE" | "REQ" | "DATA" | "FUNC" | "POLL" => Severity::Debug,
        _ => return None,
    };
    Some((severity, rest.trim_start()))
}

/// `node-a:460770:460842 [0]`, also cut.
fn nccl_process(before: &str, process: &mut Process) {
    let Some(word) = before
        .split_whitespace()
        .rev()
        // The last one: a time before it looks alike.
        .find(|w| w.matches(':').count() == 2)
    else {
        return;
    };
    let mut parts = word.split(':');
    let host = parts.next().unwrap_or_default();
    if let Some(pid) = parts.next().and_then(|p| p.parse().ok()) {
        process.host = Some(keep(host));
        process.pid = Some(pid);
    }
}

/// `W0506 07:08:09.123456   12 file.cpp:58]`
fn glog(text: &str) -> Option<Severity> {
    let mut chars = text.chars();
    let severity = match chars.next()? {
        'I' => Severity::Info,
        'W' => Severity::Warn,
        'E' => Severity::Error,
        'F' => Severity::Fatal,
        _ => return None,
    };
    let digits = chars.by_ref().take(4).filter(char::is_ascii_digit).count();
    (digits == 4 && chars.next() == Some(' ')).then_some(severity)
}
