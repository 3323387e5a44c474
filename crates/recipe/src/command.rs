//! What a container's `command` and `args` run: the engine, its flags, and the variables set on the way.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use model::{CommandFault, Form, Hidden, Located, Place};
use yaml::Node;

use crate::draft::{EnvDraft, EnvValue, FlagDraft, Run};
use crate::engine::{self, Program};
use crate::json_keys;
use crate::place::{Around, Text};
use crate::scalar_map::ScalarMap;
use crate::shell::{self, End, Join};

/// Nested `sh -c` deeper than this is not a start command.
const MAX_NESTING: u32 = 4;

/// Commands that answer a question: what follows behind `&&` depends on the answer.
const TESTS: [&str; 14] = [
    "[",
    "[[",
    "test",
    "((",
    "grep",
    "command",
    "which",
    "type",
    "hash",
    "ls",
    "lspci",
    "lsmod",
    "ibv_devinfo",
    "ibv_devices",
];

/// A word and where it stands.
#[derive(Clone)]
struct Word<'d> {
    text: String,
    expands: bool,
    quoted: bool,
    node: Node<'d>,
    /// Range in the node's decoded text; `None` for the whole node.
    part: Option<Range<usize>>,
}

/// Look-ups go from word to word of the same scalar.
#[derive(Default)]
struct Maps<'d> {
    last: RefCell<Option<(u32, Rc<ScalarMap<'d>>)>>,
}

