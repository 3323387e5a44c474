//! Streams of the collecting script that were carried in a container's log: where nothing may be run in a pod, the pod
//! prints them itself, after one line that says where.
//!
//! ```text
//! %from<tab>1<tab>WAY<tab>NAMESPACE<tab>POD<tab>NODE<tab>CONTAINER<tab>ROLE<tab>DEPLOYMENT<tab>WORKLOAD<tab>%
//! ```
//!
//! Nothing of it is a secret, and nothing is believed that does not look like a name. A log has other lines between, and
//! each line may stand behind something that a tool puts before it (`[pod/NAME/CONTAINER] `, a time). Lines behind the
//! same text are one lane. Where a lane without such a text holds two streams at once, records of one can stand between
//! those of the other and nothing tells them apart, so that such a stream is not believed ([`Carried::mixed`]).

use std::collections::HashMap;

use crate::script;
use crate::stream::Stream;

/// The version of the first line.
const VERSION: &str = "1";
/// Bytes of one stream.
const MAX_STREAM: usize = 16 * 1024 * 1024;
/// Streams of one log.
const MAX_STREAMS: usize = 10_000;
/// Characters of a name; those of Kubernetes have at most 253.
const MAX_NAME: usize = 253;

/// Variables that the first line is made of, in its order.
pub const VARIABLES: [&str; 8] = [
    "COLLECT_WAY",
    "COLLECT_NAMESPACE",
    "COLLECT_POD",
    "COLLECT_NODE",
    "COLLECT_CONTAINER",
    "COLLECT_ROLE",
    "COLLECT_DEPLOYMENT",
    "COLLECT_WORKLOAD",
];

/// What the shell of a container is told to do: it prints the first line, runs the script, and always ends well, since a
/// worker waits for its init containers. The variables of [`VARIABLES`] are in its environment.
pub fn command() -> Vec<String> {
    let mut print = String::from("printf '%%from\\t");
    print.push_str(VERSION);
    for _ in VARIABLES {
        print.push_str("\\t%s");
    }
    print.push_str("\\t%%\\n'");
    for variable in VARIABLES {
        print.push_str(" \"$");
        print.push_str(variable);
        print.push('"');
    }
    let outer = format!(
        "{print}\nt=\ntimeout 1 true 2>/dev/null && t='timeout 120'\n$t sh -c \"$1\" probe limit=25 tool_limit=10 2>/dev/null\nexit 0\n"
    );
    vec![
        "sh".to_owned(),
        "-c".to_owned(),
        outer,
        "collect".to_owned(),
        script::text().to_owned(),
    ]
}

/// What the first line says. Each is a name, or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// How the script came to run there.
    pub way: String,
    /// Namespace.
    pub namespace: String,
    /// The pod that printed it.
    pub pod: String,
    /// Its node.
    pub node: String,
    /// The worker's container that it stands for.
    pub container: String,
    /// The worker's role.
    pub role: String,
    /// The worker's deployment.
    pub deployment: String,
    /// The workload that the worker is a replica of.
    pub workload: String,
}

/// A stream with what its first line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Where it was printed.
    pub head: Head,
    /// The records.
    pub stream: Stream,
    /// Records of another stream stand between its own, or may: what it says is not to be believed.
    pub mixed: bool,
}

/// What a log holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// In the order of their first lines.
    pub carried: Vec<Carried>,
    /// First lines of versions that are not known here.
    pub other_versions: u64,
    /// Records without a first line before them.
    pub stray: u64,
    /// Streams that were left out, since there are too many.
    pub left_out: u64,
}

/// A stream that has begun.
struct Open {
    at: usize,
    head: Head,
    bytes: Vec<u8>,
    /// Another one of the same lane had not ended when it began: all that follows may be that one's.
    mixed: bool,
}

impl Open {
    fn close(self) -> (usize, Carried) {
        (
            self.at,
            Carried {
                head: self.head,
                stream: Stream::parse(&self.bytes),
                mixed: self.mixed,
            },
        )
    }

    fn take(&mut self, line: &[u8]) {
        if self.bytes.len().saturating_add(line.len()) < MAX_STREAM {
            self.bytes.extend_from_slice(line);
            self.bytes.push(b'\n');
        }
    }
}

