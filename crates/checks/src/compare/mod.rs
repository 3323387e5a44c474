//! Checks that need more than one view: workers of one deployment held against each other.
//!
//! What a fault looks like in one worker alone is told elsewhere. Here a worker is named because it is not like the
//! others, and two roles because they do not fit.

pub(crate) mod drift;
pub(crate) mod fabric;
pub(crate) mod layers;
pub(crate) mod nvlink;
pub(crate) mod odd_one_out;
pub(crate) mod placement;
mod rails;
mod settings;
pub(crate) mod side_channel;
pub(crate) mod software;
mod spread;
mod traits;
pub(crate) mod view;
mod workload;

/// `decode-3`, `decode-3 and decode-5`, `decode-3, decode-5 and 14 more`.
pub(crate) fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 3;
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] if names.len() <= SHOWN => format!("{} and {last}", head.join(", ")),
        _ => {
            let shown: Vec<&str> = names.iter().take(SHOWN).copied().collect();
            format!(
                "{} and {} more",
                shown.join(", "),
                names.len().saturating_sub(SHOWN)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn long_lists_end_in_a_number() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b"]), "a and b");
        assert_eq!(listed(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }
}
