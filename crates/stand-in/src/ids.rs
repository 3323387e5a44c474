//! Identifiers that look like those of a cluster and are the same in every run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

fn number(seed: &str, salt: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, salt).hash(&mut hasher);
    hasher.finish()
}

/// This many hexadecimal digits, as in a container's ID.
pub(crate) fn hex(seed: &str, digits: usize) -> String {
    let numbers = (0..)
        .take(digits.div_ceil(16))
        .map(|salt| number(seed, salt));
    let mut out = numbers.fold(String::new(), |out, number| out + &format!("{number:016x}"));
    out.truncate(digits);
    out
}

/// A UUID of version 4, as in `metadata.uid`.
pub(crate) fn uid(seed: &str) -> String {
    let digits = hex(seed, 32);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-4{}-a{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}
