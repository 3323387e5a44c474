//! What is asked for in a wrong way, and what must not be lost by it.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use crate::deployment::{member, well};
use crate::drift::RECIPE;
use crate::support::{program, run, run_with, serving, tree_of};

fn nowhere() -> &'static Path {
    Path::new("/nonexistent")
}

#[test]
fn a_recipe_takes_its_own_graph_and_no_other_whose_workers_are_called_alike() {
    let dir = tempfile::tempdir().unwrap();
    let well = well();
    for (name, code) in [("llama", None), ("qwen", Some(4))] {
        let recipe = dir.path().join(format!("{name}.yaml"));
        let text = RECIPE.replace("name: llama", &format!("name: {name}"));
        std::fs::write(&recipe, text).unwrap();
        let words = ["check", "-f", recipe.to_str().unwrap(), "-o", "json"];
        let done = run(&well.api, &words);
        let found = &done.json()["coverage"]["workers_found"];
        match code {
            None => assert_eq!(found, 6, "{}", done.out),
            Some(code) => {
                assert_eq!(done.code, code, "{}", done.out);
                assert!(done.out.contains("no KV worker of 'qwen'"), "{}", done.out);
                assert!(!done.out.contains("setting-changed-on-the-way"));
            }
        }
    }
}

#[test]
fn a_recipe_of_other_objects_takes_workers_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = dir.path().join("r.yaml");
    let half = |role: &str| {
        format!(
            "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: {role}, namespace: serving}}\nspec:\n  template:\n    spec:\n      containers:\n        - name: main\n          image: registry.example/vllm-runtime:1.0.0\n          command: [python3, -m, dynamo.vllm, --disaggregation-mode, {role}]\n          resources: {{limits: {{nvidia.com/gpu: 1, rdma/ib: 1}}}}\n"
        )
    };
    let text = format!("{}---\n{}", half("prefill"), half("decode"));
    std::fs::write(&recipe, text).unwrap();
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = serving()
        .pod(crate::support::bare(
            "prefill-0",
            "prefill",
            &prefill.root(),
        ))
        .pod(crate::support::bare("decode-0", "decode", &decode.root()))
        .start()
        .unwrap();
    let words = ["check", "-f", recipe.to_str().unwrap(), "-o", "json"];
    let done = run(&api, &words);
    assert_eq!(
        done.json()["coverage"]["workers_found"],
        2,
        "{}{}",
        done.out,
        done.err
    );
}

/// Who gives both a name and a recipe says that they belong together, whatever the recipe calls it.
#[test]
fn of_several_recipes_that_could_be_meant_none_is_guessed() {
    let dir = tempfile::tempdir().unwrap();
    let well = well();
    let mut recipes = Vec::new();
    for name in ["qwen", "gemma"] {
        let recipe = dir.path().join(format!("{name}.yaml"));
        let text = RECIPE
            .replace("name: llama", &format!("name: {name}"))
            .replace("value: rc,cuda_copy", "value: tcp,cuda_copy");
        std::fs::write(&recipe, text).unwrap();
        recipes.push(recipe.to_str().unwrap().to_owned());
    }
    let mut words = vec!["check", "llama", "-n", "serving", "-f", &recipes[0]];
    let one = run(&well.api, &words);
    assert!(
        one.out.contains("setting-changed-on-the-way"),
        "{}",
        one.out
    );
    words.extend(["-f", &recipes[1]]);
    let two = run(&well.api, &words);
    assert!(
        !two.out.contains("setting-changed-on-the-way"),
        "{}",
        two.out
    );
}

#[test]
fn a_recipe_that_cannot_be_read_is_not_told_as_one_without_workers() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("broken.yaml"), "spec: [a\n").unwrap();
    std::fs::write(path("other.yaml"), "kind: Service\nmetadata: {name: a}\n").unwrap();
    for (name, told, not) in [
        ("broken.yaml", "could be read from", "declares no"),
        ("missing.yaml", "no such file", "declares no"),
        (
            "other.yaml",
            "declares no prefill or decode",
            "could be read",
        ),
    ] {
        let done = run_with(nowhere(), &["check", "-n", "a", "-f", &path(name)]);
        assert_eq!(done.code, 2, "{name} {}", done.out);
        assert!(done.err.contains(told), "{name} {}", done.err);
        assert!(!done.err.contains(not), "{name} {}", done.err);
    }
}

