//! With the real kubectl.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use crate::fixtures::{GRAPH, RDMA, TCP};
use crate::{NOTHING, Temp, real, run};

/// A base that is blocked, and an overlay that adds the device.
fn overlay() -> Temp {
    let temp = Temp::new();
    temp.write("base/deploy.yaml", GRAPH)
        .write("base/kustomization.yaml", "resources: [deploy.yaml]\n")
        .write("overlays/prod/rdma.yaml", RDMA)
        .write(
            "overlays/prod/kustomization.yaml",
            "resources: [../../base]\npatches:\n- path: rdma.yaml\n",
        );
    temp
}

const PROD: &str = "overlays/prod (kubectl kustomize)";

#[test]
fn an_overlay_changes_the_verdict() {
    let Some(path) = real("kubectl") else { return };
    let temp = overlay();
    let base = run(temp.path(), &path, &["base"]);
    assert_eq!(base.files(), ["base (kubectl kustomize)"]);
    assert!(base.has("ucx-tls-rdma-only-no-device"), "{}", base.stdout);
    assert_eq!(base.code, 1);
    let prod = run(temp.path(), &path, &["overlays/prod"]);
    assert_eq!(prod.files(), [PROD]);
    assert!(!prod.has("ucx-tls-rdma-only-no-device"));
    assert_eq!(prod.code, 0, "{}", prod.verdict());
    let (status, file, words) = &prod.inputs()[0];
    assert_eq!((&**status, &**file), ("ok", PROD));
    assert!(words.contains("line numbers are those of the rendered text"));
    assert!(words.contains("kubectl kustomize overlays/prod"), "{words}");
}

#[test]
fn all_of_a_directory_is_judged_once() {
    let Some(path) = real("kubectl") else { return };
    let temp = overlay();
    temp.write(
        "overlays/tcp/kustomization.yml",
        &format!(
            "resources:\n- ../../base\npatches:\n- target: {{kind: DynamoGraphDeployment}}\n  patch: |-\n{}",
            TCP.lines().fold(String::new(), |all, l| all + "    " + l + "\n")
        ),
    )
    .write("other/agg.yaml", &GRAPH.replace("disagg", "unrelated"));
    let all = run(temp.path(), &path, &["."]);
    let mut files = all.files();
    files.sort();
    assert_eq!(
        files,
        [
            "./other/agg.yaml",
            "./overlays/prod (kubectl kustomize)",
            "./overlays/tcp (kubectl kustomize)"
        ]
    );
    assert!(all.has("ucx-tls-no-gpu-memory-transport"), "{}", all.stdout);
    assert_eq!(all.count("env/prefill-decode"), 3);
}

#[test]
fn a_kustomization_file_may_be_named() {
    let Some(path) = real("kubectl") else { return };
    let temp = overlay();
    let named = run(temp.path(), &path, &["overlays/prod/kustomization.yaml"]);
    assert_eq!(named.files(), [PROD]);
    // The file without an extension counts as well, named or met.
    fs::rename(
        temp.path().join("overlays/prod/kustomization.yaml"),
        temp.path().join("overlays/prod/Kustomization"),
    )
    .unwrap();
    for given in ["overlays/prod/Kustomization", "overlays/prod"] {
        assert_eq!(run(temp.path(), &path, &[given]).files(), [PROD]);
    }
}

#[test]
fn a_part_that_is_named_is_judged_once_and_told() {
    let Some(path) = real("kubectl") else { return };
    let temp = overlay();
    let both = run(temp.path(), &path, &["overlays/prod", "base/deploy.yaml"]);
    assert_eq!(both.files(), [PROD]);
    let told = both.inputs();
    assert!(
        told.iter()
            .any(|(_, file, words)| file == "base/deploy.yaml"
                && words.contains("as a part of overlays/prod")),
        "{told:?}"
    );
}

