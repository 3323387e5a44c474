//! What the collecting script prints, version 1.
//!
//! One record to a line:
//!
//! ```text
//! %SEQUENCE<tab>KIND<tab>KEY<tab>TEXT<tab>%
//! ```
//!
//! `SEQUENCE` counts from 1 without a gap. `TEXT` runs to the last `<tab>%` of its line, so it may hold tabs; a
//! newline within it stands as byte 1. A line that does not look like this is not ours: another process wrote into the
//! same pipe, or the end is missing. The last record is `end` with the number of records before it as its key, so that
//! one knows whether all of them are here: [`Stream::is_complete`].
//!
//! | kind | key | text |
//! |---|---|---|
//! | `begin` | version of the format | root directory, empty for `/` |
//! | `stage` | what is read next; `tool:ID` before a tool runs | – |
//! | `file` | path | one line of it; a file of several lines has several records |
//! | `none` | path, `tool:ID`, or `named-file:PID:PATH` | why there is nothing: `absent`, `denied`, `unreadable`, or words for a tool |
//! | `cut` | the key whose rest was left out | `text`, `lines`, `entries`, `processes`, `output` |
//! | `link` | path | where it leads |
//! | `list` | what is listed | one path |
//! | `count` | path | `N of M`: entries in use of a table |
//! | `node` | path of a device node | `opened`, `accessible`, `inaccessible`, `absent`, `not a device`, `failed: WHY` |
//! | `proc` | `PID/NAME` | a property: `comm`, `program`, `subcommand` |
//! | `env` | `PID/VARIABLE` | its value; names of the catalogue only |
//! | `arg` | `PID/FLAG` | its value, empty without one; recognised flags only |
//! | `map` | `PID` | a library file that it has mapped, with ` (deleted)` where it is gone |
//! | `tool` | `tool:ID` | one line of its output |
//! | `exit` | `tool:ID` | its exit code, or `timeout` |
//! | `end` | number of records before | – |

use std::fmt;

/// The version that is read here.
pub const VERSION: u32 = 1;

/// Records that are kept; a machine with a hundred devices has about ten thousand.
const MAX_RECORDS: usize = 200_000;

/// What a record tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// First record.
    Begin,
    /// What is read next.
    Stage,
    /// A line of a file.
    File,
    /// Why there is nothing.
    None,
    /// Something was left out.
    Cut,
    /// Where a link leads.
    Link,
    /// A path that is there.
    List,
    /// Entries in use of a table.
    Count,
    /// Whether a device node can be used.
    Node,
    /// A property of a process.
    Proc,
    /// A variable of a process.
    Env,
    /// A flag of a process.
    Arg,
    /// A library of a process.
    Map,
    /// A line of a tool's output.
    Tool,
    /// How a tool ended.
    Exit,
    /// Last record.
    End,
}

impl Kind {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "begin" => Self::Begin,
            "stage" => Self::Stage,
            "file" => Self::File,
            "none" => Self::None,
            "cut" => Self::Cut,
            "link" => Self::Link,
            "list" => Self::List,
            "count" => Self::Count,
            "node" => Self::Node,
            "proc" => Self::Proc,
            "env" => Self::Env,
            "arg" => Self::Arg,
            "map" => Self::Map,
            "tool" => Self::Tool,
            "exit" => Self::Exit,
            "end" => Self::End,
            _ => return None,
        })
    }
}

/// One record. What it holds is data of the machine: control characters must not reach a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What it tells.
    pub kind: Kind,
    /// About what.
    pub key: String,
    /// The text, with newlines where the script had to write another byte.
    pub text: String,
}

/// All records of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stream {
    /// In order.
    pub records: Vec<Record>,
    /// Version of the format, where the first record is here.
    pub version: Option<u32>,
    /// Records that were printed and are not here.
    pub lost: u64,
    /// The last record is here.
    pub ended: bool,
    /// Lines that are no records.
    pub foreign_lines: u64,
}

/// Why a stream is not the whole of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// Nothing of it is here: no shell, or something else answered.
    Nothing,
    /// The script speaks another version.
    Version(u32),
    /// It stopped while something was read: a tool (`tool:ID`), a device (`rdma:mlx5_0`), or a part.
    Stopped(String),
    /// So many records are garbled.
    Lost(u64),
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("the collecting script printed nothing"),
            Self::Version(version) => write!(
                f,
                "the collecting script speaks version {version}, this program {VERSION}"
            ),
            Self::Stopped(stage) => match stage.split_once(':') {
                Some(("tool", tool)) => write!(f, "collection stopped while {tool} ran"),
                Some((_, device)) => write!(f, "collection stopped while {device} was read"),
                None => write!(f, "collection stopped while {stage} was read"),
            },
            Self::Lost(count) => write!(f, "{count} lines of what was collected are garbled"),
        }
    }
}

