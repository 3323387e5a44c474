//! Every fault on the way to a container, as a cause: what is seen, what it means for the verdict, what to do.
//!
//! One class of faults is one cause, by the name that [`FaultKind::id`] gives it. What happens to a pod itself is told
//! by `pod/state`, everything else by `pod/access`.

use model::pod::FaultKind;

use crate::check::Cause;

/// The cause of a class of faults.
pub(crate) fn cause(kind: FaultKind) -> &'static Cause {
    let id = kind.id();
    ACCESS
        .iter()
        .chain(STATE)
        .find(|cause| cause.id == id)
        .unwrap_or(&OTHER)
}

/// Whether the pod itself is in that state, as against the way to it.
pub(crate) fn is_state(kind: FaultKind) -> bool {
    STATE.iter().any(|cause| cause.id == kind.id())
}

/// Never told: a test holds every class against the tables.
const OTHER: Cause = fault(
    "pod-not-looked-into",
    "the container could not be looked into",
    "nothing is known of what is inside",
    "look at the message",
    "never",
    "check-interconnect",
);

const fn fault(
    id: &'static str,
    what: &'static str,
    why: &'static str,
    fix: &'static str,
    quiet_if: &'static str,
    source: &'static str,
) -> Cause {
    Cause {
        id,
        what,
        why,
        fix,
        quiet_if,
        source,
    }
}

/// Nothing can be said of what nobody could look into.
const UNKNOWN: &str = "nothing is known of what is inside, and nothing seen is not nothing wrong";

const API: &str = "Kubernetes API concepts; kubernetes/apimachinery api/errors";
const CLIENT: &str = "kubernetes/client-go tools/clientcmd";
const KUBELET: &str = "kubernetes pkg/kubelet (container states and waiting reasons)";