#[test]
fn patches_components_and_generators() {
    let Some(path) = real("kubectl") else { return };
    let temp = overlay();
    temp.write("parts/rdma/patch.yaml", RDMA)
        .write(
            "parts/rdma/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- path: patch.yaml\n",
        )
        .write("overlays/all/tcp.yaml", TCP)
        .write("overlays/all/values.yaml", "kind: nothing to judge\n")
        .write("overlays/all/old.yaml", RDMA)
        .write(
            "overlays/all/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
bases: [../../base]
components: [../../parts/rdma]
patchesStrategicMerge:
- old.yaml
- |-
  apiVersion: nvidia.com/v1alpha1
  kind: DynamoGraphDeployment
  metadata: {name: disagg}
  spec: {backendFramework: vllm}
patchesJson6902:
- target: {group: nvidia.com, version: v1alpha1, kind: DynamoGraphDeployment, name: disagg}
  path: tcp.yaml
configMapGenerator:
- name: data
  files: [key=values.yaml]
secretGenerator:
- name: secret
  literals: [token=s3cr3t-of-the-generator]
",
        );
    let all = run(temp.path(), &path, &["overlays/all", "parts"]);
    let files = all.files();
    assert_eq!(
        files,
        ["overlays/all (kubectl kustomize)"],
        "{}",
        all.stdout
    );
    assert!(all.has("ucx-tls-no-gpu-memory-transport"));
    assert!(!all.stdout.contains("s3cr3t-of-the-generator"));
    assert!(!all.has("input-kustomization-not-rendered"));
    // A component alone is a part, and no failure.
    let alone = run(temp.path(), &path, &["parts"]);
    assert!(alone.files().contains(&"parts/rdma/patch.yaml".to_owned()));
    assert!(!alone.has("input-kustomization-not-rendered"));
}

