//! `nixl`: what logs of NIXL, UCX and engines show about KV transfer.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

use checks::{LogFile, NixlFacts, judge_nixl};
use model::observation::{NotRead, Observation, Unrecognised};

use crate::args::NixlArgs;
use crate::failure::Failure;
use crate::node::{no_such_file, role};
use crate::output::Outputs;
use crate::{overwrite, sources, transfer};

/// What tells the encoding of a file.
const SAMPLE: usize = 4096;
/// Files that are no plain text are read as a whole, up to this.
const MAX_OTHER: u64 = 64 * 1024 * 1024;
/// A line is read up to this; what follows in it is left out.
const MAX_LINE: u64 = 1024 * 1024;

pub(crate) fn run(args: &NixlArgs) -> Result<ExitCode, Failure> {
    // Wrong output arguments are told before anything is read.
    let outputs = Outputs::from_args(&args.output)?;
    overwrite::refuse(&outputs.files(), &args.from, &[])?;
    if args.transfer.transfer {
        return Ok(crate::finish(&transfer::run(args)?, &args.output)?);
    }
    if let Some(time) = args.transfer.observe {
        return Ok(crate::finish(
            &crate::observe::run(args, time)?,
            &args.output,
        )?);
    }
    if args.from.is_empty() {
        return crate::nixl_live::run(args);
    }
    let mut files = Vec::new();
    let mut missing = Vec::new();
    for path in &args.from {
        match saved(path) {
            Ok(Some(seen)) => files.push(LogFile {
                name: path.to_string_lossy().into_owned(),
                seen,
            }),
            Ok(None) => missing.push(path.clone()),
            Err(why) => return Err(format!("{}: {why}", path.display()).into()),
        }
    }
    let facts = NixlFacts {
        files,
        role: args.role.map(role),
    };
    let scope = args.from.iter().map(|p| p.to_string_lossy().into_owned());
    let mut report = judge_nixl(&facts, scope.collect());
    if !missing.is_empty() {
        // The others are judged all the same.
        report.missing_path = true;
        crate::complain(&no_such_file(&missing));
    }
    Ok(crate::finish(&report, &args.output)?)
}

/// Reads one log; `None` where it does not exist.
fn saved(path: &Path) -> Result<Option<Observation>, String> {
    let name = path.to_string_lossy();
    let why = |e: io::Error| sources::reason(&e);
    if path == Path::new("-") {
        return lines(&name, BufReader::new(io::stdin().lock()))
            .map(Some)
            .map_err(why);
    }
    if let Some(what) = sources::endless(path) {
        return Err(format!(
            "it is {what}, not a file; to read a stream, pipe it: command | check-interconnect nixl --from -"
        ));
    }
    match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(why(e)),
        Ok(file) => lines(&name, BufReader::with_capacity(1 << 18, file))
            .map(Some)
            .map_err(why),
    }
}

/// Reads line by line, so that the size of a log does not matter.
fn lines<R: Read>(name: &str, mut text: BufReader<R>) -> io::Result<Observation> {
    let sample = text.fill_buf()?;
    let sample = sample.get(..SAMPLE).unwrap_or(sample);
    if probe::is_plain(sample) {
        let mut recogniser = probe::Recogniser::new(name);
        let mut line = Vec::new();
        loop {
            line.clear();
            if text.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(recogniser.finish());
            }
            if !line.ends_with(b"\n") && line.len() as u64 == MAX_LINE {
                skip_line(&mut text)?;
            }
            match std::str::from_utf8(&line) {
                Ok(text) => recogniser.line(text),
                Err(_) => recogniser.line(&String::from_utf8_lossy(&line)),
            }
        }
    }
    let mut bytes = Vec::new();
    text.take(MAX_OTHER + 1).read_to_end(&mut bytes)?;
    let mut seen = probe::recognise_bytes(name, &bytes);
    if bytes.len() as u64 > MAX_OTHER {
        seen.unrecognised.push(Unrecognised {
            file: name.to_owned(),
            why: NotRead::TooLarge,
            first_line: String::new(),
        });
    }
    Ok(seen)
}

/// Goes to the end of a line without keeping it.
fn skip_line(text: &mut impl io::BufRead) -> io::Result<()> {
    loop {
        let part = text.fill_buf()?;
        if part.is_empty() {
            return Ok(());
        }
        if let Some(at) = part.iter().position(|b| *b == b'\n') {
            text.consume(at + 1);
            return Ok(());
        }
        let all = part.len();
        text.consume(all);
    }
}
