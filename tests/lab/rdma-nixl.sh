#!/bin/bash
# rdma-nixl.sh OUT CASE... - in the guest of run-in-rdma-vm.sh, with one soft-RoCE device: `check-interconnect nixl
# --transfer` between two workers with an engine each, once for each case. Reports go to OUT. It finds /py (a Python),
# /wheels (NIXL), and beside itself: check-interconnect, kubectl, engine.py, lib, lines of led-to-the-system libraries.
set -u
here="$(cd "$(dirname "$0")" && pwd)"
out="$1"
shift

# The wheel brings a libibverbs of its own, which does not find the distribution's drivers: it is led to the system's.
led=/tmp/led
mkdir -p "$led" /tmp/bin
cp "$here"/lib/* "$led/"
for name in ibverbs mlx5; do
    for file in /wheels/v1.5.1/nixl_cu13.libs/lib"$name"-*.so*; do
        ln -s "/usr/lib/x86_64-linux-gnu/lib$name.so.1" "$led/${file##*/}"
    done
done
python="$(find /py/bin -name 'python3.[0-9]*' | grep -E 'python3\.[0-9]+$' | head -n 1)"
ln -s "$python" /tmp/bin/python3
ln -s "$(command -v bash)" /tmp/bin/sh
export PATH="/tmp/bin:$PATH"

# worker NAME DIR HOW NAME=VALUE...
worker() {
    local name="$1" dir="$2" how="$3"
    shift 3
    unshare --pid --fork --mount-proc --ipc --uts --mount --kill-child bash -c '
        name=$1 dir=$2 how=$3
        shift 3
        hostname "$name"
        mount -t tmpfs tmpfs /dev/shm
        before=""
        case $how in
            hidden) mount -t tmpfs tmpfs /dev/infiniband ;;
            closed) before="setpriv --bounding-set=-dac_override,-dac_read_search" ;;
        esac
        exec $before env -i PATH="$PATH" HOME=/root HOSTNAME="$name" PYTHONHOME=/py \
            PYTHONPATH=/wheels/v1.5.1:/wheels/numpy "$@" python3 "$dir/dynamo.vllm" --disaggregation-mode "${name%-*}" \
            --kv-transfer-config "{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}"
    ' worker "$name" "$dir" "$how" "$@" >"$dir/$name.log" 2>&1 </dev/null &
    local holder=$!
    holders+=("$holder")
    until grep -q '^engine ready' "$dir/$name.log"; do
        kill -0 "$holder" || { cat "$dir/$name.log"; return 1; }
        sleep 0.5
    done
    tr -d ' ' <"/proc/$holder/task/$holder/children" >"$dir/$name.pid"
}

# run CASE HOW NAME=VALUE...
run() {
    local case="$1" how="$2" dir="/tmp/$1" holders=()
    shift 2
    mkdir -p "$dir"
    cp "$here/kubectl" "$dir/kubectl"
    ln -s "$here/engine.py" "$dir/dynamo.vllm"
    # Interfaces are the guest's.
    echo "-p -i -u -m" >"$dir/flags"
    [ "$how" != closed ] || echo "setpriv --bounding-set=-dac_override,-dac_read_search" >"$dir/before"
    echo "== $case"
    if worker prefill-0 "$dir" "$how" "$@" && worker decode-0 "$dir" "$how" "$@"; then
        "$here/check-interconnect" nixl -n lab --pod decode-0 --peer prefill-0 --via "$dir/kubectl" --transfer \
            --largest 1M --timeout 240s -o "json=$out/$case.json" -o short 2>&1
        echo "exit code $?" | tee "$out/$case.code"
    fi
    kill -KILL "${holders[@]}" 2>/dev/null
    wait "${holders[@]}" 2>/dev/null
    return 0
}

for case in "$@"; do
    echo "$SECONDS s"
    case $case in
        rdma) run rdma open LD_LIBRARY_PATH="$led" ;;
        as-shipped) run as-shipped open LD_LIBRARY_PATH="$here/lib" ;;
        hidden) run hidden hidden LD_LIBRARY_PATH="$led" ;;
        closed)
            chmod 000 /dev/infiniband/uverbs*
            run closed closed LD_LIBRARY_PATH="$led"
            chmod 666 /dev/infiniband/uverbs*
            ;;
        interface) run interface open LD_LIBRARY_PATH="$led" UCX_NET_DEVICES=rdma0,lo ;;
        down)
            ip link set rdma0 down
            run down open LD_LIBRARY_PATH="$led"
            ip link set rdma0 up
            ;;
        *) echo "no case $case"; exit 2 ;;
    esac
done
echo "$SECONDS s"
