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
# For metrics; Python needs its home, which an exec does not have.
ln -s /usr/bin/busybox /tmp/bin/wget
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

# worker NAME DIR NAME=VALUE...
worker() {
    local name="$1" dir="$2"
    shift 2
    unshare --pid --fork --mount-proc --ipc --uts --mount --kill-child bash -c '
        name=$1 dir=$2
        shift 2
        hostname "$name"
        mount -t tmpfs tmpfs /dev/shm
        exec env -i PATH="$PATH" HOME=/root HOSTNAME="$name" "$@" python3 "$dir/dynamo.vllm" \
            --disaggregation-mode "${name%-*}" \
            --kv-transfer-config "{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}"
    ' worker "$name" "$dir" "${python[@]}" NIXL_TELEMETRY_PROMETHEUS_PORT="909${#name}" "$@" >"$dir/$name.log" 2>&1 </dev/null &
    holders+=("$!")
}

# up NAME HOLDER: its engine is there.
up() {
    until grep -q '^engine ready' "$dir/$1.log"; do
        kill -0 "$2" 2>/dev/null || { echo "no engine:"; cat "$dir/$1.log"; return 1; }
        sleep 0.2
    done
    tr -d ' ' <"/proc/$2/task/$2/children" >"$dir/$1.pid"
}

# pair NAME=VALUE...: two workers whose engines have these settings; the same ones as long as nobody asks for others.
dir='' holders=() settings=''
pair() {
    [ "$settings" != "$*" ] || return 0
    apart
    settings="$*"
    dir="$(mktemp -d)"
    cp "$here/kubectl" "$dir/kubectl"
    ln -s "$here/engine.py" "$dir/dynamo.vllm"
    # Interfaces are the guest's.
    echo "-p -i -u -m" >"$dir/flags"
    # They start at the same time.
    worker prefill-0 "$dir" "$@"
    worker decode-0 "$dir" "$@"
    up prefill-0 "${holders[0]}" && up decode-0 "${holders[1]}"
}

apart() {
    [ "${#holders[@]}" = 0 ] || kill -KILL "${holders[@]}" 2>/dev/null
    wait "${holders[@]}" 2>/dev/null
    holders=()
}

# nixl CASE WORD...
nixl() {
    local case="$1" begin=$SECONDS
    shift
    "$here/check-interconnect" nixl -n lab --pod decode-0 --via "$dir/kubectl" --timeout 200s \
        -o "json=$out/$case.json" -o short "$@" 2>&1
    echo "exit code $?" | tee "$out/$case.code"
    echo "($case: $((SECONDS - begin)) s)"
}

transfer() {
    nixl "$1" --peer prefill-0 --transfer --largest 64K
}

pull() { # MIB
    local tries
    rm -f "$dir/pulled"
    echo "$1" >"$dir/asked"
    mv "$dir/asked" "$dir/pull"
    for tries in {1..300}; do
        [ ! -e "$dir/pulled" ] || return 0
        sleep 0.1
    done
    echo "the engines did not move $1 MiB"
}

# What the engines themselves move meanwhile.
observe() {
    # They connect when they transfer first.
    pull 16
    nixl "$1" --peer prefill-0 --observe 15s >"$dir/observed" &
    local observing=$!
    until grep -q 'are read now' "$dir/observed" || ! kill -0 "$observing" 2>/dev/null; do sleep 0.1; done
    pull 32
    wait "$observing"
    cat "$dir/observed"
}

in_both() {
    local name
    for name in prefill-0 decode-0; do nsenter -t "$(cat "$dir/$name.pid")" -m "$@"; done
}

# Pods rarely have them, and each takes seconds here. Nothing of it stays: the disk is a snapshot.
rm -f /usr/bin/{ucx_info,fi_info,ibv_devinfo}
same=(LD_LIBRARY_PATH="$led" ENGINE_PULLS=y ENGINE_PEER=127.0.0.1 NIXL_TELEMETRY_ENABLE=y NIXL_TELEMETRY_EXPORTER=prometheus)

for case in "$@"; do
    # What is done is judged, also on a machine that is too slow for all.
    if [ "$SECONDS" -gt 1000 ]; then
        echo "left out, for it takes too long here: $case"
        continue
    fi
    echo "== $case ($SECONDS s)"
    echo "$case" >>"$out/done"
    case $case in
        rdma-library) library "$case" /tmp/worker.sh LD_LIBRARY_PATH="$led" ;;
        control) library "$case" /tmp/worker.sh LD_LIBRARY_PATH="$led" CONTROL=1 ;;
        mixed) library "$case" /tmp/worker.sh LD_LIBRARY_PATH="$led" UCX_TLS=rc PREFILL=UCX_TLS=tcp ;;
        memlock) library "$case" /tmp/limited.sh LD_LIBRARY_PATH="$led" START=20 ;;
        rdma) pair "${same[@]}" && transfer rdma && nixl rdma.ready && observe rdma.observed ;;
        down)
            # Engines that were connected over the port have been seen to crash when it goes down.
            ip link set rdma0 down
            pair LD_LIBRARY_PATH="$led" && transfer down
            ip link set rdma0 up
            ;;
        closed)
            pair "${same[@]}" || continue
            chmod 000 /dev/infiniband/uverbs*
            echo "setpriv --bounding-set=-dac_override,-dac_read_search" >"$dir/before"
            transfer closed
            rm "$dir/before"
            chmod 666 /dev/infiniband/uverbs*
            ;;
        hidden)
            pair "${same[@]}" || continue
            in_both mount -t tmpfs tmpfs /dev/infiniband
            transfer hidden
            nixl hidden.ready
            in_both umount /dev/infiniband
            ;;
        as-shipped) pair LD_LIBRARY_PATH="$here/lib" && transfer as-shipped ;;
        interface) pair LD_LIBRARY_PATH="$led" UCX_NET_DEVICES=rdma0,lo && transfer interface ;;
        *) echo "no case $case"; exit 2 ;;
    esac
done
apart
echo "== done ($SECONDS s)"
