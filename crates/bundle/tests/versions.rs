//! Bundles of every version that was ever written are still read, and give what they gave.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

/// What `short` says of a bundle. Where a rule has changed on purpose: `UPDATE=1 cargo test`, and look at the difference.
#[test]
fn version_1_is_read() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let file = std::fs::File::open(data.join("version-1.tar.gz")).unwrap();
    let gathered = bundle::read(file).unwrap();
    let names: Vec<&str> = gathered
        .pods
        .iter()
        .map(|pod| pod.object.name.as_str())
        .collect();
    assert_eq!(names, ["decode-0", "decode-1", "prefill-0"]);
    // The facts are there, and not only the names.
    let devices: Vec<Option<usize>> = gathered
        .pods
        .iter()
        .map(|pod| Some(pod.probed.as_ref().ok()?.observation.rdma.devices.len()))
        .collect();
    assert_eq!(devices, [Some(3), None, Some(3)]);
    let report = checks::judge_check(gathered);
    let mut out = Vec::new();
    let options = report::Options {
        version: "VERSION",
        ..report::Options::default()
    };
    report::render(report::Format::Short, &report, &options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let expected = data.join("version-1.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&expected, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&expected).unwrap());
}
