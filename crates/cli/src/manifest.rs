//! `manifest`: what collects from inside where nobody may run a command in a pod. Printed, never applied.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use checks::{ProbedPod, deployment_of, live_of, workload};
use model::{Exit, PodObject, Role};
use probe::carried;
use recipe::live;
use serde_json::{Map, Value, json};

use crate::args::{ManifestArgs, ManifestKind, SCHEDULE};
use crate::failure::Failure;
use crate::twin::{self, Twin};
use crate::yaml_text::yaml;
use crate::{node, pod_file, pods, sources};

/// The container's name, by which `kubectl logs -c` finds it.
const NAME: &str = "check-interconnect";
/// Where no image was given for what needs one with the program.
const PUT_IMAGE: &str = "PUT-AN-IMAGE-WITH-CHECK-INTERCONNECT-HERE";
/// Bytes of an object that is read.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// A worker that something is put beside, or nothing but what was given of one.
struct Beside {
    twin: Twin,
    container: String,
    role: Option<Role>,
    deployment: String,
    workload: String,
    /// Its resources are known.
    known: bool,
}

/// What is printed.
pub(crate) fn text(args: &ManifestArgs) -> Result<String, Failure> {
    if args.kind == ManifestKind::Cronjob && args.textfile_dir.is_none() {
        return Err("--kind cronjob needs --textfile-dir DIR: the directory of the node from which its exporter reads".to_owned().into());
    }
    for (option, given) in [
        ("--textfile-dir", args.textfile_dir.is_some()),
        ("--schedule", args.schedule != SCHEDULE),
    ] {
        if given && args.kind != ManifestKind::Cronjob {
            return Err(format!("{option} is for --kind cronjob").into());
        }
    }
    if let Some(dir) = args.textfile_dir.as_deref().filter(|d| !d.starts_with('/')) {
        return Err(format!("--textfile-dir {dir} is no absolute path on the node").into());
    }
    let mut out = String::new();
    for worker in workers(args)? {
        match args.kind {
            ManifestKind::InitContainer => init_container(&worker, &mut out)?,
            ManifestKind::Job => job(&worker, &mut out)?,
            ManifestKind::Cronjob => cronjob(&worker, args, &mut out),
        }
    }
    Ok(out)
}

/// The workers that are meant.
fn workers(args: &ManifestArgs) -> Result<Vec<Beside>, Failure> {
    let role = args.role.map(node::role);
    let mut found = Vec::new();
    if let Some(path) = &args.filename {
        for object in
            pod_file::pods(&read(path)?).map_err(|why| format!("{}: {why}", path.display()))?
        {
            let text = object.to_string();
            let pod = live::pod(&text).map_err(|what| format!("{}: {what}", path.display()))?;
            let (container, _) = live::container(&pod, args.pods.container.as_deref())
                .map_err(|fault| format!("{}: {}", path.display(), fault.detail))?;
            let workers = live::workers(&text);
            let told = workers.iter().find(|w| w.container == container);
            let told = live::kv_worker(&pod, &workers)
                .and_then(|why| why.role)
                .or(told.map(|w| w.role));
            found.push(beside(&object, &pod, container, role.or(told))?);
        }
    } else if pods::are_meant(&args.pods)? {
        for (text, pod) in pods::as_given(&args.pods)? {
            let object: Value =
                serde_json::from_str(&text).map_err(|e| format!("pod {}: {e}", pod.object.name))?;
            let container = chosen(&pod)?;
            let told = live_of(&pod).1;
            found.push(beside(&object, &pod.object, container, role.or(told))?);
        }
        if found.is_empty() {
            return Err(Failure {
                message: "no such worker; -n NAMESPACE --pod POD names one".to_owned(),
                exit: Exit::Nothing,
            });
        }
    } else if let Some(image) = &args.image {
        found.push(bare(image, args, role)?);
    } else {
        return Err("name a worker: -n NAMESPACE --pod POD, -f FILE with its pod or its workload, or --image IMAGE with --resource and --role".to_owned().into());
    }
    for worker in &mut found {
        if args.image.is_some() {
            worker.twin.image.clone_from(&args.image);
        }
    }
    Ok(found)
}

fn chosen(pod: &ProbedPod) -> Result<String, String> {
    match (&pod.probed, pod.container.as_str()) {
        (Err(fault), "") => Err(format!("pod {}: {}", pod.object.name, fault.detail)),
        (_, container) => Ok(container.to_owned()),
    }
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let mut text = String::new();
    let failed = |e: std::io::Error| format!("{shown}: {}", sources::reason(&e));
    if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(MAX_FILE)
            .read_to_string(&mut text)
            .map_err(failed)?;
    } else {
        if let Some(what) = sources::endless(path) {
            return Err(format!("{shown}: it is {what}, not a file"));
        }
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_FILE)
            .read_to_string(&mut text)
            .map_err(failed)?;
    }
    Ok(text)
}