#[test]
fn selectors_that_cannot_be_meant_are_wrong_usage_and_nothing_is_looked_into() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = serving()
        .pod(member("prefill-0", &prefill.root()))
        .pod(member("decode-0", &decode.root()))
        .start()
        .unwrap();
    let graph = "nvidia.com/dynamo-graph-deployment-name=llama";
    for (words, told) in [
        (
            vec!["--prefill", graph, "--decode", graph],
            "--prefill or --decode: both take pods decode-0, prefill-0",
        ),
        (vec!["--prefill", "a b", "--decode", graph], "'a b'"),
        (vec!["--prefill", "", "--decode", ""], "--prefill is empty"),
        (
            vec!["--prefill", graph, "--decode", " "],
            "--decode is empty",
        ),
        (vec!["-l", "a b"], "--selector: 'a b'"),
        (vec![""], "NAME is empty"),
    ] {
        let mut all = vec!["check", "-n", "serving"];
        all.extend(&words);
        let done = run(&api, &all);
        assert_eq!(done.code, 2, "{words:?} {}", done.out);
        assert!(done.err.contains(told), "{words:?} {}", done.err);
    }
    // An empty variable in place of a namespace is none.
    let done = run(&api, &["check", "-n", ""]);
    assert_eq!(done.code, 2, "{}", done.out);
    assert!(api.execs().is_empty());
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.gz");
    let bundle = bundle.to_str().unwrap();
    for (words, told) in [
        (
            vec!["--depth", "all"],
            "--depth is for workers of a cluster",
        ),
        (vec!["--run-timeout", "1m"], "--run-timeout is for workers"),
    ] {
        let done = run_with(
            nowhere(),
            &[&["collect", "-o", bundle], words.as_slice()].concat(),
        );
        assert_eq!(done.code, 2, "{words:?} {}", done.out);
        assert!(done.err.contains(told), "{words:?} {}", done.err);
        assert!(!Path::new(bundle).exists());
    }
    let well = well();
    let save = ["check", "llama", "-n", "serving", "--bundle", bundle];
    run(&well.api, &save);
    for option in [vec!["-v"], vec!["--color", "always"]] {
        let words = [&["replay", bundle, "--against", bundle], option.as_slice()].concat();
        let done = run_with(nowhere(), &words);
        assert_eq!(done.code, 2, "{option:?} {}", done.out);
        assert!(done.err.contains("--against"), "{option:?} {}", done.err);
    }
    let words = ["replay", bundle, "--against", bundle, "--color", "never"];
    // What the later report exits with.
    assert_eq!(run_with(nowhere(), &words).code, 3);
}

#[test]
fn nothing_that_is_read_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let well = well();
    let save = ["check", "llama", "-n", "serving", "--bundle"];
    for name in ["before", "after"] {
        let mut words = save.to_vec();
        let file = path(name);
        words.push(&file);
        run(&well.api, &words);
    }
    // A recipe need not be called YAML.
    std::fs::write(path("recipe.txt"), RECIPE).unwrap();
    let held = |name: &str| std::fs::read(path(name)).unwrap();
    let (before, recipe) = (held("before"), held("recipe.txt"));
    let into = format!("json={}", path("before"));
    let against = ["replay", &path("after"), "--against", &path("before")];
    let mut words = against.to_vec();
    words.extend(["-o", &into]);
    let done = run_with(nowhere(), &words);
    assert_eq!(done.code, 2, "{}", done.out);
    assert!(done.err.contains("one of the inputs"), "{}", done.err);
    let file = path("recipe.txt");
    let done = run(&well.api, &["collect", "-o", &file, "-f", &file, "llama"]);
    assert_eq!(done.code, 2, "{}", done.out);
    assert_eq!((held("before"), held("recipe.txt")), (before, recipe));
    // Another file is written.
    let into = format!("json={}", path("changes.json"));
    let mut words = against.to_vec();
    words.extend(["-o", &into]);
    run_with(nowhere(), &words);
    assert!(held("changes.json").starts_with(b"{"));
}

