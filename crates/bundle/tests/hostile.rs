//! Bundles that somebody made to do harm, and files that are none: a clear message, nothing written, no panic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::io::{Read, Write as _};

use bundle::{VERSION, read};
use checks::{Gathered, ProbedPod};
use flate2::Compression;
use flate2::write::GzEncoder;
use model::PodObject;
use serde_json::{Value, json};
use tar::{EntryType, Header};

/// One entry, as bytes.
struct Entry {
    name: Vec<u8>,
    kind: EntryType,
    /// What the header says, where it lies.
    size: Option<u64>,
    content: Vec<u8>,
}

fn entry(name: &str, content: impl Into<Vec<u8>>) -> Entry {
    Entry {
        name: name.as_bytes().to_vec(),
        kind: EntryType::Regular,
        size: None,
        content: content.into(),
    }
}

fn object(name: &str, value: &Value) -> Entry {
    entry(name, value.to_string())
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn plain(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        let mut header = Header::new_ustar();
        header.set_entry_type(entry.kind);
        header.set_mode(0o644);
        header.set_size(entry.size.unwrap_or(entry.content.len() as u64));
        let field = &mut header.as_old_mut().name;
        let length = entry.name.len().min(field.len());
        field[..length].copy_from_slice(&entry.name[..length]);
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(&entry.content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn archive(entries: &[Entry]) -> Vec<u8> {
    packed(&plain(entries))
}

fn manifest(workers: usize) -> Value {
    json!({"format": "check-interconnect-bundle", "version": 1, "made_by": "x", "scope": [], "workers": workers})
}

fn around() -> Value {
    json!({"nodes": {"Ok": []}, "faults": [], "passed_over": [], "asked": []})
}

fn pod() -> Value {
    json!({
        "object": {"namespace": "a", "name": "b"}, "container": "c", "taken": "", "chosen": "", "worker": null,
        "probed": {"Ok": {}}, "later": null,
    })
}

fn good() -> Vec<Entry> {
    vec![
        object("manifest.json", &manifest(1)),
        object("cluster.json", &around()),
        object("declared.json", &json!({"declared": [], "inputs": []})),
        object("transfers.json", &json!([])),
        object("workers/00000.json", &pod()),
    ]
}

/// Why it is refused.
fn refused(bytes: &[u8]) -> String {
    let error = read(bytes).expect_err("it is refused").to_string();
    assert!(error.len() < 400, "{error}");
    assert!(!error.chars().any(char::is_control), "{error:?}");
    error
}

#[test]
fn what_these_tests_break_is_whole() {
    let gathered = read(archive(&good()).as_slice()).unwrap();
    assert_eq!(gathered.pods.len(), 1);
    assert_eq!(gathered.pods[0].object.name, "b");
}

#[test]
fn names_that_lead_elsewhere_are_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("written");
    let absolute = target.to_str().unwrap().to_owned();
    for name in [
        "../written",
        "workers/../../written",
        "workers/00000.json/../../written",
        absolute.as_str(),
        "/etc/passwd",
        "./cluster.json",
        "C:\\written",
        "workers\\00000.json",
        "workers/\u{1b}[31m.json",
        "workers/00000.json\n",
        "Workers/00000.json",
        "",
    ] {
        for at in 0..5 {
            let mut entries = good();
            entries[at].name = name.as_bytes().to_vec();
            let _told = refused(&archive(&entries));
        }
    }
    assert!(!target.exists());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn links_folders_devices_and_extensions_are_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Directory,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNULongName,
        EntryType::GNULongLink,
        EntryType::GNUSparse,
        EntryType::XHeader,
        EntryType::XGlobalHeader,
        EntryType::Continuous,
        EntryType::new(b'?'),
    ] {
        for at in 0..5 {
            let mut entries = good();
            entries[at].kind = kind;
            let told = refused(&archive(&entries));
            assert!(told.contains("no plain file"), "{kind:?} {told}");
        }
    }
}

#[test]
fn sizes_are_bounded_before_anything_is_unpacked() {
    const MIB: u64 = 1024 * 1024;
    for size in [65 * MIB, 1 << 40, u64::MAX] {
        for at in 0..5 {
            let mut entries = good();
            entries[at].size = Some(size);
            let told = refused(&archive(&entries));
            // A size that no file has is none.
            let known = if size == u64::MAX {
                "size overflow"
            } else {
                "at most 64"
            };
            assert!(told.contains(known), "{size} {told}");
        }
        // A name that is said to be as long.
        let mut entries = good();
        entries.insert(1, entry("././@LongLink", "x"));
        entries[1].kind = EntryType::GNULongName;
        entries[1].size = Some(size);
        let told = refused(&archive(&entries));
        assert!(told.contains("no plain file") || size == u64::MAX, "{told}");
    }
    // So many workers are not read.
    let mut entries = good();
    entries[0] = object("manifest.json", &manifest(usize::MAX >> 1));
    assert!(refused(&archive(&entries)).contains("at most 100000"));
}

/// Gives the same bytes again and again.
struct Endless {
    first: Vec<u8>,
    again: Vec<u8>,
    at: usize,
    given: u64,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let (from, at) = if self.at < self.first.len() {
            (&self.first, self.at)
        } else {
            let at = (self.at - self.first.len()) % self.again.len();
            (&self.again, at)
        };
        let count = buffer.len().min(from.len() - at);
        buffer[..count].copy_from_slice(&from[at..at + count]);
        self.at += count;
        self.given += count as u64;
        Ok(count)
    }
}

