//! As much of protobuf as it takes to read what kubectl asks about its own rights: it sends these reviews in protobuf only.
//!
//! Field numbers: `k8s.io/apimachinery/pkg/runtime/generated.proto` (Unknown), `k8s.io/api/authorization/v1/generated.proto`.

use serde_json::{Map, Value, json};

const MAGIC: &[u8] = b"k8s\0";

/// A review of either kind as JSON; `None` where it is not protobuf.
pub(crate) fn review(body: &[u8]) -> Option<Value> {
    let unknown = body.strip_prefix(MAGIC)?;
    let review = field(unknown, 2)?;
    let spec = field(review, 2).unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let type_meta = field(unknown, 1).unwrap_or_default();
    if field(type_meta, 2) == Some(b"SelfSubjectRulesReview") {
        return Some(json!({ "spec": { "namespace": text(field(spec, 1).unwrap_or_default()) } }));
    }
    const NAMES: [&str; 7] = [
        "namespace",
        "verb",
        "group",
        "version",
        "resource",
        "subresource",
        "name",
    ];
    let mut out = Map::new();
    if let Some(attributes) = field(spec, 1) {
        let mut found = Map::new();
        for (number, name) in (1_u64..).zip(NAMES) {
            if let Some(bytes) = field(attributes, number) {
                found.insert(name.to_owned(), text(bytes).into());
            }
        }
        out.insert("resourceAttributes".into(), found.into());
    }
    Some(json!({ "spec": out }))
}

/// The first field of this number that has a length.
fn field(mut bytes: &[u8], number: u64) -> Option<&[u8]> {
    loop {
        let (tag, rest) = varint(bytes)?;
        bytes = match tag & 7 {
            0 => varint(rest)?.1,
            1 => rest.get(8..)?,
            2 => {
                let (length, rest) = varint(rest)?;
                let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                if tag >> 3 == number {
                    return Some(value);
                }
                rest
            }
            5 => rest.get(4..)?,
            _ => return None,
        };
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(u32::try_from(at).ok()? * 7)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, value) in fields {
            out.extend([number << 3 | 2, u8::try_from(value.len()).unwrap()]);
            out.extend(*value);
        }
        out
    }

    #[test]
    fn a_question_is_read_and_broken_ones_are_not() {
        let attributes = message(&[(1, b"ns"), (2, b"create"), (5, b"pods"), (6, b"exec")]);
        let spec = message(&[(1, &attributes)]);
        let review_bytes = message(&[(1, b""), (2, &spec)]);
        let meta = message(&[
            (1, b"authorization.k8s.io/v1"),
            (2, b"SelfSubjectAccessReview"),
        ]);
        let body = [MAGIC, &message(&[(1, &meta), (2, &review_bytes)])].concat();
        let read = review(&body).unwrap();
        assert_eq!(read["spec"]["resourceAttributes"]["subresource"], "exec");
        assert_eq!(read["spec"]["resourceAttributes"]["namespace"], "ns");
        for end in MAGIC.len()..body.len() {
            // It must end, whatever it says.
            let _ = review(&body[..end]);
        }
        assert_eq!(review(b"{}"), None);
        assert_eq!(
            review(b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            None
        );
    }
}