impl Stream {
    /// Reads what the script printed. Never fails: what is no record is counted.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut stream = Self::default();
        let mut last = 0_u64;
        let mut held = 0_u64;
        for line in bytes.split(|b| *b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let Some((sequence, record)) = record(line).filter(|(at, _)| *at > last) else {
                stream.foreign_lines = stream.foreign_lines.saturating_add(1);
                continue;
            };
            last = sequence;
            match record.kind {
                Kind::End => {
                    stream.ended = true;
                    let printed = record.key.parse().unwrap_or(last.saturating_sub(1));
                    stream.lost = printed.saturating_sub(held);
                    break;
                }
                Kind::Begin => stream.version = record.key.parse().ok(),
                _ => {}
            }
            held = held.saturating_add(1);
            if stream.records.len() < MAX_RECORDS {
                stream.records.push(record);
            }
        }
        if !stream.ended {
            stream.lost = last.saturating_sub(held);
        }
        stream
    }

    /// Whether everything that the script printed is here.
    pub fn is_complete(&self) -> bool {
        self.gap().is_none()
    }

    /// What is missing, and why.
    pub fn gap(&self) -> Option<Gap> {
        match self.version {
            None if self.records.is_empty() => return Some(Gap::Nothing),
            None => return Some(Gap::Lost(self.lost.max(1))),
            Some(VERSION) => {}
            Some(other) => return Some(Gap::Version(other)),
        }
        if !self.ended {
            return Some(Gap::Stopped(
                self.last_stage().unwrap_or("start").to_owned(),
            ));
        }
        let dropped = self.records.len() >= MAX_RECORDS;
        (self.lost > 0 || dropped).then_some(Gap::Lost(self.lost.max(1)))
    }

    /// What was read last.
    pub fn last_stage(&self) -> Option<&str> {
        self.records
            .iter()
            .rev()
            .find(|record| record.kind == Kind::Stage)
            .map(|record| record.key.as_str())
    }
}

fn record(line: &[u8]) -> Option<(u64, Record)> {
    let line = line.strip_prefix(b"%")?.strip_suffix(b"\t%")?;
    let mut fields = line.splitn(4, |b| *b == b'\t');
    let mut next = || fields.next();
    let sequence = std::str::from_utf8(next()?).ok()?;
    if !sequence.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let sequence = sequence.parse().ok()?;
    let kind = Kind::parse(std::str::from_utf8(next()?).ok()?)?;
    let key = String::from_utf8_lossy(next()?).into_owned();
    let text = String::from_utf8_lossy(next()?).replace('\u{1}', "\n");
    Some((sequence, Record { kind, key, text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str =
        "%1\tbegin\t1\t\t%\n%2\tstage\trdma\t\t%\n%3\tfile\t/a\tone\ttwo\t%\n%4\tend\t3\t\t%\n";

    #[test]
    fn knows_the_whole() {
        let stream = Stream::parse(WHOLE.as_bytes());
        assert!(stream.is_complete());
        assert_eq!(stream.records[2].text, "one\ttwo");
        assert!(Stream::parse(WHOLE.replace('\n', "\r\n").as_bytes()).is_complete());
    }

    #[test]
    fn every_cut_shows() {
        for end in 0..WHOLE.len() - 1 {
            let stream = Stream::parse(&WHOLE.as_bytes()[..end]);
            assert!(!stream.is_complete(), "{end}");
        }
        let stream = Stream::parse(&WHOLE.as_bytes()[..WHOLE.len() - 14]);
        assert_eq!(stream.gap(), Some(Gap::Stopped("rdma".into())));
        assert_eq!(Stream::parse(b"").gap(), Some(Gap::Nothing));
    }

    #[test]
    fn foreign_text_between_lines_does_no_harm() {
        let mixed = WHOLE.replace("%3", "warning: \u{7}\0 hello\n%3");
        let stream = Stream::parse(mixed.as_bytes());
        assert!(stream.is_complete());
        assert_eq!(stream.foreign_lines, 1);
    }

    #[test]
    fn text_inside_a_line_costs_that_line_and_shows() {
        for broken in [
            WHOLE.replace("one", "on\njunk\ne"),
            WHOLE.replace("%3", "junk%3"),
            WHOLE.replace("%2\t", "%2x\t"),
        ] {
            let stream = Stream::parse(broken.as_bytes());
            assert_eq!(stream.gap(), Some(Gap::Lost(1)), "{broken:?}");
        }
        // The same line twice counts once.
        let twice = WHOLE.replace("%3\tfile", "%2\tstage\tx\t\t%\n%3\tfile");
        let stream = Stream::parse(twice.as_bytes());
        assert!(stream.is_complete() && stream.foreign_lines == 1);
    }

    #[test]
    fn binary_does_no_harm() {
        let bytes: Vec<u8> = (0..=255_u8).cycle().take(4096).collect();
        assert_eq!(Stream::parse(&bytes).gap(), Some(Gap::Nothing));
        let stream =
            Stream::parse(b"%1\tbegin\t1\t\t%\n%2\tfile\t/a\t\xff\xfe\x01b\t%\n%3\tend\t2\t\t%\n");
        assert!(stream.is_complete());
        assert_eq!(stream.records[1].text, "\u{fffd}\u{fffd}\nb");
    }

    #[test]
    fn another_version_is_not_read_as_ours() {
        let other = WHOLE.replace("begin\t1", "begin\t2");
        assert_eq!(Stream::parse(other.as_bytes()).gap(), Some(Gap::Version(2)));
    }
}
