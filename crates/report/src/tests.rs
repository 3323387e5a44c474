//! Whole screens, and what every format must hold to.

use insta::assert_snapshot;
use jsonschema::Validator;
use model::{Report, Source, Status};
use serde_json::Value;

use crate::{Format, Options, fold, render, samples, schema_line, schema_report};

fn shown(format: Format, report: &Report, options: &Options) -> String {
    let mut out = Vec::new();
    render(format, report, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn plain(format: Format, report: &Report) -> String {
    shown(format, report, &Options::default())
}

fn all_samples() -> Vec<Report> {
    vec![
        samples::mismatch(),
        samples::clean(),
        samples::aggregated(),
        samples::broken(),
        samples::many_workers(),
        samples::hostile(),
        samples::directory(),
    ]
}

#[test]
fn mismatch_as_text() {
    assert_snapshot!(plain(Format::Text, &samples::mismatch()), @"
    check-interconnect env  dynamo-demo/qwen-disagg  2 prefill · 2 decode · vLLM · NIXL/UCX · rdma/ib: 4
      deploy.yaml

      prefill  VllmPrefillWorker  vLLM  NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod
      decode   VllmDecodeWorker   vLLM  NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod

    FAIL[ucx-tls-role-mismatch] decode workers are pinned to TCP while prefill workers use RDMA
       --> deploy.yaml:239:18
        |
     52 |           value: rc,cuda_copy,cuda_ipc
        |                  --------------------- prefill: rc and cuda_ipc
    ...
    239 |           value: tcp
        |                  ^^^ decode: no RDMA transport in this list
        |
        = fix: Give decode the same list as prefill: UCX_TLS=rc,cuda_copy,cuda_ipc. Both ends must have
               a transport in common, and the slower list decides.
        = note: cuda_ipc serves workers of one host only.
        = explain: check-interconnect explain ucx-tls-role-mismatch

    warn[memlock-capability-missing] decode: without IPC_LOCK the node's memlock limit decides whether
          RDMA memory can be registered (assumed)
      = fix: Add IPC_LOCK to securityContext.capabilities.add.
      = explain: check-interconnect explain memlock-capability-missing

      ok    prefill, decode  asks for rdma/ib: 4 (line 12, 201)
      ok    prefill          UCX_TLS=rc,cuda_copy,cuda_ipc: RDMA and NVLink; no TCP fallback (line 52)
      skip  decode           UCX_NET_DEVICES comes from a ConfigMap that is not among the inputs
                             [dynamic]
                             fix: Run check-interconnect nixl against the running pod.
      ok    prefill, decode  4 RDMA devices for 8 GPUs
                             note: With 8 GPUs and 4 devices two GPUs share a device.

    collectives (not KV transfer)
      ok    prefill, decode  NCCL_IB_DISABLE is not set: NCCL may use RDMA

    next
      check-interconnect check -n dynamo-demo --transfer
          measures a transfer between every pair and names the transport (not read-only)

    1 fail · 1 warn · 4 ok · 1 skipped
    verdict  blocked  KV transfer is not to be trusted: fix this first.
    ");
}

#[test]
fn mismatch_in_colour() {
    let options = Options {
        color: true,
        ..Options::default()
    };
    let text = shown(Format::Text, &samples::mismatch(), &options).replace('\u{1b}', "ESC");
    assert_snapshot!(text, @"
    ESC[1mcheck-interconnect envESC[0m  ESC[1mdynamo-demo/qwen-disaggESC[0m  2 prefill · 2 decode · vLLM · NIXL/UCX · rdma/ib: 4
      ESC[2mdeploy.yamlESC[0m

      prefill  VllmPrefillWorker  vLLM  NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod
      decode   VllmDecodeWorker   vLLM  NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod

    ESC[1mESC[31mFAIL[ucx-tls-role-mismatch]ESC[0m ESC[1mdecode workers are pinned to TCP while prefill workers use RDMAESC[0m
       ESC[1mESC[34m--> ESC[0mdeploy.yaml:239:18
        ESC[1mESC[34m|ESC[0m
    ESC[1mESC[34m 52 |ESC[0m           value: rc,cuda_copy,cuda_ipc
        ESC[1mESC[34m|ESC[0m                  ESC[1mESC[34m---------------------ESC[0m ESC[1mESC[34mprefill: rc and cuda_ipcESC[0m
    ESC[1mESC[34m...ESC[0m
    ESC[1mESC[34m239 |ESC[0m           value: tcp
        ESC[1mESC[34m|ESC[0m                  ESC[1mESC[31m^^^ESC[0m ESC[1mESC[31mdecode: no RDMA transport in this listESC[0m
        ESC[1mESC[34m|ESC[0m
        ESC[1mESC[34m= ESC[0mESC[1mfixESC[0m: Give decode the same list as prefill: UCX_TLS=rc,cuda_copy,cuda_ipc. Both ends must have
               a transport in common, and the slower list decides.
        ESC[1mESC[34m= ESC[0mESC[1mnoteESC[0m: cuda_ipc serves workers of one host only.
        ESC[1mESC[34m= ESC[0mESC[1mexplainESC[0m: check-interconnect explain ucx-tls-role-mismatch

    ESC[1mESC[33mwarn[memlock-capability-missing]ESC[0m ESC[1mdecode: without IPC_LOCK the node's memlock limit decides whetherESC[0m
          ESC[1mRDMA memory can be registered (assumed)ESC[0m
      ESC[1mESC[34m= ESC[0mESC[1mfixESC[0m: Add IPC_LOCK to securityContext.capabilities.add.
      ESC[1mESC[34m= ESC[0mESC[1mexplainESC[0m: check-interconnect explain memlock-capability-missing

      ESC[32mokESC[0m    prefill, decode  asks for rdma/ib: 4 (line 12, 201)
      ESC[32mokESC[0m    prefill          UCX_TLS=rc,cuda_copy,cuda_ipc: RDMA and NVLink; no TCP fallback (line 52)
      ESC[36mskipESC[0m  decode           UCX_NET_DEVICES comes from a ConfigMap that is not among the inputs
                             [dynamic]
                             ESC[2mfix: ESC[0mRun check-interconnect nixl against the running pod.
      ESC[32mokESC[0m    prefill, decode  4 RDMA devices for 8 GPUs
                             ESC[2mnote: ESC[0mWith 8 GPUs and 4 devices two GPUs share a device.

    ESC[1mcollectivesESC[0m (not KV transfer)
      ESC[32mokESC[0m    prefill, decode  NCCL_IB_DISABLE is not set: NCCL may use RDMA

    ESC[1mnextESC[0m
      check-interconnect check -n dynamo-demo --transfer
          ESC[2mmeasures a transfer between every pair and names the transport (not read-only)ESC[0m

    1 fail · 1 warn · 4 ok · 1 skipped
    ESC[1mverdictESC[0m  ESC[1mESC[31mblockedESC[0m  KV transfer is not to be trusted: fix this first.
    ");
}

/// Colours change nothing but colours.
#[test]
fn colour_adds_nothing_else() {
    let options = Options {
        color: true,
        ..Options::default()
    };
    for report in all_samples() {
        for format in [Format::Text, Format::Short] {
            let mut bare = String::new();
            let coloured = shown(format, &report, &options);
            for (index, part) in coloured.split('\u{1b}').enumerate() {
                bare.push_str(if index == 0 {
                    part
                } else {
                    part.split_once('m').unwrap().1
                });
            }
            assert_eq!(bare, plain(format, &report));
        }
    }
}

#[test]
fn mismatch_as_short() {
    assert_snapshot!(plain(Format::Short, &samples::mismatch()), @r"
    deploy.yaml:239:18: FAIL[ucx-tls-role-mismatch] decode workers are pinned to TCP while prefill workers use RDMA
    qwen-disagg: warn[memlock-capability-missing] decode: without IPC_LOCK the node's memlock limit decides whether RDMA memory can be registered
    1 fail · 1 warn · 4 ok · 1 skipped  (check-interconnect 0.1.0 env deploy.yaml)
    verdict  blocked  KV transfer is not to be trusted: fix this first.
    ");
}

#[test]
fn clean_as_text() {
    assert_snapshot!(plain(Format::Text, &samples::clean()), @"
    check-interconnect env  llama-disagg  2 prefill · 2 decode · vLLM · NIXL/UCX · rdma/ib: 4
      deploy.yaml

      prefill  VllmPrefillWorker  vLLM  NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod
      decode   VllmDecodeWorker   vLLM  NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod

      ok    prefill, decode  UCX_TLS=rc,cuda_copy,cuda_ipc: RDMA and NVLink; no TCP fallback (line 40,
                             90)
      ok    prefill, decode  IPC_LOCK is added, so RDMA memory can be registered (line 49, 99)

    next
      check-interconnect nixl -n NAMESPACE -l ROLE=decode
          says which transport the running worker chose

    0 fail · 0 warn · 4 ok · 0 skipped
    verdict  unproven  RDMA is declared for both roles and not measured: run check --transfer.
    ");
}

#[test]
fn clean_verbose_in_ascii_and_narrow() {
    let options = Options {
        width: 60,
        verbose: true,
        ascii: true,
        version: "1.2.3",
        ..Options::default()
    };
    let text = shown(Format::Text, &samples::clean(), &options);
    assert!(text.is_ascii());
    assert_snapshot!(text, @"
    check-interconnect env  llama-disagg  2 prefill, 2 decode,
        vLLM, NIXL/UCX, rdma/ib: 4 (version 1.2.3)
      deploy.yaml

      prefill   VllmPrefillWorker  vLLM            NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod
      decode    VllmDecodeWorker   vLLM            NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod
      frontend  Frontend           unknown engine  -         -           1 replica

      ok    prefill, decode  UCX_TLS=rc,cuda_copy,cuda_ipc: RDMA
                             and NVLink; no TCP fallback (line
                             40, 90) [env/ucx-tls, declared]
      ok    prefill, decode  IPC_LOCK is added, so RDMA memory
                             can be registered (line 49, 99)
                             [env/ipc-lock, declared]

    next
      check-interconnect nixl -n NAMESPACE -l ROLE=decode
          says which transport the running worker chose

    0 fail, 0 warn, 4 ok, 0 skipped
    verdict  unproven  RDMA is declared for both roles and not measured: run check --transfer.
    ");
}

#[test]
fn aggregated_as_text() {
    assert_snapshot!(plain(Format::Text, &samples::aggregated()), @"
    check-interconnect env  agg  2 aggregated · vLLM
      deploy.yaml

      aggregated  VllmWorker  vLLM  -  -  2 replicas, 2 nodes each, 8 accelerators per pod

    collectives (not KV transfer)
      ok    aggregated  NCCL_IB_DISABLE=1 (line 7)
                        note: NCCL between the two nodes would use TCP.

    0 fail · 0 warn · 0 ok · 0 skipped
    verdict  not-applicable  Nothing is disaggregated: KV transport is not exercised.
    ");
}

#[test]
fn broken_as_text() {
    assert_snapshot!(plain(Format::Text, &samples::broken()), @r"
    check-interconnect env  bad.yaml, templates

    warn[input-not-yaml] expected ']' and got the end of the file
     --> bad.yaml:3:9
      |
    3 |   args: [--model
      |         ^ opened here
      |
      = fix: Close the bracket; then run again.
      = explain: check-interconnect explain input-not-yaml

    inputs
      skip  templates/0.yaml, templates/1.yaml and 3 more  is a Helm template and not YAML until it is
               rendered [unreadable]

    0 fail · 1 warn · 0 ok · 5 skipped · 6 inputs not read
    verdict  inconclusive  No recipe could be read.
    ");
}

#[test]
fn directory_as_text() {
    let text = plain(Format::Text, &samples::directory());
    let from_twin = text.split_once("\ntwin").unwrap().1;
    assert_snapshot!(from_twin, @"
      2 prefill · 2 decode · vLLM · NIXL/UCX · rdma/ib: 4 (twins/1.yaml)
      twins/1.yaml

      prefill  VllmPrefillWorker  vLLM  NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod
      decode   VllmDecodeWorker   vLLM  NIXL/UCX  rdma/ib: 4  2 replicas, 8 accelerators per pod

    warn[env/ucx-tls] prefill, decode: UCX_TLS=all: UCX chooses
     --> twins/1.yaml:5:8
      |
    5 | value: all
      |        ^^^

      degraded  KV transport is declared and not measured.

    unproven        twin  2 prefill · 2 decode · vLLM · NIXL/UCX · rdma/ib: 4 (twins/0.yaml)
    not-applicable  40 deployments with nothing disaggregated (--verbose lists them)

    next
      check-interconnect check -n dynamo-demo --transfer
          measures a transfer between every pair and names the transport (not read-only)

    1 fail · 2 warn · 5 ok · 1 skipped
    verdict  blocked  KV transfer is not to be trusted: fix this first.
    ");
}

#[test]
fn directory_as_short() {
    assert_snapshot!(plain(Format::Short, &samples::directory()), @r"
    deploy.yaml:239:18: FAIL[ucx-tls-role-mismatch] decode workers are pinned to TCP while prefill workers use RDMA
    qwen-disagg: warn[memlock-capability-missing] decode: without IPC_LOCK the node's memlock limit decides whether RDMA memory can be registered
    twins/1.yaml:5:8: warn[env/ucx-tls] prefill, decode: UCX_TLS=all: UCX chooses
    1 fail · 2 warn · 5 ok · 1 skipped  (check-interconnect 0.1.0 env recipes)
    verdict  blocked  KV transfer is not to be trusted: fix this first.
    ");
}

#[test]
fn many_workers_as_text() {
    let text = plain(Format::Text, &samples::many_workers());
    assert!(text.lines().count() < 60);
    assert_snapshot!(text, @"
    check-interconnect env  big  500 prefill · 500 decode · vLLM · NIXL/UCX · rdma/ib: 4
      deploy.yaml

      prefill  prefill-[0-249]  vLLM  NIXL/UCX  rdma/ib: 4  250 workers, 2 replicas, 8 accelerators per pod
      decode   decode-[0-249]   vLLM  NIXL/UCX  rdma/ib: 4  250 workers, 2 replicas, 8 accelerators per pod

    FAIL[ucx-tls-tcp-only] prefill, decode: UCX_TLS=tcp: no RDMA transport
      --> big.yaml:3:12
       |
     3 |     value: tcp
       |            ^^^ prefill
     4 |     value: tcp
       |            ^^^ decode
    ...
    23 |     value: tcp
       |            ^^^ prefill
    24 |     value: tcp
       |            ^^^ decode
       |
       = also: big.yaml:43, 44, 63, …
       = workers: prefill-[0-249], decode-[0-249] (500)
       = fix: Remove UCX_TLS or list rc first.
       = explain: check-interconnect explain ucx-tls-tcp-only

      ok    prefill, decode  env/a holds (big.yaml:2, 22, 42, …)
      ok    prefill, decode  env/b holds (big.yaml:2, 22, 42, …)
      ok    prefill, decode  env/c holds (big.yaml:2, 22, 42, …)
      ok    prefill, decode  env/d holds (big.yaml:2, 22, 42, …)
      ok    prefill, decode  env/e holds (big.yaml:2, 22, 42, …)
      ok    prefill, decode  env/f holds (big.yaml:2, 22, 42, …)
      ok    prefill, decode  env/g holds (big.yaml:2, 22, 42, …)
      ok    prefill, decode  env/h holds (big.yaml:2, 22, 42, …)
      ok    prefill, decode  env/i holds (big.yaml:2, 22, 42, …)

    500 fail · 0 warn · 4500 ok · 0 skipped
    verdict  blocked  KV transfer is not to be trusted: fix this first.
    ");
}

/// Roles whose lines are in different files, wide characters, tabs, a cut line, two marks on one line.
#[test]
fn odd_snippets() {
    let mut report = samples::mismatch();
    report.results.truncate(2);
    let long = format!(
        "      command: [\"{}\", \"--kv-transfer-config={{}}\", «\"--kv-transfer-config\"», \"{}\"]",
        "x".repeat(90),
        "y".repeat(90)
    );
    report.results[0].sources = vec![
        Source::primary(
            &samples::place("prefill.yaml", 9, "\t- 東京\u{301}: «tcp»"),
            "prefill: TCP",
        ),
        Source::primary(&samples::place("decode.yaml", 1234, &long), "decode: empty"),
        Source::context(
            &samples::place(
                "decode.yaml",
                1235,
                "  env: [{name: UCX_TLS, value: «tcp»}]",
            ),
            "decode: TCP, with a label that is so long that it does not fit beside the mark and wraps",
        ),
        Source::context(
            &samples::place(
                "decode.yaml",
                1235,
                "  env: [{name: «UCX_TLS», value: tcp}]",
            ),
            "name",
        ),
        Source::context(
            &samples::place(
                "decode.yaml",
                1235,
                "  env: [{name: «UCX_TLS», value: tcp}]",
            ),
            "again",
        ),
    ];
    let text = plain(Format::Text, &report);
    let warning = text.split_once("warn[").unwrap().1;
    let warning = warning.split_once("\n\n").unwrap().0;
    assert_snapshot!(warning, @r#"
    memlock-capability-missing] decode: without IPC_LOCK the node's memlock limit decides whether
          RDMA memory can be registered (assumed)
        --> prefill.yaml:9:9
         |
       9 |     - 東京́: tcp
         |             ^^^ prefill: TCP
        ::: decode.yaml:1234:138
         |
    1234 | …xxxxxxxxxxxxxxxx", "--kv-transfer-config={}", "--kv-transfer-config", "yyyyyyyyyyyyyyyyyyyy…
         |                                                ^^^^^^^^^^^^^^^^^^^^^^ decode: empty
    1235 |   env: [{name: UCX_TLS, value: tcp}]
         |                ------- name; again
         |                                --- decode: TCP, with a label that is so long that it does not
         |                                    fit beside the mark and wraps
         |
         = fix: Add IPC_LOCK to securityContext.capabilities.add.
         = explain: check-interconnect explain memlock-capability-missing
    "#);
}

/// A mark may come from a line that was blanked or cut after it was made.
#[test]
fn marks_outside_the_line_do_no_harm() {
    for mark in [(0, 0), (5, 3), (7, 8), (900, 1000), (0, u32::MAX)] {
        for text in ["", "é", "a: é東\u{301}\t\u{1b}", &"é ".repeat(500)] {
            for width in [0, 1, 40, 200] {
                let mut report = samples::mismatch();
                for result in &mut report.results {
                    for source in &mut result.sources {
                        source.place.mark = mark;
                        source.place.text = text.into();
                        source.place.line = u32::MAX;
                    }
                }
                let options = Options {
                    width,
                    ..Options::default()
                };
                for ascii in [false, true] {
                    let text = shown(
                        Format::Text,
                        &report,
                        &Options {
                            ascii,
                            ..options.clone()
                        },
                    );
                    assert!(text.contains("\nverdict  blocked  "));
                }
            }
        }
    }
}

#[test]
fn source_lines_fit_the_width() {
    let mut report = samples::mismatch();
    for (position, width) in [(0, 60), (100, 80), (250, 100), (500, 41)] {
        let line = format!(
            "{}«value»{}",
            "k ".repeat(position),
            " v".repeat(500 - position)
        );
        for result in &mut report.results {
            for source in &mut result.sources {
                source.place = samples::place("f", 12, &line);
            }
        }
        let options = Options {
            width,
            ..Options::default()
        };
        let text = shown(Format::Text, &report, &options);
        let shown: Vec<&str> = text.lines().filter(|l| l.contains(" | ")).collect();
        assert!(!shown.is_empty());
        for line in shown {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|l| l.starts_with("12 | ")).unwrap();
        let from = lines[at].chars().position(|c| c == 'a').unwrap() - 1;
        assert_eq!(
            lines[at].chars().skip(from).take(5).collect::<String>(),
            "value"
        );
        assert_eq!(
            lines[at + 1].chars().position(|c| "^-".contains(c)),
            Some(from)
        );
    }
}

fn validator(schema: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

fn assert_valid(validator: &Validator, value: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?} in {value:#}");
}

#[test]
fn json_holds_to_its_schema() {
    let validator = validator(&schema_report());
    for report in all_samples() {
        let text = plain(Format::Json, &report);
        assert!(text.starts_with("{\n  \"schema\": \"check-interconnect/report-v1\",\n"));
        assert!(text.ends_with("}\n"));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_valid(&validator, &value);
        assert_eq!(value["readiness"], report.readiness.as_str());
        assert_eq!(value["counts"]["fail"], report.counts().fail);
        assert_eq!(value["counts"]["ok"], report.counts().ok);
    }
    assert!(!validator.is_valid(&serde_json::json!({"schema": "check-interconnect/report-v1"})));
}

#[test]
fn jsonl_holds_to_its_schema() {
    let validator = validator(&schema_line());
    for report in all_samples() {
        let text = plain(Format::Jsonl, &report);
        assert!(text.ends_with('\n'));
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), report.results.len() + 1);
        for line in &lines {
            assert_valid(&validator, line);
        }
        let (last, results) = lines.split_last().unwrap();
        assert_eq!(last["type"], "summary");
        for (line, result) in results.iter().zip(&report.results) {
            let expected = if result.collective {
                "collective"
            } else {
                "check"
            };
            assert_eq!(line["type"], expected);
        }
    }
}

#[test]
fn json_round_trips() {
    for report in all_samples() {
        let text = plain(Format::Json, &report);
        let parsed: model::report_v1::ReportV1 = serde_json::from_str(&text).unwrap();
        // What was escaped is the same text again.
        assert_eq!(parsed.verdict, report.verdict);
        assert_eq!(parsed.scope, report.scope);
    }
}

#[test]
fn schemas_are_stable() {
    assert_eq!(schema_report(), schema_report());
    for schema in [schema_report(), schema_line()] {
        assert!(schema.starts_with("{\n  \"$defs\": {"), "{schema}");
        assert!(schema.ends_with("}\n"));
    }
}

#[test]
fn nothing_hostile_comes_through() {
    let report = samples::hostile();
    for format in Format::ALL {
        for (width, verbose, ascii) in [(0, false, false), (60, true, false), (100, false, true)] {
            let options = Options {
                width,
                verbose,
                ascii,
                ..Options::default()
            };
            let text = shown(format, &report, &options);
            let bad = text
                .chars()
                .find(|c| *c != '\n' && crate::escape::is_hidden(*c));
            assert_eq!(bad, None, "{format}");
            if matches!(format, Format::Text | Format::Short) {
                let forged = text.lines().filter(|l| l.starts_with("verdict")).count();
                assert_eq!(forged, 1);
                assert!(
                    text.lines()
                        .last()
                        .unwrap()
                        .starts_with("verdict  blocked  ")
                );
                assert!(!ascii || text.is_ascii());
            }
        }
    }
}

#[test]
fn many_workers_stay_small() {
    let report = samples::many_workers();
    assert_eq!(report.results.len(), 5000);
    let json = plain(Format::Json, &report);
    assert!(json.len() < 30_000, "{}", json.len());
    assert!(plain(Format::Text, &report).len() < 6_000);
    assert!(plain(Format::Short, &report).len() < 1_000);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["counts"]["fail"], 500);
    assert_eq!(value["counts"]["ok"], 4500);
    assert_eq!(value["checks"].as_array().unwrap().len(), 10);
    assert_eq!(
        value["checks"][0]["subject"]["workers"],
        serde_json::json!(["prefill-[0-249]", "decode-[0-249]"])
    );
}

#[test]
fn a_long_document_loses_the_lines_behind_what_is_ok_first() {
    let mut report = samples::mismatch();
    let ok = report.results.iter().find(|r| r.status == Status::Ok);
    let ok = ok.unwrap().clone();
    let kept = |json: &str, status: &str| {
        let value: Value = serde_json::from_str(json).unwrap();
        let checks = value["checks"].as_array().unwrap().clone();
        let of = |check: &Value| check["sources"].as_array().map_or(0, Vec::len);
        let all = checks.iter().filter(|c| c["status"] == status).map(of);
        all.max().unwrap()
    };
    let fail = kept(&plain(Format::Json, &report), "fail");
    let mut steps = Vec::new();
    for n in 0..200 {
        let json = plain(Format::Json, &report);
        assert!(json.len() < 30_000, "{}", json.len());
        assert_eq!(kept(&json, "fail"), fail);
        steps.push(kept(&json, "ok"));
        if steps.ends_with(&[0]) {
            break;
        }
        let mut another = ok.clone();
        another.detail = format!("also {n}");
        report.results.push(another);
    }
    steps.dedup();
    assert_eq!(steps, [2, 1, 0]);
}

#[test]
fn one_deployment_is_small_in_json() {
    let json = plain(Format::Json, &samples::mismatch());
    assert!(json.len() < 8_000, "{}", json.len());
}

#[test]
fn fold_names_everybody_and_keeps_order() {
    let report = samples::mismatch();
    let folded = fold(&report.results);
    assert_eq!(folded.len(), report.results.len() - 1);
    let names: Vec<&str> = folded.iter().map(|r| &*r.name).collect();
    assert_eq!(
        names[..3],
        ["env/memlock", "env/role-agreement", "env/fabric-request"]
    );
    let both = &folded[2];
    assert_eq!(
        both.subject.workers,
        ["VllmPrefillWorker", "VllmDecodeWorker"]
    );
    assert_eq!(both.sources.len(), 2);
    // Folding again changes nothing.
    assert_eq!(fold(&folded), folded);
}

#[test]
fn fold_keeps_apart_what_differs() {
    let one = samples::clean().results.remove(0);
    let mut other = one.clone();
    other.subject.deployment = Some("another".to_owned());
    let mut device = one.clone();
    device.subject.device = Some("mlx5_0".to_owned());
    let mut fix = one.clone();
    fix.fix = Some("do".to_owned());
    let results = [one, other, device, fix];
    assert_eq!(fold(&results), results);
}

#[test]
fn fold_bounds_sources_and_keeps_the_first_of_each_role() {
    let mut report = samples::many_workers();
    // All prefill workers first: decode must not be crowded out.
    report
        .results
        .sort_by_key(|r| (r.name.clone(), r.subject.roles.clone()));
    for result in fold(&report.results) {
        assert_eq!(result.sources.len(), 8);
        assert_eq!(result.subject.workers.len(), 500);
        if result.status == Status::Fail {
            assert_eq!(result.sources[0].label, "prefill");
            assert_eq!(result.sources[7].label, "decode");
        }
    }
}

#[test]
fn same_name_is_not_the_same_deployment() {
    let mut report = samples::directory();
    for result in &mut report.results {
        if result.subject.deployment.as_deref() == Some("twin") {
            result.status = Status::Warn;
        }
    }
    let value: Value = serde_json::from_str(&plain(Format::Json, &report)).unwrap();
    let twins = value["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["subject"]["deployment"] == "twin")
        .count();
    assert_eq!(twins, 2);
}

#[test]
fn formats_parse() {
    for format in Format::ALL {
        assert_eq!(format.as_str().parse(), Ok(format));
    }
    let error = "yaml\u{1b}".parse::<Format>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown format `yaml\\u{1b}`; expected one of text, short, json, jsonl, prometheus"
    );
}

#[test]
fn errors_of_the_writer_are_returned() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for format in Format::ALL {
        let error = render(format, &samples::clean(), &Options::default(), &mut Closed);
        assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    }
}
