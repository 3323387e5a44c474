#!/bin/bash
# rdma-transfer.sh OUT CASE... - in the guest of run-in-rdma-vm.sh, with one soft-RoCE device: real transfers of NIXL between
# two isolated processes, by the library (measure) and from the command line between two workers with an engine each.
# What came out goes to OUT. It finds /py (a Python), /wheels (NIXL), and beside itself: measure, check-interconnect,
# kubectl, engine.py, lib.
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
ln -s "$(find /py/bin -name 'python3.[0-9]*' | grep -E 'python3\.[0-9]+$' | head -n 1)" /tmp/bin/python3
ln -s "$(command -v bash)" /tmp/bin/sh
export PATH="/tmp/bin:$PATH"
python=(PYTHONHOME=/py PYTHONPATH=/wheels/v1.5.1:/wheels/numpy)

# ---- by the library

cat >/tmp/worker.sh <<'END'
#!/bin/bash
exec unshare --pid --fork --mount-proc --ipc --mount --kill-child bash -c 'mount -t tmpfs tmpfs /dev/shm; exec "$@"' worker "$@"
END
cat >/tmp/limited.sh <<'END'
#!/bin/bash
exec prlimit --memlock=65536:65536 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock /tmp/worker.sh "$@"
END
chmod +x /tmp/worker.sh /tmp/limited.sh

# library CASE WORKER NAME=VALUE...
library() {
    local case="$1" worker="$2"
    shift 2
    env "${python[@]}" "$@" SAVE="$out/$case.json" LARGEST=65536 REPEATS=2 "$here/measure" "$worker" :: "$worker"
}

# ---- from the command line

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
        exec $before env -i PATH="$PATH" HOME=/root HOSTNAME="$name" "$@" python3 "$dir/dynamo.vllm" \
            --disaggregation-mode "${name%-*}" \
            --kv-transfer-config "{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}"
    ' worker "$name" "$dir" "$how" "${python[@]}" NIXL_TELEMETRY_PROMETHEUS_PORT="909${#name}" "$@" >"$dir/$name.log" 2>&1 </dev/null &
    holders+=("$!")
}

# up NAME DIR HOLDER: its engine is there.
up() {
    until grep -q '^engine ready' "$2/$1.log"; do
        kill -0 "$3" 2>/dev/null || { echo "no engine:"; cat "$2/$1.log"; return 1; }
        sleep 0.2
    done
    tr -d ' ' <"/proc/$3/task/$3/children" >"$2/$1.pid"
}

# nixl CASE WORD...
nixl() {
    local case="$1"
    shift
    "$here/check-interconnect" nixl -n lab --pod decode-0 --via "/tmp/${case%.*}/kubectl" --timeout 120s \
        -o "json=$out/$case.json" -o short "$@" 2>&1
    echo "exit code $?" | tee "$out/$case.code"
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
    # They start at the same time.
    worker prefill-0 "$dir" "$how" "$@"
    worker decode-0 "$dir" "$how" "$@"
    if up prefill-0 "$dir" "${holders[0]}" && up decode-0 "$dir" "${holders[1]}"; then
        nixl "$case" --peer prefill-0 --transfer --largest 64K
        case $case in
            # What its UCX offers with and without the device nodes.
            hidden) nixl "$case.ready" ;;
            rdma)
                nixl "$case.ready"
                # What the engines themselves move meanwhile.
                nixl "$case.observed" --peer prefill-0 --observe 12s >"$dir/observed" &
                local observing=$!
                until grep -q 'are read now' "$dir/observed" || ! kill -0 "$observing" 2>/dev/null; do sleep 0.1; done
                echo 32 >"$dir/asked"
                mv "$dir/asked" "$dir/pull"
                wait "$observing"
                cat "$dir/observed"
                ;;
        esac
    fi
    kill -KILL "${holders[@]}" 2>/dev/null
    wait "${holders[@]}" 2>/dev/null
    return 0
}

for case in "$@"; do
    echo "== $case ($SECONDS s)"
    case $case in
        rdma-library) library "$case" /tmp/worker.sh LD_LIBRARY_PATH="$led" ;;
        control) library "$case" /tmp/worker.sh LD_LIBRARY_PATH="$led" CONTROL=1 ;;
        memlock) library "$case" /tmp/limited.sh LD_LIBRARY_PATH="$led" START=12 ;;
        rdma)
            run rdma open LD_LIBRARY_PATH="$led" ENGINE_PULLS=y ENGINE_PEER=127.0.0.1 \
                NIXL_TELEMETRY_ENABLE=y NIXL_TELEMETRY_EXPORTER=prometheus
            ;;
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
echo "== done ($SECONDS s)"
