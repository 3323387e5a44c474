//! Text as Markdown.

use std::fmt::Write as _;

/// Plain text with code in backquotes, for a paragraph: whatever else means something in Markdown is escaped.
pub(crate) fn inline(text: &str) -> String {
    let balanced = text.matches('`').count().is_multiple_of(2);
    let mut code = false;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '`' if balanced => {
                code = !code;
                out.push(c);
            }
            '<' if !code => out.push_str("&lt;"),
            '*' | '`' if !code => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// The same for the cell of a table.
pub(crate) fn cell(text: &str) -> String {
    inline(text).replace('|', "\\|")
}

/// Code, for the cell of a table.
pub(crate) fn code(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("`{}`", text.replace('|', "\\|"))
    }
}

/// A table.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _infallible = writeln!(out, "| {} |", row.join(" | "));
    }
    out
}

/// The anchor that a heading gets.
pub(crate) fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}
