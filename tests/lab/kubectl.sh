#!/usr/bin/env bash
# Stands in for kubectl, copied into the folder of two workers of this machine as `kubectl`:
#
#   kubectl exec [-i] [-n NS] POD [-c C] -- ARGV...   runs ARGV in the worker POD, with the environment of an exec and not
#                                                     of the engine
#   kubectl get --raw PATH                            the pod POD, or an empty list of nodes
#
# The folder has POD.pid; where it has them, `flags` (the options of nsenter, one line) and `before` (words before ARGV).
set -euo pipefail

dir="$(cd "$(dirname "$0")" && pwd)"

die() {
    echo "$*" >&2
    exit 1
}

pod_object() {
    local role="${1%-*}" node=node-a
    [ "$role" = prefill ] || node=node-b
    cat <<END
{"apiVersion": "v1", "kind": "Pod",
 "metadata": {"name": "$1", "namespace": "lab", "uid": "00000000-0000-0000-0000-00000000000${#1}",
  "labels": {"nvidia.com/dynamo-component-type": "$role", "nvidia.com/dynamo-graph-deployment-name": "graph"}},
 "spec": {"nodeName": "$node", "containers": [{"name": "main", "image": "registry.example/vllm-runtime:1.0.0",
  "command": ["python3", "-m", "dynamo.vllm"],
  "args": ["--disaggregation-mode", "$role", "--kv-transfer-config", "{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}"],
  "resources": {"limits": {"rdma/ib": "1"}}}]},
 "status": {"phase": "Running", "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0,
  "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}}
END
}

get() {
    case "$1" in
        /api/v1/namespaces/lab/pods/*)
            local name="${1##*/}"
            [ -f "$dir/$name.pid" ] || die "Error from server (NotFound): pods \"$name\" not found"
            pod_object "$name"
            ;;
        /api/v1/nodes*) echo '{"kind": "NodeList", "items": []}' ;;
        *) die "Error from server (NotFound): the server could not find the requested resource" ;;
    esac
}

words=()
while [ "$#" -gt 0 ]; do
    case "$1" in
        --) shift; break ;;
        -i | -q | --stdin | --quiet | -i=true | --stdin=true | --raw) ;;
        -n | -c | --namespace | --container | --context | --kubeconfig | --request-timeout) shift ;;
        -n?* | -c?* | --namespace=* | --container=* | --context=* | --kubeconfig=* | --request-timeout=*) ;;
        -*) die "error: unknown flag $1" ;;
        *) words+=("$1") ;;
    esac
    shift
done
case "${words[0]:-}" in
    get) get "${words[1]:-}"; exit ;;
    exec) ;;
    *) die "error: only exec and get --raw are here" ;;
esac
pod="${words[1]:-}"
pod="${pod#pod/}"
[ -n "$pod" ] && [ -f "$dir/$pod.pid" ] || die "Error from server (NotFound): pods \"$pod\" not found"
flags=(-n -p -i -u -m)
before=()
[ ! -f "$dir/flags" ] || read -ra flags <"$dir/flags" || true
[ ! -f "$dir/before" ] || read -ra before <"$dir/before" || true
exec nsenter -t "$(cat "$dir/$pod.pid")" "${flags[@]}" --wdns=/ -- \
    env -i PATH="$PATH" HOSTNAME="$pod" HOME=/root KUBERNETES_SERVICE_HOST=192.0.2.254 "${before[@]}" "$@"
