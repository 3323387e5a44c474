//! Bundles as files.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use checks::Gathered;

use crate::sources::{self, reason};

/// Saves what was gathered. A file that is there is replaced only once the new one is whole.
pub(crate) fn save(path: &Path, gathered: &Gathered) -> Result<(), String> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = Path::new(&beside);
    let failed =
        |error: &std::io::Error| format!("cannot write {}: {}", path.display(), reason(error));
    let written = File::create(beside)
        .and_then(|file| bundle::write(BufWriter::new(file), gathered))
        .and_then(|()| std::fs::rename(beside, path));
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
