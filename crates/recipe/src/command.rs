//! What a container's `command` and `args` run: the engine, its flags, and the variables set on the way.

use std::ops::Range;

use model::{CommandFault, Form, Hidden, Located, Place};
use yaml::Node;

use crate::draft::{EnvDraft, EnvValue, FlagDraft, Run};
use crate::engine::{self, Program};
use crate::json_keys;
use crate::place::{Around, Text};
use crate::shell;

/// Nested `sh -c` deeper than this is not a start command.
const MAX_NESTING: u32 = 4;

/// A word and where it stands.
struct Word<'d> {
    text: String,
    expands: bool,
    quoted: bool,
    node: Node<'d>,
    /// Range in the node's decoded text; `None` for the whole node.
    part: Option<Range<usize>>,
}

impl Word<'_> {
    fn span(&self) -> Range<u32> {
        match &self.part {
            Some(part) => self.node.locate(part.clone()),
            None => self.node.span(),
        }
    }

    fn around(&self) -> Around {
        if self.part.is_some() {
            Around::Inside
        } else {
            Around::Yaml
        }
    }

    fn place(&self, text: &Text<'_>, show: bool) -> Place {
        let span = self.span();
        let shown = if show { vec![span.clone()] } else { Vec::new() };
        text.place(&span, &shown, self.around())
    }
}

/// Reads `command` and `args` of a container.
pub(crate) fn read(text: &Text<'_>, container: Node<'_>) -> Run {
    let mut items: Vec<Node<'_>> = Vec::new();
    for key in ["command", "args"] {
        match container.get(key) {
            Some(list) if list.is_sequence() => items.extend(list.items()),
            Some(one) if one.is_scalar() => items.push(one),
            _ => {}
        }
    }
    let mut reader = Reader {
        text,
        run: Run {
            given: !items.is_empty(),
            ..Run::default()
        },
        assigned: Vec::new(),
        export_all: false,
    };
    reader.argv(&items);
    reader.finish()
}

struct Reader<'t, 's> {
    text: &'t Text<'s>,
    run: Run,
    /// Assignments that are not exported (yet).
    assigned: Vec<EnvDraft>,
    export_all: bool,
}

/// The index of the script in `sh -c SCRIPT`, if that is what the words are.
fn script_index(words: &[&str]) -> Option<usize> {
    let shell = words.iter().position(|w| {
        matches!(
            w.rsplit('/').next(),
            Some("sh" | "bash" | "dash" | "ash" | "zsh")
        )
    })?;
    let flag = words
        .iter()
        .enumerate()
        .skip(shell + 1)
        .take_while(|(_, w)| w.starts_with('-'))
        .find(|(_, w)| {
            w.strip_prefix('-')
                .is_some_and(|f| f.ends_with('c') && f.bytes().all(|b| b.is_ascii_lowercase()))
        });
    flag.map(|(index, _)| index + 1)
}

