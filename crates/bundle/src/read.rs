//! Reads a bundle that anybody may have made.

use std::fmt;
use std::io::{self, Read};

use checks::Gathered;
use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;
use tar::{Archive, Entry, EntryType};

use crate::format::{
    CLUSTER, DECLARED, DeclaredEntry, FORMAT, MANIFEST, MAX_ENTRY, MAX_REST, MAX_TOTAL,
    MAX_WORKERS, Manifest, TRANSFERS, VERSION, worker,
};

/// Why a file is no bundle that can be judged: what was got, what was expected, what to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

fn odd(words: impl Into<String>) -> Error {
    Error(words.into())
}

/// What a reading error means. Bytes of the file can stand in a message, so few of them are let through.
fn unreadable(error: &io::Error) -> Error {
    let words: String = error
        .to_string()
        .chars()
        .filter(|c| !c.is_control())
        .take(120)
        .collect();
    let cut = error.kind() == io::ErrorKind::UnexpectedEof;
    if cut {
        odd("it ends in its middle; expected a whole bundle: copy it again, or collect it again")
    } else {
        odd(format!(
            "it is no gzip-compressed tar archive ({words}); expected a bundle as check --bundle and collect write them"
        ))
    }
}

/// Reads everything that was gathered.
///
/// # Errors
/// It is no bundle, it is damaged, too large, of a newer version, or somebody made it to do harm.
pub fn read(from: impl Read) -> Result<Gathered, Error> {
    // However much it unpacks to, no more is read.
    let limited = MultiGzDecoder::new(from).take(MAX_TOTAL);
    let mut archive = Archive::new(limited);
    // As they are: an extended name would be read whole before anybody could ask for its size.
    let entries = archive.entries().map_err(|e| unreadable(&e))?.raw(true);
    let mut manifest: Option<Manifest> = None;
    let mut gathered = Gathered::default();
    let mut parts = 0_usize;
    for entry in entries {
        let mut entry = entry.map_err(|e| unreadable(&e))?;
        let name = name(&entry)?;
        let workers = manifest.as_ref().map_or(0, |m| m.workers);
        let number = parts.checked_sub(HEAD.len());
        let expected = match number {
            None => HEAD.get(parts).copied().unwrap_or_default().to_owned(),
            Some(number) if number < workers => worker(number),
            Some(_) => "none".to_owned(),
        };
        if name != expected {
            return Err(odd(format!(
                "entry {} is '{name}', and bundles of version {VERSION} have {expected} there",
                parts.saturating_add(1)
            )));
        }
        match name.as_str() {
            MANIFEST => {
                let read = checked(parsed(&mut entry, &name)?)?;
                gathered.scope.clone_from(&read.scope);
                manifest = Some(read);
            }
            CLUSTER => gathered.around = parsed(&mut entry, &name)?,
            DECLARED => {
                let read: DeclaredEntry = parsed(&mut entry, &name)?;
                gathered.declared = read.declared;
                gathered.inputs = read.inputs;
            }
            TRANSFERS => gathered.transfers = parsed(&mut entry, &name)?,
            _ => gathered.pods.push(parsed(&mut entry, &name)?),
        }
        parts = parts.saturating_add(1);
    }
    ended(archive.into_inner())?;
    let manifest = manifest.ok_or_else(|| {
        odd("there is nothing in it; expected a bundle as check --bundle and collect write them")
    })?;
    if parts < HEAD.len() || gathered.pods.len() != manifest.workers {
        return Err(odd(format!(
            "{} of {} workers are in it; it was cut, or somebody took them out",
            gathered.pods.len(),
            manifest.workers
        )));
    }
    Ok(gathered)
}

/// The first entries, in order.
const HEAD: [&str; 4] = [MANIFEST, CLUSTER, DECLARED, TRANSFERS];

/// Whether nothing but the end follows: it holds the checksum of everything before.
fn ended(rest: impl Read) -> Result<(), Error> {
    let mut rest = rest.take(MAX_REST + 1);
    let mut read: u64 = 0;
    let mut buffer = [0; 4096];
    loop {
        let count = match rest.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(&error)),
        };
        read = read.saturating_add(count as u64);
        let other = buffer
            .get(..count)
            .is_some_and(|part| part.iter().any(|b| *b != 0));
        if other || read > MAX_REST {
            return Err(odd(
                "something follows behind its end; expected a bundle and nothing else",
            ));
        }
    }
    Ok(())
}

/// The name of a plain file. Nothing is ever written by it.
fn name<R: Read>(entry: &Entry<'_, R>) -> Result<String, Error> {
    let bytes = entry.path_bytes();
    let shown: String = String::from_utf8_lossy(&bytes)
        .chars()
        .take(80)
        .flat_map(char::escape_default)
        .collect();
    let kind = entry.header().entry_type();
    if kind != EntryType::Regular {
        return Err(odd(format!(
            "'{shown}' in it is no plain file (a link, a folder, a device); bundles have plain files only"
        )));
    }
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'/');
    if !bytes.iter().all(plain) || bytes.starts_with(b"/") || shown.contains("..") {
        return Err(odd(format!(
            "'{shown}' in it is no name that bundles have: somebody made it to be written elsewhere, or it is another archive"
        )));
    }
    if entry.size() > MAX_ENTRY {
        return Err(odd(format!(
            "'{shown}' in it has {} MiB; at most {} are read",
            entry.size() / 1024 / 1024,
            MAX_ENTRY / 1024 / 1024
        )));
    }
    Ok(shown)
}

fn parsed<T: DeserializeOwned>(entry: &mut Entry<'_, impl Read>, name: &str) -> Result<T, Error> {
    let mut text = Vec::new();
    entry
        .take(MAX_ENTRY)
        .read_to_end(&mut text)
        .map_err(|e| unreadable(&e))?;
    serde_json::from_slice(&text).map_err(|error| {
        // The message can quote the text, which may hold anything.
        let what = match error.classify() {
            serde_json::error::Category::Data => "its JSON is not of the shape that is expected",
            serde_json::error::Category::Eof => "its JSON ends in its middle",
            _ => "it is no JSON",
        };
        odd(format!(
            "{name}: {what} (line {}, column {}); collect the bundle again with this version",
            error.line(),
            error.column()
        ))
    })
}

fn checked(manifest: Manifest) -> Result<Manifest, Error> {
    if manifest.format != FORMAT {
        return Err(odd(format!(
            "{MANIFEST} does not say that it is a {FORMAT}; this is another archive"
        )));
    }
    if manifest.version == 0 || manifest.version > VERSION {
        return Err(odd(format!(
            "it is a bundle of version {}; this program reads versions 1 to {VERSION}: use the version of check-interconnect that made it, or a newer one",
            manifest.version
        )));
    }
    if manifest.workers > MAX_WORKERS {
        return Err(odd(format!(
            "it says that it has {} workers; at most {MAX_WORKERS} are read",
            manifest.workers
        )));
    }
    Ok(manifest)
}
