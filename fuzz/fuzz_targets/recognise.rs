//! Any bytes, given to the recogniser and with that to every parser.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Every place must be printable, and merging must accept what parsers give.
    let mut seen = probe::recognise_bytes("input", bytes);
    let again = probe::recognise_bytes("again", bytes);
    model::Merge::merge(&mut seen, again);
});
