//! Causes seen from outside the pod that explain what is seen inside it.
//!
//! `no device node` is one fact, whoever tells it: where the pod's spec shows more of it, the place's own finding is
//! taken back, and its sentence becomes a note of the one that stays.

use model::CheckResult;

/// A cause of a pod's check, and the causes of a place that it explains.
const EXPLAINS: &[(&str, &[&str])] = &[
    (
        "rdma-granted-no-device",
        &["dev-infiniband-missing", "rdma-no-device"],
    ),
    (
        "ipc-lock-asked-not-effective",
        &["memlock-low", "ipc-lock-nonroot-inert"],
    ),
    ("gpu-fewer-than-granted", &["gpu-none-visible"]),
];

/// Takes back findings of a place that findings of its pod explain.
pub(crate) fn apply(of_pod: &mut [CheckResult], of_place: &mut Vec<CheckResult>) {
    for finding in of_pod {
        let Some((_, explained)) = EXPLAINS
            .iter()
            .find(|(cause, _)| Some(*cause) == finding.cause)
        else {
            continue;
        };
        of_place.retain(|result| {
            let taken = result.cause.is_some_and(|cause| explained.contains(&cause));
            if taken {
                // The worse one counts.
                finding.status = finding.status.max(result.status.min(model::Status::Fail));
                let words = format!("inside: {}", result.detail);
                finding.note = Some(match finding.note.take() {
                    Some(before) => format!("{before}; {words}"),
                    None => words,
                });
            }
            !taken
        });
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_cause_exists() {
        for (cause, explained) in super::EXPLAINS {
            assert!(crate::registry::cause(cause).is_some(), "{cause}");
            for cause in *explained {
                assert!(crate::registry::cause(cause).is_some(), "{cause}");
            }
        }
    }
}
