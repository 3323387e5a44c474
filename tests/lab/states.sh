#!/usr/bin/env bash
# Runs in the guest of run-in-rdma-vm.sh: puts its RDMA devices into each state in turn, and saves what the collecting
# script prints there beside what the system's own tools print. One boot for all states.
#
#   states.sh SCRIPT OUTPUT PROGRAM
set -u
script=$1
output=$2
program=$3
export LC_ALL=C

# probe NAME [tools=no]: with the modules before and after, and where it runs tools in both shells of the guest.
probe() {
    local name=$1 place=$output/$1
    shift
    mkdir -p "$place"
    sort /proc/modules | cut -d' ' -f1 >"$place/modules-before"
    busybox sh -s -- "$@" <"$script" >"$place/stream.busybox" 2>"$place/stderr.busybox"
    sort /proc/modules | cut -d' ' -f1 >"$place/modules-after"
    [ $# = 0 ] || return 0
    bash -s -- "$@" <"$script" >"$place/stream.bash" 2>"$place/stderr.bash"
}

# tools NAME: afterwards, for they load modules.
tools() {
    local place=$output/$1
    ibstat >"$place/ibstat" 2>&1
    ibv_devinfo >"$place/ibv_devinfo" 2>&1
    rdma link >"$place/rdma-link" 2>&1
}

export -f probe tools
export script output

state() { # NAME [ARGUMENT...]
    local name=$1
    shift
    rdma-lab "$name" || exit 1
    probe "$name" "$@"
    tools "$name"
}

# as NAME COMMAND...: the script as another user or with other limits; the command gets a shell to run.
# shellcheck disable=SC2016 # the inner shell expands it
as() {
    local name=$1
    shift
    mkdir -p "$output/$name"
    chmod 777 "$output/$name"
    "$@" bash -c 'probe "$1" tools=no' bash "$name"
}

chmod 755 "$output"
state bare
mv "$output/bare" "$output/bare-first"
state core
state one
# The program itself, beside its script.
"$program" node -o json >"$output/one/node.json" 2>"$output/one/node.stderr"
echo $? >"$output/one/node.code"
state down tools=no
state up tools=no
state two tools=no

rdma-lab one || exit 1
# The device plugin did not give the node to this container.
as uverbs-hidden unshare -m bash -c 'mount -t tmpfs none /dev/infiniband && "$@"' bash
chmod 600 /dev/infiniband/uverbs0
as not-openable setpriv --reuid 1000 --regid 1000 --clear-groups
chmod 666 /dev/infiniband/uverbs0
as user setpriv --reuid 1000 --regid 1000 --clear-groups
limited='ulimit -l 64; "$@"'
as memlock-root bash -c "$limited" bash
as memlock-root-without-ipc-lock bash -c "$limited" bash setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock
as memlock-user bash -c "$limited" bash setpriv --reuid 1000 --regid 1000 --clear-groups

# A stand-in for an engine that has a device open.
cp "$(command -v busybox)" /tmp/python3
mkfifo /tmp/input
UCX_TLS=rc_verbs,tcp HF_TOKEN=hunter2 bash -c 'exec -a sh /tmp/python3 -c "read line" -m vllm.entrypoints.openai.api_server --api-key hunter2 --kv-transfer-config "{}" 4<>/dev/infiniband/uverbs0 <>/tmp/input' &
engine=$!
sleep 1
as engine env
kill "$engine"
wait "$engine" 2>/dev/null

# InfiniBand, which soft-RoCE is not: a tree of our own over the class.
rdma-lab core || exit 1
tree=/tmp/infiniband/mlx5_0
port=$tree/ports/1
mkdir -p "$port/gids" "$port/pkeys" "$port/gid_attrs/types" "$port/gid_attrs/ndevs" "$port/counters"
put() { printf '%s\n' "$2" >"$1"; }
put $tree/node_type '1: CA'
put $tree/node_guid 'a088:c203:0011:2233'
put $tree/sys_image_guid 'a088:c203:0011:2233'
put $tree/node_desc 'mlx5_0'
put $tree/fw_ver '28.43.1014'
put $tree/hca_type 'MT4129'
put $tree/board_id 'NVD0000000099'
put $tree/hw_rev '0'
put $port/state '4: ACTIVE'
put $port/phys_state '5: LinkUp'
put $port/link_layer 'InfiniBand'
put $port/rate '400 Gb/sec (4X NDR)'
put $port/lid '0x2a'
put $port/lid_mask_count '0'
put $port/sm_lid '0x3'
put $port/sm_sl '0'
put $port/cap_mask '0xa751e848'
put $port/gids/0 'fe80:0000:0000:0000:a088:c203:0011:2233'
put $port/gid_attrs/types/0 'IB/RoCE v1'
put $port/pkeys/0 '0xffff'
put $port/counters/port_xmit_data '0'
# shellcheck disable=SC2016 # the inner shell expands it
as infiniband unshare -m bash -c 'mount --bind /tmp/infiniband /sys/class/infiniband && "$@" && ibstat >"$output/infiniband/ibstat" 2>&1' bash

for mode in pair pair-exclusive; do
    state $mode tools=no
    mkdir -p "$output/$mode-peer"
    # shellcheck disable=SC2016
    ip netns exec peer bash -c 'probe "$1" tools=no; tools "$1"' bash $mode-peer
done
state bare tools=no
mv "$output/bare" "$output/bare-again"