fn beside(
    object: &Value,
    pod: &PodObject,
    container: String,
    role: Option<Role>,
) -> Result<Beside, String> {
    let annotations: Vec<&str> = pod.annotations.keys().map(String::as_str).collect();
    let twin = twin::of(object, &container, &annotations)
        .ok_or_else(|| format!("pod {} has no container {container}", pod.name))?;
    Ok(Beside {
        twin,
        container,
        role: role.filter(|r| r.moves_kv() || *r == Role::Aggregated),
        deployment: deployment_of(pod),
        workload: workload(pod),
        known: true,
    })
}

/// Where no worker is given.
fn bare(image: &str, args: &ManifestArgs, role: Option<Role>) -> Result<Beside, String> {
    let mut limits = Map::new();
    for text in &args.resource {
        let (name, count) = text
            .split_once('=')
            .filter(|(name, count)| !name.is_empty() && count.parse::<u32>().is_ok())
            .ok_or_else(|| format!("'{text}' is no resource; expected NAME=N, as in rdma/ib=1"))?;
        limits.insert(name.to_owned(), count.into());
    }
    let known = !limits.is_empty();
    let mut container = Map::new();
    if known {
        container.insert("resources".to_owned(), json!({"limits": limits}));
    }
    container.insert(
        "securityContext".to_owned(),
        json!({"capabilities": {"add": ["IPC_LOCK"]}}),
    );
    let word = role.map_or("worker", Role::as_str);
    Ok(Beside {
        twin: Twin {
            name: word.to_owned(),
            namespace: args.pods.namespace.clone().map(Value::from),
            annotations: Map::new(),
            spec: Map::new(),
            container,
            volumes: Vec::new(),
            image: Some(image.to_owned()),
            pull: None,
        },
        container: "main".to_owned(),
        role,
        deployment: String::new(),
        workload: word.to_owned(),
        known,
    })
}

/// The container that collects.
fn collector(worker: &Beside, way: &str) -> Result<Value, String> {
    let image = worker.twin.image.clone().ok_or_else(|| {
        format!(
            "the container {} has no image; give --image",
            worker.container
        )
    })?;
    let mut own = worker.twin.container.clone();
    own.insert("name".to_owned(), NAME.into());
    own.insert("image".to_owned(), image.into());
    // Kubernetes reads $(NAME) and $$ in commands (third_party/forked/golang/expansion).
    let command: Vec<String> = carried::command()
        .iter()
        .map(|word| word.replace('$', "$$"))
        .collect();
    own.insert("command".to_owned(), command.into());
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let env: Vec<Value> = carried::VARIABLES
        .iter()
        .map(|name| {
            let plain = |text: &str| json!({"name": name, "value": text});
            let from = |path: &str| json!({"name": name, "valueFrom": field(path)});
            match *name {
                "COLLECT_WAY" => plain(way),
                "COLLECT_NAMESPACE" => from("metadata.namespace"),
                "COLLECT_POD" => from("metadata.name"),
                "COLLECT_NODE" => from("spec.nodeName"),
                "COLLECT_CONTAINER" => plain(&worker.container),
                "COLLECT_ROLE" => plain(worker.role.map_or("", Role::as_str)),
                "COLLECT_DEPLOYMENT" => plain(&worker.deployment),
                _ => plain(&worker.workload),
            }
        })
        .collect();
    own.insert("env".to_owned(), env.into());
    Ok(own.into())
}

fn init_container(worker: &Beside, out: &mut String) -> Result<(), String> {
    let patch = json!({"spec": {"template": {"spec": {
        "initContainers": [collector(worker, "init-container")?],
    }}}});
    let _infallible = write!(
        out,
        "# For the pod template of {}: kubectl patch KIND NAME --patch-file FILE, or the same list in the place that an\n\
         # operator has for init containers. It needs sh in the image, reads, and ends in two minutes at most; then\n\
         # kubectl logs POD -c {NAME} --tail=-1 | check-interconnect check --from-logs -\n\
         # Every dollar sign is written twice, which Kubernetes undoes.\n---\n",
        shown(&worker.workload)
    );
    yaml(&patch, 0, out);
    Ok(())
}

