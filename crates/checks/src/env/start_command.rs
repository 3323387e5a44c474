//! The start command starts what it seems to start.
//!
//! A folded scalar (`>-`) joins lines: `ulimit -l unlimited` and the engine's line become one command, so the engine
//! is an argument of `ulimit` and never runs. `sh -c` takes one script; words after it are `$0`, `$1` … and are lost
//! unless the script uses them. A JSON flag that is no JSON stops the engine at its arguments.
//!
//! Only text that is written out is judged; placeholders that a template fills in are left alone.

use model::{CommandFault, NOT_JSON, Role, Setting, Value, Worker};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::view::View;

const NAME: &str = "env/start-command";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the start command starts the engine",
    source: include_str!("start_command.rs"),
    causes: &[SWALLOWED, LOST_ARGUMENTS, CONNECTOR_NOT_JSON],
    notes: &[],
    run: Run::Recipe(run),
};

const SWALLOWED: Cause = Cause {
    id: "shell-folded-command",
    what: "the engine is an argument of the shell command before it: a line break, `;` or `&&` is missing, often because a folded scalar (`>-`) joined the lines",
    why: "the shell runs ulimit, export or set with the engine as an argument: no engine starts",
    fix: "use a literal scalar (`|`) or end the command before the engine with && or ;",
    quiet_if: "`set -- program …` followed by exec \"$@\"; the engine's name is quoted text",
    source: "POSIX shell grammar; YAML folded scalars",
};

const LOST_ARGUMENTS: Cause = Cause {
    id: "shell-c-drops-arguments",
    what: "`sh -c` gets the start command in several words",
    why: "sh -c runs the first word as its script; the others become $0, $1 … and the engine starts without them, or not at all",
    fix: "write the command as one string after -c, or leave sh -c out",
    quiet_if: "the script uses $0, $1 or \"$@\"",
    source: "POSIX sh -c",
};

const CONNECTOR_NOT_JSON: Cause = Cause {
    id: "kv-transfer-config-not-json",
    what: "the value of --kv-transfer-config is no JSON object",
    why: "the engine refuses the flag and does not start",
    fix: "quote the JSON so that it reaches the engine in one piece: '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}'",
    quiet_if: "the value is computed at start or a template fills it in",
    source: "vLLM engine/arg_utils.py (json.loads of the flag)",
};

/// What the flag takes.
const EXPECTED: &str = r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#;

/// The flag whose value is no JSON object, and what is wrong with it.
pub(crate) fn not_json(worker: &Worker) -> Option<(&Setting, &str)> {
    let setting = worker.setting("--kv-transfer-config")?;
    let Value::Dynamic(why) = &setting.value else {
        return None;
    };
    let what = why.strip_prefix(NOT_JSON)?;
    Some((setting, what.trim_start_matches([':', ' '])))
}

fn run(view: &View<'_>, findings: &mut Findings) {
    for worker in &view.deployment.workers {
        if !matches!(
            worker.role,
            Role::Prefill | Role::Decode | Role::Unknown | Role::Aggregated | Role::Encode
        ) {
            continue;
        }
        let role = worker.role.as_str();
        if let Some(fault) = &worker.command_fault {
            let (cause, detail, label) = match fault.value {
                CommandFault::Swallowed => (
                    &SWALLOWED,
                    format!(
                        "{role}: the engine is an argument of the shell command before it and never starts"
                    ),
                    format!("{role}: takes the engine as an argument"),
                ),
                CommandFault::LostArguments => (
                    &LOST_ARGUMENTS,
                    format!("{role}: sh -c takes one script; the words after it are lost"),
                    format!("{role}: the script ends here"),
                ),
            };
            findings.push(
                Finding::fail(NAME, cause, detail)
                    .worker(worker)
                    .at(&fault.place, label),
            );
        }
        if let Some((setting, why)) = not_json(worker)
            && !view.is_part()
        {
            findings.push(
                Finding::fail(
                    NAME,
                    &CONNECTOR_NOT_JSON,
                    format!(
                        "the value of --kv-transfer-config is no JSON object: {why}; expected one such as {EXPECTED}"
                    ),
                )
                .worker(worker)
                .at(&setting.place, "no JSON object"),
            );
        }
    }
}
