//! `collect`: bundles of a cluster's workers, and of hosts without one.

use std::path::Path;

use stand_in::Fault;

use crate::deployment::{member, well};
use crate::support::{run, run_with, serving, tree_of};

#[test]
fn what_is_collected_is_what_check_judges() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.gz");
    let bundle = bundle.to_str().unwrap();
    let well = well();
    let done = run(
        &well.api,
        &["collect", "-o", bundle, "llama", "-n", "serving"],
    );
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert_eq!(done.out.lines().count(), 1, "{}", done.out);
    assert!(
        done.out.contains("6 workers (2 prefill, 4 decode)") && done.out.contains(bundle),
        "{}",
        done.out
    );
    for format in ["text", "json", "jsonl", "short", "prometheus"] {
        let live = run(
            &well.api,
            &["check", "llama", "-n", "serving", "-o", format],
        );
        let again = run_with(Path::new("/nonexistent"), &["replay", bundle, "-o", format]);
        assert_eq!(live.out, again.out, "{format} {}", again.err);
    }
}

#[test]
fn how_it_ended_is_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.gz");
    let path = bundle.to_str().unwrap();
    let tree = tree_of("decode");
    let api = serving()
        .pod(member("decode-0", &tree.root()))
        .pod(member("decode-1", &tree.root()).no_shell())
        .start()
        .unwrap();
    let partly = run(&api, &["collect", "-o", path, "-n", "serving"]);
    assert_eq!(partly.code, 3, "{}{}", partly.out, partly.err);
    assert!(
        partly.out.contains("1 of them not looked at"),
        "{}",
        partly.out
    );
    std::fs::remove_file(&bundle).unwrap();
    let nothing = run(&api, &["collect", "-o", path, "other", "-n", "serving"]);
    assert_eq!(nothing.code, 4, "{}{}", nothing.out, nothing.err);
    assert!(nothing.err.contains("nothing was saved"), "{}", nothing.err);
    api.fault(Fault::on("list", "pods").status(403));
    let refused = run(&api, &["collect", "-o", path, "-n", "serving"]);
    assert_eq!(refused.code, 5, "{}{}", refused.out, refused.err);
    assert!(!bundle.exists());
    let usage = run(&api, &["collect", "-n", "serving"]);
    assert_eq!(usage.code, 2);
}

/// Bundles of this host, under other names and roles, are judged as one deployment.
#[test]
fn hosts_without_a_cluster_are_judged_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, role) in [
        ("node-a", "prefill"),
        ("node-b", "decode"),
        ("node-c", "decode"),
    ] {
        let path = dir.path().join(format!("{name}.tar.gz"));
        let one = run_with(
            Path::new("/nonexistent"),
            &["collect", "-o", path.to_str().unwrap(), "--role", role],
        );
        assert_eq!(one.code, 0, "{}{}", one.out, one.err);
        assert!(one.out.contains(&format!("1 {role}")), "{}", one.out);
        // Three hosts out of one.
        let mut gathered = bundle::read(std::fs::File::open(&path).unwrap()).unwrap();
        gathered.pods[0].object.name = name.to_owned();
        gathered.pods[0].object.node = Some(name.to_owned());
        bundle::write(std::fs::File::create(&path).unwrap(), &gathered).unwrap();
        paths.push(path.to_str().unwrap().to_owned());
    }
    let words: Vec<&str> = std::iter::once("replay")
        .chain(paths.iter().map(String::as_str))
        .chain(["-o", "json"])
        .collect();
    let run = run_with(Path::new("/nonexistent"), &words);
    let report = run.json();
    assert_eq!(report["coverage"]["workers_probed"], 3, "{}", run.out);
    assert_eq!(report["coverage"]["pairs_required"], 2, "{}", run.out);
    assert!(run.out.contains("node-b"), "{}", run.out);
    for check in report["checks"].as_array().unwrap() {
        let name = check["name"].as_str().unwrap();
        // Nothing is said of a pod that there is not.
        assert!(!name.starts_with("pod/"), "{check:#}");
        assert!(
            !["env/kv-fabric", "env/device-access", "env/locked-memory"].contains(&name),
            "{check:#}"
        );
    }
    // The same host twice is a mistake.
    let twice = run_with(Path::new("/nonexistent"), &["replay", &paths[0], &paths[0]]);
    assert_eq!(twice.code, 2, "{}", twice.out);
}

/// The rules over settings hold for engines on hosts too, and name the host.
#[test]
fn settings_of_engines_on_hosts_are_judged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b.tar.gz");
    let path = path.to_str().unwrap();
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let odd = tree_of("decode");
    odd.file("/proc/42/environ", "UCX_TLS=tcp,cuda_copy\0");
    let api = serving()
        .pod(member("prefill-0", &prefill.root()))
        .pod(member("decode-0", &decode.root()))
        .pod(member("decode-1", &odd.root()))
        .start()
        .unwrap();
    assert_eq!(run(&api, &["collect", "-o", path, "-n", "serving"]).code, 0);
    // What a host would have shown, which has no pod and no spec.
    let mut gathered = bundle::read(std::fs::File::open(path).unwrap()).unwrap();
    gathered.around = checks::Around::default();
    for (pod, role) in gathered
        .pods
        .iter_mut()
        .zip(["decode", "decode", "prefill"])
    {
        let name = pod.object.name.clone();
        assert!(name.starts_with(role), "{name}");
        pod.object = model::PodObject {
            name: name.replace(role, "host"),
            owner: Some(("Host".to_owned(), role.to_owned())),
            ..model::PodObject::default()
        };
        pod.worker = Some(recipe::live::of_host(&pod.object.name));
        pod.by = checks::SeenBy::Host;
        pod.container.clear();
    }
    bundle::write(std::fs::File::create(path).unwrap(), &gathered).unwrap();
    let run = run_with(Path::new("/nonexistent"), &["replay", path, "-o", "json"]);
    let report = run.json();
    let tcp: Vec<_> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["cause"] == "ucx-tls-tcp-only")
        .collect();
    assert_eq!(tcp.len(), 1, "{}", run.out);
    assert!(tcp[0].to_string().contains("host-1"), "{}", tcp[0]);
    assert_eq!(report["coverage"]["pairs_required"], 2, "{}", run.out);
}