#[test]
fn what_unpacks_without_end_is_not_unpacked_to_its_end() {
    // A thousand times its size, again and again.
    let zeros = packed(&vec![0; 8 * 1024 * 1024]);
    let spaces = packed(&vec![b' '; 8 * 1024 * 1024]);
    let mut head = plain(&good()[..1]);
    head.truncate(head.len() - 1024);
    let mut body = good().remove(1);
    body.size = Some(64 * 1024 * 1024);
    body.content.clear();
    let mut cluster = plain(&[body]);
    cluster.truncate(512);
    for (first, again) in [
        // An entry that is as large as is allowed, of nothing.
        ([head.clone(), cluster].concat(), &spaces),
        // Nothing but the end of an archive, for ever.
        (plain(&good()), &zeros),
    ] {
        let mut endless = Endless {
            first: packed(&first),
            again: again.clone(),
            at: 0,
            given: 0,
        };
        let told = read(&mut endless).expect_err("it has no end").to_string();
        assert!(!told.is_empty());
        assert!(endless.given < 4 * 1024 * 1024, "{} {told}", endless.given);
    }
}

#[test]
fn other_shapes_are_refused() {
    let odd = [
        json!(null),
        json!([]),
        json!("text"),
        json!(7),
        json!({}),
        json!({"format": 1}),
        json!([[[[1]]]]),
    ];
    for value in &odd {
        for (at, name) in ["manifest.json", "cluster.json", "workers/00000.json"]
            .iter()
            .enumerate()
        {
            let mut entries = good();
            entries[at] = object(name, value);
            let told = refused(&archive(&entries));
            assert!(told.contains(name), "{value} {told}");
        }
    }
    // Nested as deeply as an entry is long.
    let mut entries = good();
    entries[1] = entry("cluster.json", "[".repeat(1_000_000));
    let _told = refused(&archive(&entries));
    // What is not UTF-8, and what is cut.
    for content in [
        b"\xff\xfe{}".to_vec(),
        b"{\"nodes\": {\"Ok\": [".to_vec(),
        Vec::new(),
    ] {
        let mut entries = good();
        entries[1] = entry("cluster.json", content);
        let _told = refused(&archive(&entries));
    }
}

#[test]
fn a_message_repeats_nothing_of_what_it_read() {
    let mut entries = good();
    entries[1] = entry("cluster.json", "{\"nodes\": \"\u{1b}[31mhunter2\"}");
    assert!(!refused(&archive(&entries)).contains("hunter2"));
}

#[test]
fn versions_that_are_not_known_are_told() {
    for version in [json!(0), json!(u64::from(VERSION) + 1), json!(u32::MAX)] {
        let mut head = manifest(1);
        head["version"] = version.clone();
        let mut entries = good();
        entries[0] = object("manifest.json", &head);
        let told = refused(&archive(&entries));
        assert!(told.contains(&format!("version {version}")), "{told}");
        assert!(told.contains("newer one"), "{told}");
    }
    for version in [json!(-1), json!("1"), json!(1.5), json!(null)] {
        let mut head = manifest(1);
        head["version"] = version;
        let mut entries = good();
        entries[0] = object("manifest.json", &head);
        let _told = refused(&archive(&entries));
    }
    let mut head = manifest(1);
    head["format"] = json!("other");
    let mut entries = good();
    entries[0] = object("manifest.json", &head);
    assert!(refused(&archive(&entries)).contains("another archive"));
}

