//! Writes a bundle.

use std::io::{self, Write};

use checks::Gathered;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use tar::{Builder, EntryType, Header};

use crate::format::{
    CLUSTER, DECLARED, DeclaredEntry, FORMAT, MANIFEST, Manifest, TRANSFERS, VERSION, worker,
};

/// Writes everything that was gathered. The same facts give the same bytes.
///
/// # Errors
/// They cannot be written.
pub fn write(to: impl Write, gathered: &Gathered) -> io::Result<()> {
    let mut archive = Builder::new(GzEncoder::new(to, Compression::default()));
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        version: VERSION,
        made_by: concat!("check-interconnect ", env!("CARGO_PKG_VERSION")).to_owned(),
        scope: gathered.scope.clone(),
        workers: gathered.pods.len(),
    };
    entry(&mut archive, MANIFEST, &manifest)?;
    entry(&mut archive, CLUSTER, &gathered.around)?;
    let declared = DeclaredEntry {
        declared: gathered.declared.clone(),
        inputs: gathered.inputs.clone(),
    };
    entry(&mut archive, DECLARED, &declared)?;
    entry(&mut archive, TRANSFERS, &gathered.transfers)?;
    for (number, pod) in gathered.pods.iter().enumerate() {
        entry(&mut archive, &worker(number), pod)?;
    }
    archive.into_inner()?.finish()?.flush()
}

fn entry<W: Write>(archive: &mut Builder<W>, name: &str, what: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(what)?;
    text.push(b'\n');
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    // No time, no owner: the same facts give the same bytes.
    header.set_mtime(0);
    header.set_size(text.len() as u64);
    archive.append_data(&mut header, name, text.as_slice())
}
