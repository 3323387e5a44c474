//! `references/troubleshooting.md`: from what is seen to a cause, and every cause with its fix.

use std::fmt::Write as _;

use checks::{CHECKS, Cause, PROBLEMS};

use crate::markdown::{code, generated, sentence, table};

/// What people come with: a symptom, what it can come from, what to do next, and the causes to look for.
struct Symptom {
    seen: &'static str,
    likely: &'static str,
    next: &'static str,
    causes: &'static [&'static str],
}

const SYMPTOMS: &[Symptom] = &[
    Symptom {
        seen: "no transport variable is set in the recipe",
        likely: "UCX chooses by itself, or the image or the operator sets them; by itself this is no fault",
        next: "look at what the roles ask for: without an RDMA resource, EFA or a compute domain only TCP is left",
        causes: &[
            "no-fabric-and-no-transport-setting",
            "rdma-resource-missing",
        ],
    },
    Symptom {
        seen: "no link is active on a node",
        likely: "cable, switch port or subnet manager; or the container has no RDMA device at all",
        next: "tell the two apart with the checklist (port state against device nodes), then give the cluster's administrator node, device and state",
        causes: &["rdma-resource-missing", "one-role-lacks-fabric"],
    },
    Symptom {
        seen: "nvidia_peermem is not loaded",
        likely: "dma-buf takes its place where the open NVIDIA driver runs on kernel 5.12 or later; otherwise transfers are staged through host memory",
        next: "read the driver's version and the kernel first (checklist); only then ask for the module",
        causes: &["ucx-gdr-forced-off", "efa-gpudirect-off"],
    },
    Symptom {
        seen: "no NIXL test program in the image",
        likely: "it is not part of most serving images, and its presence would prove nothing",
        next: "nothing is wrong with the deployment; that KV transfer stays unproven is the answer to give",
        causes: &[],
    },
    Symptom {
        seen: "disaggregated serving is slow, aggregated serving is not",
        likely: "KV goes over TCP, through one NIC for many GPUs, or through host memory",
        next: "judge the recipe; the causes here, in this order",
        causes: &[
            "ucx-tls-tcp-only",
            "rdma-resource-missing",
            "one-role-lacks-fabric",
            "cuda-ipc-tcp-without-imex",
            "mnnvl-kv-memory-no-fabric-handle",
            "efa-backend-not-libfabric",
            "ucx-netdev-eth0",
            "ucx-gdr-forced-off",
            "single-nic-pin-multi-gpu",
            "ipc-lock-missing",
        ],
    },
    Symptom {
        seen: "disaggregated serving hangs or the first request fails",
        likely: "the handshake cannot reach the peer, or no transport is left that reaches another node",
        next: "judge the recipe; the causes here",
        causes: &[
            "side-channel-host-any",
            "side-channel-host-loopback",
            "ucx-tls-rdma-only-no-device",
            "ucx-tls-one-node-only",
            "ucx-tls-empty-string",
            "ucx-tls-all-not-alone",
            "ucx-netdev-empty",
            "ucx-netdev-loopback",
            "connector-differs",
            "claim-template-placeholder",
        ],
    },
    Symptom {
        seen: "decode computes everything again, with no error",
        likely: "decode has no connector, or the roles offer directions that do not meet",
        next: "judge the recipe; the causes here",
        causes: &[
            "decode-no-connector",
            "prefill-no-connector",
            "vllm-kv-role",
            "trtllm-transceiver-unset",
        ],
    },
    Symptom {
        seen: "the output is wrong with disaggregation, and right without",
        likely: "the roles disagree on the form of the KV cache; a slow transport alone does not change output",
        next: "judge the recipe; if nothing is found, compare model, revision and parallelism of the roles",
        causes: &[
            "kv-cache-dtype-differs",
            "block-size-differs",
            "connector-differs",
        ],
    },
    Symptom {
        seen: "the verdict is inconclusive",
        likely: "a file is missing, broken or a template, or nothing that runs could be looked at",
        next: "render templates first, correct the line that is named, give the missing path",
        causes: &["input-template", "input-broken-yaml", "input-missing"],
    },
];

/// The whole file.
pub fn troubleshooting() -> String {
    let mut out = String::from("# Troubleshooting\n\n");
    generated(&mut out);
    out.push_str(
        "Every `warn`, `fail` and unreadable input carries a `cause`; find it here, or ask the binary:\n\n\
```bash\n\
check-interconnect explain\n\
check-interconnect explain ucx-tls-tcp-only\n\
```\n\n\
Propose a fix to the people who own the deployment; do not apply it. Fix what is `fail` first, judge again, and only \
then look at what is `warn`.\n\n\
- [By symptom](#by-symptom)\n",
    );
    for check in CHECKS.iter().filter(|c| !c.causes.is_empty()) {
        let _infallible = writeln!(out, "- [{}](#{})", check.name, anchor(check.name));
    }
    out.push_str("- [input](#input)\n\n## By symptom\n\n");
    table(
        &mut out,
        ["Seen", "Likely", "Next", "Causes"],
        SYMPTOMS.iter().map(|s| {
            [
                s.seen.to_owned(),
                s.likely.to_owned(),
                s.next.to_owned(),
                s.causes
                    .iter()
                    .map(|c| code(c))
                    .collect::<Vec<_>>()
                    .join(", "),
            ]
        }),
    );
    for check in CHECKS.iter().filter(|c| !c.causes.is_empty()) {
        let _infallible = writeln!(out, "## {}\n\n{}\n", check.name, sentence(check.title));
        for cause in check.causes {
            write_cause(&mut out, cause);
        }
    }
    out.push_str("## input\n\nWhat could not be read, and why. Nothing that was given is left out without a word.\n\n");
    table(
        &mut out,
        ["Cause", "Seen", "Then", "Fix"],
        PROBLEMS.iter().map(|p| {
            [
                code(p.id),
                p.what.to_owned(),
                p.why.to_owned(),
                p.fix.to_owned(),
            ]
        }),
    );
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// The name that a heading gets.
fn anchor(heading: &str) -> String {
    heading.chars().filter(|c| *c != '/').collect()
}

fn write_cause(out: &mut String, cause: &Cause) {
    let _infallible = writeln!(
        out,
        "### `{}`\n\n- Seen: {}\n- Effect: {}\n- Fix: {}\n- No problem if: {}\n",
        cause.id, cause.what, cause.why, cause.fix, cause.quiet_if
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symptoms_name_causes_that_exist() {
        for id in SYMPTOMS.iter().flat_map(|s| s.causes) {
            let known = checks::cause(id).is_some() || PROBLEMS.iter().any(|p| p.id == *id);
            assert!(known, "no cause is called {id}");
        }
    }

    #[test]
    fn every_cause_is_told() {
        let text = troubleshooting();
        for id in CHECKS.iter().flat_map(|c| c.causes).map(|c| c.id) {
            assert!(text.contains(&format!("### `{id}`\n")), "{id}");
        }
    }
}