/// Finds the streams in a log. Never fails: what is none of their lines is passed over.
pub fn find(log: &[u8]) -> Found {
    let mut found = Found::default();
    let mut open: HashMap<Vec<u8>, Open> = HashMap::new();
    let mut closed: Vec<(usize, Carried)> = Vec::new();
    let mut count = 0_usize;
    for line in log.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some((before, what)) = ours(line) else {
            continue;
        };
        let lane = lane(before);
        match what {
            Line::From(rest) => {
                let before = open.remove(&lane);
                let head = head(rest);
                // A container that was started again is the same one.
                let mixed = before
                    .as_ref()
                    .is_some_and(|b| b.mixed || head.as_ref() != Some(&b.head));
                closed.extend(before.map(Open::close));
                let Some(head) = head else {
                    found.other_versions = found.other_versions.saturating_add(1);
                    continue;
                };
                if count >= MAX_STREAMS {
                    found.left_out = found.left_out.saturating_add(1);
                    continue;
                }
                open.insert(
                    lane,
                    Open {
                        at: count,
                        head,
                        bytes: Vec::new(),
                        mixed,
                    },
                );
                count = count.saturating_add(1);
            }
            Line::Record(text) => match open.get_mut(&lane) {
                None => found.stray = found.stray.saturating_add(1),
                Some(stream) => {
                    stream.take(text);
                    if text.split(|b| *b == b'\t').nth(1) == Some(b"end") {
                        closed.extend(open.remove(&lane).map(Open::close));
                    }
                }
            },
        }
    }
    closed.extend(open.into_values().map(Open::close));
    closed.sort_by_key(|(at, _)| *at);
    found.carried = closed.into_iter().map(|(_, carried)| carried).collect();
    found
}

