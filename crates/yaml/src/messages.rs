//! Our words for what the parser found.

use granit_parser::{ErrorKind as Found, ScanError};

use crate::error::ErrorKind;

/// Kind and message of a parser error. `character` is what stands at its place.
pub(crate) fn describe(error: &ScanError, character: Option<char>) -> (ErrorKind, String) {
    let quote = || character.filter(|c| matches!(c, '"' | '\'')).unwrap_or('"');
    match error.kind() {
        Found::UnclosedQuotedScalar => (
            ErrorKind::UnclosedQuote,
            format!("found the end of the file, expected a closing {} for this quote", quote()),
        ),
        Found::DocumentIndicatorInQuotedScalar => (
            ErrorKind::UnclosedQuote,
            format!("found the end of the document, expected a closing {} for this quote", quote()),
        ),
        Found::UnclosedFlowCollection { open } => {
            let close = if *open == '[' { ']' } else { '}' };
            (
                ErrorKind::UnclosedBracket,
                format!("found no end of this \"{open}\", expected a closing \"{close}\""),
            )
        }
        Found::TabNotAllowed
        | Found::TabInBlockIndentation
        | Found::TabInIndentation
        | Found::TabAtBlockScalarStart => (ErrorKind::Tab, tab()),
        Found::RecursionLimitExceeded => (
            ErrorKind::TooDeep,
            "found more nesting than the limit allows".to_owned(),
        ),
        Found::SimpleKeyExpected => (
            ErrorKind::Syntax,
            "found text without a key, expected \"key: value\" at this indentation".to_owned(),
        ),
        Found::MappingValueNotAllowed => (
            ErrorKind::Syntax,
            "found \":\" where no key can be, expected a line of its own at the indentation of its mapping"
                .to_owned(),
        ),
        Found::ExpectedBlockMappingKey => (
            ErrorKind::Syntax,
            "found something that is not a key, expected the next key of the mapping".to_owned(),
        ),
        Found::ExpectedBlockSequenceEntry => (
            ErrorKind::Syntax,
            "found something that is not an item, expected \"-\"".to_owned(),
        ),
        Found::ExpectedFlowMappingSeparator => (
            ErrorKind::Syntax,
            format!("found {}, expected \",\" or \"}}\"", what(character)),
        ),
        Found::ExpectedFlowSequenceSeparator => (
            ErrorKind::Syntax,
            format!("found {}, expected \",\" or \"]\"", what(character)),
        ),
        Found::InvalidTrailingSingleQuotedScalar | Found::InvalidTrailingDoubleQuotedScalar => (
            ErrorKind::Syntax,
            format!("found {} after a closing quote, expected the end of the value", what(character)),
        ),
        Found::UnexpectedCharacter { character } => (
            ErrorKind::Syntax,
            format!("found {}, expected a key or a value", what(Some(*character))),
        ),
        Found::InvalidIndentation => (
            ErrorKind::Syntax,
            "found an indentation that fits no open mapping or sequence, expected one that does"
                .to_owned(),
        ),
        Found::MisplacedFlowCollectionEnd => (
            ErrorKind::Syntax,
            format!("found {} where nothing is open that it closes, expected the end of the document", what(character)),
        ),
        Found::MismatchedFlowCollectionEnd { open, close } => (
            ErrorKind::Syntax,
            format!("found \"{close}\", expected what closes this \"{open}\""),
        ),
        Found::InvalidColonPlacement => (
            ErrorKind::Syntax,
            "found \":\" where no key can be, expected \",\" or a closing bracket".to_owned(),
        ),
        other => (ErrorKind::Syntax, lower_first(&other.to_string())),
    }
}

/// The message for a tab at the start of a line.
pub(crate) fn tab() -> String {
    "found a tab as indentation, expected spaces".to_owned()
}

fn what(character: Option<char>) -> String {
    match character {
        None => "the end of the file".to_owned(),
        Some('\n' | '\r') => "the end of the line".to_owned(),
        Some('"') => "'\"'".to_owned(),
        Some(c) if c.is_control() || c == '\u{feff}' => {
            format!("the character U+{:04X}", u32::from(c))
        }
        Some(c) => format!("\"{c}\""),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next();
    // Leave acronyms such as "YAML" alone.
    let acronym = chars.clone().next().is_some_and(char::is_uppercase);
    match first {
        Some(c) if !acronym => c.to_lowercase().chain(chars).collect(),
        _ => text.to_owned(),
    }
}
