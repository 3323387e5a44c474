//! Which workers are meant.

use crate::deployment::{member, well};
use crate::support::{run, serving, tree_of};

#[test]
fn nothing_asked_for_is_a_question() {
    let well = well();
    let api = &well.api;
    let run = run(api, &["check"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("check NAME -n NAMESPACE"), "{}", run.err);
    assert!(api.execs().is_empty());
}

#[test]
fn a_name_that_is_not_there_names_those_that_are() {
    let well = well();
    let api = &well.api;
    let run = run(api, &["check", "lama", "-n", "serving"]);
    assert_eq!(run.code, 4, "{}", run.out);
    assert!(run.out.contains("of llama"), "{}", run.out);
    assert!(api.execs().is_empty());
}

#[test]
fn another_deployment_of_the_namespace_is_passed_over() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = serving()
        .pod(member("prefill-0", &prefill.root()))
        .pod(member("decode-0", &decode.root()))
        .pod(
            member("decode-9", &decode.root())
                .label("nvidia.com/dynamo-graph-deployment-name", "other"),
        )
        .start()
        .unwrap();
    let run = run(&api, &["check", "llama", "-n", "serving", "-o", "json"]);
    assert_eq!(run.json()["coverage"]["workers_found"], 2);
    assert!(run.out.contains("a KV worker of other"), "{}", run.out);
}

#[test]
fn roles_can_be_said_by_labels() {
    let tree = tree_of("decode");
    // Nothing that runs there tells its role.
    tree.file("/proc/42/cmdline", "python3\0-m\0vllm.entrypoints.openai.api_server\0--kv-transfer-config\0{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}\0");
    let pod = |name: &str, side: &str| {
        stand_in::Pod::worker(name)
            .tree(tree.root())
            .label("side", side)
            .spec("command", serde_json::json!(["vllm", "serve", "model"]))
            .resource("nvidia.com/gpu", "1")
    };
    let api = serving()
        .pod(pod("a-0", "left"))
        .pod(pod("b-0", "right"))
        .start()
        .unwrap();
    let words = [
        "check",
        "-n",
        "serving",
        "--prefill",
        "side=left",
        "--decode",
        "side=right",
        "-o",
        "json",
    ];
    let report = run(&api, &words).json();
    assert_eq!(report["coverage"]["pairs_required"], 1, "{report:#}");
}
