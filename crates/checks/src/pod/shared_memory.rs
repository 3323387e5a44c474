//! What the pod mounts at /dev/shm is there.
//!
//! Engines and NCCL use it inside the pod; KV between nodes does not, so this never counts for KV transfer. A volume in
//! memory is at most as large as its sizeLimit, and as the memory that the pod may use.

use super::view::PodView;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};

const NAME: &str = "pod/shared-memory";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "what the pod mounts at /dev/shm is there",
    source: include_str!("shared_memory.rs"),
    causes: &[SMALLER],
    notes: &[],
    run: Run::Pod(run),
};

const SMALLER: Cause = Cause {
    id: "shm-smaller-than-mounted",
    what: "/dev/shm is smaller than the volume that the pod mounts there",
    why: "NCCL and the engine's ranks run out of shared memory, and stop",
    fix: "raise the memory limit of the container above the sizeLimit of the volume, and mount it at /dev/shm itself",
    quiet_if: "it is as large; the volume has no sizeLimit; nothing is mounted there (node/process-limits judges its size)",
    source: "Kubernetes SizeMemoryBackedVolumes: the smaller of sizeLimit and the pod's memory",
};

/// Bytes of a quantity such as `8Gi` or `500M`.
fn bytes(quantity: &str) -> Option<u64> {
    let end = quantity
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at_checked(end)?;
    let scale: u64 = match unit {
        "" => 1,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

fn run(view: &PodView<'_>, findings: &mut Findings) {
    let (Some(seen), Some(container)) = (view.seen(), view.container) else {
        return;
    };
    let Some(mount) = container.mounts.get("/dev/shm") else {
        return;
    };
    let Some(limit) = mount.split(' ').next_back().and_then(bytes) else {
        return;
    };
    let fact = &seen.limits.shm_bytes;
    let Some(size) = fact.value() else { return };
    let mb = |bytes: u64| bytes >> 20;
    // Pages are counted whole, and who writes 8G means 8 GB about.
    let finding = if size.saturating_add(size / 16) < limit {
        Finding::warn(
            NAME,
            &SMALLER,
            format!(
                "/dev/shm has {} MB, and the volume that the pod mounts there {} MB",
                mb(*size),
                mb(limit)
            ),
        )
    } else {
        Finding::ok(
            NAME,
            format!("/dev/shm has {} MB, as the pod mounts it", mb(*size)),
        )
    };
    findings.push(finding.collective().seen(fact, "size"));
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn quantities() {
        assert_eq!(bytes("8Gi"), Some(8 << 30));
        assert_eq!(bytes("500M"), Some(500_000_000));
        assert_eq!(bytes("64"), Some(64));
        for none in ["", "Memory", "1.5Gi", "99999999999Ti"] {
            assert_eq!(bytes(none), None, "{none}");
        }
    }
}
