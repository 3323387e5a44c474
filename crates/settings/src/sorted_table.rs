//! Looking a name up in the text of a sorted table, without reading all of it first.

/// The line whose first column is `name`. Lines are sorted by that column; the text is ASCII.
pub(crate) fn find_line<'t>(table: &'t str, name: &str) -> Option<&'t str> {
    let mut low = 0;
    let mut high = table.len();
    while low < high {
        let middle = low + (high - low) / 2;
        let start = table
            .get(low..middle)?
            .rfind('\n')
            .map_or(low, |at| low + at + 1);
        let end = table
            .get(start..high)?
            .find('\n')
            .map_or(high, |at| start + at);
        let line = table.get(start..end)?;
        match first_column(line).cmp(name) {
            std::cmp::Ordering::Equal => return Some(line),
            std::cmp::Ordering::Less => low = end + 1,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    None
}

/// The lines of a table, without its heading.
pub(crate) fn lines(table: &str) -> impl Iterator<Item = &str> {
    table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

pub(crate) fn first_column(line: &str) -> &str {
    line.split('\t').next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_line_and_nothing_else() {
        let table = "# heading\nA\t1\nAB\t2\nB\nC\t4\n";
        for (name, line) in [("A", "A\t1"), ("AB", "AB\t2"), ("B", "B"), ("C", "C\t4")] {
            assert_eq!(find_line(table, name), Some(line));
        }
        for name in ["", "AA", "ABC", "D", "0"] {
            assert_eq!(find_line(table, name), None, "{name}");
        }
        assert_eq!(lines(table).count(), 4);
        assert_eq!(find_line("", "A"), None);
    }
}
