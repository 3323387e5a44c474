//! The little Markdown that the generated files need.

use std::fmt::Write as _;

/// A first line that keeps people from editing what is generated.
pub(crate) fn generated(out: &mut String) {
    let _infallible = writeln!(
        out,
        "<!-- Generated from the code; do not edit. To write it anew: {} -->\n",
        crate::WRITE
    );
}

/// A table.
pub(crate) fn table<const N: usize>(
    out: &mut String,
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    line(out, head.map(str::to_owned));
    line(out, head.map(|_| "---".to_owned()));
    for row in rows {
        line(out, row);
    }
    out.push('\n');
}

fn line<const N: usize>(out: &mut String, cells: [String; N]) {
    out.push('|');
    for cell in cells {
        let _infallible = write!(out, " {} |", cell.replace('|', "\\|").replace('\n', " "));
    }
    out.push('\n');
}

/// Code, also where it is empty or holds a backquote.
pub(crate) fn code(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

/// A sentence: capital first, one full stop last.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    let first = chars
        .next()
        // A name in code keeps its letters.
        .map(|c| c.to_uppercase().collect::<String>())
        .unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