/// Faults of the way: told by `pod/access`.
pub(crate) const ACCESS: &[Cause] = &[
    fault(
        "kubeconfig-missing",
        "there is no kubeconfig, and no service account of a pod either",
        "without one nobody knows which cluster is meant, so nothing was looked at",
        "set KUBECONFIG or give --kubeconfig; in a pod, mount its service account (automountServiceAccountToken)",
        "a kubeconfig or a service account is found",
        CLIENT,
    ),
    fault(
        "kubeconfig-broken",
        "the kubeconfig cannot be read or parsed",
        "without it nobody knows which cluster is meant, so nothing was looked at",
        "kubectl config view shows where it breaks; correct the file, or name another one with --kubeconfig",
        "it parses",
        CLIENT,
    ),
    fault(
        "context-unknown",
        "the context that was asked for is not in the kubeconfig",
        "nobody knows which cluster is meant, so nothing was looked at",
        "kubectl config get-contexts lists those that there are; give one of them with --context",
        "the context is there",
        CLIENT,
    ),
    fault(
        "credential-plugin-failed",
        "the program that the kubeconfig names for credentials failed",
        "without credentials the API server refuses everything, so nothing was looked at",
        "run the program by hand (kubectl get pods starts it too): mostly a login of the cloud has expired, or it is not installed here",
        "it gives credentials",
        "client authentication exec plugins (client.authentication.k8s.io)",
    ),
    fault(
        "api-server-unreachable",
        "the API server does not answer: its name, the route, a refused connection or a proxy",
        "nothing was looked at; this says nothing about the workers, which may well run",
        "kubectl version tells whether anybody reaches it from here; look at the VPN, HTTPS_PROXY and NO_PROXY, and the server's address in the kubeconfig",
        "it answers",
        CLIENT,
    ),
    fault(
        "api-server-certificate-unknown",
        "the API server's certificate is not signed by who the kubeconfig trusts",
        "the connection is not made, since something else may answer there; nothing was looked at",
        "fetch the kubeconfig of this cluster again (certificate-authority-data); where a proxy breaks TLS open, add its authority there",
        "the certificate is trusted",
        "RFC 5280; kubeconfig certificate-authority-data",
    ),
    fault(
        "api-answer-foreign",
        "what answers is no Kubernetes API server, or one that does not keep to its own rules",
        "nothing was looked at; a login page or a proxy may stand between, and what it says is not about the workers",
        "kubectl get --raw /version shows who answers: look at the server's address in the kubeconfig, at HTTPS_PROXY, and whether a login (SSO, VPN) has expired",
        "it answers as an API server does",
        API,
    ),
    fault(
        "api-server-unauthorized",
        "the API server does not know who asks (401): no credentials, wrong ones, or expired ones",
        "nothing was looked at",
        "log in again, then kubectl auth whoami; a token of a service account may have expired",
        "the API server knows who asks",
        API,
    ),
    fault(
        "pods-forbidden",
        "reading pods of this namespace is not allowed (403)",
        "nobody can tell which workers there are, so nothing was looked at",
        "ask for get and list on pods in this namespace: kubectl auth can-i list pods -n NAMESPACE tells whether it is granted",
        "reading pods is allowed",
        "Kubernetes RBAC",
    ),
    fault(
        "nodes-forbidden",
        "reading nodes is not allowed (403), which a role in one namespace cannot grant",
        "what the nodes offer, and why a worker finds none, is not judged; workers are judged without it",
        "none is needed; a cluster role with get and list on nodes shows allocatable resources too",
        "reading nodes is allowed",
        "Kubernetes RBAC: nodes are no resource of a namespace",
    ),
    fault(
        "workload-forbidden",
        "reading the objects that the pods are made from is not allowed (403)",
        "whether something on the way (the operator, a webhook) has changed what was deployed is judged with the recipe only; workers are judged without it",
        "none is needed; check-interconnect rbac prints what grants get on these kinds of objects",
        "reading them is allowed",
        "Kubernetes RBAC",
    ),
    fault(
        "pod-log-forbidden",
        "reading the log of the container is not allowed (403)",
        "what UCX, NIXL and the engine said at their start, and faults that they told of, are not judged",
        "grant get on pods/log, or save the log elsewhere and give it to check-interconnect nixl --from",
        "reading logs is allowed; node reads none",
        "Kubernetes RBAC: pods/log is a subresource of its own",
    ),
    fault(
        "kubectl-missing",
        "the kubectl-compatible program cannot be started",
        "nothing was looked at",
        "put kubectl on PATH, or name another one (oc, or kubectl with its path)",
        "it starts",
        "the operating system's message",
    ),
    fault(
        "kubectl-failed",
        "the kubectl-compatible program failed in a way that is not known here",
        "nothing was looked at",
        "run the command of the message by hand: what it prints is for you to judge",
        "it ends with 0, or with a message that is known",
        "kubectl's message",
    ),
    fault(
        "api-not-found",
        "the API server does not know the namespace, or the kind of resource (404)",
        "there is nothing to look at",
        "kubectl get namespaces lists those that there are; check the spelling and the context",
        "it is there",
        API,
    ),
    fault(
        "pod-missing",
        "there is no pod of that name in the namespace",
        "there is nothing to look at; pods get new names whenever they are made anew",
        "kubectl get pods -n NAMESPACE lists those that there are; a selector (-l) outlives restarts",
        "the pod is there",
        API,
    ),
    fault(
        "no-pod-matches",
        "no pod in the namespace matches the selector",
        "there is nothing to look at",
        "kubectl get pods -n NAMESPACE --show-labels shows which labels there are; nvidia.com/dynamo-graph-deployment-name=NAME finds a Dynamo graph",
        "a pod matches",
        API,
    ),
    fault(
        "selector-invalid",
        "the API server cannot read the selector",
        "there is nothing to look at",
        "write it as kubectl takes it: -l app=llama,tier!=test or -l 'role in (prefill,decode)'",
        "it can be read",
        "Kubernetes labels and selectors",
    ),
    fault(
        "container-ambiguous",
        "several containers of the pod could be the worker, and none was asked for",
        "a sidecar must not be taken for the engine, so none was looked into",
        "name the engine's container with -c",
        "the pod has one container, one is named main, exactly one asks for accelerators, or -c names one",
        "ai-dynamo/dynamo operator names the engine's container main",
    ),
    fault(
        "container-missing",
        "the container that was asked for is not in the pod",
        UNKNOWN,
        "give one of the names in the message with -c",
        "the container is there",
        "the pod's spec",
    ),
    fault(
        "exec-forbidden",
        "running a command in the container is not allowed (403)",
        UNKNOWN,
        "ask for get and create on pods/exec in this namespace: kubectl auth can-i create pods --subresource=exec -n NAMESPACE tells whether it is granted (get as well: exec over WebSocket is a get); an admission policy may refuse it all the same",
        "it is allowed",
        "Kubernetes RBAC: subresource pods/exec",
    ),
    fault(
        "api-conflict",
        "the API server refuses for the state that the object is in (409)",
        UNKNOWN,
        "kubectl describe pod shows the state; run it again when the pod has settled",
        "it does not refuse",
        API,
    ),
    fault(
        "api-too-many-requests",
        "the API server has too much to do (429), also after waiting as long as it said",
        UNKNOWN,
        "run it again later, or with fewer pods at a time (--concurrency); who else asks so much is told by the API server's priority and fairness",
        "it takes the request within the wait that it asks for",
        "Kubernetes API priority and fairness",
    ),
    fault(
        "api-server-error",
        "the API server, or the kubelet behind it, failed (5xx)",
        UNKNOWN,
        "run it again; where it stays, look at the kubelet of the pod's node and at the API server: kubectl get --raw /readyz, kubectl describe node",
        "they answer",
        API,
    ),
    fault(
        "container-without-shell",
        "there is no shell in the container",
        "what is inside is read by a shell script, and images without one (distroless) cannot run it",
        "judge the recipe with check-interconnect env, or look from the node, as root, with check-interconnect node",
        "sh, bash, dash or busybox is there",
        "the container runtime's message: executable file not found",
    ),
    fault(
        "probe-output-foreign",
        "what came back is not what the collecting script prints: something else answered",
        UNKNOWN,
        "look at what sh does in this container: a wrapper or a profile that prints, an exec that another program takes over",
        "it is the script's",
        "the records that the script prints (crates/probe, stream)",
    ),
    fault(
        "probe-output-flood",
        "more came back from the container than the limit",
        UNKNOWN,
        "look at what sh does in this container: something prints without end",
        "it stays below the limit",
        "the records that the script prints (crates/probe, stream)",
    ),
    fault(
        "probe-timed-out",
        "no answer came in time, from the container or from the API server",
        UNKNOWN,
        "run it again with a longer limit (--timeout for a container, --request-timeout for the API server); where it stays, the node or its kubelet hangs: kubectl get node, and on the node the kernel's log",
        "it answers in time",
        "the limit of the run",
    ),
    fault(
        "probe-cut",
        "the stream from the container ended in its middle",
        "what comes after the cut is unknown, and nothing seen is not nothing wrong",
        "run it again; connections through proxies are cut when they idle, and when a node is lost",
        "it comes whole",
        "the last record that the script prints (crates/probe, stream)",
    ),
    fault(
        "probe-failed",
        "the collecting script, or the shell that ran it, ended with an error",
        UNKNOWN,
        "the message says how; exit code 126 or 127 is a shell that may not, or cannot, be started",
        "it ends with 0",
        "POSIX sh exit codes",
    ),
    fault(
        "probe-interrupted",
        "the run was ended before this container was looked into",
        UNKNOWN,
        "run it again and let it end",
        "it was looked into before",
        "the signal that ended the run",
    ),
];

