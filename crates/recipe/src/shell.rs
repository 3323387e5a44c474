//! Start scripts: splits shell text into commands, words and assignments, each with its byte range.
//!
//! Not a shell grammar. A recipe's script is often half a script (a template, a folded scalar, text
//! for another shell), and a grammar refuses the whole of it over one odd line, while a linter needs
//! the words of the other lines, with positions. What is recognized is what decides transports:
//! quoting, comments, continuation lines, command separators, assignments, substitutions, here-documents.

use std::ops::Range;

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word with quotes and escapes resolved. Expansions stay as written (`${X}`, `$(cmd)`).
    pub(crate) text: String,
    /// Byte range in the script, quotes included.
    pub(crate) range: Range<usize>,
    /// An expansion outside single quotes is part of it.
    pub(crate) expands: bool,
    /// Quoted at least in part, so an `X=Y` or a `#` inside is text.
    pub(crate) quoted: bool,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// Its words, assignments in front included.
    pub(crate) words: Vec<Word>,
    /// The file that its output goes to.
    pub(crate) writes: Option<String>,
    /// Byte range of the here-document that it reads.
    pub(crate) heredoc: Option<Range<usize>>,
    /// What stands between it and the command before it.
    pub(crate) join: Join,
    pub(crate) end: End,
    /// In how many parentheses it stands: subshells, lists, patterns of `case`.
    pub(crate) depth: u32,
}

/// How a command follows the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Join {
    /// Whatever became of that one.
    #[default]
    Always,
    /// `&&`: if it went well.
    And,
    /// `||`: if it failed.
    Or,
}

/// What follows a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// A line break, `;` or the end of the script.
    #[default]
    Line,
    /// `&&` or `||`: whether the next one runs depends on it.
    Chain,
    Pipe,
    Background,
    Parenthesis,
}

/// Characters that end a command.
fn is_separator(c: u8) -> bool {
    matches!(c, b';' | b'\n' | b'|' | b'&' | b'(' | b')')
}

/// Splits a script. Never fails: an unclosed quote ends with the text.
pub(crate) fn split(script: &str) -> Vec<Command> {
    Splitter {
        text: script,
        bytes: script.as_bytes(),
        at: 0,
        depth: 0,
        commands: Vec::new(),
        heredocs: Vec::new(),
    }
    .run()
}

struct Splitter<'s> {
    text: &'s str,
    bytes: &'s [u8],
    at: usize,
    depth: u32,
    commands: Vec<Command>,
    /// Here-document terminators that the next line break starts.
    heredocs: Vec<String>,
}