#[test]
fn a_config_map_belongs_to_its_own_overlay() {
    let Some(path) = real("kubectl") else { return };
    let temp = Temp::new();
    let deploy = GRAPH.replace(
        "- {name: UCX_TLS, value: \"rc,cuda_copy,cuda_ipc\"}",
        "- {name: UCX_TLS, valueFrom: {configMapKeyRef: {name: net, key: tls}}}",
    );
    temp.write("base/deploy.yaml", &deploy)
        .write("base/kustomization.yaml", "resources: [deploy.yaml]\n");
    for (name, tls) in [("a", "rc,cuda_copy"), ("b", "tcp")] {
        temp.write(
            &format!("{name}/kustomization.yaml"),
            &format!(
                "resources: [../base]\ngeneratorOptions: {{disableNameSuffixHash: true}}\nconfigMapGenerator:\n- name: net\n  literals: ['tls={tls}']\n"
            ),
        );
    }
    let both = run(temp.path(), &path, &["."]);
    assert_eq!(
        both.files(),
        ["./a (kubectl kustomize)", "./b (kubectl kustomize)"]
    );
    let of = |deployment: &str| {
        both.json["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|c| c["cause"] == "ucx-tls-no-gpu-memory-transport")
            .filter(|c| c["sources"].to_string().contains(deployment))
            .count()
    };
    assert_eq!((of("./a ("), of("./b (")), (0, 2), "{}", both.stdout);
}

#[test]
fn a_broken_kustomization_leaves_its_parts() {
    let Some(path) = real("kubectl") else { return };
    let temp = overlay();
    temp.write(
        "overlays/prod/rdma.yaml",
        &RDMA.replace("name: disagg", "name: another"),
    );
    let broken = run(temp.path(), &path, &["overlays/prod"]);
    let words = broken.skipped();
    assert!(words.contains("exit code 1"), "{words}");
    assert!(words.contains("a patch finds no object to change"));
    assert!(words.contains("kubectl kustomize overlays/prod | check-interconnect env -"));
    assert!(
        broken
            .verdict()
            .ends_with("1 kustomization was not rendered"),
        "{}",
        broken.verdict()
    );
    // What is below it can still be rendered.
    let files = broken.files();
    assert!(files.contains(&"base (kubectl kustomize)".to_owned()));
    assert!(files.contains(&"overlays/prod/rdma.yaml".to_owned()));
}

#[test]
fn what_is_wrong_is_seen_before_anything_runs() {
    // No program is there, and yet the reason is another one.
    let cases = [
        (
            "resources: [gone.yaml]\n",
            "kustomization.yaml:1 names something that is not there",
        ),
        (
            "resources:\n- deploy.yaml\npatches:\n- path: gone.yaml\n",
            "kustomization.yaml:4 names something that is not there",
        ),
        ("resources: [deploy.yaml]\n  x: [\n", "is not valid YAML"),
        ("resources: [deploy.yaml, ../alone]\n", "reaches itself"),
        (
            "resources: [deploy.yaml, empty]\n",
            "a directory without a kustomization",
        ),
    ];
    for (text, why) in cases {
        let temp = Temp::new();
        temp.write("alone/deploy.yaml", GRAPH)
            .write("alone/empty/readme.md", "")
            .write("alone/kustomization.yaml", text);
        let found = run(temp.path(), NOTHING, &["alone"]);
        let all = found.inputs();
        assert!(
            all.iter().any(|(_, _, w)| w.contains(why)),
            "{text}: {all:?}"
        );
        assert!(found.has("ucx-tls-rdma-only-no-device"), "{text}");
    }
}

#[test]
fn kustomizations_that_reach_each_other_are_not_lost() {
    let temp = Temp::new();
    temp.write("a/deploy.yaml", GRAPH)
        .write("a/kustomization.yaml", "resources: [deploy.yaml, ../b]\n")
        .write("b/kustomization.yaml", "resources: [../a]\n");
    let found = run(temp.path(), NOTHING, &["."]);
    assert!(found.verdict().contains("not rendered"));
    assert!(found.has("ucx-tls-rdma-only-no-device"));
}

#[test]
fn nothing_remote_is_fetched() {
    let Some(path) = real("kubectl") else { return };
    let remote = [
        "resources: [deploy.yaml, 'https://192.0.2.1/user:t0ken@x.yaml']\n",
        "resources: [deploy.yaml, 'github.com/owner/repository//base?ref=v1']\n",
        "resources: [deploy.yaml, 'git@192.0.2.1:owner/repository']\n",
        "resources: [deploy.yaml, 'ssh://192.0.2.1/repository']\n",
        "resources: [deploy.yaml, 'file:///tmp/repository']\n",
        "Resources: [deploy.yaml, 'HTTPS://192.0.2.1/x.yaml']\n",
        "bases: ['git::https://192.0.2.1/x']\nresources: [deploy.yaml]\n",
        "components: ['https://192.0.2.1/x']\nresources: [deploy.yaml]\n",
        "patches: [{PATH: 'http://192.0.2.1/p.yaml'}]\nresources: [deploy.yaml]\n",
        "patchesStrategicMerge: ['http://192.0.2.1/p.yaml']\nresources: [deploy.yaml]\n",
        "patchesJson6902: [{path: 'http://192.0.2.1/p.yaml'}]\nresources: [deploy.yaml]\n",
        "replacements: [{path: 'http://192.0.2.1/p.yaml'}]\nresources: [deploy.yaml]\n",
        "configMapGenerator: [{name: a, files: ['k=http://192.0.2.1/x']}]\nresources: [deploy.yaml]\n",
        "secretGenerator: [{name: a, envs: ['http://192.0.2.1/x']}]\nresources: [deploy.yaml]\n",
        "openapi: {path: 'http://192.0.2.1/x'}\nresources: [deploy.yaml]\n",
        "crds: ['http://192.0.2.1/x']\nresources: [deploy.yaml]\n",
        "configurations: ['http://192.0.2.1/x']\nresources: [deploy.yaml]\n",
        "transformers: ['http://192.0.2.1/x']\nresources: [deploy.yaml]\n",
        "x: &a {path: 'http://192.0.2.1/x'}\npatches: [*a]\nresources: [deploy.yaml]\n",
        "helmCharts: [{name: x, repo: 'https://192.0.2.1'}]\nresources: [deploy.yaml]\n",
        "generators:\n- |-\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {name: x}\nresources: [deploy.yaml]\n",
    ];
    for text in remote {
        let temp = Temp::new();
        temp.write("base/deploy.yaml", GRAPH)
            .write("base/kustomization.yaml", text)
            .write("top/kustomization.yaml", "resources: [../base]\n");
        let start = Instant::now();
        let found = run(temp.path(), &path, &["top"]);
        assert!(start.elapsed() < Duration::from_secs(5), "{text}");
        let told: Vec<_> = found
            .inputs()
            .into_iter()
            .filter(|i| i.0 == "skipped")
            .collect();
        // The overlay and the base; each says where.
        assert_eq!(told.len(), 2, "{text}: {told:?}");
        for (_, _, words) in &told {
            assert!(words.contains("base/kustomization.yaml:"), "{words}");
            assert!(words.contains("network"), "{text}: {words}");
        }
        assert!(!found.stdout.contains("192.0.2.1"), "{text}");
        assert!(found.has("ucx-tls-rdma-only-no-device"), "{text}");
        assert_eq!(
            found
                .files()
                .iter()
                .filter(|f| f.contains("deploy.yaml"))
                .count(),
            1
        );
    }
}

#[test]
fn a_file_with_a_remote_looking_name_is_local() {
    let Some(path) = real("kubectl") else { return };
    let temp = Temp::new();
    temp.write("a/me@here.yaml", GRAPH)
        .write("a/kustomization.yaml", "resources: ['me@here.yaml']\nimages: [{name: x, newName: 'registry:5000/x'}]\ncommonAnnotations: {see: 'https://example.com'}\n");
    let found = run(temp.path(), &path, &["a"]);
    assert_eq!(found.files(), ["a (kubectl kustomize)"], "{}", found.stdout);
}

#[test]
fn odd_paths() {
    let Some(path) = real("kubectl") else { return };
    let temp = overlay();
    let odd = temp.path().join("it's a \"dir\"; $x");
    fs::rename(temp.path().join("overlays"), temp.path().join("-o")).unwrap();
    let dashed = run(temp.path(), &path, &["--", "-o/prod"]);
    assert_eq!(dashed.files(), ["-o/prod (kubectl kustomize)"]);
    assert!(dashed.inputs()[0].2.contains("kubectl kustomize ./-o/prod"));
    fs::rename(temp.path().join("-o"), &odd).unwrap();
    let found = run(temp.path(), &path, &[&odd.join("prod").to_string_lossy()]);
    assert_eq!(found.deployments().len(), 1);
    assert!(found.files()[0].ends_with("/prod (kubectl kustomize)"));
    assert_eq!(found.code, 0);
    let link = temp.path().join("link");
    symlink(odd.join("prod"), &link).unwrap();
    let linked = run(temp.path(), &path, &["link"]);
    assert_eq!(linked.files(), ["link (kubectl kustomize)"]);
    // Met twice, by its name and by the link, it is still one.
    let walked = run(temp.path(), &path, &["."]);
    assert_eq!(walked.deployments().len(), 1, "{:?}", walked.files());
    let here = run(&odd.join("prod"), &path, &["."]);
    assert_eq!(here.files(), [". (kubectl kustomize)"]);
    let file = run(&odd.join("prod"), &path, &["kustomization.yaml"]);
    assert_eq!(file.files(), [". (kubectl kustomize)"]);
}

#[test]
fn parts_only_on_demand() {
    let temp = overlay();
    let parts = run(temp.path(), NOTHING, &[".", "--no-render"]);
    assert!(parts.files().contains(&"./base/deploy.yaml".to_owned()));
    assert!(!parts.verdict().contains("not rendered"));
    let told = parts.inputs();
    assert!(
        told.iter()
            .any(|(status, _, words)| status == "ok" && words.contains("--no-render")),
        "{told:?}"
    );
}

#[test]
fn a_base_that_is_not_there_is_told_of_once() {
    let temp = Temp::new();
    temp.write("kustomization.yaml", "resources: [../base]\n");
    for options in [&["."][..], &[".", "--no-render"]] {
        let found = run(temp.path(), NOTHING, options);
        let told = found
            .inputs()
            .iter()
            .filter(|(status, _, _)| status == "skipped")
            .count();
        assert_eq!(told, 1, "{options:?}: {:?}", found.inputs());
        assert!(
            found.verdict().contains("that can be seen"),
            "{}",
            found.verdict()
        );
    }
}

#[test]
fn what_belongs_to_another_program_is_a_plain_file() {
    let temp = Temp::new();
    temp.write("deploy.yaml", GRAPH).write(
        "kustomization.yaml",
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: x}\nspec: {path: ./x}\n",
    );
    let found = run(temp.path(), NOTHING, &["."]);
    assert!(!found.has("input-kustomization-not-rendered"));
    assert!(found.has("ucx-tls-rdma-only-no-device"));
}

