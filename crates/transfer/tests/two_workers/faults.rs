//! Every fault of the environment that NIXL and UCX can have without RDMA, provoked for real, with its cause.

use model::Status;
use transfer::{Both, Measurement, Side, faults};

use crate::lab::{Lab, engine, small};

/// A fault: settings of both engines, whether the transfer comes about all the same, and the cause that must be named.
struct Case {
    name: &'static str,
    prefill: &'static [(&'static str, &'static str)],
    decode: &'static [(&'static str, &'static str)],
    transfers: bool,
    /// One of these.
    causes: &'static [&'static str],
    /// Words that the results must have.
    says: &'static str,
}

const fn both(
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    transfers: bool,
    causes: &'static [&'static str],
    says: &'static str,
) -> Case {
    Case {
        name,
        prefill: settings,
        decode: settings,
        transfers,
        causes,
        says,
    }
}

const CASES: &[Case] = &[
    both(
        "tcp only",
        &[("UCX_TLS", "tcp")],
        true,
        &["ucx-tls-tcp-only"],
        "tcp",
    ),
    both(
        "no RDMA and no tcp",
        &[("UCX_TLS", "rc,cuda_copy")],
        false,
        &["ucx-transport-not-here"],
        "rc",
    ),
    both(
        "RDMA not here, tcp is",
        &[("UCX_TLS", "rdma,cuda,tcp")],
        true,
        &["ucx-tls-unknown-name"],
        "rdma",
    ),
    both(
        "tcp denied",
        &[("UCX_TLS", "^tcp")],
        false,
        &["ucx-error-handling-am-peer-failure"],
        "no peer failure handler",
    ),
    both(
        "device not here",
        &[("UCX_NET_DEVICES", "mlx5_0:1")],
        false,
        &["ucx-netdev-missing-device"],
        "mlx5_0:1",
    ),
    both(
        "device not here, eth0 is",
        &[("UCX_NET_DEVICES", "mlx5_0:1,eth0")],
        true,
        &["ucx-netdev-missing-device"],
        "mlx5_0:1",
    ),
    both(
        "another interface",
        &[("UCX_NET_DEVICES", "eth7")],
        false,
        &["ucx-netdev-missing-device"],
        "eth7",
    ),
    both(
        "loopback",
        &[("UCX_NET_DEVICES", "lo")],
        false,
        &["ucx-netdev-loopback"],
        "lo",
    ),
    both(
        "empty device list",
        &[("UCX_NET_DEVICES", "")],
        false,
        &["ucx-netdev-empty"],
        "no network device",
    ),
    both(
        "pattern as device",
        &[("UCX_NET_DEVICES", "eth*")],
        false,
        &["ucx-netdev-nccl-syntax"],
        "eth*",
    ),
    both(
        "empty transport list",
        &[("UCX_TLS", "")],
        false,
        &["ucx-tls-empty-string"],
        "UCX does not start",
    ),
    both(
        "misspelt transport",
        &[("UCX_TLS", "tpc")],
        false,
        &["ucx-tls-unknown-name"],
        "tpc",
    ),
    both(
        "misspelt among good ones",
        &[("UCX_TLS", "tcp,rcc,cuda_cpy")],
        true,
        &["ucx-tls-unknown-name"],
        "rcc",
    ),
    both(
        "capitals",
        &[("UCX_TLS", "TCP")],
        false,
        &["ucx-tls-spaces-quotes-case"],
        "TCP",
    ),
    both(
        "blank in the list",
        &[("UCX_TLS", "tcp, self")],
        true,
        &["ucx-tls-spaces-quotes-case"],
        "self",
    ),
    both(
        "denial in the middle",
        &[("UCX_TLS", "tcp,^cuda")],
        true,
        &["ucx-tls-mid-list-caret"],
        "^cuda",
    ),
    both(
        "misspelt variable",
        &[("UCX_TSL", "tcp")],
        true,
        &["ucx-env-typo"],
        "UCX_TSL",
    ),
    both(
        "settings of RDMA unused",
        &[("UCX_IB_GID_INDEX", "3"), ("UCX_RC_TIMEOUT", "1s")],
        true,
        &["ucx-unused-env-ib"],
        "UCX_IB_GID_INDEX",
    ),
    both(
        "no number",
        &[("UCX_MAX_RMA_RAILS", "abc")],
        false,
        &["setting-value-invalid"],
        "UCX_MAX_RMA_RAILS",
    ),
    Case {
        name: "rc here, tcp there",
        prefill: &[("UCX_TLS", "tcp")],
        decode: &[("UCX_TLS", "rc,cuda_copy")],
        transfers: false,
        causes: &["ucx-transport-not-here"],
        says: "rc",
    },
];

