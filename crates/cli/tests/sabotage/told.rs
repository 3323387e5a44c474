//! What a report says against somebody.

use serde_json::Value;

/// One warning, failure, or gap.
#[derive(Debug, PartialEq)]
pub(crate) struct Bad {
    pub(crate) status: String,
    pub(crate) cause: String,
    pub(crate) check: String,
    /// Pods that it is about.
    pub(crate) pods: Vec<String>,
    pub(crate) detail: String,
}

/// What a report says.
pub(crate) struct Told {
    pub(crate) readiness: String,
    pub(crate) probed: u64,
    /// Warnings and failures.
    pub(crate) bad: Vec<Bad>,
    /// What could not be looked at, with a cause.
    pub(crate) skipped: Vec<Bad>,
}

impl Told {
    pub(crate) fn of(text: &str) -> Self {
        let report: Value = serde_json::from_str(text).unwrap();
        let all = report["checks"].as_array().unwrap();
        let of = |statuses: &[&str]| {
            all.iter()
                .filter(|check| statuses.contains(&check["status"].as_str().unwrap()))
                .filter(|check| check["status"] != "skipped" || check["cause"].is_string())
                .map(bad)
                .collect()
        };
        Self {
            readiness: report["readiness"].as_str().unwrap().to_owned(),
            probed: report["coverage"]["workers_probed"].as_u64().unwrap(),
            bad: of(&["warn", "fail"]),
            skipped: of(&["skipped"]),
        }
    }
}

fn bad(check: &Value) -> Bad {
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let subject = &check["subject"];
    let mut pods: Vec<String> = subject["pods"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pod| pod.as_str().map(str::to_owned))
        .collect();
    if let Some(pod) = subject["pod"].as_str() {
        pods.push(pod.to_owned());
    }
    // A worker that stands for no other is named by its pod.
    if pods.is_empty() {
        let workers = subject["workers"].as_array().into_iter().flatten();
        pods.extend(workers.filter_map(|w| w.as_str().map(str::to_owned)));
    }
    Bad {
        status: text("status"),
        cause: text("cause"),
        check: text("name"),
        pods,
        detail: text("detail"),
    }
}
