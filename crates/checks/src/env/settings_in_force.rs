//! Every transport setting that is in force, with its value, how it is set and what it does.
//!
//! One line for each setting of each worker that no other check has judged. The name of such a result is the
//! variable's own, in lower case with dashes: `UCX_RNDV_SCHEME` is told as `env/ucx-rndv-scheme`. Settings of
//! NCCL, Gloo and NVSHMEM are about collective communication and are told apart.

use std::borrow::Cow;

use model::{Reason, Role, Setting, Value, Worker};
use settings::catalogue::{self, Relevance};
use settings::effect;

use crate::check::{Check, Run};
use crate::env::setting_notes;
use crate::finding::{Finding, Findings};
use crate::view::View;

/// The check.
pub(crate) const CHECK: Check = Check {
    name: "env/settings",
    title: "every transport setting in force, with its effect",
    source: include_str!("settings_in_force.rs"),
    causes: &[],
    notes: setting_notes::ALL,
    run: Run::Recipe(run),
};

/// Flags that only help to read other things.
const SILENT_FLAGS: [&str; 17] = [
    "--config",
    "--config-file",
    "--extra-engine-args",
    "--extra-llm-api-options",
    "--override-engine-args",
    "--engine-config",
    "--tp",
    "-tp",
    "--tp-size",
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--data-parallel-size",
    "--dp-size",
    "--ep-size",
    "--host",
    "--nnodes",
    model::MODEL,
];

fn run(view: &View<'_>, findings: &mut Findings) {
    for setting in &view.deployment.loose {
        if !SILENT_FLAGS.contains(&setting.name.as_str()) {
            findings.push(
                describe(setting).at(&setting.place, "for every worker that it is applied to"),
            );
        }
    }
    for worker in &view.deployment.workers {
        if !matches!(
            worker.role,
            Role::Prefill | Role::Decode | Role::Unknown | Role::Aggregated | Role::Encode
        ) {
            continue;
        }
        for setting in &worker.settings {
            if SILENT_FLAGS.contains(&setting.name.as_str()) || is_told(worker, setting, findings) {
                continue;
            }
            let mut finding = describe(setting)
                .worker(worker)
                .at(&setting.place, worker.role.as_str());
            if let Some(replaced) = worker
                .overridden
                .iter()
                .rev()
                .find(|o| o.name == setting.name && o.value != setting.value)
            {
                finding = finding.note(format!(
                    "replaces the value of line {} ({})",
                    replaced.place.line,
                    replaced.form.as_str()
                ));
            }
            if let Some(note) = setting_notes::about(view, worker, setting) {
                finding = finding.told(note);
            }
            if is_collective(&setting.name) {
                finding = finding.collective();
            }
            findings.push(finding);
        }
    }
}

/// Whether a result about this worker already points at the setting's place.
fn is_told(worker: &Worker, setting: &Setting, findings: &Findings) -> bool {
    findings.results().iter().any(|r| {
        r.subject.workers.contains(&worker.name)
            && r.sources.iter().any(|s| s.place == setting.place)
    })
}

fn describe(setting: &Setting) -> Finding {
    let name = check_name(&setting.name);
    let how = setting.form.as_str();
    match &setting.value {
        Value::Dynamic(why) => {
            let detail = format!("{} is decided at start: {why} ({how})", setting.name);
            let decides = catalogue::lookup(&setting.name)
                .is_some_and(|v| v.relevance == Relevance::Critical);
            if decides {
                Finding::skipped(name, Reason::Dynamic, detail)
            } else {
                Finding::ok(name, detail)
            }
        }
        Value::Literal(value) if !model::is_variable(&setting.name) => {
            let shown = if value.is_empty() {
                setting.name.clone()
            } else {
                format!("{} {value}", setting.name)
            };
            Finding::ok(name, format!("{shown} ({how})"))
        }
        Value::Literal(value) => {
            let effect = effect::effect(&setting.name, value);
            let mut finding = Finding::ok(
                name,
                format!("{}={value}: {} ({how})", setting.name, effect.summary),
            );
            if let Some(problem) = effect.problem.filter(|p| p.text != effect.summary) {
                finding = finding.note(problem.text);
            }
            finding
        }
    }
}

/// `env/` and the setting's name in lower case with dashes.
pub(crate) fn check_name(setting: &str) -> Cow<'static, str> {
    let mut name = String::from("env/");
    let mut dash = true;
    for c in setting.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
            dash = false;
        } else if !dash {
            name.push('-');
            dash = true;
        }
    }
    Cow::Owned(name)
}

fn is_collective(name: &str) -> bool {
    [
        "NCCL_",
        "GLOO_",
        "NVSHMEM_",
        "OMPI_",
        "OFI_NCCL_",
        "UCCL_",
        "TORCH_NCCL_",
        "RCCL_",
        "NVIDIA_IMEX",
    ]
    .iter()
    .any(|p| name.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn names_of_settings() {
        assert_eq!(check_name("UCX_RNDV_SCHEME"), "env/ucx-rndv-scheme");
        assert_eq!(
            check_name("--disaggregation-mode"),
            "env/disaggregation-mode"
        );
        assert_eq!(
            check_name("kv_connector_extra_config.backends"),
            "env/kv-connector-extra-config-backends"
        );
    }
}
