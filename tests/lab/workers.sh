#!/usr/bin/env bash
# workers.sh - any number of isolated workers on this machine, as pods of one deployment are: each with its own network,
# PID, IPC, UTS and mount namespaces, a private /dev/shm and an interface eth0, all on one bridge, an engine in each
# (tests/lab/engine.py).
#
#   workers.sh hold DIR NAME... [-- NAME=VALUE...]  starts them, prints `ready`, and ends them with its standard input:
#                                                   also where whoever holds the other end is killed, or this is
#
# The words behind -- are variables of all engines; DIR/NAME.env has more for one of them, a line each. Names are
# prefill-N and decode-N; the N-th name has the address 192.0.2.N inside of its namespaces.
#
# Needs root, unshare, nsenter, setpriv and ip. Afterwards DIR has kubectl (tests/lab/kubectl.sh), NAME.pid, *.log.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

die() {
    echo "workers: $*" >&2
    exit 1
}

# What runs first in a worker.
first() {
    local name="$1" dir="$2"
    shift 2
    hostname "$name"
    mount -t sysfs sysfs /sys 2>/dev/null || true
    mount -t tmpfs tmpfs /dev/shm
    ip link set lo up
    : >"$dir/$name.ready"
    # Its interface is put here from outside.
    while ! ip -o -4 addr show eth0 2>/dev/null | grep -q inet; do sleep 0.02; done
    cd /
    exec env -i PATH="$PATH" HOME=/root HOSTNAME="$name" "$@" python3 "$dir/dynamo.vllm" \
        --disaggregation-mode "${name%-*}" --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
}

# begin NAME: in namespaces of its own; ends with this script, however that ends.
begin() {
    local name="$1"
    shift
    (
        for fd in /proc/self/fd/*; do
            fd="${fd##*/}"
            [ "$fd" -le 2 ] || eval "exec $fd>&-"
        done
        exec setsid setpriv --pdeathsig KILL -- unshare "$@"
    ) </dev/null >"$dir/$name.log" 2>&1 &
    echo "$!" >"$dir/$name.holder"
}

# wait_for WHAT SECONDS COMMAND...
wait_for() {
    local what="$1" rounds="$(($2 * 20))"
    shift 2
    until "$@"; do
        [ "$rounds" -gt 0 ] || die "$what: $(tail -n 3 "$dir"/*.log)"
        rounds=$((rounds - 1))
        sleep 0.05
    done
}

child_of() {
    tr -d ' ' <"/proc/$1/task/$1/children"
}

down() {
    local file
    for file in "$dir"/*.holder; do
        # --kill-child ends what is inside with it.
        [ ! -f "$file" ] || kill -KILL "$(cat "$file")" 2>/dev/null || true
    done
}

hold() {
    dir="$1"
    shift
    local names=() name number=0 one switch
    while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
        names+=("$1")
        shift
    done
    [ "$#" -eq 0 ] || shift
    mkdir -p "$dir"
    dir="$(cd "$dir" && pwd)"
    trap down EXIT
    ln -sf "$here/engine.py" "$dir/dynamo.vllm"
    cp "$here/kubectl.sh" "$dir/kubectl"
    begin switch --net --fork --kill-child bash -c 'ip link set lo up; ip link add br0 type bridge; ip link set br0 up; exec sleep infinity'
    switch="$(cat "$dir/switch.holder")"
    bridge_is_there() { nsenter -t "$(child_of "$switch")" -n ip link show br0 2>/dev/null | grep -q UP; }
    wait_for "no bridge" 10 bridge_is_there
    switch="$(child_of "$switch")"
    for name in "${names[@]}"; do
        local own=()
        [ ! -f "$dir/$name.env" ] || mapfile -t own <"$dir/$name.env"
        begin "$name" --net --ipc --uts --mount --pid --mount-proc --fork --kill-child \
            bash "${BASH_SOURCE[0]}" first "$name" "$dir" "$@" "${own[@]}"
    done
    for name in "${names[@]}"; do
        number=$((number + 1))
        wait_for "$name does not start" 20 test -e "$dir/$name.ready"
        child_of "$(cat "$dir/$name.holder")" >"$dir/$name.pid"
        one="$(cat "$dir/$name.pid")"
        nsenter -t "$switch" -n ip link add "w$number" type veth peer name eth0 netns "$one"
        nsenter -t "$switch" -n ip link set "w$number" master br0 up
        nsenter -t "$one" -n ip link set eth0 up
        nsenter -t "$one" -n ip addr add "192.0.2.$number/24" dev eth0
    done
    for name in "${names[@]}"; do
        wait_for "the engine of $name does not start" 60 grep -q '^engine ready' "$dir/$name.log"
    done
    echo ready
    while read -r _; do :; done
}

[ "$#" -ge 2 ] || die "usage: workers.sh hold DIR NAME..."
case "$1" in
    hold) shift; hold "$@" ;;
    first) shift; first "$@" ;;
    *) die "unknown command $1" ;;
esac
