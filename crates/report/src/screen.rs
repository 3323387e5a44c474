//! Text for a terminal: colours, glyphs and wrapping.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use model::{Readiness, Status};
use unicode_width::UnicodeWidthStr as _;

use crate::{Options, escape};

/// Narrower terminals are written to as if they were this wide; they wrap by themselves.
const NARROWEST: usize = 40;
/// Columns of running text below which hanging indents give way.
const ROOM: usize = 30;
/// Characters of one text before it is cut; no honest detail is longer, a hostile one may be.
const LONGEST: usize = 1000;
/// The same for one name; those of Kubernetes have 253 at most.
const LONGEST_NAME: usize = 300;

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GUTTER: Style = AnsiColor::Blue.on_default().bold();

/// The style of a status word and of what it marks.
pub(crate) fn status_style(status: Status) -> Style {
    match status {
        Status::Ok => AnsiColor::Green.on_default(),
        Status::Warn => AnsiColor::Yellow.on_default().bold(),
        Status::Fail => AnsiColor::Red.on_default().bold(),
        Status::Skipped => AnsiColor::Cyan.on_default(),
    }
}

/// The style of a verdict.
pub(crate) fn readiness_style(readiness: Readiness) -> Style {
    match readiness {
        Readiness::Blocked => AnsiColor::Red.on_default().bold(),
        Readiness::Inconclusive | Readiness::Degraded => AnsiColor::Yellow.on_default().bold(),
        Readiness::Unproven => AnsiColor::Cyan.on_default().bold(),
        Readiness::Trusted => AnsiColor::Green.on_default().bold(),
        Readiness::NotApplicable => BOLD,
    }
}

/// The word of a status; the failure shouts, so that it is found without colour.
pub(crate) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Warn => "warn",
        Status::Fail => "FAIL",
        Status::Skipped => "skip",
    }
}

/// A growing screen of text.
pub(crate) struct Screen<'o> {
    buf: String,
    options: &'o Options,
    /// The only file of the deployment that is being told: its name need not be said on every line.
    file: Option<String>,
}

impl<'o> Screen<'o> {
    pub(crate) fn new(options: &'o Options) -> Self {
        Self {
            buf: String::new(),
            options,
            file: None,
        }
    }

    /// Says which file lines are about until this is called again.
    pub(crate) fn about(&mut self, files: &[String]) {
        self.file = match files {
            [one] => Some(one.clone()),
            _ => None,
        };
    }

    /// Whether a file is the one that lines are about.
    pub(crate) fn is_about(&self, file: &str) -> bool {
        self.file.as_deref() == Some(file)
    }

    pub(crate) fn finish(self) -> String {
        self.buf
    }

    pub(crate) fn verbose(&self) -> bool {
        self.options.verbose
    }

    pub(crate) fn version(&self) -> &'static str {
        self.options.version
    }

    /// Columns; `usize::MAX` where nothing is to be wrapped.
    pub(crate) fn width(&self) -> usize {
        match self.options.width {
            0 => usize::MAX,
            width => width.max(NARROWEST),
        }
    }

    /// Between facts of a line.
    pub(crate) fn dot(&self) -> &'static str {
        if self.options.ascii { ", " } else { " · " }
    }

    /// Before a number of things that are alike.
    pub(crate) fn times(&self) -> &'static str {
        if self.options.ascii { "x" } else { "×" }
    }

    /// For what was cut.
    pub(crate) fn ellipsis(&self) -> &'static str {
        if self.options.ascii { "..." } else { "…" }
    }

    pub(crate) fn ascii(&self) -> bool {
        self.options.ascii
    }

    /// Escaped running text, cut where it is absurdly long.
    pub(crate) fn line<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.clip(escape::line(text, self.options.ascii), LONGEST)
    }

    /// An escaped name or path.
    pub(crate) fn name<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.clip(escape::name(text, self.options.ascii), LONGEST_NAME)
    }

    fn clip<'t>(&self, text: Cow<'t, str>, longest: usize) -> Cow<'t, str> {
        if self.options.verbose || text.len() <= longest || text.chars().nth(longest).is_none() {
            return text;
        }
        let mut cut: String = text.chars().take(longest).collect();
        cut.push_str(self.ellipsis());
        Cow::Owned(cut)
    }

    /// Appends text that is already safe.
    pub(crate) fn push(&mut self, text: &str) {
        self.buf.push_str(text);
    }

    /// Appends blanks.
    pub(crate) fn pad(&mut self, columns: usize) {
        self.buf.extend(std::iter::repeat_n(' ', columns));
    }

    /// Appends safe text in a style.
    pub(crate) fn paint(&mut self, style: Style, text: &str) {
        if self.options.color && !style.is_plain() && !text.is_empty() {
            let _ = write!(self.buf, "{style}{text}{style:#}");
        } else {
            self.buf.push_str(text);
        }
    }

    /// Ends a line.
    pub(crate) fn end(&mut self) {
        self.buf.push('\n');
    }

    /// A blank line before the next block, unless there is one already.
    pub(crate) fn gap(&mut self) {
        if !self.buf.is_empty() && !self.buf.ends_with("\n\n") {
            self.buf.push('\n');
        }
    }

    /// Safe text that begins at `column`, wrapped, with further lines indented to `hang`.
    pub(crate) fn para(&mut self, column: usize, hang: usize, style: Style, text: &str) {
        let width = self.width();
        // A deep indent on a narrow terminal would leave a column of single words.
        let hang = if width.saturating_sub(hang) < ROOM {
            4
        } else {
            hang
        };
        let lines = wrap(
            text,
            width.saturating_sub(column),
            width.saturating_sub(hang),
        );
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                self.pad(hang);
            }
            self.paint(style, line);
            self.end();
        }
    }
}

/// Columns that safe text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Breaks at blanks only: commands and lists of transports must survive a copy. A word that is longer
/// than a line stays whole.
pub(crate) fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    let mut room = first;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let width = columns(word);
        if !line.is_empty() && used + 1 + width > room {
            lines.push(std::mem::take(&mut line));
            used = 0;
            room = rest;
        }
        if !line.is_empty() {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += width;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_blanks_only() {
        assert_eq!(wrap("aa bb cc", 5, 2), ["aa bb", "cc"]);
        assert_eq!(
            wrap("UCX_TLS=rc,cuda_copy,cuda_ipc x", 5, 5),
            ["UCX_TLS=rc,cuda_copy,cuda_ipc", "x"]
        );
        assert_eq!(wrap("", 5, 5), [""]);
    }
}
