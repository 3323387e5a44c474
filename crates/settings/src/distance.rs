//! Edit distance, for "did you mean".

/// Number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; None above `limit`.
pub fn edit_distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    if a.is_ascii() && b.is_ascii() && !may_be_within(a.as_bytes(), b.as_bytes(), limit) {
        return None;
    }
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    // Ends that are equal cost nothing, and names of one family share most of themselves.
    let (a, b) = without_common_ends(&a, &b);
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &ca) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(last.len());
        row.push(i + 1);
        for (j, &cb) in b.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX);
            let replace = at(&last, j).saturating_add(usize::from(ca != cb));
            let delete = at(&last, j + 1).saturating_add(1);
            let insert = at(&row, j).saturating_add(1);
            let mut best = replace.min(delete).min(insert);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(&cb) && b.get(j - 1) == Some(&ca);
            if swapped {
                best = best.min(at(&before, j - 1).saturating_add(1));
            }
            row.push(best);
        }
        if row.iter().all(|&cost| cost > limit) {
            return None;
        }
        before = last;
        last = row;
    }
    last.last().copied().filter(|&cost| cost <= limit)
}

/// A bound without a table: one edit changes the length by one at most, and the count of two letters at most.
fn may_be_within(a: &[u8], b: &[u8], limit: usize) -> bool {
    if a.len().abs_diff(b.len()) > limit {
        return false;
    }
    let mut counts = [0_i16; 32];
    for (text, step) in [(a, 1), (b, -1)] {
        for letter in text {
            if let Some(count) = counts.get_mut(usize::from(letter & 31)) {
                *count = count.saturating_add(step);
            }
        }
    }
    let changed: usize = counts.iter().map(|c| usize::from(c.unsigned_abs())).sum();
    changed <= limit * 2
}

fn without_common_ends<'c>(mut a: &'c [char], mut b: &'c [char]) -> (&'c [char], &'c [char]) {
    while let (Some((first_a, rest_a)), Some((first_b, rest_b))) =
        (a.split_first(), b.split_first())
    {
        if first_a != first_b {
            break;
        }
        (a, b) = (rest_a, rest_b);
    }
    while let (Some((last_a, rest_a)), Some((last_b, rest_b))) = (a.split_last(), b.split_last()) {
        if last_a != last_b {
            break;
        }
        (a, b) = (rest_a, rest_b);
    }
    (a, b)
}

/// The name nearest to a misspelt one, where it is near enough to be meant: a slip for every four characters,
/// three at most.
pub fn closest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    nearest(word, names, (word.chars().count() / 4).clamp(1, 3))
}

/// The name nearest to a word, `limit` edits away at most; of equally near ones the first by the alphabet.
pub fn nearest<'n>(
    word: &str,
    names: impl IntoIterator<Item = &'n str>,
    limit: usize,
) -> Option<&'n str> {
    names
        .into_iter()
        .filter_map(|name| edit_distance(word, name, limit).map(|cost| (cost, name)))
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::edit_distance;

    #[test]
    fn counts_edits() {
        assert_eq!(edit_distance("UCX_TSL", "UCX_TLS", 3), Some(1));
        assert_eq!(
            edit_distance("UCX_NET_DEVICE", "UCX_NET_DEVICES", 3),
            Some(1)
        );
        assert_eq!(edit_distance("abc", "axd", 3), Some(2));
        assert_eq!(edit_distance("abc", "abc", 0), Some(0));
        assert_eq!(edit_distance("", "ab", 2), Some(2));
        assert_eq!(edit_distance("aab", "ab", 2), Some(1));
        assert_eq!(edit_distance("xaby", "xbay", 2), Some(1));
        assert_eq!(edit_distance("kitten", "sitting", 2), None);
    }
}
