//! The calls that the published skill documents, word for word, and what their callers rely on.

use std::fs;
use std::path::PathBuf;

use crate::tools::{
    SCRIPT, VARIABLE, case, executable, folder, has_python, install, looked_here, no_cluster,
    program_in, script,
};

/// The recipe that the published skill's examples name.
const RECIPE: &str = "recipes/gpt-oss-120b/vllm/disagg-b200-agentic";

/// An installed skill with a recipe of ours where the examples expect one.
fn installed(name: &str, recipe: &str) -> PathBuf {
    let skill = install(&folder(name));
    fs::create_dir_all(skill.join(RECIPE)).unwrap();
    fs::copy(case(recipe), skill.join(RECIPE).join("deploy.yaml")).unwrap();
    skill
}

#[test]
fn env_of_a_recipe_directory() {
    if !has_python() {
        return;
    }
    let run = script(
        &installed("env-dir", "rdma-both-roles.yaml"),
        &["env", RECIPE],
    );
    let report = run.report();
    assert_eq!(run.code, 0);
    assert_eq!(report.counts.fail, 0);
    assert!(report.checks.iter().any(|c| c.name == "env/ucx-tls"));
    assert!(!report.verdict.is_empty());

    let run = script(
        &installed("env-dir-fails", "decode-tcp-only.yaml"),
        &["env", RECIPE],
    );
    assert_eq!(run.code, 1);
    assert!(run.report().counts.fail > 0);
}

#[test]
fn env_of_a_file() {
    if !has_python() {
        return;
    }
    let skill = installed("env-file", "no-fabric.yaml");
    let run = script(&skill, &["env", &format!("{RECIPE}/deploy.yaml")]);
    assert_eq!(run.code, 0, "a warning is no failure");
    assert!(run.report().counts.warn > 0);
}

#[test]
fn a_path_that_is_not_there() {
    if !has_python() {
        return;
    }
    let skill = installed("env-missing", "no-fabric.yaml");
    let run = script(&skill, &["env", "recipes/not-there"]);
    assert_eq!(run.code, 2);
    assert!(!run.report().transfer_validated);
    // Published: a failed check and 1. Here 2, which callers that test for non-zero take the same way.
    fs::create_dir(skill.join("nothing-in-it")).unwrap();
    let run = script(&skill, &["env", "nothing-in-it"]);
    assert_eq!(run.code, 4);
}

#[test]
fn node_and_nixl_in_every_form() {
    if !has_python() {
        return;
    }
    let skill = installed("live", "no-fabric.yaml");
    for command in ["node", "nixl"] {
        for rest in [
            &["--namespace", "dynamo-demo", "--pod", "qwen-worker-0"][..],
            &[
                "--namespace",
                "dynamo-demo",
                "--pod",
                "qwen-worker-0",
                "--container",
                "main",
            ],
            &["-n", "dynamo-demo", "--pod", "qwen-worker-0", "-c", "main"],
            &["--pod=qwen-worker-0", "--namespace=dynamo-demo"],
        ] {
            let arguments = [&[command][..], rest].concat();
            no_cluster(&script(&skill, &arguments), command);
        }
    }
    looked_here(&script(&skill, &["nixl"]), "nixl");
    // Here: whatever this machine has, no transfer was validated.
    let here = script(&skill, &["node"]);
    let report = here.report();
    assert_eq!(report.command, "node");
    assert!(!report.checks.is_empty() && !report.transfer_validated);
    assert!([0, 1, 3].contains(&here.code), "{here:?}");
}

#[test]
fn no_command_help_and_wrong_usage() {
    if !has_python() {
        return;
    }
    let skill = install(&folder("usage"));
    let run = script(&skill, &[]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("Usage"), "{run:?}");
    for arguments in [
        &["--help"][..],
        &["-h"],
        &["env", "--help"],
        &["node", "-h"],
    ] {
        let run = script(&skill, arguments);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.out.contains("Usage"), "{run:?}");
    }
    for arguments in [&["env"][..], &["node", "--bad"], &["unheard-of"]] {
        let run = script(&skill, arguments);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(!run.err.is_empty());
    }
}

#[test]
fn an_output_format_of_the_caller_wins() {
    if !has_python() {
        return;
    }
    let skill = install(&folder("format"));
    let recipe = "evals/cases/decode-tcp-only.yaml";
    for form in [&["-o", "short"][..], &["--output=short"], &["-oshort"]] {
        let run = script(&skill, &[&["env", recipe][..], form].concat());
        assert_eq!(run.code, 1, "{run:?}");
        assert!(!run.out.starts_with('{'), "{run:?}");
    }
    let run = script(&skill, &["vars", "UCX_TLS=tcp"]);
    assert_eq!(run.code, 0);
    let run = script(&skill, &["env", recipe, "--fail-on", "never"]);
    assert_eq!(run.code, 0);
    run.report();
}

