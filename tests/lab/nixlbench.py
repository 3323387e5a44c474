#!/usr/bin/env python3
"""Stands in for nixlbench: its flags, its two ways to its peer, its output, and as many bytes over TCP; no NIXL.

What it prints has the form that NIXL's own documentation and sources describe (benchmark/nixlbench, 0.5.1 to 1.5), in
words of this project. A file `nixlbench.fault` beside it makes it do something wrong: `old` (it knows no connection of its
own), `consistency`, `hang`, `flood`, `backend`, `alone` (the second one does not come), `crash`. `nixlbench.etcd` stands for
an etcd: who makes it is the first.
"""
import os
import socket
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
try:
    with open(here + "/nixlbench.fault") as file:
        fault = file.read().strip()
except OSError:
    fault = ""
flags = {"runtime_type": "ETCD", "op_type": "WRITE", "num_iter": "1000", "warmup_iter": "100",
         "initiator_seg_type": "DRAM", "max_block_size": "67108864", "check_consistency": "false"}
words = iter(sys.argv[1:])
for word in words:
    name, given, value = word.lstrip("-").partition("=")
    flags[name] = value if given else next(words, "")
if "help" in flags:
    print("nixlbench: Warning: SetUsageMessage() never called\n  Flags from utils.cpp:")
    print("    -backend (Name of NIXL backend) type: string default: \"UCX\"")
    if fault != "old":
        print("    -asio_address (ASIO server IP address) type: string default: \"127.0.0.1\"")
    sys.exit(1)
if fault == "old" and flags["runtime_type"] != "ETCD":
    sys.exit("Invalid runtime type: " + flags["runtime_type"])


def flood():
    while True:
        sys.stdout.write("x" * 65536)


def first_and_connection():
    """Whether this is rank 0, and a connection to the other one."""
    if flags["runtime_type"] == "ASIO":
        where = (flags["asio_address"], int(flags["asio_port"]))
        try:
            listener = socket.create_server(where)
        except OSError:
            print("ASIO runtime bind/listen error -- using connect() instead", flush=True)
            if fault == "alone":
                sys.exit(1)
            return False, socket.create_connection(where, timeout=25)
        listener.settimeout(3 if fault == "alone" else 25)
        try:
            return True, listener.accept()[0]
        except OSError:
            sys.exit("terminate called after throwing an instance of 'std::runtime_error'\n"
                     "  what():  ASIO Connection timeout: Operation canceled")
    print("Connecting to ETCD at " + flags["etcd_endpoints"], flush=True)
    # What an etcd would know is where the first one is.
    path = here + "/nixlbench.etcd"
    own = [line for line in os.popen("ip -o -4 addr show eth0").read().split() if "/" in line][0].split("/")[0]
    try:
        with open(path, "x") as file:
            listener = socket.create_server((own, 0))
            file.write("%s %d %s" % (own, listener.getsockname()[1], flags["benchmark_group"]))
        print("ETCD Runtime: Registered as rank 0 item 1 of 2", flush=True)
        return True, listener.accept()[0]
    except FileExistsError:
        with open(path) as file:
            host, port, group = file.read().split()
        assert group == flags["benchmark_group"]
        print("ETCD Runtime: Registered as rank 1 item 2 of 2", flush=True)
        return False, socket.create_connection((host, int(port)))


first, connection = first_and_connection()
connection.settimeout(None)
print("Init nixl worker, dev all rank %d, type %s, hostname %s"
      % (not first, "initiator" if first else "target", socket.gethostname()), flush=True)
if fault == "hang":
    time.sleep(3600)
if fault == "flood":
    flood()
if fault == "backend":
    sys.exit("createBackend failed!")
block, read = int(flags["max_block_size"]), flags["op_type"] == "READ"
times = int(flags["num_iter"]) + int(flags["warmup_iter"])
if first:
    # UCX prints it where UCX_PROTO_INFO asks for it, to the place that UCX_LOG_FILE names.
    if os.environ.get("UCX_PROTO_INFO") == "y":
        title = "remote memory read by ucp_get*(multi) into host memory from host" if read else \
            "remote memory write by ucp_put*(multi) from host memory to host"
        how = "software emulation" if read else "zero-copy"
        place = sys.stderr if os.environ.get("UCX_LOG_FILE") == "stderr" else sys.stdout
        for line in ("+---+---+---+", "| initiator-0 inter-node cfg#1 |", "| %s |" % title, "+---+---+---+",
                     "| Range | Description | Config |", "+---+---+---+", "| 0..inf | %s | tcp/eth0 |" % how,
                     "+---+---+---+"):
            print("[1700000000.000001] [bench:7:0]  " + line, file=place, flush=True)
    print("*" * 160 + "\nNIXLBench Configuration\n" + "*" * 160)
    print("%-60s: %s" % ("Backend (--backend=[UCX,GDS,...])", flags["backend"]))
    print("-" * 160)
    print("%-20s%-15s%-15s%-15s%-15s%-15s%-15s%-15s%-15s%-15s" % (
        "Block Size (B)", "Batch Size", "B/W (GB/Sec)", "Avg Lat. (us)", "Avg Prep (us)", "P99 Prep (us)",
        "Avg Post (us)", "P99 Post (us)", "Avg Tx (us)", "P99 Tx (us)"))
    print("-" * 160, flush=True)
begin = time.monotonic()
if first != read:
    data = bytes(block)
    for _ in range(times):
        connection.sendall(data)
    connection.recv(1)
else:
    left = block * times
    while left:
        part = connection.recv(min(left, 1 << 20))
        if not part:
            sys.exit("ASIO Read data failed: End of file")
        left -= len(part)
    connection.sendall(b".")
took = max(time.monotonic() - begin, 1e-6)
if fault == "crash" and first:
    os.abort()
# The worker that gets the content looks at it.
if fault == "consistency" and first == read:
    print("Consistency check failed for iov 0:0", file=sys.stderr)
if first:
    each = took / times
    print("%-20d%-15d%-15f%-15f%-15f%-15f%-15f%-15f%-15f%-15f" % (
        block, 1, block / each / 1e9, each * 1e6, 1, 1, 1, 1, each * 1e6, each * 1e6))
