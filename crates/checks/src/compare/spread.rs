//! How a value spreads over workers: which one most have, and who has another.

use std::collections::BTreeMap;

use crate::pod::view::PodView;

/// A worker with its value.
pub(crate) type Valued<'p> = (&'p PodView<'p>, String);

/// What most workers have, and the others.
pub(crate) struct Spread<'p> {
    /// What more than half have.
    pub(crate) common: String,
    /// Workers whose value is known.
    pub(crate) known: usize,
    /// Those that have another value, which few have.
    pub(crate) others: Vec<Valued<'p>>,
    /// Other values that so many have that they are a kind of their own, with how many.
    pub(crate) kinds: Vec<(String, usize)>,
}

/// Several workers, and at least every fourth of them, are a kind: machines of another type, and no accident.
fn is_kind(count: usize, known: usize) -> bool {
    count > 1 && count.saturating_mul(4) >= known
}

/// The value that more than half of the workers have. With fewer than three nobody is the odd one, and where all
/// differ the value is each worker's own.
pub(crate) fn majority(values: Vec<Valued<'_>>) -> Option<Spread<'_>> {
    const FEWEST: usize = 3;
    let known = values.len();
    if known < FEWEST {
        return None;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, value) in &values {
        let count = counts.entry(value).or_default();
        *count = count.saturating_add(1);
    }
    let (common, count) = counts
        .iter()
        .max_by_key(|(_, count)| **count)
        .map(|(value, count)| ((*value).to_owned(), *count))?;
    if count.saturating_mul(2) <= known {
        return None;
    }
    let kinds: Vec<(String, usize)> = counts
        .into_iter()
        .filter(|(value, count)| *value != common && is_kind(*count, known))
        .map(|(value, count)| (value.to_owned(), count))
        .collect();
    let others = values
        .into_iter()
        .filter(|(_, value)| *value != common && !kinds.iter().any(|(kind, _)| kind == value))
        .collect();
    Some(Spread {
        common,
        known,
        others,
        kinds,
    })
}
