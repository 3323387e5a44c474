#!/usr/bin/env bash
# two-workers.sh - two isolated workers on this machine, as two pods of one node are: each with its own network, PID,
# IPC, UTS and mount namespaces, a private /dev/shm, one interface eth0, and its pod's name as host name.
#
#   two-workers.sh up DIR [options]   starts them; returns when both are there
#   two-workers.sh down DIR           ends them and everything in them
#   two-workers.sh hold DIR [options] starts them, prints `ready`, and ends them with its standard input: also where
#                                     whoever holds the other end of that is killed, or this script itself is
#
# Options
#   --share-pid             both stay in this machine's PID and IPC namespaces (as with hostPID and hostIPC, or in one
#                           pod): UCX then uses cma; with either one apart it does not
#   --engine                an engine runs in each: tests/lab/engine.py, which holds a NIXL agent; without it, sleep
#                           (a file DIR/pull makes the one of decode-0 read from the other; see there)
#   --env NAME=VALUE        in the environment of both engines (may be repeated)
#   --prefill-env, --decode-env   of one of them
#   --device                /sys shows an RDMA device, bnxt_re0, with an active port and a device node: what no library can
#                           open, because no driver is behind it, and no provider for it is there
#
# Needs root, unshare, nsenter and ip. Addresses (192.0.2.1 and 192.0.2.2 on eth0) exist inside of the namespaces only.
# Afterwards DIR has:
#   kubectl                 stands in for kubectl (tests/lab/kubectl.sh): exec in prefill-0 and decode-0, and their objects
#   prefill-0.pid, decode-0.pid, *.log
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

die() {
    echo "two-workers: $*" >&2
    exit 1
}

down() {
    local file pid
    for file in "$1"/*.holder; do
        [ -f "$file" ] || continue
        pid="$(cat "$file")"
        # What is in a PID namespace ends with its first process; --kill-child ends that one.
        kill -KILL "$pid" 2>/dev/null || true
        rm -f "$file"
    done
    for file in "$1"/*.pid; do
        [ -f "$file" ] || continue
        kill -KILL "$(cat "$file")" 2>/dev/null || true
        rm -f "$file"
    done
}

# An RDMA device in the mounts of a worker, and nowhere else.
device() {
    local dev="$1/$2.dev" etc="$1/$2.etc" class="$1/$2.class"
    mkdir -p "$dev" "$etc" "$class"
    cp -a /sys/class/net "$class/"
    mount -t tmpfs tmpfs /sys/class
    cp -a "$class/net" /sys/class/
    mkdir -p /sys/class/infiniband_verbs/uverbs0 /sys/class/infiniband/bnxt_re0/ports/1
    echo 6 >/sys/class/infiniband_verbs/abi_version
    echo bnxt_re0 >/sys/class/infiniband_verbs/uverbs0/ibdev
    echo 1 >/sys/class/infiniband_verbs/uverbs0/abi_version
    echo 231:192 >/sys/class/infiniband_verbs/uverbs0/dev
    echo "1: CA" >/sys/class/infiniband/bnxt_re0/node_type
    echo "4: ACTIVE" >/sys/class/infiniband/bnxt_re0/ports/1/state
    echo Ethernet >/sys/class/infiniband/bnxt_re0/ports/1/link_layer
    mount -t tmpfs tmpfs "$dev"
    cp -a /dev/{null,zero,full,random,urandom,tty,fd,stdin,stdout,stderr} "$dev/"
    mkdir "$dev/infiniband" "$dev/shm"
    mknod "$dev/infiniband/uverbs0" c 231 192
    mount --bind "$dev" /dev
    # What a distribution's rdma-core says there is.
    mount -t tmpfs tmpfs "$etc"
    mkdir "$etc/upper" "$etc/work"
    mount -t overlay -o "lowerdir=/etc,upperdir=$etc/upper,workdir=$etc/work" overlay /etc
    mkdir -p /etc/libibverbs.d
    echo "driver bnxt_re" >/etc/libibverbs.d/bnxt_re.driver
}

# What runs first in a worker.
first() {
    local name="$1" dir="$2" engine="$3"
    shift 3
    hostname "$name"
    mount -t sysfs sysfs /sys 2>/dev/null || true
    [ "$engine" != device ] || { engine=yes; device "$dir" "$name"; }
    mount -t tmpfs tmpfs /dev/shm
    ip link set lo up
    : >"$dir/$name.ready"
    # Its interface is put here from outside.
    while ! ip -o -4 addr show eth0 2>/dev/null | grep -q inet; do sleep 0.02; done
    cd /
    if [ "$engine" = yes ]; then
        # Its command line is that of a worker of Dynamo.
        exec env -i PATH="$PATH" HOME=/root HOSTNAME="$name" "$@" python3 "$dir/dynamo.vllm" \
            --disaggregation-mode "${name%-*}" --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
    fi
    exec env -i PATH="$PATH" HOME=/root HOSTNAME="$name" "$@" sleep infinity
}

# start NAME DIR ENGINE NAMESPACES ENV...
start() {
    local name="$1" dir="$2" engine="$3" namespaces="$4" waited=0
    shift 4
    rm -f "$dir/$name.ready"
    (
        # A worker stays, and must not hold files (locks, pipes) of whoever started it.
        for fd in /proc/self/fd/*; do
            fd="${fd##*/}"
            [ "$fd" -le 2 ] || eval "exec $fd>&-"
        done
        # shellcheck disable=SC2086
        exec setsid $bound unshare $namespaces --fork --kill-child \
            bash "${BASH_SOURCE[0]}" first "$name" "$dir" "$engine" "$@"
    ) </dev/null >"$dir/$name.log" 2>&1 &
    local holder=$!
    echo "$holder" >"$dir/$name.holder"
    while [ ! -e "$dir/$name.ready" ]; do
        kill -0 "$holder" 2>/dev/null || die "$name does not start: $(cat "$dir/$name.log")"
        [ "$waited" -lt 500 ] || die "$name does not start in 10 s"
        sleep 0.02
        waited=$((waited + 1))
    done
    tr -d ' ' <"/proc/$holder/task/$holder/children" >"$dir/$name.pid"
    [ -s "$dir/$name.pid" ] || die "$name has no first process"
}

