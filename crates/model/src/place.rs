//! Where something was written.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One line of an input, with the part of it that matters.
///
/// `text` is safe to print as far as secrets go: whatever is not known to be a transport setting was
/// blanked when the place was made. It can still hold control characters; renderers escape them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The path as the user gave it, or `-` for standard input.
    pub file: Arc<str>,
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters, of the first marked character of the original line.
    pub column: u32,
    /// The line, blanked where it holds anything else than what is marked.
    pub text: Arc<str>,
    /// Byte range in `text` to underline.
    pub mark: (u32, u32),
}

/// What a place without text has in common with all others.
static NOTHING: std::sync::LazyLock<Arc<str>> = std::sync::LazyLock::new(|| "".into());

impl Place {
    /// The same place without the text of its line: for what no finding is ever about.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self {
            text: Arc::clone(&NOTHING),
            mark: (0, 0),
            ..self
        }
    }

    /// `file:line:column`, the form that editors and terminals turn into links.
    pub fn position(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }
}