#[test]
fn parts_outside_what_was_given_are_judged_too() {
    let temp = overlay();
    let found = run(temp.path(), NOTHING, &["overlays/prod"]);
    let files = found.files();
    assert!(files.contains(&"base/deploy.yaml".to_owned()), "{files:?}");
    assert!(files.contains(&"overlays/prod/rdma.yaml".to_owned()));
    let words = found.skipped();
    assert!(words.contains("neither kubectl nor kustomize is on PATH"));
    assert!(words.contains("kubectl kustomize overlays/prod | check-interconnect env -"));
    assert_eq!(found.code, 1);
}

#[test]
fn aliases_do_not_multiply_the_work() {
    let temp = Temp::new();
    let mut text = "x: &many [".to_owned();
    text.push_str(&"a,".repeat(50_000));
    text.push_str("]\n");
    text.push_str(&"resources: *many\n".repeat(50_000));
    temp.write("k/kustomization.yaml", &text);
    let start = Instant::now();
    let found = run(temp.path(), NOTHING, &["k"]);
    assert!(start.elapsed() < Duration::from_mins(1));
    assert!(found.has("input-kustomization-not-rendered"));
}

#[test]
fn kustomize_itself_gives_the_same() {
    let Some(path) = real("kustomize") else {
        return;
    };
    let temp = overlay();
    fs::create_dir(temp.path().join("bin")).unwrap();
    let program = std::path::Path::new(path.split(':').next().unwrap()).join("kustomize");
    symlink(program, temp.path().join("bin/kustomize")).unwrap();
    let bin = temp.path().join("bin");
    let found = run(temp.path(), &bin.to_string_lossy(), &["."]);
    assert_eq!(found.files(), ["./overlays/prod (kustomize build)"]);
    assert!(!found.has("ucx-tls-rdma-only-no-device"));
}