# What ends a worker with this script, however that ends.
bound=""

hold() {
    bound="setpriv --pdeathsig KILL --"
    up "$@"
    # shellcheck disable=SC2064 # the folder of now
    trap "down '$1'" EXIT
    echo ready
    while read -r _; do :; done
}

up() {
    local dir="$1" share=no engine=no both=() prefill=() decode=()
    shift
    while [ "$#" -gt 0 ]; do
        case "$1" in
            --share-pid) share=yes ;;
            --engine) engine=yes ;;
            --device) engine=device ;;
            --env) both+=("$2"); shift ;;
            --prefill-env) prefill+=("$2"); shift ;;
            --decode-env) decode+=("$2"); shift ;;
            *) die "unknown option $1" ;;
        esac
        shift
    done
    mkdir -p "$dir"
    dir="$(cd "$dir" && pwd)"
    local namespaces="--net --ipc --uts --mount --pid --mount-proc"
    [ "$share" = no ] || namespaces="--net --uts --mount"
    trap 'down "$dir"' ERR EXIT
    ln -sf "$here/engine.py" "$dir/dynamo.vllm"
    start prefill-0 "$dir" "$engine" "$namespaces" "${both[@]}" "${prefill[@]}"
    start decode-0 "$dir" "$engine" "$namespaces" "${both[@]}" "${decode[@]}"
    local one two
    one="$(cat "$dir/prefill-0.pid")"
    two="$(cat "$dir/decode-0.pid")"
    nsenter -t "$one" -n ip link add eth0 type veth peer name eth0 netns "$two"
    nsenter -t "$one" -n ip link set eth0 up
    nsenter -t "$two" -n ip link set eth0 up
    nsenter -t "$one" -n ip addr add 192.0.2.1/24 dev eth0
    nsenter -t "$two" -n ip addr add 192.0.2.2/24 dev eth0
    cp "$here/kubectl.sh" "$dir/kubectl"
    # Interfaces need a moment until they carry (IPv6's duplicate detection is not waited for).
    local waited=0
    until nsenter -t "$one" -n ip -o link show eth0 | grep -q 'state UP'; do
        [ "$waited" -lt 200 ] || die "eth0 does not come up"
        sleep 0.02
        waited=$((waited + 1))
    done
    if [ "$engine" != no ]; then
        waited=0
        until grep -q '^engine ready' "$dir/prefill-0.log" && grep -q '^engine ready' "$dir/decode-0.log"; do
            [ "$waited" -lt 600 ] || die "an engine does not start: $(tail -n 3 "$dir"/*.log)"
            sleep 0.05
            waited=$((waited + 1))
        done
    fi
    trap - ERR EXIT
}

[ "$#" -ge 2 ] || die "usage: two-workers.sh up|hold|down DIR"
case "$1" in
    up) shift; up "$@" ;;
    hold) shift; hold "$@" ;;
    down) down "$2" ;;
    first) shift; first "$@" ;;
    *) die "unknown command $1" ;;
esac