impl Reader<'_, '_> {
    fn argv(&mut self, items: &[Node<'_>]) {
        let texts: Vec<String> = items.iter().map(|n| n.raw().into_owned()).collect();
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        if let Some(index) = script_index(&words) {
            if let (Some(node), Some(script)) = (items.get(index), words.get(index)) {
                self.script(*node, 0, script, 0);
                let lost = items.get(index + 1..).unwrap_or_default();
                self.lost_arguments(script, *node, lost);
            }
            return;
        }
        let words: Vec<Word<'_>> = items
            .iter()
            .zip(&texts)
            .map(|(node, t)| Word {
                text: t.clone(),
                expands: t.contains("$("),
                quoted: true,
                node: *node,
                part: None,
            })
            .collect();
        // One argument with spaces and no command: the image's entry point is usually a shell.
        if let [only] = words.as_slice()
            && only.text.contains(char::is_whitespace)
            && !only.text.starts_with('{')
        {
            let script = only.text.clone();
            self.script(only.node, 0, &script, 0);
            return;
        }
        self.command(&words, false, 0);
        if self.run.engine.is_none() && !self.run.frontend && !self.run.tool {
            // Flags for the image's own entry point.
            self.flags(&words);
        }
    }

    fn script(&mut self, node: Node<'_>, base: usize, script: &str, nesting: u32) {
        let mut conditional = 0_u32;
        for command in shell::split(script) {
            let words: Vec<Word<'_>> = command
                .words
                .into_iter()
                .map(|w| Word {
                    text: w.text,
                    expands: w.expands,
                    quoted: w.quoted,
                    node,
                    part: Some(base + w.range.start..base + w.range.end),
                })
                .collect();
            let first = words.first().map_or("", |w| w.text.as_str());
            match first {
                "if" | "for" | "while" | "until" | "case" => conditional += 1,
                "fi" | "done" | "esac" => conditional = conditional.saturating_sub(1),
                _ => {}
            }
            let skip = words
                .iter()
                .take_while(|w| {
                    matches!(
                        w.text.as_str(),
                        "if" | "then"
                            | "else"
                            | "elif"
                            | "while"
                            | "until"
                            | "do"
                            | "{"
                            | "!"
                            | "fi"
                            | "done"
                            | "esac"
                            | "time"
                    )
                })
                .count();
            self.command(
                words.get(skip..).unwrap_or_default(),
                conditional > 0,
                nesting,
            );
        }
    }

    /// One simple command.
    fn command(&mut self, words: &[Word<'_>], conditional: bool, nesting: u32) {
        let in_script = words.first().is_some_and(|w| w.part.is_some());
        let leading = if in_script {
            words
                .iter()
                .take_while(|w| shell::assignment(&w.text).is_some() && !w.text.starts_with('-'))
                .count()
        } else {
            0
        };
        let rest = words.get(leading..).unwrap_or_default();
        let Some(first) = rest.first() else {
            for word in words {
                if let Some(env) = self.variable(word, Form::ShellExport, conditional) {
                    self.assigned.push(env);
                }
            }
            return;
        };
        if in_script && self.swallowed(rest) {
            return;
        }
        match first.text.as_str() {
            "export" | "declare" | "typeset" | "readonly" => {
                for word in rest.iter().skip(1) {
                    self.export(word, conditional);
                }
                return;
            }
            "unset" => {
                for word in rest.iter().skip(1).filter(|w| !w.text.starts_with('-')) {
                    let place = word.place(self.text, crate::allow::is_shown(&word.text));
                    self.run.exports.push(EnvDraft {
                        name: word.text.clone(),
                        value: if conditional {
                            EnvValue::Dynamic("unset under a condition in the start script".into())
                        } else {
                            EnvValue::Unset
                        },
                        form: Form::ShellExport,
                        place,
                        json: Vec::new(),
                    });
                }
                return;
            }
            "set" => {
                self.export_all |= rest.iter().skip(1).any(|w| {
                    w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains('a')
                        || w.text == "allexport"
                });
                return;
            }
            "source" | "." => {
                // A virtual environment's script sets PATH and nothing of ours.
                if let Some(file) = rest.get(1).filter(|f| !f.text.ends_with("/bin/activate")) {
                    self.run.hidden.push((
                        Hidden::Environment,
                        format!("the start script sources {}", file.text),
                    ));
                }
                return;
            }
            "echo" | "printf" | ":" | "true" | "cat" | "grep" | "sed" | "awk" | "curl" | "wget"
            | "sleep" | "ulimit" | "mkdir" | "cp" | "ls" | "cd" | "test" | "[" | "[[" | "trap"
            | "wait" | "kill" | "apt-get" | "apt" | "pip" | "pip3" | "uv" | "git" | "rm"
            | "chmod" | "ln" | "until" | "for" | "case" => return,
            _ => {}
        }
        let engine_before = self.run.engine.is_some();
        for word in words.iter().take(leading) {
            if let Some(env) = self.variable(word, Form::ShellPrefix, conditional) {
                self.run.exports.push(env);
            }
        }
        // `bash -c '…'` inside a script or behind a launcher.
        let texts: Vec<&str> = rest.iter().map(|w| w.text.as_str()).collect();
        if let Some(index) = script_index(&texts) {
            if let (Some(word), true) = (rest.get(index), nesting < MAX_NESTING) {
                let script = word.text.clone();
                let base = word
                    .part
                    .as_ref()
                    .map_or(0, |p| p.start + usize::from(word.quoted));
                self.script(word.node, base, &script, nesting + 1);
            }
            return;
        }
        let mut launcher = false;
        for (index, word) in rest.iter().enumerate() {
            let base = word.text.rsplit('/').next().unwrap_or_default();
            match base {
                "mpirun" | "mpiexec" | "prterun" => launcher = true,
                "-x" if launcher => {
                    if let Some(env) = rest
                        .get(index + 1)
                        .and_then(|w| self.variable(w, Form::MpirunForward, conditional))
                    {
                        self.run.exports.push(env);
                    }
                }
                _ => {}
            }
            if index > 0
                && in_script
                && rest.first().is_some_and(|w| w.text == "env")
                && let Some(env) = (!word.text.starts_with('-'))
                    .then(|| self.variable(word, Form::ShellPrefix, conditional))
                    .flatten()
            {
                self.run.exports.push(env);
                continue;
            }
            let next = rest.get(index + 1).map(|w| w.text.as_str());
            match engine::program(&word.text, next) {
                Some(Program::Engine(engine)) => {
                    self.run.mpirun |= launcher
                        || rest
                            .iter()
                            .take(index)
                            .any(|w| w.text.contains("trtllm-llmapi-launch"));
                    if engine_before {
                        self.run.hidden.push((Hidden::Command, "the start script starts an engine in more than one place; the first one is judged".into()));
                        return;
                    }
                    self.run.engine = Some(engine);
                    self.flags(rest.get(index + 1..).unwrap_or_default());
                    return;
                }
                Some(Program::Frontend) => {
                    self.run.frontend = true;
                    return;
                }
                Some(Program::Tool) => {
                    self.run.tool = true;
                    return;
                }
                None => {}
            }
        }
        if (in_script || rest.len() <= 2)
            && (std::path::Path::new(&first.text)
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("sh"))
                || first.text.starts_with('/')
                || first.text.starts_with("./"))
        {
            self.run.hidden.push((
                Hidden::Command,
                format!("the start command runs {}", first.text),
            ));
        }
    }

    /// An engine that is an argument of a shell's own command: a line break or `&&` is missing before it, as
    /// after a folded scalar (`>-`) has joined the lines. Its flags are read all the same, for what they say.
    fn swallowed(&mut self, words: &[Word<'_>]) -> bool {
        let takes_words = match words.first().map(|w| w.text.as_str()) {
            Some("ulimit" | "export" | "unset" | "cd" | "mkdir" | "declare" | "readonly") => true,
            // `set -- python3 …` sets what `exec "$@"` runs.
            Some("set") => !words.iter().any(|w| w.text == "--"),
            _ => false,
        };
        if !takes_words {
            return false;
        }
        let found = words.iter().enumerate().skip(1).find_map(|(index, word)| {
            let next = words.get(index + 1).map(|w| w.text.as_str());
            let before = words.get(index - 1).map(|w| w.text.as_str());
            // A directory may be called like an engine.
            let runs = before == Some("-m")
                || next == Some("serve")
                || word.text.rsplit('/').next() == Some("trtllm-serve");
            match engine::program(&word.text, next) {
                Some(Program::Engine(engine)) if runs && !word.quoted => Some((index, engine)),
                _ => None,
            }
        });
        let (Some((index, engine)), Some(first)) = (found, words.first()) else {
            return false;
        };
        if self.run.fault.is_none() {
            self.run.fault = Some(Located {
                value: CommandFault::Swallowed,
                place: first.place(self.text, true),
            });
        }
        if self.run.engine.is_none() {
            self.run.engine = Some(engine);
            self.flags(words.get(index + 1..).unwrap_or_default());
        }
        true
    }

    /// Words after the script of `sh -c` become `$0`, `$1` …; nothing runs them where the script does not ask.
    fn lost_arguments(&mut self, script: &str, node: Node<'_>, lost: &[Node<'_>]) {
        if lost.is_empty() || script.contains('$') {
            return;
        }
        let texts: Vec<String> = lost.iter().map(|n| n.raw().into_owned()).collect();
        let whole_command = !script.trim().contains(char::is_whitespace)
            && texts.iter().enumerate().any(|(index, text)| {
                let next = texts.get(index + 1).map(String::as_str);
                matches!(engine::program(text, next), Some(Program::Engine(_)))
            });
        let only_flags = self.run.engine.is_some() && texts.iter().any(|t| t.starts_with("--"));
        if whole_command || only_flags {
            self.run.fault = Some(Located {
                value: CommandFault::LostArguments,
                place: self.text.node(node, whole_command),
            });
        }
    }

    fn export(&mut self, word: &Word<'_>, conditional: bool) {
        if let Some(env) = self.variable(word, Form::ShellExport, conditional) {
            self.run.exports.push(env);
        } else if let Some(at) = self.assigned.iter().rposition(|a| a.name == word.text) {
            let env = self.assigned.remove(at);
            self.run.exports.push(env);
        }
    }

    fn variable(&self, word: &Word<'_>, form: Form, conditional: bool) -> Option<EnvDraft> {
        let (name, value) = shell::assignment(&word.text)?;
        let show = crate::allow::is_shown(name);
        let value = if conditional {
            EnvValue::Dynamic("set under a condition in the start script".into())
        } else if word.expands {
            EnvValue::Shell(value.to_owned())
        } else {
            EnvValue::Literal(value.to_owned())
        };
        let json = json_keys::places(self.text, &word.span());
        Some(EnvDraft {
            name: name.to_owned(),
            value,
            form,
            place: word.place(self.text, show),
            json,
        })
    }

    /// Flags of an engine among the words behind it.
    fn flags(&mut self, words: &[Word<'_>]) {
        let mut index = 0;
        while let Some(word) = words.get(index) {
            index += 1;
            let (name, inline) = if let Some((name, inline)) = engine::known_flag(&word.text) {
                (name.to_owned(), inline)
            } else if let Some(dotted) = word
                .text
                .strip_prefix("--kv-transfer-config.")
                .or_else(|| word.text.strip_prefix("--kv_transfer_config."))
            {
                // vLLM takes the keys of a JSON flag one by one as well.
                let (key, inline) = dotted
                    .split_once('=')
                    .map_or((dotted, None), |(k, v)| (k, Some(v)));
                if !json_keys::KEYS.contains(&key) {
                    continue;
                }
                (key.to_owned(), inline)
            } else {
                continue;
            };
            let mut value = inline.map(str::to_owned);
            let mut at = word;
            if value.is_none()
                && let Some(next) = words.get(index).filter(|w| !is_flag(&w.text))
            {
                value = Some(next.text.clone());
                at = next;
                index += 1;
            }
            let is_json = value.as_deref().is_some_and(|v| v.contains('{'));
            let json = if is_json {
                json_keys::places(self.text, &at.span())
            } else {
                Vec::new()
            };
            self.run.flags.push(FlagDraft {
                name,
                value,
                expands: at.expands,
                place: at.place(self.text, !is_json),
                json,
                form: Form::Flag,
            });
        }
    }

    fn finish(mut self) -> Run {
        if self.run.engine.is_some() {
            // Programs beside a visible engine (ldconfig, a probe) hide nothing.
            self.run
                .hidden
                .retain(|(h, why)| *h != Hidden::Command || why.contains("more than one place"));
        }
        if self.export_all {
            self.run.exports.append(&mut self.assigned);
        } else {
            // A variable that the pod sets already stays exported when a script assigns to it. Whether it
            // does is known only with the container's env list, so these go along, marked by their order.
            for env in self.assigned {
                if crate::allow::is_shown(&env.name)
                    && !self.run.exports.iter().any(|e| e.name == env.name)
                {
                    self.run.assigned.push(env);
                }
            }
        }
        self.run
    }
}

/// Whether a word starts a flag rather than being a value: a negative number is a value.
fn is_flag(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('-') else {
        return false;
    };
    !rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.is_empty()
}