enum Line<'l> {
    /// What follows `%from`.
    From(&'l [u8]),
    /// The whole of it.
    Record(&'l [u8]),
}

/// A line of ours, and what a tool put before it.
fn ours(line: &[u8]) -> Option<(&[u8], Line<'_>)> {
    if !line.ends_with(b"\t%") {
        return None;
    }
    let mut from = 0;
    loop {
        let at = from + line.get(from..)?.iter().position(|b| *b == b'%')?;
        let (before, rest) = (line.get(..at)?, line.get(at..)?);
        if let Some(rest) = rest.strip_prefix(b"%from\t") {
            return Some((before, Line::From(rest)));
        }
        let digits = rest
            .iter()
            .skip(1)
            .take_while(|b| b.is_ascii_digit())
            .count();
        if digits > 0 && rest.get(digits.checked_add(1)?) == Some(&b'\t') {
            return Some((before, Line::Record(rest)));
        }
        from = at.checked_add(1)?;
    }
}

/// What stands before the lines of one container, without times.
fn lane(before: &[u8]) -> Vec<u8> {
    let is_time = |word: &[u8]| {
        word.first().is_some_and(u8::is_ascii_digit)
            && word.contains(&b':')
            && word.contains(&b'-')
            && word.contains(&b'T')
    };
    let mut lane = Vec::new();
    for word in before.split(u8::is_ascii_whitespace) {
        if !word.is_empty() && !is_time(word) {
            lane.extend_from_slice(word);
            lane.push(b' ');
        }
    }
    lane
}

/// What a first line says; `None` for another version, or where something in it is no name.
fn head(rest: &[u8]) -> Option<Head> {
    let text = std::str::from_utf8(rest).ok()?;
    let mut fields = text.split('\t');
    if fields.next()? != VERSION {
        return None;
    }
    let mut name = || {
        let field = fields.next()?;
        let good = field.len() <= MAX_NAME
            && field
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
        good.then(|| field.to_owned())
    };
    Some(Head {
        way: name()?,
        namespace: name()?,
        pod: name()?,
        node: name()?,
        container: name()?,
        role: name()?,
        deployment: name()?,
        workload: name()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pod: &str) -> String {
        format!("%from\t1\tjob\tserving\t{pod}\tnode-a\tmain\tdecode\tllama\tdecode\t%\n")
    }

    fn records(mark: &str) -> Vec<String> {
        vec![
            "%1\tbegin\t1\t\t%\n".to_owned(),
            format!("%2\tfile\t/a\t{mark}\t%\n"),
            format!("%3\tfile\t/b\t{mark}\t%\n"),
            "%4\tend\t3\t\t%\n".to_owned(),
        ]
    }

    fn whole(pod: &str) -> String {
        from(pod) + &records(pod).concat()
    }

    fn marks(carried: &Carried) -> Vec<&str> {
        let files = carried.stream.records.iter().filter(|r| r.key != "1");
        files
            .map(|r| r.text.as_str())
            .filter(|t| !t.is_empty())
            .collect()
    }

    #[test]
    fn streams_are_found_between_other_lines() {
        let log = format!(
            "starting\n{}bye %d\n{}100 %\t%\n",
            whole("a").replace("%3", "noise in between\r\n%3"),
            whole("b").replace('\n', "\r\n")
        );
        let found = find(log.as_bytes());
        assert_eq!(found.carried.len(), 2);
        for (carried, pod) in found.carried.iter().zip(["a", "b"]) {
            assert_eq!(carried.head.pod, pod);
            assert_eq!(carried.head.role, "decode");
            assert!(
                carried.stream.is_complete() && !carried.mixed,
                "{carried:?}"
            );
            assert_eq!(marks(carried), [pod, pod]);
        }
    }

    #[test]
    fn what_stands_before_lines_tells_containers_apart() {
        let behind = |pod: &str, line: &str| {
            format!("2026-01-01T00:00:0{}Z [pod/{pod}/main] {line}", pod.len())
        };
        let (a, b) = (whole("a"), whole("bb"));
        let mut log = String::new();
        for (left, right) in a.split_inclusive('\n').zip(b.split_inclusive('\n')) {
            log.push_str(&behind("a", left));
            log.push_str(&behind("bb", right));
        }
        let found = find(log.as_bytes());
        assert_eq!(found.carried.len(), 2, "{found:?}");
        for (carried, pod) in found.carried.iter().zip(["a", "bb"]) {
            assert!(
                carried.stream.is_complete() && !carried.mixed,
                "{carried:?}"
            );
            assert_eq!(marks(carried), [pod, pod]);
        }
    }

    /// However two streams are mixed without anything before their lines: what is believed is a stream's own.
    #[test]
    fn mixed_streams_are_not_believed() {
        let a: Vec<String> = std::iter::once(from("a")).chain(records("a")).collect();
        let b: Vec<String> = std::iter::once(from("b")).chain(records("b")).collect();
        for order in 0_u32..1 << (a.len() + b.len()) {
            if order.count_ones() as usize != b.len() {
                continue;
            }
            let (mut left, mut right) = (a.iter(), b.iter());
            let lines: Vec<&str> = (0..a.len() + b.len())
                .filter_map(|at| {
                    if order >> at & 1 == 1 {
                        right.next()
                    } else {
                        left.next()
                    }
                })
                .map(String::as_str)
                .collect();
            for end in [lines.len(), lines.len() - 1, lines.len() - 2] {
                let found = find(lines[..end].concat().as_bytes());
                for carried in found.carried.iter().filter(|c| !c.mixed) {
                    let own = carried.head.pod.as_str();
                    assert!(
                        marks(carried).iter().all(|mark| *mark == own),
                        "{order:b} {end} {carried:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_container_that_was_started_again_is_the_same_one() {
        let log = format!("{}{}{}", from("a"), records("a")[0], whole("a"));
        let found = find(log.as_bytes());
        let whole: Vec<bool> = found
            .carried
            .iter()
            .map(|c| c.stream.is_complete() && !c.mixed)
            .collect();
        assert_eq!(whole, [false, true]);
        let other = find(log.replacen("\ta\t", "\tb\t", 1).as_bytes());
        assert!(other.carried[1].mixed);
    }

    #[test]
    fn every_cut_shows() {
        let log = whole("a");
        for end in 0..log.len() - 1 {
            let found = find(&log.as_bytes()[..end]);
            assert!(
                found.carried.iter().all(|c| !c.stream.is_complete()),
                "{end}"
            );
        }
    }

    #[test]
    fn heads_that_are_none_and_records_without_one_are_counted() {
        let found = find(records("x").concat().as_bytes());
        assert_eq!((found.carried.len(), found.stray), (0, 4));
        for odd in [
            whole("a").replace("from\t1", "from\t2"),
            whole("a").replace("serving", "ser ving"),
            whole("a").replace("node-a", "\u{1b}[31m"),
            whole("a").replace("main", "a/b"),
            whole("a").replace("\tllama\tdecode", ""),
        ] {
            let found = find(odd.as_bytes());
            assert_eq!((found.carried.len(), found.other_versions), (0, 1), "{odd}");
        }
        let bytes: Vec<u8> = (0..=255_u8).cycle().take(100_000).collect();
        assert_eq!(find(&bytes), Found::default());
    }

    #[test]
    fn the_command_is_small_enough_for_one_argument() {
        // Linux MAX_ARG_STRLEN.
        assert!(command().iter().all(|word| word.len() < 128 * 1024));
    }
}
