//! Warnings that mean, where they hold, that the workers do not start or that no KV cache moves at all.
//!
//! They are warnings since something outside the files can make them harmless (a router that rewrites an address, a
//! placeholder that is filled in). A verdict that one of them leads must not say that the deployment runs.

use model::{CheckResult, Status};

/// Causes, by name.
const CAUSES: &[&str] = &[
    "role-missing",
    "role-contradicts-name",
    "prefill-no-connector",
    "decode-no-connector",
    "side-channel-host-loopback",
    "side-channel-host-wrong-ip",
    "model-differs",
    "kv-cache-dtype-differs",
    "vllm-tp-not-divisible",
    "claim-template-placeholder",
    "resource-name-typo",
    "setting-value-invalid",
    "hostnetwork-without-dnspolicy",
    "dns-headless",
    "istio-sidecar",
    "ucx-tls-no-gpu-memory-transport",
    "ucx-tls-rc-no-bootstrap",
    "ucx-tls-ud-only",
];

/// Whether a result may mean that nothing moves.
pub(crate) fn may_stop(result: &CheckResult) -> bool {
    result.cause.is_some_and(|cause| CAUSES.contains(&cause))
}

/// The result of that status to look at first: one that may stop the transfer, else the first one.
pub(crate) fn first(results: &[CheckResult], status: Status) -> Option<&CheckResult> {
    let mut of_status = results
        .iter()
        .filter(|r| r.status == status && !r.collective);
    let first = of_status.next()?;
    if may_stop(first) {
        return Some(first);
    }
    Some(of_status.find(|r| may_stop(r)).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_cause_exists() {
        for cause in super::CAUSES {
            assert!(crate::registry::cause(cause).is_some(), "{cause}");
        }
    }
}