#[test]
fn everything_in_paths_with_spaces() {
    if !has_python() {
        return;
    }
    let base = folder("with spaces");
    let skill = install(&base.join("my skills"));
    let program = program_in(&base.join("my programs"));
    let recipe = base.join("my recipes/all of it");
    fs::create_dir_all(&recipe).unwrap();
    fs::copy(case("decode-tcp-only.yaml"), recipe.join("deploy it.yaml")).unwrap();
    let output = std::process::Command::new("python3")
        .arg(skill.join(SCRIPT))
        .arg("env")
        .arg(&recipe)
        .current_dir(&base)
        .env(VARIABLE, program)
        .output()
        .unwrap();
    let run = crate::tools::Run::of(&output);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.report().deployments[0].files[0].ends_with("all of it/deploy it.yaml"));
}

/// The published script prints whatever value it finds; this one prints what it knows to be harmless.
#[test]
fn no_secret_is_printed() {
    if !has_python() {
        return;
    }
    let skill = install(&folder("secrets"));
    let recipe = fs::read_to_string(case("decode-tcp-only.yaml")).unwrap();
    let recipe = recipe.replace(
        "      envs:\n",
        "      envs:\n        - name: HF_TOKEN\n          value: hunter2\n        - name: UCX_MY_TOKEN\n          value: hunter2\n",
    );
    let recipe = recipe.replace(
        "            - --model=example/model-32b\n",
        "            - --model=example/model-32b\n            - --api-key=hunter2\n",
    );
    assert_eq!(recipe.matches("hunter2").count(), 6);
    fs::write(skill.join("deploy.yaml"), recipe).unwrap();
    for form in [&[][..], &["-o", "text"], &["-o", "jsonl"], &["-o", "short"]] {
        let run = script(&skill, &[&["env", "deploy.yaml"][..], form].concat());
        assert_eq!(run.code, 1);
        assert!(!format!("{run:?}").contains("hunter2"), "{form:?}: {run:?}");
    }
}

/// Arguments arrive as they were given, and every exit code goes back.
#[test]
fn arguments_and_exit_codes_pass_through() {
    if !has_python() {
        return;
    }
    let base = folder("through");
    let stand_in = base.join("stand in");
    executable(
        &stand_in,
        "#!/bin/sh\nfor a in \"$@\"; do printf '[%s]' \"$a\"; done\nexit \"$CODE\"\n",
    );
    for code in [0, 1, 2, 3, 4, 5, 130, 143] {
        let output = std::process::Command::new("python3")
            .arg(skill_script())
            .args(["env", "a b", "", "ü\n*", "--fail-on", "warn"])
            .env(VARIABLE, &stand_in)
            .env("CODE", code.to_string())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "[env][-o][json][a b][][ü\n*][--fail-on][warn]"
        );
    }
}

fn skill_script() -> PathBuf {
    crate::tools::skill().join(SCRIPT)
}

/// Every name that the published script gives a check has a place in the table of the guide, and every name that
/// the table gives instead exists.
#[test]
fn names_of_checks_are_mapped() {
    let guide = fs::read_to_string(crate::tools::skill().join("SKILL.md")).unwrap();
    let table: Vec<&str> = guide
        .split("| Published | Here | Difference |")
        .nth(1)
        .unwrap()
        .lines()
        .skip(2)
        .take_while(|l| l.starts_with('|'))
        .collect();
    let column = |n: usize| -> Vec<&str> {
        table
            .iter()
            .flat_map(|l| l.split('|').nth(n).unwrap().split('`').skip(1).step_by(2))
            .collect()
    };
    let published = column(1);
    let variables = [
        "UCX_TLS",
        "UCX_NET_DEVICES",
        "UCX_IB_GPU_DIRECT_RDMA",
        "UCX_RNDV_SCHEME",
        "NIXL_PLUGIN_DIR",
        "NCCL_IB_HCA",
        "NCCL_SOCKET_IFNAME",
        "NCCL_IB_DISABLE",
        "NCCL_NET_GDR_LEVEL",
        "NCCL_P2P_LEVEL",
        "NCCL_IB_GID_INDEX",
    ];
    let others = [
        "env",
        "env:disagg-transport",
        "node:target",
        "ib-devices",
        "ibv-devinfo",
        "ib-link",
        "gpudirect-peermem",
        "gdrcopy",
        "gpu-topology",
        "nixl",
        "nixl:binary",
    ];
    for name in variables
        .map(|v| format!("env:{v}"))
        .into_iter()
        .chain(others.map(str::to_owned))
    {
        assert!(
            published.contains(&name.as_str()),
            "{name} is not in the table"
        );
    }
    let names = column(2).into_iter();
    for name in names.filter(|n| n.contains('/')) {
        let run = crate::tools::program(&["explain", name]);
        assert_eq!(run.code, 0, "{name}: {run:?}");
    }
}
