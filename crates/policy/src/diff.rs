//! A unified diff without context, of edits inside a line and of lines that are taken out.
//!
//! A recipe's lines can hold secrets. So no unchanged line is shown, and a changed one is shown whole only where there
//! is nothing on it beside the edit but indentation, keys and quotes; otherwise the rest of it is blanked.

use std::fmt::Write as _;

use yaml::LineIndex;

use crate::edit::Edit;

/// What stands in for text that is not shown.
const BLANK: &str = "…";

/// The diff of one file.
pub fn diff(path: &str, text: &str, edits: &[Edit]) -> String {
    let lines = LineIndex::new(text);
    let mut edits = edits.to_vec();
    edits.sort();
    edits.dedup();
    let path = clean(path);
    let mut out = format!("--- {path}\n+++ {path}\n");
    // Lines that were taken out above.
    let mut gone = 0;
    for edit in &edits {
        let number = lines
            .line_column(u32::try_from(edit.range.0).unwrap_or(u32::MAX))
            .0;
        let range = lines.line_range(number);
        let before = text
            .get(range.start as usize..edit.range.0)
            .unwrap_or_default();
        let old = text.get(edit.range.0..edit.range.1).unwrap_or_default();
        if edit.replacement.is_empty() {
            removed(number, gone, old, &mut out);
            gone += u32::try_from(old.lines().count()).unwrap_or(0);
            continue;
        }
        let after = text
            .get(edit.range.1..range.end as usize)
            .unwrap_or_default();
        let before = if is_structure(before) { before } else { BLANK };
        // A closing quote may be seen.
        let rest = after.trim_start_matches(['"', '\'']);
        let quote = after.strip_suffix(rest).unwrap_or_default();
        let after = if rest.trim().is_empty() {
            quote.to_owned()
        } else {
            format!("{quote}{BLANK}")
        };
        let blanked = if before == BLANK || after.ends_with(BLANK) {
            "  (the rest of the line is not shown)"
        } else {
            ""
        };
        let _infallible = write!(
            out,
            "@@ -{number} +{} @@{blanked}\n-{}{}{}\n+{}{}{}\n",
            number.saturating_sub(gone),
            clean(before),
            clean(old),
            clean(&after),
            clean(before),
            clean(&edit.replacement),
            clean(&after)
        );
    }
    out
}

/// Whole lines that are taken out; a value may be anything, so it is not shown.
fn removed(number: u32, gone: u32, old: &str, out: &mut String) {
    let count = old.lines().count();
    let to = number.saturating_sub(gone).saturating_sub(1);
    let _infallible = writeln!(
        out,
        "@@ -{number},{count} +{to},0 @@  (values are not shown)"
    );
    for line in old.lines() {
        let shown = line
            .find("value")
            .and_then(|at| Some(at + line.get(at..)?.find(':')?))
            .and_then(|colon| line.get(..=colon))
            .map_or_else(|| line.to_owned(), |key| format!("{key} {BLANK}"));
        let _infallible = writeln!(out, "-{}", clean(&shown));
    }
}

/// Indentation, dashes, one key, `export NAME=` and an opening quote.
fn is_structure(before: &str) -> bool {
    let rest = before.trim_start();
    let rest = rest.strip_prefix("- ").map_or(rest, str::trim_start);
    let rest = rest.strip_prefix("export ").map_or(rest, str::trim_start);
    let rest = rest.trim_end().trim_end_matches(['"', '\'']).trim_end();
    let key = rest.strip_suffix([':', '=']).unwrap_or(rest);
    let key = key.trim_matches(['"', '\'']);
    (key.is_empty() || rest.len() > key.len())
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
}

/// It goes to a terminal.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                c.escape_unicode().to_string()
            } else {
                c.to_string()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, old: &str, new: &str) -> String {
        let at = text.find(old).unwrap();
        diff(
            "f.yaml",
            text,
            &[Edit {
                range: (at, at + old.len()),
                replacement: new.to_owned(),
            }],
        )
    }

    #[test]
    fn only_changed_lines() {
        assert_eq!(
            shown(
                "key: s3cret\n  - name: UCX_TSL\r\nmore: s3cret\r\n",
                "UCX_TSL",
                "UCX_TLS"
            ),
            "--- f.yaml\n+++ f.yaml\n@@ -2 +2 @@\n-  - name: UCX_TSL\n+  - name: UCX_TLS\n"
        );
        assert_eq!(
            shown("  value: \"rc, cuda\"\n", "rc, cuda", "rc,cuda"),
            "--- f.yaml\n+++ f.yaml\n@@ -1 +1 @@\n-  value: \"rc, cuda\"\n+  value: \"rc,cuda\"\n"
        );
    }

    #[test]
    fn lines_that_are_taken_out() {
        let text = "e:\n- name: A\n  value: s3cret\n- name: B\n";
        assert_eq!(
            shown(text, "- name: A\n  value: s3cret\n", ""),
            "--- f.yaml\n+++ f.yaml\n@@ -2,2 +1,0 @@  (values are not shown)\n-- name: A\n-  value: …\n"
        );
        let text = "e:\n- {name: A, value: s3cret}\n";
        assert!(!shown(text, "- {name: A, value: s3cret}\n", "").contains("s3cret"));
    }

    #[test]
    fn the_rest_of_a_line_is_blanked() {
        for (text, old) in [
            ("- {name: T, value: s3cret, UCX_TSL: x}\n", "UCX_TSL"),
            ("- {UCX_TSL: x, T: s3cret}\n", "UCX_TSL"),
            ("UCX_TSL: s3cret\n", "UCX_TSL"),
            ("run s3cret UCX_TSL=x\n", "UCX_TSL"),
            ("export A=s3cret UCX_TSL=x\n", "UCX_TSL"),
            ("value: UCX_TSL # s3cret\n", "UCX_TSL"),
            ("s3cret UCX_TSL\n", "UCX_TSL"),
            ("- s3cret UCX_TSL\n", "UCX_TSL"),
        ] {
            let shown = shown(text, old, "UCX_TLS");
            assert!(!shown.contains("s3cret"), "{shown}");
            assert!(shown.contains("UCX_TLS"), "{shown}");
        }
    }
}