impl<'d> Maps<'d> {
    fn of(&self, node: Node<'d>) -> Rc<ScalarMap<'d>> {
        let mut last = self.last.borrow_mut();
        match &*last {
            Some((id, map)) if *id == node.id() => Rc::clone(map),
            _ => {
                let map = Rc::new(ScalarMap::new(node));
                *last = Some((node.id(), Rc::clone(&map)));
                map
            }
        }
    }
}

impl<'d> Word<'d> {
    fn span(&self, maps: &Maps<'d>) -> Range<u32> {
        match &self.part {
            Some(part) => maps.of(self.node).locate(part.clone()),
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

    fn place(&self, text: &Text<'_>, maps: &Maps<'d>, show: bool) -> Place {
        let span = self.span(maps);
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
    let mut run = read_items(text, &items);
    if container.get("command").is_none_or(Node::is_null) {
        // Arguments of the image's own program: `team/model` is a model, not a file that is run.
        run.runs
            .retain(|path| path.starts_with(['/', '.', '$', '~']) || is_script_name(path));
    }
    let nothing_known = run.engine.is_none() && !run.frontend && !run.tool && run.runs.is_empty();
    if nothing_known
        && run.flags.is_empty()
        && container.get("command").is_some_and(|c| !c.is_null())
    {
        run.hidden.push((
            Hidden::Command,
            "the start command starts no program that is known".into(),
        ));
    }
    run
}

/// Reads the words of a command.
pub(crate) fn read_items(text: &Text<'_>, items: &[Node<'_>]) -> Run {
    let mut reader = Reader::new(text);
    reader.run.given = !items.is_empty();
    reader.argv(items);
    reader.finish()
}

/// Reads the flags of an engine that stand in a variable's value.
pub(crate) fn read_flags(text: &Text<'_>, node: Node<'_>, content: &str) -> Run {
    let mut reader = Reader::new(text);
    for command in shell::split(content) {
        let words: Vec<Word<'_>> = command
            .words
            .into_iter()
            .map(|w| Word {
                text: w.text,
                expands: w.expands,
                quoted: w.quoted,
                node,
                part: Some(w.range),
            })
            .collect();
        reader.flags(&words, false);
    }
    reader.run
}

/// Reads a scalar as a start script.
pub(crate) fn read_script(text: &Text<'_>, node: Node<'_>, script: &str) -> Run {
    let mut reader = Reader::new(text);
    reader.run.given = true;
    reader.script(node, 0, script, 0);
    reader.finish()
}

struct Reader<'t, 's, 'd> {
    text: &'t Text<'s>,
    maps: Rc<Maps<'d>>,
    run: Run,
    /// Assignments that are not exported (yet).
    assigned: Vec<EnvDraft>,
    export_all: bool,
    /// What `$0`, `$1` … and `"$@"` are in the script, where that is known.
    positional: Vec<Word<'d>>,
}

/// The index of the script in `sh -c SCRIPT`, if that is what the words are.
fn script_index(words: &[&str]) -> Option<usize> {
    let shell = words.iter().position(|w| {
        matches!(
            w.rsplit('/').next(),
            Some("sh" | "bash" | "dash" | "ash" | "zsh")
        )
    })?;
    let mut index = shell + 1;
    while let Some(options) = words.get(index).and_then(|w| w.strip_prefix(['-', '+'])) {
        let short = !options.is_empty() && options.bytes().all(|b| b.is_ascii_alphabetic());
        index += 1;
        if short && options.contains('o') {
            // `-euo pipefail`: the option's name is a word of its own.
            index += 1;
        }
        if short && options.contains('c') {
            return Some(index);
        }
        if matches!(options, "-rcfile" | "-init-file") {
            index += 1;
        }
    }
    None
}

/// A word of a command without a shell: only the kubelet's references in it are replaced.
fn of_argv(node: Node<'_>) -> Word<'_> {
    Word {
        text: node.raw().into_owned(),
        expands: false,
        quoted: true,
        node,
        part: None,
    }
}

/// Whether a script gives its positional parameters another meaning; in a function they are those of its call.
fn moves_positional(script: &str) -> bool {
    ["shift", "set --", "()"]
        .iter()
        .any(|word| script.contains(word))
}

/// Whether a word of `env` says that the next one names a variable that is taken away.
fn unsets(word: Option<&Word<'_>>) -> bool {
    word.is_some_and(|w| matches!(w.text.as_str(), "-u" | "--unset"))
}

/// Whether the word before `index` is `env`, or one of its options or assignments: `exec env -i X=Y Z=W command`.
fn runs_env(words: &[Word<'_>], index: usize) -> bool {
    let before = words.get(..index).unwrap_or_default();
    let unset = |at: usize| at.checked_sub(1).is_some_and(|at| unsets(before.get(at)));
    before
        .iter()
        .enumerate()
        .rev()
        .find(|(at, w)| {
            !w.text.starts_with('-') && shell::assignment(&w.text).is_none() && !unset(*at)
        })
        .is_some_and(|(_, w)| w.text.rsplit('/').next() == Some("env"))
}

impl<'t, 's, 'd> Reader<'t, 's, 'd> {
    fn new(text: &'t Text<'s>) -> Self {
        Self {
            text,
            maps: Rc::default(),
            run: Run::default(),
            assigned: Vec::new(),
            export_all: false,
            positional: Vec::new(),
        }
    }

    fn argv(&mut self, items: &[Node<'d>]) {
        let texts: Vec<String> = items.iter().map(|n| n.raw().into_owned()).collect();
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        if let Some(index) = script_index(&words) {
            if let (Some(node), Some(script)) = (items.get(index), words.get(index)) {
                let behind = items.get(index + 1..).unwrap_or_default();
                if moves_positional(script) {
                    if behind.len() > 1 && ["$@", "$*"].iter().any(|all| script.contains(all)) {
                        self.run.hidden.push((
                            Hidden::Command,
                            "the start script hands on its own arguments, after it has changed them".into(),
                        ));
                    }
                } else {
                    self.positional = behind.iter().map(|node| of_argv(*node)).collect();
                }
                self.script(*node, 0, script, 0);
                self.lost_arguments(script, *node, behind);
            }
            return;
        }
        let words: Vec<Word<'d>> = items.iter().map(|node| of_argv(*node)).collect();
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
            self.flags(&words, false);
        }
    }

    fn script(&mut self, node: Node<'d>, base: usize, script: &str, nesting: u32) {
        let mut conditional = 0_u32;
        // Of a chain of commands with `&&` and `||` between them.
        let (mut in_chain, mut is_test) = (false, false);
        let mut braces = 0_u32;
        let mut chained = false;
        let mut reached = None;
        for command in shell::split(script) {
            // Whether it runs to its end, or for ever, before the next line is reached.
            let waits = conditional == 0
                && braces == 0
                && !chained
                && command.depth == 0
                && matches!(command.end, End::Line | End::Chain);
            chained = command.end == End::Chain;
            let engine_before = self.run.engine.is_some();
            let words: Vec<Word<'d>> = command
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
            let words = if nesting == 0 {
                self.with_positional(words)
            } else {
                words
            };
            let first = words.first().map_or("", |w| w.text.as_str());
            match first {
                "if" | "for" | "while" | "until" | "case" => conditional += 1,
                "fi" | "done" | "esac" => conditional = conditional.saturating_sub(1),
                _ => {}
            }
            braces = match (first, words.last().map(|w| w.text.as_str())) {
                ("}", _) => braces.saturating_sub(1),
                ("{", _) | (_, Some("{")) => braces + 1,
                _ => braces,
            };
            let replaces = first == "exec" && words.len() > 1;
            let sets = first == "set";
            if let Some(target) = command.writes {
                self.written(
                    node,
                    base,
                    script,
                    &target,
                    command.heredoc,
                    &words,
                    nesting,
                );
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
            let words = words.get(skip..).unwrap_or_default();
            in_chain = match command.join {
                Join::Always => false,
                Join::And => in_chain || is_test,
                Join::Or => true,
            };
            is_test = words
                .first()
                .is_some_and(|w| TESTS.contains(&w.text.as_str()));
            self.command(words, conditional > 0 || in_chain, nesting);
            // What stands behind `exec`, or behind an engine in the foreground, is never reached.
            let serves = !engine_before && self.run.engine.is_some() && !sets;
            let straight = conditional == 0 && braces == 0;
            if waits && straight && (replaces || serves) {
                break;
            }
            // One in the background has its variables already; what else is started is still looked at.
            if straight && serves {
                reached = Some((self.run.exports.len(), self.assigned.len()));
            }
        }
        if let Some((exports, assigned)) = reached {
            self.run.exports.truncate(exports);
            self.assigned.truncate(assigned);
        }
    }

    /// A variable is taken away.
    fn unset(&mut self, word: &Word<'d>, name: String, conditional: bool) {
        let place = word.place(self.text, &self.maps, crate::allow::is_shown(&name));
        self.run.exports.push(EnvDraft {
            name,
            value: if conditional {
                EnvValue::Conditional(Box::new(EnvValue::Unset))
            } else {
                EnvValue::Unset
            },
            form: Form::ShellExport,
            place,
            json: Vec::new(),
        });
    }

    /// Puts what stands behind the script in place of `"$@"`, `$0` and the others.
    fn with_positional(&self, words: Vec<Word<'d>>) -> Vec<Word<'d>> {
        if self.positional.is_empty() || words.iter().all(|w| !w.text.starts_with('$')) {
            return words;
        }
        let mut out = Vec::with_capacity(words.len());
        for word in words {
            let name = word.text.strip_prefix('$').map(|name| {
                let inner = name.strip_prefix('{').and_then(|n| n.strip_suffix('}'));
                inner.unwrap_or(name)
            });
            match name {
                Some("@" | "*") => out.extend(self.positional.iter().skip(1).cloned()),
                Some(number) => match number.parse::<usize>() {
                    Ok(number) => out.extend(self.positional.get(number).cloned()),
                    Err(_) => out.push(word),
                },
                None => out.push(word),
            }
        }
        out
    }

    /// One simple command.
    fn command(&mut self, words: &[Word<'d>], conditional: bool, nesting: u32) {
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
                    self.unset(word, word.text.clone(), conditional);
                }
                return;
            }
            "set" => {
                // `set -- python3 …` sets what `exec "$@"` runs.
                if let Some(at) = rest.iter().position(|w| w.text == "--") {
                    let words = rest.get(at + 1..).unwrap_or_default();
                    if starts_engine(words) {
                        self.command(words, conditional, nesting);
                    }
                    return;
                }
                self.export_all |= rest.iter().skip(1).any(|w| {
                    w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains('a')
                        || w.text == "allexport"
                });
                return;
            }
            // `: "${X:=y}"` gives X a value where it has none.
            ":" => {
                let defaults = rest
                    .iter()
                    .skip(1)
                    .filter_map(|w| self.default(w, conditional));
                let defaults: Vec<EnvDraft> = defaults.collect();
                self.assigned.extend(defaults);
                return;
            }
            "source" | "." => {
                // A virtual environment's script sets PATH and nothing of ours.
                if let Some(file) = rest.get(1).filter(|f| !f.text.ends_with("/bin/activate")) {
                    self.run.sources.push(file.text.clone());
                }
                return;
            }
            "echo" | "printf" | "true" | "cat" | "grep" | "sed" | "awk" | "curl" | "wget"
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
                && runs_env(rest, index)
                && let Some(env) = (!word.text.starts_with('-'))
                    .then(|| self.variable(word, Form::ShellPrefix, conditional))
                    .flatten()
            {
                self.run.exports.push(env);
                continue;
            }
            if index > 0 && runs_env(rest, index) {
                let long = word.text.strip_prefix("--unset=");
                let name = long.or_else(|| {
                    let next = rest.get(index + 1).filter(|_| unsets(Some(word)))?;
                    Some(&*next.text)
                });
                if let Some(name) = name {
                    let name = name.to_owned();
                    self.unset(word, name, conditional);
                    continue;
                }
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
                    self.run.by_dynamo = base.starts_with("dynamo.");
                    let positional = takes_model(&word.text);
                    self.flags(rest.get(index + 1..).unwrap_or_default(), positional);
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
        // Flags of the image's own program.
        if rest.first().is_some_and(|w| is_flag(&w.text)) {
            return;
        }
        // `bash /scripts/start.sh`, `/entrypoint.sh`: what it starts is in that file.
        let shells = [
            "sh", "bash", "dash", "ash", "zsh", "exec", "nohup", "tini", "env",
        ];
        let file = rest.iter().find(|w| {
            let base = w.text.rsplit('/').next().unwrap_or_default();
            !w.text.starts_with('-') && !shells.contains(&base)
        });
        if let Some(file) = file.filter(|f| f.text.contains('/') || is_script_name(&f.text)) {
            self.run.runs.push(file.text.clone());
        }
    }

    /// An engine that is an argument of a shell's own command: a line break or `&&` is missing before it, as
    /// after a folded scalar (`>-`) has joined the lines. Its flags are read all the same, for what they say.
    fn swallowed(&mut self, words: &[Word<'d>]) -> bool {
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
                place: first.place(self.text, &self.maps, true),
            });
        }
        if self.run.engine.is_none() {
            self.run.engine = Some(engine);
            let positional = words.get(index).is_some_and(|w| takes_model(&w.text));
            self.flags(words.get(index + 1..).unwrap_or_default(), positional);
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

    /// A command that writes a file: exports in it count where the file is sourced.
    #[expect(
        clippy::too_many_arguments,
        reason = "what is written and where it stands"
    )]
    fn written(
        &mut self,
        node: Node<'d>,
        base: usize,
        script: &str,
        target: &str,
        heredoc: Option<Range<usize>>,
        words: &[Word<'d>],
        nesting: u32,
    ) {
        if nesting >= MAX_NESTING {
            return;
        }
        let mut inner = Reader::new(self.text);
        inner.maps = Rc::clone(&self.maps);
        match words.first().map(|w| w.text.as_str()) {
            Some("cat" | "tee") => {
                let Some(range) = heredoc else { return };
                let Some(body) = script.get(range.clone()) else {
                    return;
                };
                inner.script(node, base + range.start, body, nesting + 1);
            }
            Some("echo" | "printf") => {
                for word in words.iter().skip(1).filter(|w| w.text.contains("export ")) {
                    let at = word
                        .part
                        .as_ref()
                        .map_or(base, |p| p.start + usize::from(word.quoted));
                    inner.script(node, at, &word.text, nesting + 1);
                }
            }
            _ => return,
        }
        let exports = inner.finish().exports;
        if exports.is_empty() {
            return;
        }
        match self.run.writes.iter_mut().find(|(path, _)| path == target) {
            Some((_, list)) => list.extend(exports),
            None => self.run.writes.push((target.to_owned(), exports)),
        }
    }

    fn export(&mut self, word: &Word<'d>, conditional: bool) {
        if let Some(env) = self.variable(word, Form::ShellExport, conditional) {
            self.run.exports.push(env);
            return;
        }
        let (these, others) = std::mem::take(&mut self.assigned)
            .into_iter()
            .partition(|a| a.name == word.text);
        self.assigned = others;
        let these: Vec<EnvDraft> = these;
        self.run.exports.extend(these.into_iter().map(|mut env| {
            if conditional && !matches!(env.value, EnvValue::Conditional(_)) {
                env.value = EnvValue::Conditional(Box::new(env.value));
            }
            env
        }));
    }

    fn variable(&self, word: &Word<'d>, form: Form, conditional: bool) -> Option<EnvDraft> {
        let (name, value) = shell::assignment(&word.text)?;
        let show = crate::allow::is_shown(name);
        let value = if word.expands {
            EnvValue::Shell(value.to_owned())
        } else {
            EnvValue::Literal(value.to_owned())
        };
        let value = if conditional {
            EnvValue::Conditional(Box::new(value))
        } else {
            value
        };
        let json = if word.text.contains('{') {
            json_keys::places(self.text, &word.span(&self.maps))
        } else {
            Vec::new()
        };
        Some(EnvDraft {
            name: name.to_owned(),
            value,
            form,
            place: if !show && settings::known_names::did_you_mean(name).is_some() {
                self.name_place(word, name)
            } else {
                word.place(self.text, &self.maps, show)
            },
            json,
        })
    }

    /// What `${X:=y}` assigns.
    fn default(&self, word: &Word<'d>, conditional: bool) -> Option<EnvDraft> {
        let inner = word.text.strip_prefix("${")?.strip_suffix('}')?;
        let (name, value) = inner.split_once('=')?;
        let name = name.strip_suffix(':').unwrap_or(name);
        shell::assignment(&format!("{name}=")).filter(|_| word.expands)?;
        let value = EnvValue::Shell(format!("${{{name}:-{value}}}"));
        Some(EnvDraft {
            name: name.to_owned(),
            value: if conditional {
                EnvValue::Conditional(Box::new(value))
            } else {
                value
            },
            form: Form::ShellExport,
            place: word.place(self.text, &self.maps, crate::allow::is_shown(name)),
            json: Vec::new(),
        })
    }

    /// Flags of an engine among the words behind it. `positional`: the model may stand first, without a flag.
    fn flags(&mut self, words: &[Word<'d>], positional: bool) {
        let before = self.run.flags.len();
        let mut index = 0;
        // `vllm serve MODEL`, `trtllm-serve MODEL`; with flags in between nothing tells a value from the model.
        let first = usize::from(words.first().is_some_and(|w| w.text == "serve"));
        if let Some(word) = words.get(first).filter(|w| positional && !is_flag(&w.text)) {
            self.run.flags.push(FlagDraft {
                name: model::MODEL.to_owned(),
                value: Some(word.text.clone()),
                expands: word.expands,
                place: word.place(self.text, &self.maps, true),
                json: Vec::new(),
                form: Form::Flag,
            });
            index = first + 1;
        }
        while let Some(word) = words.get(index) {
            index += 1;
            if word.text == "--" {
                // What follows are no flags.
                break;
            }
            let (name, inline) = if let Some((name, inline)) = engine::known_flag(&word.text) {
                // Both are the model.
                let name = if name == "--model-path" {
                    model::MODEL
                } else {
                    name
                };
                (name.to_owned(), inline)
            } else if let Some(switch) = engine::switched_off(&word.text) {
                (switch.to_owned(), Some("false"))
            } else if let Some(dotted) = word
                .text
                .strip_prefix("--kv-transfer-config.")
                .or_else(|| word.text.strip_prefix("--kv_transfer_config."))
            {
                // vLLM takes the keys of a JSON flag one by one as well.
                let (key, inline) = dotted
                    .split_once('=')
                    .map_or((dotted, None), |(k, v)| (k, Some(v)));
                let Some(name) = dotted_key(key) else {
                    continue;
                };
                (name.to_owned(), inline)
            } else {
                self.misspelt_flag(word);
                continue;
            };
            let mut value = inline.map(str::to_owned);
            let mut at = word;
            let switch = engine::is_switch(&name);
            if value.is_none()
                && let Some(next) = words.get(index).filter(|w| {
                    if switch {
                        is_word_of_switch(&w.text)
                    } else {
                        !is_flag(&w.text)
                    }
                })
            {
                value = Some(next.text.clone());
                at = next;
                index += 1;
            }
            let is_json = value.as_deref().is_some_and(|v| v.contains('{'));
            let json = if is_json {
                json_keys::places(self.text, &at.span(&self.maps))
            } else {
                Vec::new()
            };
            self.run.flags.push(FlagDraft {
                name,
                value,
                expands: at.expands,
                place: if is_json {
                    json_keys::outline(self.text, &at.span(&self.maps), at.around())
                } else {
                    at.place(self.text, &self.maps, true)
                },
                json,
                form: Form::Flag,
            });
        }
        self.last_wins(before);
    }

    /// Of a flag that is given twice engines take the last one. A switch that is off is as good as not there.
    fn last_wins(&mut self, first: usize) {
        let mut seen: Vec<String> = Vec::new();
        let mut last = Vec::new();
        for flag in self.run.flags.drain(first..).rev() {
            // Keys of a JSON flag can be given more than once.
            let single = flag.name.starts_with('-');
            if single && seen.contains(&flag.name) {
                continue;
            }
            if single {
                seen.push(flag.name.clone());
            }
            let off = flag.value.as_deref().is_some_and(engine::is_off);
            if !(engine::is_switch(&flag.name) && off) {
                last.push(flag);
            }
        }
        self.run.flags.extend(last.into_iter().rev());
    }

    /// Notes a flag that is one slip away from one that matters. Its value is not kept.
    fn misspelt_flag(&mut self, word: &Word<'d>) {
        let name = word.text.split('=').next().unwrap_or_default();
        if !name.starts_with("--") || settings::known_names::did_you_mean(name).is_none() {
            return;
        }
        let place = self.name_place(word, name);
        self.run.misspelt.push(Located {
            value: name.to_owned(),
            place,
        });
    }

    /// The place of the name that a word begins with, without what follows it.
    fn name_place(&self, word: &Word<'d>, name: &str) -> Place {
        if word.part.is_some() && word.quoted {
            return word.place(self.text, &self.maps, name.len() == word.text.len());
        }
        let start = word.part.as_ref().map_or(0, |p| p.start);
        let span = word.node.locate(start..start + name.len());
        self.text
            .place(&span, std::slice::from_ref(&span), word.around())
    }

    fn finish(mut self) -> Run {
        if self.run.engine.is_some() || self.run.frontend || self.run.tool {
            // Programs beside a visible one (ldconfig, a probe) hide nothing.
            self.run.runs.clear();
        }
        if self.export_all {
            self.run.exports.append(&mut self.assigned);
        } else {
            // A variable that the pod sets already stays exported when a script assigns to it. Whether it
            // does is known only with the container's env list, so these go along, marked by their order.
            for env in self.assigned {
                if !self.run.exports.iter().any(|e| e.name == env.name) {
                    self.run.assigned.push(env);
                }
            }
        }
        self.run
    }
}

/// Whether an engine is started somewhere among the words.
fn starts_engine(words: &[Word<'_>]) -> bool {
    words.iter().enumerate().any(|(index, word)| {
        let next = words.get(index + 1).map(|w| w.text.as_str());
        matches!(engine::program(&word.text, next), Some(Program::Engine(_)))
    })
}

/// Whether an engine's program takes the model as its first word.
fn takes_model(program: &str) -> bool {
    matches!(
        program.rsplit('/').next(),
        Some("vllm" | "vllm_omni" | "sglang" | "trtllm-serve")
    )
}

/// Whether a name is a shell script's.
pub(crate) fn is_script_name(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("sh"))
}

/// The setting that one key of `--kv-transfer-config.…` makes; a `+` at its end adds to a list.
fn dotted_key(key: &str) -> Option<&'static str> {
    let key = key.trim_end_matches('+');
    let extra = key
        .strip_prefix("kv_connector_extra_config.")
        .or_else(|| key.strip_prefix("kv-connector-extra-config."));
    match extra.unwrap_or(key).replace('-', "_").as_str() {
        "backends" if extra.is_some() => Some("kv_connector_extra_config.backends"),
        "kv_connector" => Some("kv_connector"),
        "kv_role" => Some("kv_role"),
        "kv_buffer_device" => Some("kv_buffer_device"),
        _ => None,
    }
}

/// Some parsers let a switch be followed by what it is switched to.
fn is_word_of_switch(word: &str) -> bool {
    ["true", "false"]
        .iter()
        .any(|w| word.eq_ignore_ascii_case(w))
}

/// Whether a word starts a flag rather than being a value: a negative number is a value.
fn is_flag(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('-') else {
        return false;
    };
    !rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and values of the flags of a container with these arguments.
    fn flags(args: &str) -> Vec<(String, Option<String>)> {
        let source = format!("command: [python3, -m, dynamo.vllm]\nargs: {args}\n");
        let stream = yaml::parse(&source, &yaml::Limits::default());
        let text = Text::new("f".into(), &source);
        let run = read(&text, stream.documents[0].root());
        run.flags.into_iter().map(|f| (f.name, f.value)).collect()
    }

    fn of(name: &str, value: &str) -> (String, Option<String>) {
        (name.to_owned(), Some(value.to_owned()))
    }

    fn on(name: &str) -> (String, Option<String>) {
        (name.to_owned(), None)
    }

    /// Flags of a start script with these arguments behind it.
    fn behind(script: &str, args: &str) -> (Option<model::Engine>, Vec<(String, Option<String>)>) {
        let source = format!("command: [bash, -c, '{script}']\nargs: {args}\n");
        let stream = yaml::parse(&source, &yaml::Limits::default());
        let text = Text::new("f".into(), &source);
        let run = read(&text, stream.documents[0].root());
        let flags = run.flags.into_iter().map(|f| (f.name, f.value));
        (run.engine, flags.collect())
    }

    #[test]
    fn words_behind_a_script_stand_where_it_asks_for_them() {
        let vllm = Some(model::Engine::Vllm);
        let mode = [of("--disaggregation-mode", "decode")];
        for (script, args) in [
            (
                "exec python3 -m dynamo.vllm \"$@\"",
                "[--, --disaggregation-mode, decode]",
            ),
            (
                "export A=b; python3 -m dynamo.vllm ${@}",
                "[--, --disaggregation-mode=decode]",
            ),
            (
                "exec $0 $@",
                "[python3, -m, dynamo.vllm, --disaggregation-mode, decode]",
            ),
            (
                "exec \"$1\" -m \"$2\" --disaggregation-mode \"$3\"",
                "[sh, python3, dynamo.vllm, decode]",
            ),
        ] {
            let (engine, flags) = behind(script, args);
            assert_eq!(
                (engine, flags.as_slice()),
                (vllm, mode.as_slice()),
                "{script}"
            );
        }
        // Nothing stands behind it, or elsewhere than it did.
        for (script, args) in [
            ("exec python3 -m dynamo.vllm \"$@\"", "[--]"),
            (
                "shift; exec python3 -m dynamo.vllm \"$@\"",
                "[--, --disaggregation-mode, decode]",
            ),
        ] {
            assert_eq!(behind(script, args), (vllm, Vec::new()), "{script}");
        }
    }

    #[test]
    fn env_takes_variables_away() {
        for (command, names) in [
            (
                "[env, -u, UCX_TLS, A=b, python3, -m, dynamo.vllm]",
                vec!["UCX_TLS"],
            ),
            (
                "[env, --unset=UCX_TLS, -u, B, python3, -m, dynamo.vllm]",
                vec!["UCX_TLS", "B"],
            ),
            ("[env, python3, -m, dynamo.vllm, -u, UCX_TLS]", vec![]),
        ] {
            let source = format!("command: {command}\n");
            let stream = yaml::parse(&source, &yaml::Limits::default());
            let text = Text::new("f".into(), &source);
            let run = read(&text, stream.documents[0].root());
            assert_eq!(run.engine, Some(model::Engine::Vllm), "{command}");
            let unset = run
                .exports
                .iter()
                .filter(|e| matches!(e.value, EnvValue::Unset));
            let unset: Vec<&str> = unset.map(|e| e.name.as_str()).collect();
            assert_eq!(unset, names, "{command}");
        }
    }

    #[test]
    fn switches_swallow_nothing() {
        assert_eq!(
            flags("[--enable-sleep-mode, model, --disaggregation-mode, decode]"),
            [
                on("--enable-sleep-mode"),
                of("--disaggregation-mode", "decode")
            ]
        );
        // Switches that are of no interest.
        assert_eq!(
            flags("[--enable-prefix-caching, --disaggregation-mode, decode, --enforce-eager]"),
            [of("--disaggregation-mode", "decode")]
        );
        assert_eq!(
            flags("[--trust-remote-code, --kv-cache-dtype=fp8, --is-prefill-worker]"),
            [of("--kv-cache-dtype", "fp8"), on("--is-prefill-worker")]
        );
    }

    #[test]
    fn switches_are_switched_off() {
        assert_eq!(flags("[--enable-sleep-mode, --no-enable-sleep-mode]"), []);
        assert_eq!(
            flags("[--no-enable-sleep-mode, --enable_sleep_mode]"),
            [on("--enable-sleep-mode")]
        );
        assert_eq!(flags("[--enable-sleep-mode=false]"), []);
        assert_eq!(
            flags("[--enable-disagg, 'False', --host, a]"),
            [of("--host", "a")]
        );
        assert_eq!(
            flags("[--enable-disagg, 'true', --host, a]"),
            [of("--enable-disagg", "true"), of("--host", "a")]
        );
        assert_eq!(
            flags("[--no-enable-prefix-caching, --host=a]"),
            [of("--host", "a")]
        );
    }

    #[test]
    fn flags_at_the_end_and_without_a_value() {
        assert_eq!(
            flags("[--disaggregation-mode]"),
            [on("--disaggregation-mode")]
        );
        assert_eq!(
            flags("[--block-size, --kv-cache-dtype, fp8]"),
            [on("--block-size"), of("--kv-cache-dtype", "fp8")]
        );
        assert_eq!(flags("[--block-size=]"), [of("--block-size", "")]);
        assert_eq!(
            flags("[-tp, '8', --mem-pool, '-1']"),
            [of("-tp", "8"), of("--mem-pool", "-1")]
        );
        assert_eq!(
            flags("[--host, a, --, --block-size, '16']"),
            [of("--host", "a")]
        );
    }

    #[test]
    fn the_last_of_a_flag_wins() {
        assert_eq!(
            flags("[--disaggregation-mode, prefill, --host, a, --disaggregation_mode=decode]"),
            [of("--host", "a"), of("--disaggregation-mode", "decode")]
        );
    }
}
