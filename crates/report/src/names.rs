//! Many names in little room: `decode-0` … `decode-499` become `decode-[0-499]`, the notation that
//! cluster tools use for lists of hosts.

/// A name, or a run of numbered names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// As it is shown.
    pub(crate) text: String,
    /// How many names it stands for.
    pub(crate) count: usize,
}

/// Names that share a prefix and end in a number of comparable width.
struct Series<'n> {
    prefix: &'n str,
    /// Digits, where the number is padded with zeros; else 0.
    padded: usize,
    numbers: Vec<u64>,
}

/// Joins numbered names into runs; everything else is kept. Order is that of first occurrence.
pub(crate) fn compact<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<Names> {
    enum Entry<'n> {
        Plain(&'n str),
        Series(Series<'n>),
    }
    let mut entries: Vec<Entry<'n>> = Vec::new();
    let mut known: std::collections::HashMap<(&str, usize), usize> =
        std::collections::HashMap::new();
    for name in names {
        let Some((prefix, padded, number)) = split(name) else {
            entries.push(Entry::Plain(name));
            continue;
        };
        let at = *known.entry((prefix, padded)).or_insert_with(|| {
            entries.push(Entry::Series(Series {
                prefix,
                padded,
                numbers: Vec::new(),
            }));
            entries.len() - 1
        });
        if let Some(Entry::Series(series)) = entries.get_mut(at) {
            series.numbers.push(number);
        }
    }
    let mut out = Vec::new();
    for entry in entries {
        match entry {
            Entry::Plain(name) => out.push(Names {
                text: name.to_owned(),
                count: 1,
            }),
            Entry::Series(series) => series.write(&mut out),
        }
    }
    out
}

impl Series<'_> {
    fn write(mut self, out: &mut Vec<Names>) {
        self.numbers.sort_unstable();
        let padded = self.padded;
        let mut runs: Vec<(u64, u64, usize)> = Vec::new();
        for number in self.numbers {
            match runs.last_mut() {
                Some((_, last, count)) if number - *last <= 1 => {
                    *last = number;
                    *count += 1;
                }
                _ => runs.push((number, number, 1)),
            }
        }
        for (first, last, count) in runs {
            let prefix = self.prefix;
            let text = if first == last {
                format!("{prefix}{first:0padded$}")
            } else {
                format!("{prefix}[{first:0padded$}-{last:0padded$}]")
            };
            out.push(Names { text, count });
        }
    }
}

/// Prefix, padding and number of a name that ends in a number.
fn split(name: &str) -> Option<(&str, usize, u64)> {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.strip_prefix(prefix)?;
    // Longer numbers are ids, not an index, and may not fit.
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let padded = if digits.len() > 1 && digits.starts_with('0') {
        digits.len()
    } else {
        0
    };
    Some((prefix, padded, digits.parse().ok()?))
}

/// At most `most` entries, and how many names the others hold.
pub(crate) fn capped<'n>(
    names: impl IntoIterator<Item = &'n str>,
    most: usize,
) -> (Vec<String>, usize) {
    let all: Vec<&str> = names.into_iter().collect();
    if all.len() <= most {
        return (all.into_iter().map(str::to_owned).collect(), 0);
    }
    let mut entries = compact(all);
    // The entry that says "and 1 more" takes as much room as the one it hides.
    let hidden = if entries.len() > most {
        entries
            .drain(most.saturating_sub(1)..)
            .map(|entry| entry.count)
            .sum()
    } else {
        0
    };
    (
        entries.into_iter().map(|entry| entry.text).collect(),
        hidden,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<String> {
        compact(names.iter().copied())
            .into_iter()
            .map(|n| n.text)
            .collect()
    }

    #[test]
    fn runs_are_joined() {
        assert_eq!(
            texts(&["d-0", "router", "d-1", "d-2", "d-7", "p-3"]),
            ["d-[0-2]", "d-7", "router", "p-3"]
        );
        assert_eq!(texts(&["n007", "n008", "n10"]), ["n[007-008]", "n10"]);
        assert_eq!(
            texts(&["pod-12345678901234567890"]),
            ["pod-12345678901234567890"]
        );
    }

    #[test]
    fn caps_count_what_they_hide() {
        let names: Vec<String> = (0..10).map(|n| format!("w{n}x")).collect();
        let (shown, hidden) = capped(names.iter().map(String::as_str), 3);
        assert_eq!(shown, ["w0x", "w1x"]);
        assert_eq!(hidden, 8);
    }
}
