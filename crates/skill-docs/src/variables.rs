//! `references/interconnect-env-vars.md`: the catalogue of variables, what their values do, and the checklist.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use settings::catalogue::{self, Relevance, Variable};
use settings::effect;

use crate::checklist;
use crate::markdown::{code, generated, table};

/// Values that people write, good ones and bad ones. What they do is worked out, not written here.
const VALUES: &[(&str, &[&str])] = &[
    (
        "UCX_TLS",
        &[
            "all",
            "rc,cuda_copy,cuda_ipc",
            "rc,cuda_copy",
            "^tcp",
            "cuda_copy,cuda_ipc,tcp",
            "tcp,cuda_copy",
            "tcp",
            "rc",
            "cuda_copy,cuda_ipc",
            "ud,cuda_copy",
            "all,cuda_ipc",
            "RC,CUDA_COPY",
            "",
        ],
    ),
    (
        "UCX_NET_DEVICES",
        &[
            "all",
            "mlx5_0:1",
            "mlx5_0:1,mlx5_1:1",
            "mlx5_0",
            "eth0",
            "mlx5_0:1, mlx5_1:1",
            "",
        ],
    ),
    ("UCX_IB_GPU_DIRECT_RDMA", &["try", "yes", "no"]),
    ("NCCL_IB_DISABLE", &["0", "1"]),
    ("NCCL_IB_HCA", &["mlx5", "=mlx5_0:1", "^mlx5_0"]),
];

/// The whole file.
pub fn env_vars_reference() -> String {
    let mut out = String::from("# Transport variables, and what the hardware shows\n\n");
    generated(&mut out);
    out.push_str(
        "Read this to explain a setting or to look at a worker by hand. To ask about one variable or one value, let \
the binary answer: it knows the grammars.\n\n\
```bash\n\
check-interconnect vars UCX_TLS\n\
check-interconnect vars UCX_TLS=tcp,cuda_copy\n\
check-interconnect vars UCX_NET_DEVICES --unset\n\
```\n\n\
Unset is the right state of most of these variables: UCX then takes every transport and device that works, and the \
image or the operator may set them too. A missing variable is no fault by itself. Variables of NCCL steer \
collectives between the ranks of one worker; a KV connector on NIXL does not read them, so they neither prove nor \
break KV transfer.\n\n\
- [Variables that decide the path](#variables-that-decide-the-path)\n\
- [What values do](#what-values-do)\n\
- [Variables that can matter](#variables-that-can-matter)\n\
- [Tuning and logs](#tuning-and-logs)\n\
- [Checklist: what the hardware shows](#checklist-what-the-hardware-shows)\n\n",
    );
    out.push_str("## Variables that decide the path\n\n");
    for (kv, title) in [
        (true, "Read on the way of the KV cache:"),
        (
            false,
            "Read for collectives (NCCL, Gloo, NVSHMEM), and not for KV transfer:",
        ),
    ] {
        let _infallible = writeln!(out, "{title}\n");
        table(
            &mut out,
            [
                "Variable",
                "Purpose",
                "Values",
                "If not set",
                "Dangerous values",
            ],
            of(Relevance::Critical).filter(|v| is_kv(v) == kv).map(|v| {
                [
                    code(v.name),
                    v.meaning.to_owned(),
                    v.values.to_owned(),
                    v.default.to_owned(),
                    v.dangerous.to_owned(),
                ]
            }),
        );
    }
    out.push_str("## What values do\n\n");
    out.push_str("Worked out for a current build of each library; an older one can differ.\n\n");
    for (name, values) in VALUES {
        let _infallible = writeln!(out, "{}\n", code(name));
        table(
            &mut out,
            ["Value", "Effect"],
            std::iter::once(["not set".to_owned(), effect::describe_unset(name)]).chain(
                values.iter().map(|value| {
                    let effect = effect::effect(name, value);
                    let told = match effect.problem {
                        Some(problem) if problem.text != effect.summary => {
                            format!("{}; **{}**", effect.summary, problem.text)
                        }
                        Some(problem) => format!("**{}**", problem.text),
                        None => effect.summary,
                    };
                    let shown = if value.is_empty() {
                        "empty".to_owned()
                    } else {
                        code(value)
                    };
                    [shown, told]
                }),
            ),
        );
    }
    out.push_str(
        "## Variables that can matter\n\nThey change or break the path in some situations.\n\n",
    );
    table(
        &mut out,
        ["Variable", "Purpose", "Dangerous values"],
        of(Relevance::Relevant)
            .map(|v| [code(v.name), v.meaning.to_owned(), v.dangerous.to_owned()]),
    );
    out.push_str(
        "## Tuning and logs\n\nThey change speed or messages, not the path. `check-interconnect vars NAME` tells more.\n\n",
    );
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for v in catalogue::all() {
        if matches!(v.relevance, Relevance::Tuning | Relevance::Debug) {
            let library = v.subsystem.split(' ').next().unwrap_or_default();
            groups.entry(library).or_default().push(code(v.name));
        }
    }
    for (library, names) in groups {
        let _infallible = writeln!(out, "- {library}: {}", names.join(", "));
    }
    out.push('\n');
    checklist::write(&mut out);
    out
}

fn of(relevance: Relevance) -> impl Iterator<Item = &'static Variable> {
    catalogue::all()
        .iter()
        .filter(move |v| v.relevance == relevance)
}

/// Whether anything on the way of the KV cache reads it.
fn is_kv(variable: &Variable) -> bool {
    !["NCCL_", "OFI_NCCL_", "TORCH_NCCL_", "GLOO_", "NVSHMEM_"]
        .iter()
        .any(|prefix| variable.name.starts_with(prefix))
}
