//! What went wrong with one document, and where.

/// The kinds of errors that a reader of the report may want to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not YAML.
    Syntax,
    /// A quoted value is never closed; located at the opening quote.
    UnclosedQuote,
    /// A `[` or `{` is never closed; located at the opening bracket.
    UnclosedBracket,
    /// A tab is used as indentation; located at the tab.
    Tab,
    /// The document nests deeper than the limit.
    TooDeep,
    /// The document has more nodes than the limit.
    TooManyNodes,
    /// The stream has more documents than the limit; what follows was not read.
    TooManyDocuments,
    /// The text is larger than 32-bit offsets can address; nothing was read.
    TooLarge,
}

/// One broken document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Byte offset in the source.
    pub offset: u32,
    /// What kind of error it is.
    pub kind: ErrorKind,
    /// A lower-case fragment that says what was found and what was expected.
    pub message: String,
    /// Index of the broken document, counted like [`crate::Document::index`].
    pub document_index: usize,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for SyntaxError {}
