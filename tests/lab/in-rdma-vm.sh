# shellcheck shell=bash
# Sourced by .ci/vm and .ci/rdma-transfer: a virtual machine with kernel RDMA devices (soft-RoCE), with KVM
# where that works and without it elsewhere. Whatever keeps it from coming about is no fault of ours: it is said, and exit
# code 77 says that it was skipped. What was seen in it is judged by who calls this.

cache="${XDG_CACHE_HOME:-$HOME/.cache}/check-interconnect"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$cache/target}"
export RDMA_VM_CACHE="${RDMA_VM_CACHE:-$cache/rdma-vm}"

skipped() {
    echo "skipped: $*"
    exit 77
}

# The image, of an earlier run or built now.
vm_image() {
    local begin=$SECONDS
    command -v cargo >/dev/null || skipped "no cargo"
    [ "$(uname -m)" = x86_64 ] || skipped "the virtual machine is for x86_64"
    if ! ls "$RDMA_VM_CACHE"/*/root.img >/dev/null 2>&1 || ! command -v qemu-system-x86_64 >/dev/null; then
        [ "$(id -u)" = 0 ] || skipped "building the virtual machine's image needs root"
        command -v apt-get >/dev/null || skipped "building the virtual machine's image needs apt"
    fi
    timeout 400 tests/lab/run-in-rdma-vm.sh --build-only ||
        skipped "the virtual machine's image cannot be built: no network, or no qemu"
    echo "image: $((SECONDS - begin)) s"
}

# vm_python FOLDER PROGRAM...: what the host's Python and these programs need in the guest, whose C library is not older.
# Sets $python, which is to be shared as /py.
vm_python() {
    local folder="$1" binary
    shift
    python="$(python3 -c 'import sys; print(sys.base_prefix)')"
    binary="$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')"
    mkdir -p "$folder"
    for file in "$binary" "$python"/lib/python3.*/lib-dynload/_ctypes.*.so "$@"; do ldd "$file"; done |
        awk '$3 ~ /^\// && $3 !~ /\/lib(c|m|dl|pthread|rt|util)\.so/ { print $3 }' | sort -u | while read -r file; do
        cp -L "$file" "$folder/"
    done
}

# vm_run SECONDS ARGUMENT...: run-in-rdma-vm.sh with these. Returns what the command in the guest did.
vm_run() {
    local limit="$1" begin=$SECONDS code=0 try
    shift
    for try in 1 2; do
        code=0
        tests/lab/run-in-rdma-vm.sh --accel auto --timeout "$limit" "$@" || code=$?
        # A guest's kernel has been seen to die while it boots, once in many times.
        [ "$code" = 125 ] || break
        [ "$try" = 2 ] || echo "the virtual machine failed; once more"
    done
    case $code in
        124) skipped "the virtual machine took more than $limit s here" ;;
        125) skipped "the virtual machine does not boot here, or ends before it is done; its last words are above" ;;
    esac
    echo "in the virtual machine: $((SECONDS - begin)) s"
    return "$code"
}
