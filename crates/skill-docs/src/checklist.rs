//! The checklist of the fabric: what to look at in a worker, how it is read without tools, and what it proves.

use std::fmt::Write as _;

use crate::markdown::table;

/// One fact.
struct Fact {
    question: &'static str,
    /// Where it stands.
    read: &'static str,
    /// What a good answer proves.
    proves: &'static str,
    /// What it does not.
    not: &'static str,
}

/// Facts of one kind.
struct Group {
    title: &'static str,
    facts: &'static [Fact],
    /// Programs for `sh -c`, each with what it prints. They only read.
    lines: &'static [(&'static str, &'static str)],
}

const GROUPS: &[Group] = &[
    Group {
        title: "InfiniBand",
        facts: &[
            Fact {
                question: "RDMA devices of the node",
                read: "`/sys/class/infiniband/*`",
                proves: "the node has them and their driver is loaded",
                not: "that the container may use them: /sys is the node's",
            },
            Fact {
                question: "devices that the container may open",
                read: "`/dev/infiniband/uverbs*`",
                proves: "a resource, a claim or a mount has given them to it",
                not: "that their ports are up",
            },
            Fact {
                question: "state of a port",
                read: "`ports/P/state`, `ports/P/phys_state`",
                proves: "`4: ACTIVE` and `5: LinkUp`: the port can carry traffic; `INIT` on InfiniBand means that no subnet manager answered, `Polling` a cable or a peer",
                not: "that KV transfer uses it",
            },
            Fact {
                question: "speed and kind",
                read: "`ports/P/rate`, `ports/P/link_layer`",
                proves: "the speed that was negotiated; `InfiniBand`, or `Ethernet` for RoCE",
                not: "that payload reaches that speed",
            },
            Fact {
                question: "subnet manager",
                read: "`ports/P/sm_lid`",
                proves: "`0x0` on InfiniBand: there is none",
                not: "anything on RoCE",
            },
            Fact {
                question: "use",
                read: "`ports/P/counters/port_xmit_data`, in units of four bytes, before and after a request",
                proves: "the node sent that much through this port",
                not: "who sent it: the counter belongs to the whole node",
            },
        ],
        lines: &[
            (
                "state, physical state, rate, link layer and subnet manager of every port",
                r#"for p in /sys/class/infiniband/*/ports/*; do [ -e "$p" ] || { echo "no RDMA device"; break; }; for f in state phys_state rate link_layer sm_lid; do echo "$p/$f $(cat "$p/$f" 2>/dev/null)"; done; done"#,
            ),
            (
                "device nodes of the container",
                r#"ls -l /dev/infiniband 2>/dev/null || echo "no RDMA device in this container""#,
            ),
            (
                "bytes sent so far, a quarter of them per unit",
                r#"for c in /sys/class/infiniband/*/ports/*/counters/port_xmit_data; do [ -e "$c" ] || { echo "no counter"; break; }; echo "$c $(cat "$c")"; done"#,
            ),
        ],
    },
    Group {
        title: "RoCE",
        facts: &[
            Fact {
                question: "kinds of addresses",
                read: "`ports/P/gid_attrs/types/N`",
                proves: "a `RoCE v2` entry: the port can be reached over routed Ethernet",
                not: "that both ends pick matching entries",
            },
            Fact {
                question: "interface of an address",
                read: "`ports/P/gid_attrs/ndevs/N`",
                proves: "which interface of this network namespace carries it; an error means that it is in another namespace",
                not: "that priority flow control is configured",
            },
        ],
        lines: &[(
            "type of every address that is in use",
            r#"for t in /sys/class/infiniband/*/ports/*/gid_attrs/types/*; do [ -e "$t" ] || { echo "no address table"; break; }; v=$(cat "$t" 2>/dev/null) && echo "$t $v"; done; true"#,
        )],
    },
    Group {
        title: "EFA",
        facts: &[
            Fact {
                question: "EFA devices",
                read: "driver behind `/sys/class/infiniband/D/device/driver` is `efa`; link layer is `Unknown`",
                proves: "the node has EFA; UCX reaches it with srd only, NIXL with LIBFABRIC",
                not: "that the image has the EFA libraries",
            },
            Fact {
                question: "GPUDirect on EFA",
                read: "`/sys/module/efa_nv_peermem`, or the open NVIDIA driver for dma-buf",
                proves: "the kernel can register GPU memory",
                not: "that libfabric does so: FI_EFA_USE_DEVICE_RDMA=0 and FI_HMEM_DISABLE_P2P=1 forbid it",
            },
        ],
        lines: &[(
            "driver of every RDMA device",
            r#"for d in /sys/class/infiniband/*; do [ -e "$d" ] || { echo "no RDMA device"; break; }; echo "$d $(readlink "$d/device/driver")"; done"#,
        )],
    },
    Group {
        title: "GPUDirect RDMA and GDRCopy",
        facts: &[
            Fact {
                question: "peer memory",
                read: "`/sys/module/nvidia_peermem`",
                proves: "NICs of this node can register GPU memory through it",
                not: "anything if absent: dma-buf does the same without it",
            },
            Fact {
                question: "dma-buf",
                read: "`/proc/driver/nvidia/version` names the open kernel module, and the kernel is 5.12 or later",
                proves: "the way without nvidia_peermem is open",
                not: "that the library in the image uses it",
            },
            Fact {
                question: "GDRCopy",
                read: "`/dev/gdrdrv`",
                proves: "small copies between CPU and GPU are fast",
                not: "GPUDirect RDMA: bulk KV transfer does not need it",
            },
        ],
        lines: &[(
            "peer memory, driver, kernel, GDRCopy",
            r#"ls -d /sys/module/nvidia_peermem 2>/dev/null || echo "nvidia_peermem is not loaded"; head -n 1 /proc/driver/nvidia/version 2>/dev/null || echo "no NVIDIA driver to be seen"; uname -r; ls /dev/gdrdrv 2>/dev/null || echo "no gdrdrv in this container""#,
        )],
    },
    Group {
        title: "NVLink",
        facts: &[
            Fact {
                question: "links between the GPUs of a node",
                read: "`nvidia-smi topo -m`: NV and a number",
                proves: "these two GPUs share NVLink",
                not: "NVLink between nodes, or that two pods of a node may use it",
            },
            Fact {
                question: "channel of a compute domain",
                read: "`/dev/nvidia-caps-imex-channels/channel*`, and `nvidia-caps-imex-channels` in `/proc/devices`",
                proves: "the container got a channel, which multi-node NVLink needs; the line in /proc/devices without a node means that none was injected",
                not: "that prefill and decode are in the same domain, or that KV memory can be exported",
            },
        ],
        lines: &[(
            "topology and channels",
            r#"nvidia-smi topo -m 2>/dev/null || echo "no nvidia-smi in this image"; grep nvidia-caps-imex-channels /proc/devices || echo "no channels on this node"; ls /dev/nvidia-caps-imex-channels 2>/dev/null || echo "no channel in this container""#,
        )],
    },
    Group {
        title: "Limits and settings of the worker",
        facts: &[
            Fact {
                question: "locked memory",
                read: "`/proc/PID/limits` of the serving process",
                proves: "`unlimited`, or IPC_LOCK (bit 14 of CapEff in `/proc/PID/status`): NICs can register large buffers",
                not: "anything about another process, such as the shell of an exec",
            },
            Fact {
                question: "settings in force",
                read: "`/proc/PID/environ`, chosen names only",
                proves: "what the process was started with",
                not: "what it changed itself afterwards",
            },
        ],
        lines: &[
            (
                "limit and capabilities of process 1; take the serving process if it is another",
                r#"grep "Max locked memory" /proc/1/limits; grep CapEff /proc/1/status"#,
            ),
            (
                "six transport variables by name; never print the whole environment, it holds secrets",
                r#"e=$(cat /proc/1/environ 2>/dev/null | tr "\0" "\n"); [ -n "$e" ] || { echo "it cannot be read, so nothing is known"; exit 0; }; printf "%s\n" "$e" | grep -E "^(UCX_TLS|UCX_NET_DEVICES|UCX_IB_GPU_DIRECT_RDMA|NCCL_IB_HCA|NCCL_IB_DISABLE|NCCL_SOCKET_IFNAME)=" || echo "none of them is set""#,
            ),
        ],
    },
];

