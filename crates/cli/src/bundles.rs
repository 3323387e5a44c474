//! Bundles as files.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter};
use std::path::Path;

use checks::Gathered;

use crate::sources::{self, reason};

/// Saves what was gathered. A file that is there is replaced only once the new one is whole; a link goes on leading to it,
/// and a device or a pipe is written to as it is.
pub(crate) fn save(path: &Path, gathered: &Gathered) -> Result<(), String> {
    let failed =
        |error: &std::io::Error| format!("cannot write {}: {}", path.display(), reason(error));
    let special = std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
    if special {
        return OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| bundle::write(BufWriter::new(file), gathered))
            .map_err(|error| failed(&error));
    }
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut beside = real.as_os_str().to_owned();
    beside.push(".part");
    let beside = Path::new(&beside);
    let written = File::create(beside)
        .and_then(|file| bundle::write(BufWriter::new(file), gathered))
        .and_then(|()| std::fs::rename(beside, &real));
    written.map_err(|error| {
        let _it_may_not_be_there = std::fs::remove_file(beside);
        failed(&error)
    })
}

/// Reads a bundle.
pub(crate) fn open(path: &Path) -> Result<Gathered, String> {
    let shown = path.display();
    if let Some(what) = sources::endless(path) {
        return Err(format!("{shown}: it is {what}; expected a bundle's file"));
    }
    let file = File::open(path).map_err(|error| format!("{shown}: {}", reason(&error)))?;
    bundle::read(BufReader::new(file)).map_err(|error| format!("{shown}: {error}"))
}
