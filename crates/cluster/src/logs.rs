//! The log of a container: its first and its last megabytes.
//!
//! An engine says at its start which libraries and transports it takes, and what went wrong stands at the end; between
//! them a busy worker writes gigabytes of requests. The API has the first bytes (`limitBytes`) and the last lines
//! (`tailLines`) and nothing between (kubernetes, core/v1 PodLogOptions).

use model::pod::Fault;

use crate::door::{Cluster, Keep};
use crate::objects::escaped;
use crate::patience::patiently;
use crate::stop::Stop;

/// Bytes of each end.
const PART: usize = 4 * 1024 * 1024;
/// A log whose lines are all shorter is hardly one.
const SHORTEST_LINE: usize = 20;
/// What is looked for in the end, to know where the beginning stopped. Long enough that no repeated lines are taken for it.
const SEAM: usize = 32 * 1024;

/// What was read of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// Whole lines from its beginning.
    pub first: Vec<u8>,
    /// Whole lines up to its end that are not in the first part.
    pub last: Vec<u8>,
    /// Lines between the two parts were left out, or may have been.
    pub gap: bool,
}

/// Reads the log of a container.
///
/// # Errors
/// It may not be read, or there is none.
pub async fn log(
    cluster: &dyn Cluster,
    namespace: &str,
    pod: &str,
    container: &str,
    stop: &Stop,
) -> Result<Log, Fault> {
    let path = format!(
        "/api/v1/namespaces/{}/pods/{}/log?container={}",
        escaped(namespace),
        escaped(pod),
        escaped(container)
    );
    let read = |path: String, keep: Keep| async move {
        let asked = patiently(stop, || cluster.text(&path, keep));
        tokio::select! {
            read = asked => read.map_err(|refusal| refusal.fault),
            () = stop.stopped() => Err(Fault::new(
                model::pod::FaultKind::Interrupted,
                "the run was ended before the log was read",
            )),
        }
    };
    let mut first = read(format!("{path}&limitBytes={PART}"), Keep::First(PART)).await?;
    if first.len() < PART {
        return Ok(Log {
            first,
            ..Log::default()
        });
    }
    // As many lines as fill the part if they are as long as those of the beginning; half as long ones are more than
    // enough, and longer ones are cut.
    let lines = first.split(|byte| *byte == b'\n').count();
    let line = (first.len() / lines).max(SHORTEST_LINE);
    let count = PART.saturating_mul(2) / line;
    let mut last = read(format!("{path}&tailLines={count}"), Keep::Last(PART)).await?;
    let seam = first
        .get(first.len().saturating_sub(SEAM)..)
        .and_then(|seam| find(&last, seam).map(|at| at + seam.len()));
    if let Some(seam) = seam {
        // The two overlap: one text.
        last.drain(..seam);
        first.append(&mut last);
        return Ok(Log {
            first,
            ..Log::default()
        });
    }
    if let Some(end) = first.iter().rposition(|byte| *byte == b'\n') {
        first.truncate(end + 1);
    }
    if let Some(begin) = last.iter().position(|byte| *byte == b'\n') {
        last.drain(..=begin);
    }
    Ok(Log {
        first,
        last,
        gap: true,
    })
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = *part.first()?;
    let mut from = 0;
    while let Some(at) = text.get(from..)?.iter().position(|byte| *byte == first) {
        let at = from + at;
        if text.get(at..)?.starts_with(part) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}