impl Splitter<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn run(mut self) -> Vec<Command> {
        let mut command = Command::default();
        while let Some(c) = self.peek(0) {
            match c {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.peek(1) == Some(b'\n') => self.at += 2,
                b'\\' if self.peek(1) == Some(b'\r') && self.peek(2) == Some(b'\n') => self.at += 3,
                b'#' => self.skip_line(),
                b'<' if self.peek(1) == Some(b'<') => self.heredoc(),
                b'>' | b'<' => {
                    let out = c == b'>';
                    let target = self.redirection();
                    if out {
                        command.writes = target.or(command.writes);
                    }
                }
                // `2>&1`, `&>file`: not a background command.
                b'&' if self.peek(1) == Some(b'>') => {
                    let _file = self.redirection();
                }
                c if is_separator(c) => {
                    let join = match (c, self.peek(1)) {
                        (b'&', Some(b'&')) => Join::And,
                        (b'|', Some(b'|')) => Join::Or,
                        _ => Join::Always,
                    };
                    self.at += if join == Join::Always { 1 } else { 2 };
                    command.end = match c {
                        _ if join != Join::Always => End::Chain,
                        b'&' => End::Background,
                        b'|' => End::Pipe,
                        b'(' | b')' => End::Parenthesis,
                        _ => End::Line,
                    };
                    self.finish(&mut command);
                    match c {
                        b'(' => self.depth += 1,
                        b')' => self.depth = self.depth.saturating_sub(1),
                        _ => {}
                    }
                    // A line may end behind the operator.
                    if join != Join::Always || c != b'\n' {
                        command.join = join;
                    }
                    if c == b'\n' {
                        self.skip_heredocs();
                    }
                }
                _ => {
                    if let Some(word) = self.word() {
                        command.words.push(word);
                    }
                }
            }
        }
        self.finish(&mut command);
        self.commands
    }

    fn finish(&mut self, command: &mut Command) {
        if command.words.is_empty() {
            return;
        }
        command.depth = self.depth;
        self.commands.push(std::mem::take(command));
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|c| c != b'\n') {
            self.at += 1;
        }
    }

    /// The target of a redirection.
    fn redirection(&mut self) -> Option<String> {
        while self
            .peek(0)
            .is_some_and(|c| matches!(c, b'>' | b'<' | b'&'))
        {
            self.at += 1;
        }
        while self.peek(0).is_some_and(|c| matches!(c, b' ' | b'\t')) {
            self.at += 1;
        }
        // The target is a file name or a descriptor, never an argument.
        self.word().map(|w| w.text)
    }

    fn heredoc(&mut self) {
        self.at += 2;
        if self.peek(0) == Some(b'<') {
            // `<<<` takes one word.
            self.at += 1;
            let _text = self.redirection();
            return;
        }
        if self.peek(0) == Some(b'-') {
            self.at += 1;
        }
        while self.peek(0).is_some_and(|c| matches!(c, b' ' | b'\t')) {
            self.at += 1;
        }
        if let Some(word) = self.word() {
            self.heredocs.push(word.text);
        }
    }

    fn skip_heredocs(&mut self) {
        for end in std::mem::take(&mut self.heredocs) {
            let body = self.at;
            loop {
                let start = self.at;
                self.skip_line();
                let line = self.text.get(start..self.at).unwrap_or_default();
                let more = self.peek(0).is_some();
                self.at = (self.at + 1).min(self.bytes.len());
                if line.trim() == end || !more {
                    if let Some(command) = self.commands.last_mut() {
                        command.heredoc = Some(body..start);
                    }
                    break;
                }
            }
        }
    }

    /// Reads one word; always moves on.
    fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut text = Vec::new();
        let mut expands = false;
        let mut quoted = false;
        while let Some(c) = self.peek(0) {
            match c {
                b' ' | b'\t' | b'\r' => break,
                c if is_separator(c) || c == b'<' || c == b'>' => {
                    // `2>` and the like: the digit belongs to the redirection.
                    if c == b'>' && text.iter().all(u8::is_ascii_digit) && !quoted {
                        text.clear();
                    }
                    break;
                }
                b'\'' => {
                    quoted = true;
                    self.at += 1;
                    while let Some(c) = self.peek(0) {
                        self.at += 1;
                        if c == b'\'' {
                            break;
                        }
                        text.push(c);
                    }
                }
                b'"' => {
                    quoted = true;
                    self.at += 1;
                    self.double_quoted(&mut text, &mut expands);
                }
                b'\\' => match self.peek(1) {
                    Some(b'\n') => self.at += 2,
                    Some(next) => {
                        text.push(next);
                        self.at += 2;
                    }
                    None => self.at += 1,
                },
                b'$' | b'`' => {
                    expands |= c == b'`'
                        || self.peek(1).is_some_and(|n| {
                            n == b'{' || n == b'(' || n == b'_' || n.is_ascii_alphanumeric()
                        });
                    self.expansion(&mut text);
                }
                _ => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
        if self.at == start {
            self.at += 1;
            return None;
        }
        if text.is_empty() && !quoted {
            return None;
        }
        Some(Word {
            text: String::from_utf8_lossy(&text).into_owned(),
            range: start..self.at,
            expands,
            quoted,
        })
    }

    fn double_quoted(&mut self, text: &mut Vec<u8>, expands: &mut bool) {
        while let Some(c) = self.peek(0) {
            match c {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => match self.peek(1) {
                    Some(next @ (b'"' | b'\\' | b'$' | b'`')) => {
                        text.push(next);
                        self.at += 2;
                    }
                    Some(b'\n') => self.at += 2,
                    _ => {
                        text.push(c);
                        self.at += 1;
                    }
                },
                b'$' | b'`' => {
                    *expands |= c == b'`'
                        || self.peek(1).is_some_and(|n| {
                            n == b'{' || n == b'(' || n == b'_' || n.is_ascii_alphanumeric()
                        });
                    self.expansion(text);
                }
                _ => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    /// Copies `$X`, `${…}`, `$(…)`, `` `…` `` as written, nesting and quotes inside respected.
    fn expansion(&mut self, text: &mut Vec<u8>) {
        let start = self.at;
        match (self.peek(0), self.peek(1)) {
            (Some(b'`'), _) => {
                self.at += 1;
                while let Some(c) = self.peek(0) {
                    self.at += 1;
                    if c == b'`' {
                        break;
                    }
                }
            }
            (_, Some(open @ (b'(' | b'{'))) => {
                let close = if open == b'(' { b')' } else { b'}' };
                self.at += 2;
                let mut depth = 1_u32;
                while let Some(c) = self.peek(0) {
                    self.at += 1;
                    match c {
                        b'\\' => self.at += 1,
                        b'\'' if open == b'(' => {
                            while let Some(c) = self.peek(0) {
                                self.at += 1;
                                if c == b'\'' {
                                    break;
                                }
                            }
                        }
                        c if c == open => depth += 1,
                        c if c == close => {
                            depth -= 1;
                            if depth == 0 {
                                break;
                            }
                        }
                        _ => {}
                    }
                }
                self.at = self.at.min(self.bytes.len());
            }
            _ => self.at += 1,
        }
        text.extend_from_slice(self.bytes.get(start..self.at).unwrap_or_default());
    }
}

/// Splits `NAME=VALUE` where NAME is a shell name; the second part is where the value starts in `word`.
pub(crate) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let mut chars = name.chars();
    let first = chars.next()?;
    ((first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_'))
    .then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Vec<Vec<String>> {
        split(script)
            .into_iter()
            .map(|c| c.words.into_iter().map(|w| w.text).collect())
            .collect()
    }

    #[test]
    fn commands_words_and_quotes() {
        assert_eq!(
            words(
                "set -e; export A=\"b c\" && exec python3 -m dynamo.vllm \\\n  --x '{\"k\": \"v\"}' # note\n"
            ),
            [
                vec!["set", "-e"],
                vec!["export", "A=b c"],
                vec![
                    "exec",
                    "python3",
                    "-m",
                    "dynamo.vllm",
                    "--x",
                    "{\"k\": \"v\"}"
                ]
            ]
        );
    }

    #[test]
    fn ranges_cover_the_word_as_written() {
        let script = "a  --k 'v w'";
        let command = &split(script)[0];
        assert_eq!(script.get(command.words[2].range.clone()), Some("'v w'"));
    }

    #[test]
    fn substitution_is_one_word_and_expands() {
        let commands = split("X=\"$(nvidia-smi | awk '{print $1; x(\")\")}')\"\nexport X\n");
        assert_eq!(commands.len(), 2);
        assert!(commands[0].words[0].expands);
        assert_eq!(commands[1].words[1].text, "X");
    }

    #[test]
    fn single_quotes_do_not_expand() {
        assert!(!split("a='$B'")[0].words[0].expands);
        assert!(split("a=$B")[0].words[0].expands);
    }

    #[test]
    fn here_documents_are_no_commands() {
        assert_eq!(
            words("cat > /tmp/f <<EOF\nexport A=1\nEOF\nb"),
            [vec!["cat"], vec!["b"]]
        );
    }

    #[test]
    fn what_a_command_writes_and_where() {
        let script = "cat > /tmp/env.sh <<EOF\nexport A=1\nEOF\necho 'export B=2' >> /tmp/env.sh";
        let commands = split(script);
        assert_eq!(commands[0].writes.as_deref(), Some("/tmp/env.sh"));
        assert_eq!(
            script.get(commands[0].heredoc.clone().unwrap()),
            Some("export A=1\n")
        );
        assert_eq!(commands[1].writes.as_deref(), Some("/tmp/env.sh"));
    }

    #[test]
    fn redirections_are_no_words() {
        assert_eq!(
            words("a 2>&1 >/dev/null b | c"),
            [vec!["a", "b"], vec!["c"]]
        );
    }

    #[test]
    fn never_stops_moving() {
        for script in [
            "'",
            "\"",
            "$(",
            "${",
            "`",
            "\\",
            "a\\",
            "<<",
            "<<E",
            "((((",
            "\u{1F600}'",
            "$",
        ] {
            let _commands = split(script);
        }
    }

    #[test]
    fn assignments() {
        assert_eq!(assignment("UCX_TLS=a=b"), Some(("UCX_TLS", "a=b")));
        assert_eq!(assignment("--x=y"), None);
        assert_eq!(assignment("1A=y"), None);
    }
}
