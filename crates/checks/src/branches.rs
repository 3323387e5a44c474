//! What follows where the start script takes a branch, or a default holds, that the input shows but does not decide.
//!
//! A setting that is decided at start has no value to judge, but values that it can become. Each of them is put in
//! its place and the deployment is judged again: what is wrong then and was not before is a warning, since nobody
//! can tell from files whether it comes to that.

use model::{CheckResult, Deployment, Reason, Setting, Status, Value, Worker};

use crate::env::settings_in_force::check_name;

/// Values at most that are tried in a deployment: each costs as much as judging it.
const MAX_TRIED: usize = 16;

/// Adds what each value would do.
pub(crate) fn judge(
    deployment: &Deployment,
    run: impl Fn(&Deployment) -> Vec<CheckResult>,
    results: &mut Vec<CheckResult>,
) {
    for candidate in candidates(deployment) {
        let mut taken = deployment.clone();
        for worker in &mut taken.workers {
            put(worker, &candidate);
        }
        let value = candidate.value.literal().unwrap_or_default();
        let harm: Vec<CheckResult> = run(&taken)
            .into_iter()
            .filter(|r| matches!(r.status, Status::Fail | Status::Warn) && is_new(r, results))
            .map(|mut result| {
                result.status = Status::Warn;
                result.detail = format!(
                    "{} is decided at start and can become {value}; then: {}",
                    candidate.name, result.detail
                );
                result
            })
            .collect();
        // That it was not judged is no longer true.
        results.retain(|r| {
            !(r.reason == Some(Reason::Dynamic)
                && r.name == check_name(&candidate.name)
                && harm.iter().any(|h| {
                    r.subject
                        .workers
                        .iter()
                        .all(|w| h.subject.workers.contains(w))
                }))
        });
        results.extend(harm);
    }
}

/// The values to try, each once: workers of one script share them.
fn candidates(deployment: &Deployment) -> Vec<Setting> {
    let mut found: Vec<Setting> = Vec::new();
    for setting in deployment.kv_workers().flat_map(|w| &w.possible) {
        let known = found
            .iter()
            .any(|f| f.name == setting.name && f.value == setting.value);
        if !known && found.len() < MAX_TRIED {
            found.push(setting.clone());
        }
    }
    found
}

fn put(worker: &mut Worker, candidate: &Setting) {
    let Some(possible) = worker
        .possible
        .iter()
        .find(|p| p.name == candidate.name && p.value == candidate.value)
        .cloned()
    else {
        return;
    };
    for setting in &mut worker.settings {
        if setting.name == possible.name && matches!(setting.value, Value::Dynamic(_)) {
            setting.clone_from(&possible);
        }
    }
}

/// Whether nothing says so yet of the same workers.
fn is_new(result: &CheckResult, results: &[CheckResult]) -> bool {
    !results.iter().any(|r| {
        matches!(r.status, Status::Fail | Status::Warn)
            && r.cause == result.cause
            && r.name == result.name
            && r.subject.workers == result.subject.workers
    })
}
