//! Expansion of variables in values, as far as the input itself can tell.

use crate::draft::{EnvDraft, EnvValue};

/// Values that refer to each other deeper than this are a loop.
const MAX_DEPTH: u32 = 8;

/// A value after expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expanded {
    /// Fully known.
    Known(String),
    /// Not known; why, in words that hold nothing of the value.
    Unknown(String),
    /// Removed again.
    Unset,
}

/// Which language the references are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// `$(VAR)`, by the kubelet.
    Kubernetes,
    /// `$VAR`, `${VAR}`, `${VAR:-x}`; the kubelet's form comes first.
    Shell,
}

/// The variables of a container in order of precedence, lowest first.
pub(crate) struct Variables<'e> {
    pub(crate) list: &'e [EnvDraft],
    /// Variables of the start script that it does not export: its own words may refer to them.
    pub(crate) locals: &'e [EnvDraft],
    /// Something that is not in the input may define more.
    pub(crate) open: bool,
}

/// Beginnings of names that Kubernetes, an operator, a launcher or the image's base usually define.
const GIVEN: [&str; 26] = [
    "CUDA_",
    "DYN_",
    "ETCD_",
    "GROVE_",
    "HOME",
    "HOST",
    "JOB_",
    "KUBERNETES_",
    "LD_",
    "LWS_",
    "MASTER_",
    "MY_",
    "NATS_",
    "NODE_",
    "NVIDIA_",
    "OMPI_",
    "PATH",
    "PMI_",
    "POD_",
    "PWD",
    "PYTHON",
    "RANK",
    "RAY_",
    "SLURM_",
    "USER",
    "WORLD_",
];