/// Writes the section.
pub(crate) fn write(out: &mut String) {
    out.push_str(
        "## Checklist: what the hardware shows\n\n\
All of this is read-only and needs nothing in the image but `sh` and cat, ls, grep, head, tr, readlink and uname, which nearly all images have. A good answer is evidence for one condition; only \
bytes that were seen to move over RDMA or NVLink prove KV transfer. What cannot be read is unknown, not fine.\n",
    );
    for group in GROUPS {
        let _infallible = writeln!(out, "\n### {}\n", group.title);
        table(
            out,
            [
                "Question",
                "Read",
                "A good answer proves",
                "It does not prove",
            ],
            group.facts.iter().map(|f| {
                [
                    f.question.to_owned(),
                    f.read.to_owned(),
                    f.proves.to_owned(),
                    f.not.to_owned(),
                ]
            }),
        );
        out.push_str("```bash\n");
        for (what, program) in group.lines {
            let _infallible = writeln!(
                out,
                "# {what}\nkubectl exec -n \"$NAMESPACE\" \"$POD\" -c \"$CONTAINER\" -- sh -c '{program}'"
            );
        }
        out.push_str("```\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_fit_into_single_quotes() {
        for (_, program) in GROUPS.iter().flat_map(|g| g.lines) {
            assert!(
                !program.contains('\'') && !program.contains('\n'),
                "{program}"
            );
        }
    }
}
