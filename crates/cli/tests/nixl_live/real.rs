//! A real NIXL process, in two isolated workers.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::{Lab, causes, has, of, program, ways};
use crate::wheels::{nixl, wheel};

#[test]
fn what_a_real_engine_has_and_can_is_told() {
    for (version, ucx) in [
        ("1.5.1", "1.23.0"),
        ("1.0.1", "1.21.0"),
        ("0.4.1", "1.19.0"),
    ] {
        let Some(lab) = Lab::up(version, &["HF_TOKEN=hunter2"]) else {
            continue;
        };
        for way in ways() {
            let mut words = vec!["--pod", "decode-0", "-v"];
            words.extend(&way);
            let report = lab.nixl(&words);
            let told = |name: &str, status: &str, cause: &str, text: &str| {
                assert!(
                    has(&report, name, status, cause, text),
                    "{version} {way:?}: {name} {text}: {report:#}"
                );
            };
            told("nixl/libraries", "ok", "", &format!("NIXL {version}"));
            told("nixl/libraries", "ok", "", &format!("UCX {ucx}"));
            told("nixl/backends", "ok", "", "makes its backend UCX");
            told(
                "nixl/transports",
                "warn",
                "nixl-ucx-offers-no-rdma",
                "tcp on eth0",
            );
            told("nixl/in-use", "skipped", "", "no RDMA device open");
            assert!(!causes(&report).contains(&"ucx-two-copies-loaded"));
            // Modules for hardware that is not here are no fault.
            assert!(!causes(&report).contains(&"ucx-module-not-loaded"));
            assert_eq!(report["transfer_validated"], false);
            assert!(!report.to_string().contains("hunter2"));
        }
        for exec in lab.api.execs() {
            assert!(!exec.argv.join(" ").contains("hunter2"));
            assert!(!exec.stdout.text().contains("hunter2"));
            assert!(!exec.stderr.text().contains("hunter2"));
        }
        assert!(
            lab.beside("decode-0").is_empty(),
            "{:?}",
            lab.beside("decode-0")
        );
    }
}

#[test]
fn a_second_ucx_and_a_plugin_that_does_not_load_are_seen() {
    let Some(other) = wheel("1.0.1") else { return };
    let libraries = std::fs::read_dir(other.join("nixl_cu13.libs")).unwrap();
    let ucp = libraries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("libucp-")
        })
        .unwrap();
    // Mapped as the loader would, and not run: two copies of UCX in one process have hung.
    let site = tempfile::tempdir().unwrap();
    std::fs::write(
        site.path().join("sitecustomize.py"),
        format!(
            "import mmap, os\nfd = os.open({:?}, os.O_RDONLY)\nheld = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)\n",
            ucp.display().to_string()
        ),
    )
    .unwrap();
    let Some(path) = nixl("1.5.1") else { return };
    let settings = [
        format!("{path}:{}", site.path().display()),
        // Its plugin is listed, and libfabric is not here.
        "SGLANG_DISAGGREGATION_NIXL_BACKEND=LIBFABRIC".to_owned(),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let Some(lab) = Lab::up("1.5.1", &settings) else {
        return;
    };
    let report = lab.nixl(&["--pod", "decode-0"]);
    assert!(
        has(
            &report,
            "nixl/libraries",
            "warn",
            "ucx-two-copies-loaded",
            "v1.0.1"
        ),
        "{:#?}",
        of(&report, "nixl/libraries")
    );
    if std::path::Path::new("/usr/lib/x86_64-linux-gnu/libfabric.so.1").exists() {
        eprintln!("skipped: libfabric is on this machine, so its plugin may load");
        return;
    }
    assert!(
        has(
            &report,
            "nixl/backends",
            "fail",
            "nixl-backend-not-made",
            "libfabric.so.1"
        ),
        "{:#?}",
        of(&report, "nixl/backends")
    );
}

/// What a worker's UCX offers, and what is told beside it.
fn offers(report: &Value) -> String {
    let found = of(report, "nixl/transports");
    let words = found.iter().map(|c| c["detail"].to_string());
    words.collect::<Vec<_>>().join("; ")
}

#[test]
fn a_provider_that_is_missing_and_nodes_that_are_hidden_change_what_is_said() {
    let Some(plain) = Lab::up("1.5.1", &[]) else {
        return;
    };
    let without = plain.nixl(&["--pod", "decode-0"]);
    drop(plain);
    let Some(lab) = Lab::with("1.5.1", &["--device"], &[]) else {
        return;
    };
    // The device is there, and UCX says nothing of it; libibverbs does, and says why.
    let report = lab.nixl(&["--pod", "decode-0"]);
    let words = offers(&report);
    assert!(
        words.contains("although this machine shows bnxt_re0"),
        "{words}"
    );
    assert!(words.contains("libbnxt_re-rdmav34.so"), "{words}");
    assert!(!offers(&without).contains("bnxt_re"));
    assert_eq!(without["readiness"], "degraded");
    assert_eq!(report["readiness"], "blocked");
    assert_eq!(report["transfer_validated"], false);
    // Without its node nobody comes as far as a provider.
    lab.exec("decode-0", &["rm", "/dev/infiniband/uverbs0"]);
    let hidden = lab.nixl(&["--pod", "decode-0"]);
    let words = offers(&hidden);
    assert!(
        words.contains("although this machine shows bnxt_re0"),
        "{words}"
    );
    assert!(!words.contains("libbnxt_re"), "{words}");
    assert_eq!(hidden["readiness"], "blocked");
}

#[test]
fn metrics_of_nixl_s_telemetry_are_read_inside() {
    let settings = [
        "NIXL_TELEMETRY_ENABLE=y",
        "NIXL_TELEMETRY_EXPORTER=prometheus",
        "NIXL_TELEMETRY_PROMETHEUS_PORT=9412",
    ];
    let Some(lab) = Lab::up("1.5.1", &settings) else {
        return;
    };
    let report = lab.nixl(&["--pod", "decode-0"]);
    assert!(
        has(
            &report,
            "nixl/metrics",
            "skipped",
            "",
            "port 9412: this engine has started no KV transfer"
        ),
        "{:#?}",
        of(&report, "nixl/metrics")
    );
    // The agent beside the engine has no telemetry of its own.
    assert!(has(&report, "nixl/backends", "ok", "", "UCX"));
}

#[test]
fn nothing_stays_when_the_client_is_killed() {
    let Some(lab) = Lab::up("1.5.1", &[]) else {
        return;
    };
    let mut child = program(lab.api.kubeconfig())
        .args(["nixl", "-n", "lab", "--pod", "decode-0"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(
        lab.api
            .wait_for(Duration::from_mins(1), |api| api.execs().len() == 2)
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while !lab.beside("decode-0").is_empty() {
        assert!(Instant::now() < until, "{:?}", lab.beside("decode-0"));
        std::thread::sleep(Duration::from_millis(100));
    }
}
