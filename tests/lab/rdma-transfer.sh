#!/bin/bash
# rdma-transfer.sh OUT - in the guest of run-in-rdma-vm.sh, with one soft-RoCE device: real transfers of NIXL between two
# isolated processes, over RDMA, over RDMA with emulation switched off, and as the wheel falls back to TCP in silence.
# Measurements go to OUT. It finds /py (a Python), /wheels (NIXL), and beside itself: measure, lib.
set -u
here="$(cd "$(dirname "$0")" && pwd)"
out="$1"

# The wheel brings a libibverbs of its own, which does not find the distribution's drivers: it is led to the system's.
led=/tmp/led
mkdir -p "$led" /tmp/bin
cp "$here"/lib/* "$led/"
for name in ibverbs mlx5; do
    for file in /wheels/v1.5.1/nixl_cu13.libs/lib"$name"-*.so*; do
        ln -s "/usr/lib/x86_64-linux-gnu/lib$name.so.1" "$led/${file##*/}"
    done
done
ln -s "$(ls /py/bin/python3.[0-9]* | grep -E 'python3\.[0-9]+$' | head -n 1)" /tmp/bin/python3
cat >/tmp/worker.sh <<'EOF'
#!/bin/bash
exec unshare --pid --fork --mount-proc --ipc --mount --kill-child bash -c 'mount -t tmpfs tmpfs /dev/shm; exec "$@"' worker "$@"
EOF
chmod +x /tmp/worker.sh

export PATH="/tmp/bin:$PATH" PYTHONHOME=/py PYTHONPATH=/wheels/v1.5.1:/wheels/numpy
run() {
    local name="$1"
    shift
    echo "== $name"
    env "$@" SAVE="$out/$name.json" LARGEST=1048576 REPEATS=2 "$here/measure" /tmp/worker.sh :: /tmp/worker.sh
}
run rdma LD_LIBRARY_PATH="$led"
run control LD_LIBRARY_PATH="$led" CONTROL=1
run as-shipped LD_LIBRARY_PATH="$here/lib"
