//! Generated parts of files that are written by hand, between a pair of comments.

/// Replaces what stands between `<!-- begin: NAME -->` and `<!-- end: NAME -->`.
pub(crate) fn replace(text: &str, name: &str, block: &str) -> Result<String, String> {
    let begin = format!("<!-- begin: {name} -->");
    let end = format!("<!-- end: {name} -->");
    let (head, rest) = once(text, &begin)?;
    let (_old, tail) = once(rest, &end)?;
    Ok(format!(
        "{head}{begin}\n\n{}\n\n{end}{tail}",
        block.trim_matches('\n')
    ))
}

fn once<'t>(text: &'t str, marker: &str) -> Result<(&'t str, &'t str), String> {
    let (head, tail) = text
        .split_once(marker)
        .ok_or_else(|| format!("no line {marker}"))?;
    if tail.contains(marker) {
        return Err(format!("two lines {marker}"));
    }
    Ok((head, tail))
}