impl<'e> Variables<'e> {
    /// The last definition of a name.
    pub(crate) fn find(&self, name: &str) -> Option<&'e EnvDraft> {
        self.definitions(name).next()
    }

    /// All definitions of a name, the last one first.
    fn definitions(&self, name: &str) -> impl Iterator<Item = &'e EnvDraft> {
        self.locals
            .iter()
            .rev()
            .chain(self.list.iter().rev())
            .filter(move |e| e.name == name)
    }

    /// The value of a definition.
    pub(crate) fn value(&self, env: &EnvDraft, depth: u32) -> Expanded {
        match &env.value {
            EnvValue::Literal(text) => {
                self.expand(text, Syntax::Kubernetes, Some(&env.name), depth)
            }
            EnvValue::Shell(text) => self.expand(text, Syntax::Shell, Some(&env.name), depth),
            EnvValue::Dynamic(why) => Expanded::Unknown(why.clone()),
            EnvValue::ConfigMapKey { map, key } => Expanded::Unknown(format!(
                "key {key} of ConfigMap {map}, which is not in the input"
            )),
            EnvValue::Unset => Expanded::Unset,
            EnvValue::Conditional(inner) => Expanded::Unknown(
                match **inner {
                    EnvValue::Unset => "unset under a condition in the start script",
                    _ => "set under a condition in the start script",
                }
                .to_owned(),
            ),
        }
    }

    /// The value of a definition if its branch is taken and nothing outside the input defines more.
    pub(crate) fn possible(&self, env: &EnvDraft) -> Option<String> {
        let closed = Variables {
            open: false,
            ..*self
        };
        let expanded = match &env.value {
            EnvValue::Conditional(inner) => {
                let taken = EnvDraft {
                    value: (**inner).clone(),
                    ..env.clone()
                };
                closed.value(&taken, 0)
            }
            _ => closed.value(env, 0),
        };
        match expanded {
            // Of the kubelet's references nothing tells what they are where something else defines them.
            Expanded::Known(text) if !text.contains("$(") => Some(text),
            _ => None,
        }
    }

    /// Whether something that is not in the input may define a variable that the input does not.
    fn may_be_given(&self, name: &str) -> bool {
        self.open
            || GIVEN.iter().any(|g| name.starts_with(g))
            || ["_SERVICE_HOST", "_SERVICE_PORT", "_IP"]
                .iter()
                .any(|g| name.ends_with(g))
    }

    /// Expands the references of `text`. `own` is the variable being defined: its references to itself mean
    /// the definition before it, which is looked for among the others.
    pub(crate) fn expand(
        &self,
        text: &str,
        syntax: Syntax,
        own: Option<&str>,
        depth: u32,
    ) -> Expanded {
        if text.contains("{{") && text.contains("}}") {
            return Expanded::Unknown("a template expression".into());
        }
        if !text.contains('$') && !(syntax == Syntax::Shell && text.contains('`')) {
            return Expanded::Known(text.to_owned());
        }
        if depth > MAX_DEPTH {
            return Expanded::Unknown("variables that refer to each other in a circle".into());
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '`']) {
            let (before, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
            out.push_str(before);
            if tail.starts_with('`') {
                if syntax == Syntax::Shell {
                    return Expanded::Unknown("computed in the start script".into());
                }
                out.push('`');
                rest = tail.get(1..).unwrap_or_default();
                continue;
            }
            let body = tail.get(1..).unwrap_or_default();
            if syntax == Syntax::Kubernetes && body.starts_with('$') {
                // `$$(X)` is the kubelet's way to write `$(X)`.
                out.push('$');
                rest = body.get(1..).unwrap_or_default();
                continue;
            }
            let Some(reference) = Reference::read(body, syntax) else {
                out.push('$');
                rest = body;
                continue;
            };
            match self.lookup(&reference, syntax, own, depth) {
                Expanded::Known(value) => out.push_str(&value),
                Expanded::Unset => {}
                unknown @ Expanded::Unknown(_) => return unknown,
            }
            rest = body.get(reference.len..).unwrap_or_default();
        }
        out.push_str(rest);
        Expanded::Known(out)
    }

    fn lookup(
        &self,
        reference: &Reference,
        syntax: Syntax,
        own: Option<&str>,
        depth: u32,
    ) -> Expanded {
        if crate::credentials::is_credential(&reference.name) {
            return Expanded::Unknown(format!(
                "variable {}, whose value is not shown",
                reference.name
            ));
        }
        if reference.command {
            return Expanded::Unknown("computed in the start script".into());
        }
        let mut candidates = self.definitions(&reference.name);
        let found = if own == Some(reference.name.as_str()) {
            candidates.nth(1)
        } else {
            candidates.next()
        };
        match (found, &reference.default) {
            (Some(env), _) if depth < MAX_DEPTH => match self.value(env, depth + 1) {
                Expanded::Known(value) if value.is_empty() => match &reference.default {
                    Some(default) => self.expand(default, syntax, own, depth + 1),
                    None => Expanded::Known(value),
                },
                other => other,
            },
            (None, Some(_)) if self.may_be_given(&reference.name) => Expanded::Unknown(format!(
                "a default of the start script, unless something else sets {}",
                reference.name
            )),
            (None, Some(default)) if depth < MAX_DEPTH => {
                self.expand(default, syntax, own, depth + 1)
            }
            // The kubelet leaves a reference that it cannot resolve as it is.
            (None, None)
                if syntax == Syntax::Kubernetes
                    && own.is_some()
                    && !self.may_be_given(&reference.name) =>
            {
                Expanded::Known(format!("$({})", reference.name))
            }
            (Some(_), _) | (None, Some(_)) => {
                Expanded::Unknown("variables that refer to each other in a circle".into())
            }
            (None, None) => Expanded::Unknown(format!(
                "variable {}, which is not in the input",
                reference.name
            )),
        }
    }
}

