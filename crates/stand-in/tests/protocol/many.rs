//! Many pods at once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use stand_in::{Cluster, Pod};

use crate::{all, block_on, channel, open};

#[test]
fn thousands_of_pods_are_asked_over_many_connections() {
    const PODS: usize = 1000;
    const AT_ONCE: usize = 64;
    let output = Bytes::from("one line of a recorded stream\n".repeat(1000));
    let cluster = (0..PODS).fold(Cluster::new().keep(0), |cluster, n| {
        cluster.pod(
            Pod::worker(&format!("decode-{n}")).recorded(output.clone(), Duration::from_millis(20)),
        )
    });
    let api = Arc::new(cluster.start().unwrap());
    block_on(async {
        let gate = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..PODS {
            let (api, gate, length) = (Arc::clone(&api), Arc::clone(&gate), output.len());
            tasks.spawn(async move {
                let _turn = gate.acquire().await;
                let query = "command=x&stdout=true";
                let (mut socket, _) =
                    open(&api, &format!("decode-{n}"), "v5.channel.k8s.io", query)
                        .await
                        .unwrap();
                let (frames, _) = all(&mut socket).await;
                assert_eq!(channel(&frames, 1).len(), length);
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
    assert_eq!(api.execs().len(), PODS);
    assert!(
        (32..=AT_ONCE * 2).contains(&api.most_execs_at_once()),
        "{}",
        api.most_execs_at_once()
    );
}
