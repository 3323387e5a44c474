//! A scenario, asked through each way in.

use std::future::Future;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cluster::{Access, Cluster, Limits, Looked, Pick, Stop, Via, look_into};
use model::pod::Fault;
use stand_in::StandIn;

/// The ways that are here. kubectl may not be.
pub(crate) fn ways() -> Vec<Via> {
    let mut ways = vec![Via::Api];
    let there = Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if there {
        ways.push(Via::Program(vec!["kubectl".to_owned()]));
    } else {
        eprintln!("skipped: no kubectl here, so only the API was tried");
    }
    ways
}

pub(crate) fn access(kubeconfig: &Path, via: &Via) -> Access {
    Access {
        kubeconfig: Some(kubeconfig.to_owned()),
        namespace: Some("serving".to_owned()),
        request_timeout: Some(Duration::from_secs(5)),
        via: via.clone(),
        ..Access::default()
    }
}

pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

pub(crate) async fn open(access: &Access) -> Result<Arc<dyn Cluster>, Fault> {
    cluster::open(access).await.map(Arc::from)
}

pub(crate) fn pick(pod: &str) -> Pick {
    Pick {
        namespace: "serving".to_owned(),
        pod: pod.to_owned(),
        container: "main".to_owned(),
    }
}

/// Looks into one container.
pub(crate) fn look(api: &StandIn, via: &Via, pod: &str, timeout: Duration) -> Looked {
    let access = access(api.kubeconfig(), via);
    run(async {
        let cluster = open(&access).await.unwrap();
        let limits = Limits {
            timeout,
            max_bytes: 1024 * 1024,
            ..Limits::default()
        };
        look_into(
            &cluster,
            vec![pick(pod)],
            4,
            limits,
            &Stop::default(),
            |_| (),
        )
        .await
        .remove(0)
    })
}

/// A tree of files with next to nothing in it.
pub(crate) fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("proc/sys/kernel/osrelease", "6.8.0-test\n");
    put(
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \nMax locked memory         unlimited            unlimited            bytes     \n",
    );
    std::fs::create_dir_all(tree.path().join("bin")).unwrap();
    tree
}