/// Where the brace closes that stands before a text; braces inside come in pairs.
fn closing(inner: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// One reference, read behind its `$`.
struct Reference {
    name: String,
    default: Option<String>,
    command: bool,
    /// Bytes it takes behind the `$`.
    len: usize,
}

impl Reference {
    fn read(body: &str, syntax: Syntax) -> Option<Self> {
        let name_len = |s: &str| {
            s.bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
                .count()
        };
        if let Some(inner) = body.strip_prefix('(') {
            let len = name_len(inner);
            if len > 0 && inner.get(len..).is_some_and(|r| r.starts_with(')')) {
                let name = inner.get(..len)?.to_owned();
                return Some(Self {
                    name,
                    default: None,
                    command: false,
                    len: len + 2,
                });
            }
            return (syntax == Syntax::Shell).then(|| Self {
                name: String::new(),
                default: None,
                command: true,
                len: body.len(),
            });
        }
        if syntax == Syntax::Kubernetes {
            return None;
        }
        if let Some(inner) = body.strip_prefix('{') {
            let len = name_len(inner);
            let close = closing(inner)?;
            let name = inner.get(..len)?.to_owned();
            let operation = inner.get(len..close)?;
            let default = match operation {
                "" => None,
                op => {
                    let word = [":-", "-", ":=", "="]
                        .iter()
                        .find_map(|o| op.strip_prefix(o));
                    let Some(word) = word else {
                        // `${X:?message}`, `${X%%y}`: the value, or an error, or something computed from it.
                        let plain = op.starts_with(":?") || op.starts_with('?');
                        return Some(Self {
                            name,
                            default: None,
                            command: !plain,
                            len: close + 2,
                        });
                    };
                    Some(word.to_owned())
                }
            };
            return Some(Self {
                name,
                default,
                command: len == 0,
                len: close + 2,
            });
        }
        let len = name_len(body);
        (len > 0).then(|| Self {
            name: body.get(..len).unwrap_or_default().to_owned(),
            default: None,
            command: false,
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Form, Place};

    fn env(name: &str, value: EnvValue) -> EnvDraft {
        let place = Place {
            file: "f".into(),
            line: 1,
            column: 1,
            text: "".into(),
            mark: (0, 0),
        };
        EnvDraft {
            name: name.into(),
            value,
            form: Form::EnvEntry,
            place,
            json: Vec::new(),
        }
    }

    fn expand(text: &str, syntax: Syntax) -> Expanded {
        let list = [
            env("A", EnvValue::Literal("1".into())),
            env("B", EnvValue::Literal("$(A)2".into())),
            env("D", EnvValue::Dynamic("a Secret".into())),
            env("L", EnvValue::Shell("$M".into())),
            env("M", EnvValue::Shell("$L".into())),
        ];
        Variables {
            list: &list,
            locals: &[],
            open: true,
        }
        .expand(text, syntax, None, 0)
    }

    #[test]
    fn defaults_hold_where_nothing_else_can_define() {
        let variables = |open| Variables {
            list: &[],
            locals: &[],
            open,
        };
        let shell = |text: &str, open| variables(open).expand(text, Syntax::Shell, Some("T"), 0);
        for text in [
            "${X:-rc,tcp}",
            "${X-rc,tcp}",
            "${X:=rc,tcp}",
            "${X:-${Y:-rc,tcp}}",
        ] {
            assert_eq!(
                shell(text, false),
                Expanded::Known("rc,tcp".into()),
                "{text}"
            );
            assert!(matches!(shell(text, true), Expanded::Unknown(_)), "{text}");
        }
        assert!(matches!(
            shell("${POD_IP:-127.0.0.1}", false),
            Expanded::Unknown(_)
        ));
        let kubelet =
            |open| variables(open).expand("$(NOPE),cuda_copy", Syntax::Kubernetes, Some("T"), 0);
        assert_eq!(kubelet(false), Expanded::Known("$(NOPE),cuda_copy".into()));
        assert!(matches!(kubelet(true), Expanded::Unknown(_)));
    }

    #[test]
    fn known_references() {
        assert_eq!(
            expand("x-$(B)-${B}", Syntax::Kubernetes),
            Expanded::Known("x-12-${B}".into())
        );
        assert_eq!(
            expand("$A/${B}/${A:-9}", Syntax::Shell),
            Expanded::Known("1/12/1".into())
        );
        assert_eq!(
            expand("${A:?no A}", Syntax::Shell),
            Expanded::Known("1".into())
        );
    }

    #[test]
    fn unknown_references_never_show_a_value() {
        assert_eq!(
            expand("$(cmd --token s3cret)", Syntax::Shell),
            Expanded::Unknown("computed in the start script".into())
        );
        assert_eq!(
            expand("$D", Syntax::Shell),
            Expanded::Unknown("a Secret".into())
        );
        assert!(matches!(expand("$L", Syntax::Shell), Expanded::Unknown(_)));
        assert!(matches!(
            expand("${X:-mlx5_0:1}", Syntax::Shell),
            Expanded::Unknown(_)
        ));
        assert!(matches!(
            expand("$(X)", Syntax::Kubernetes),
            Expanded::Unknown(_)
        ));
        assert_eq!(
            expand("$$(A)", Syntax::Kubernetes),
            Expanded::Known("$(A)".into())
        );
        assert_eq!(expand("a$", Syntax::Shell), Expanded::Known("a$".into()));
    }
}