#[test]
fn a_bundle_goes_into_a_pipe_and_through_a_link_and_leaves_both_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let well = well();
    let pipe = path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let mut check = program(well.api.kubeconfig());
    check.args(["check", "llama", "-n", "serving", "--bundle"]);
    let mut child = check
        .arg(&pipe)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut through = Vec::new();
    let mut reader = std::fs::File::open(&pipe).unwrap();
    reader.read_to_end(&mut through).unwrap();
    child.wait().unwrap();
    let kind = std::fs::symlink_metadata(&pipe).unwrap().file_type();
    assert!(!kind.is_file(), "the pipe was replaced");

    std::fs::write(path("real"), "earlier").unwrap();
    std::os::unix::fs::symlink("real", path("link")).unwrap();
    let link = path("link");
    let words = ["check", "llama", "-n", "serving", "--bundle"];
    let mut words = words.to_vec();
    words.push(link.to_str().unwrap());
    run(&well.api, &words);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(path("real")).unwrap(), through);
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 3, "something was left beside them");
}

#[test]
fn a_manifest_for_nobody_ends_as_every_command_does() {
    let well = well();
    for (words, code) in [
        (vec!["--pod", "gone"], 4),
        (vec!["-l", "app=nobody"], 4),
        (vec!["-l", "a b"], 2),
        (vec!["--pod", "decode-0"], 0),
    ] {
        let mut all = vec!["manifest", "-n", "serving"];
        all.extend(&words);
        let done = run(&well.api, &all);
        assert_eq!(done.code, code, "{words:?} {}", done.err);
    }
    for command in [vec!["manifest"], vec!["nixl", "--debug-pods"]] {
        let mut words = command.clone();
        words.extend(["-n", "serving", "--pod", "decode-0"]);
        let done = run_with(nowhere(), &words);
        assert_eq!(done.code, 5, "{command:?} {}", done.err);
    }
    assert_eq!(run_with(nowhere(), &["manifest"]).code, 2);
}

#[test]
fn help_tells_options_under_what_they_are_about() {
    let under = |command: &str, option: &str| {
        let help = run_with(nowhere(), &[command, "-h"]).out;
        let mut heading = String::new();
        for line in help.lines() {
            if !line.starts_with(' ') && line.ends_with(':') {
                line.clone_into(&mut heading);
            }
            if line
                .trim_start()
                .split([' ', ','])
                .any(|word| word == option)
                && line.starts_with("  ")
            {
                return heading;
            }
        }
        panic!("{command} has no {option}: {help}");
    };
    for command in ["env", "node", "nixl", "check", "replay"] {
        for option in ["--output", "--color", "--fail-on", "--verbose"] {
            assert_eq!(under(command, option), "Output:", "{command} {option}");
        }
    }
    assert_eq!(under("check", "--bundle"), "Output:");
    assert_eq!(under("check", "--from-logs"), "Options:");
    assert_eq!(under("check", "--namespace"), "Pods of a cluster:");
    assert_eq!(under("check", "--pairs"), "Measured transfers:");
}

#[test]
fn an_option_that_would_do_nothing_is_refused() {
    for (words, told) in [
        ("check --from-logs x --depth all", "cannot be used"),
        ("check --from-logs x --run-timeout 1s", "cannot be used"),
        ("check --from-logs x --timeout 1s", "cannot be used"),
        ("check --from-logs x --concurrency 2", "cannot be used"),
        ("manifest --image a --schedule @hourly", "--kind cronjob"),
        (
            "manifest --image a --kind job --textfile-dir /a",
            "--kind cronjob",
        ),
        (
            "manifest -f x --image a --resource rdma/ib=1",
            "cannot be used",
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let done = run_with(nowhere(), &words);
        assert_eq!(done.code, 2, "{words:?} {}", done.out);
        assert!(done.err.contains(told), "{words:?} {}", done.err);
    }
    let words = "manifest --image a --kind cronjob --textfile-dir /a --schedule @hourly --resource rdma/ib=1";
    let done = run_with(nowhere(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("@hourly"), "{}", done.out);
}