fn told(measured: &Measurement) -> Vec<String> {
    faults(measured)
        .into_iter()
        .filter(|(_, result)| matches!(result.status, Status::Warn | Status::Fail))
        .map(|(side, result)| {
            format!(
                "{} {} {}: {}",
                side.as_str(),
                result.status.as_str(),
                result.cause.unwrap_or("-"),
                result.detail
            )
        })
        .collect()
}

#[test]
fn each_fault_is_explained_with_its_cause() {
    let Some(lab) = Lab::up(&[]) else { return };
    let mut wrong = Vec::new();
    for case in CASES {
        let (Some(prefill), Some(decode)) =
            (engine("1.5.1", case.prefill), engine("1.5.1", case.decode))
        else {
            return;
        };
        let measured = lab.measure(&small(), &Both { prefill, decode });
        let told = told(&measured);
        let came =
            measured.stop.is_none() && measured.legs.iter().all(transfer::LegRecord::complete);
        let named = told.iter().any(|line| {
            case.causes
                .iter()
                .any(|c| line.contains(&format!(" {c}: ")))
                && line.contains(case.says)
        });
        if came != case.transfers || !named {
            wrong.push(format!(
                "{}: came about: {came}, stop {:?}\n    {}",
                case.name,
                measured.stop,
                told.join("\n    ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_connection_that_is_not_answered_is_named_soon() {
    let Some(lab) = Lab::up(&[]) else { return };
    let Some(one) = engine("1.5.1", &[]) else {
        return;
    };
    // Frames to a card that is not there are dropped, as by a network policy.
    lab.exec(
        Side::Decode,
        &[
            "ip",
            "neigh",
            "replace",
            "192.0.2.1",
            "lladdr",
            "02:00:00:00:00:99",
            "dev",
            "eth0",
        ],
    );
    let mut plan = small();
    plan.legs.truncate(1);
    plan.step_seconds = 4;
    let begin = std::time::Instant::now();
    let measured = lab.measure(
        &plan,
        &Both {
            prefill: one.clone(),
            decode: one,
        },
    );
    // UCX itself gives up after more than two minutes.
    assert!(begin.elapsed().as_secs() < 30, "{:?}", begin.elapsed());
    let stop = measured.stop.as_ref().expect("nothing is transferred");
    assert_eq!(stop.step.as_deref(), Some("connect"), "{stop:?}");
    assert!(stop.why.contains("192.0.2.1 port"), "{stop:?}");
    let told = told(&measured);
    assert!(
        told.iter()
            .any(|line| line
                .starts_with("decode fail networkpolicy-blocks: connection to 192.0.2.1:")),
        "{told:#?}"
    );
}

#[test]
fn an_interface_that_leads_nowhere_is_named() {
    let Some(lab) = Lab::up(&[]) else { return };
    let Some(one) = engine("1.5.1", &[("UCX_NET_DEVICES", "bridge0")]) else {
        return;
    };
    // Both workers have a bridge with the same address, as container runtimes make them.
    for side in Side::ALL {
        lab.exec(
            side,
            &[
                "sh",
                "-c",
                "ip link add bridge0 type veth peer name bridge1 && ip link set bridge1 up && ip addr add 172.17.0.1/16 dev bridge0 && ip link set bridge0 up",
            ],
        );
    }
    let measured = lab.measure(
        &small(),
        &Both {
            prefill: one.clone(),
            decode: one,
        },
    );
    assert!(measured.stop.is_some());
    let told = told(&measured);
    assert!(
        told.iter()
            .any(|line| line.contains("ucx-tcp-unreachable-interface")),
        "{:?} {told:#?}",
        measured.stop
    );
}