/// Labels and names have at most 63 characters; a Job puts a hash behind its own.
fn job_name(worker: &Beside) -> String {
    let name: String = worker.twin.name.chars().take(46).collect();
    format!("{}-collect", name.trim_end_matches(['-', '.']))
}

/// The pod of a Job, around one container.
fn pod_template(worker: &Beside, container: &Value, more_volumes: &[Value]) -> Value {
    let twin = &worker.twin;
    let mut spec = twin.spec.clone();
    spec.insert("restartPolicy".to_owned(), "Never".into());
    spec.insert("automountServiceAccountToken".to_owned(), false.into());
    if let Some(pull) = &twin.pull {
        spec.insert("imagePullSecrets".to_owned(), pull.clone());
    }
    spec.insert("containers".to_owned(), json!([container]));
    let volumes: Vec<Value> = twin.volumes.iter().chain(more_volumes).cloned().collect();
    if !volumes.is_empty() {
        spec.insert("volumes".to_owned(), volumes.into());
    }
    let mut head = Map::new();
    head.insert("labels".to_owned(), json!({"app.kubernetes.io/name": NAME}));
    if !twin.annotations.is_empty() {
        head.insert("annotations".to_owned(), twin.annotations.clone().into());
    }
    json!({"metadata": head, "spec": spec})
}

fn metadata(worker: &Beside) -> Value {
    let mut head = Map::new();
    head.insert("name".to_owned(), job_name(worker).into());
    if let Some(namespace) = &worker.twin.namespace {
        head.insert("namespace".to_owned(), namespace.clone());
    }
    head.insert("labels".to_owned(), json!({"app.kubernetes.io/name": NAME}));
    head.into()
}

fn job(worker: &Beside, out: &mut String) -> Result<(), String> {
    let way = if worker.known { "job" } else { "image" };
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(worker),
        "spec": {
            "backoffLimit": 0,
            "template": pod_template(worker, &collector(worker, way)?, &[]),
        },
    });
    let _infallible = write!(
        out,
        "# Beside {}: it waits as long as no device that it asks for is free there. Then\n\
         # kubectl logs{} job/{} | check-interconnect check --from-logs -\n\
         # Every dollar sign is written twice, which Kubernetes undoes.\n",
        shown(&worker.twin.name),
        worker
            .twin
            .namespace
            .as_ref()
            .and_then(Value::as_str)
            .map_or_else(String::new, |name| format!(" -n {}", shown(name))),
        job_name(worker)
    );
    if !worker.known {
        out.push_str(
            "# Nothing says what the workers ask for (--resource), so that a device that is missing here says nothing of them.\n",
        );
    }
    out.push_str("---\n");
    yaml(&job, 0, out);
    Ok(())
}

fn cronjob(worker: &Beside, args: &ManifestArgs, out: &mut String) {
    let mut own = worker.twin.container.clone();
    own.insert("name".to_owned(), NAME.into());
    let image = args.image.clone().unwrap_or_else(|| PUT_IMAGE.to_owned());
    own.insert("image".to_owned(), image.into());
    let mut command = vec![NAME.to_owned(), "node".to_owned()];
    if let Some(role) = worker
        .role
        .filter(|r| matches!(r, Role::Prefill | Role::Decode | Role::Aggregated))
    {
        command.extend(["--role".to_owned(), role.as_str().to_owned()]);
    }
    command.extend(
        [
            "--fail-on",
            "never",
            "-o",
            "prometheus=/textfile/check_interconnect.prom",
        ]
        .map(str::to_owned),
    );
    own.insert("command".to_owned(), command.into());
    let mut mounts = own
        .get("volumeMounts")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    mounts.push(json!({"name": "textfile", "mountPath": "/textfile"}));
    own.insert("volumeMounts".to_owned(), mounts.into());
    let dir = args.textfile_dir.as_deref().unwrap_or_default();
    let volume = json!({"name": "textfile", "hostPath": {"path": dir, "type": "Directory"}});
    let cronjob = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(worker),
        "spec": {
            "schedule": args.schedule,
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": {
                "backoffLimit": 0,
                "template": pod_template(worker, &own.into(), &[volume]),
            }},
        },
    });
    let _infallible = write!(
        out,
        "# Beside {}, for the node that it runs on: one of them for each node. Its image has to hold the check-interconnect program and a shell (sh);\n\
         # it needs devices that are free there at that time, and says what the place offers, never what an engine does.\n---\n",
        shown(&worker.twin.name)
    );
    yaml(&cronjob, 0, out);
}

/// A name in a comment.
fn shown(name: &str) -> String {
    report::visible(name)
}