#[test]
fn entries_twice_missing_or_in_another_order_are_refused() {
    let take = |order: &[usize]| {
        let entries: Vec<Entry> = order.iter().map(|at| good().remove(*at)).collect();
        archive(&entries)
    };
    for order in [
        &[][..],
        &[0],
        &[1],
        &[0, 1],
        &[0, 1, 2, 3],
        &[0, 2, 3, 4],
        &[0, 1, 3, 4],
        &[0, 1, 2, 4],
        &[1, 0, 2, 3, 4],
        &[0, 2, 1, 3, 4],
        &[0, 1, 2, 4, 3],
        &[0, 0, 1, 2, 3, 4],
        &[0, 1, 1, 2, 3, 4],
        &[0, 1, 2, 3, 3, 4],
        &[0, 1, 2, 3, 4, 4],
        &[0, 1, 2, 3, 4, 0],
    ] {
        let _told = refused(&take(order));
    }
    assert!(read(take(&[0, 1, 2, 3, 4]).as_slice()).is_ok());
}

#[test]
fn other_files_are_told_as_that() {
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut noise = |length: usize| -> Vec<u8> {
        (0..length)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random.to_le_bytes()[4]
            })
            .collect()
    };
    let mut files = vec![
        Vec::new(),
        b"hello".to_vec(),
        b"PK\x03\x04zip".to_vec(),
        b"\x28\xb5\x2f\xfdzstd".to_vec(),
        b"{\"schema\": \"check-interconnect/report-v1\"}".to_vec(),
        plain(&good()),
        packed(b""),
        packed(b"text that is no archive"),
        packed(&archive(&good())),
        archive(&[entry("readme", "hello")]),
        archive(&[]),
    ];
    files.extend((0..200).map(|n| noise(n * 7)));
    files.extend((0..200).map(|n| packed(&noise(n * 11))));
    for file in files {
        let _told = refused(&file);
    }
}

/// A bundle of some workers.
fn example() -> (Gathered, Vec<u8>) {
    let worker = |n: usize| ProbedPod {
        object: PodObject {
            namespace: "serving".to_owned(),
            name: format!("decode-{n}"),
            ..PodObject::default()
        },
        ..serde_json::from_value(pod()).unwrap()
    };
    let gathered = Gathered {
        pods: (0..20).map(worker).collect(),
        scope: vec!["namespace serving".to_owned()],
        ..Gathered::default()
    };
    let mut bytes = Vec::new();
    bundle::write(&mut bytes, &gathered).unwrap();
    (gathered, bytes)
}

#[test]
fn wherever_it_is_cut_that_is_told() {
    let (gathered, bytes) = example();
    assert_eq!(read(bytes.as_slice()).unwrap(), gathered);
    for end in 0..bytes.len() {
        let _told = refused(&bytes[..end]);
    }
    let whole = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/version-1.tar.gz"
    ))
    .unwrap();
    for end in (0..whole.len()).step_by(1000).chain([whole.len() - 1]) {
        let _told = refused(&whole[..end]);
    }
    let mut more = whole.clone();
    more.extend_from_slice(b"more");
    let _told = refused(&more);
}

/// A bit that is turned is found by the checksum, or it is in a part that says nothing.
#[test]
fn bits_that_are_turned_change_nothing_unseen() {
    let (gathered, bytes) = example();
    for at in 0..bytes.len() {
        for bit in [at % 8, (at / 8 + 3) % 8] {
            let mut turned = bytes.clone();
            turned[at] ^= 1 << bit;
            if let Ok(other) = read(turned.as_slice()) {
                assert_eq!(other, gathered, "byte {at} bit {bit}");
            }
        }
    }
}

/// The same behind the checksum: what somebody packs anew.
#[test]
fn bytes_that_are_changed_before_packing_do_no_harm() {
    let bytes = plain(&good());
    let mut read_well = 0;
    for at in 0..bytes.len() {
        for value in [0, b'"', b'9', 0xff, bytes[at] ^ 1] {
            let mut changed = bytes.clone();
            changed[at] = value;
            read_well += usize::from(read(packed(&changed).as_slice()).is_ok());
        }
    }
    assert!(read_well > 0, "every change was refused: nothing was tried");
}