/// Faults of the pod itself: told by `pod/state`.
pub(crate) const STATE: &[Cause] = &[
    fault(
        "pod-unschedulable",
        "the pod waits for a node: the scheduler finds none that it fits on",
        "the worker does not run, so neither does its KV transfer",
        "kubectl describe pod shows the scheduler's events: each part of its message is one reason. Insufficient rdma/… or …/efa is a device plugin that offers none (pod/nodes tells where nodes may be read); for anything else use the skill dynamo-troubleshoot",
        "the pod has a node",
        "kubernetes pkg/scheduler (condition PodScheduled, reason Unschedulable)",
    ),
    fault(
        "container-not-started",
        "the pod has a node, and the container does not run yet",
        "the worker does not run, so neither does its KV transfer",
        "wait and run it again; kubectl describe pod and kubectl get events say what it waits for: a volume, a device claim, a network (FailedCreatePodSandBox), an init container",
        "the container runs",
        KUBELET,
    ),
    fault(
        "container-image-pull",
        "the image of the container cannot be pulled",
        "the worker does not run, so neither does its KV transfer",
        "kubectl describe pod shows the registry's answer: the name or tag is wrong, imagePullSecrets is missing, or the registry cannot be reached; the skill dynamo-troubleshoot goes on from there",
        "the image is there",
        KUBELET,
    ),
    fault(
        "container-crash-loop",
        "the container ends again and again",
        "the worker does not run, so neither does its KV transfer; an engine that cannot make its NIXL backend ends like this too",
        "kubectl logs POD -c CONTAINER --previous shows its last words, kubectl describe pod its exit code: 137 with OOMKilled is memory, 139 a crash in a library. Lines of NIXL or UCX in that log: save them and give them to check-interconnect node --from. For anything else use the skill dynamo-troubleshoot",
        "the container runs",
        KUBELET,
    ),
    fault(
        "pod-completed",
        "the pod, or its container, has ended",
        "nothing runs that could be looked into",
        "take a pod that runs: kubectl get pods; an evicted pod says why in kubectl describe pod, and is never started again itself",
        "the container runs",
        KUBELET,
    ),
    fault(
        "pod-deleted",
        "the pod is being deleted, or was while it was looked at",
        "what was read of it, if anything, is of a worker that is no more",
        "run it again for the pod that takes its place; a selector (-l) finds it",
        "the pod stays",
        API,
    ),
    fault(
        "container-restarted",
        "the container was started again while it was looked at",
        "what was read may be partly of the old process and partly of the new one",
        "run it again; where it restarts all the time, kubectl logs POD -c CONTAINER --previous says why",
        "the container is the same before and after",
        "containerStatuses: restartCount, state.running.startedAt",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_cause_and_words_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for kind in FaultKind::ALL {
            let cause = cause(*kind);
            assert_eq!(cause.id, kind.id());
            assert!(seen.insert(cause.what), "{}", cause.what);
            assert!(cause.fix.len() > 20 || *kind == FaultKind::ForbiddenNodes);
        }
        // And there is none without a fault.
        assert_eq!(seen.len(), ACCESS.len() + STATE.len());
    }
}
