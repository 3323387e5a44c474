"""The same NIXL calls as `nixl --transfer`, and nothing else: `plain.py prefill` and `plain.py decode ADDRESS`.

Both register as much memory, exchange metadata over a connection, and do as many transfers of the same sizes: READ by the
decode worker, then WRITE by the prefill worker. Each prints a line of JSON for each size: seconds of the timed transfers.
"""
import ctypes
import json
import mmap
import socket
import sys
import time

from nixl._api import nixl_agent, nixl_agent_config

# Bytes, timed transfers; one more before them.
SIZES = ((64 << 10, 8), (1 << 20, 8), (16 << 20, 3), (64 << 20, 2))
SIZE = 64 << 20
PORT = 5601

role = sys.argv[1]
agent = nixl_agent("plain-" + role, nixl_agent_config(backends=[]))
agent.create_backend("UCX", {})
memory = mmap.mmap(-1, SIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
agent.register_memory(agent.get_reg_descs([(address, SIZE, 0, "")], "DRAM"))

if role == "prefill":
    with socket.create_server(("", PORT)) as listener:
        connection, _ = listener.accept()
else:
    while True:
        try:
            connection = socket.create_connection((sys.argv[2], PORT))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
stream = connection.makefile("rwb")
stream.write(json.dumps([address, agent.get_agent_metadata().hex()]).encode() + b"\n")
stream.flush()
theirs, metadata = json.loads(stream.readline())
peer = agent.add_remote_agent(bytes.fromhex(metadata))
peer = peer.decode() if isinstance(peer, bytes) else peer


def transfer(operation, size):
    local = agent.get_xfer_descs([(address, size, 0)], "DRAM")
    remote = agent.get_xfer_descs([(theirs, size, 0)], "DRAM")
    handle = agent.initialize_xfer(operation, local, remote, peer)
    begin = time.perf_counter()
    state = agent.transfer(handle)
    while state == "PROC":
        time.sleep(0 if time.perf_counter() - begin < 0.001 else 0.00005)
        state = agent.check_xfer_state(handle)
    took = time.perf_counter() - begin
    if state != "DONE":
        raise RuntimeError(state)
    handle.release() if hasattr(handle, "release") else agent.release_xfer_handle(handle)
    return took


def turn(operation):
    for size, times in SIZES:
        took = [transfer(operation, size) for _ in range(times + 1)][1:]
        print(json.dumps({"operation": operation, "bytes": size, "seconds": took}), flush=True)
    stream.write(b"done\n")
    stream.flush()


if role == "decode":
    turn("READ")
    stream.readline()
else:
    stream.readline()
    turn("WRITE")
