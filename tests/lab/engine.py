"""Stands in for an engine: holds a NIXL agent with registered memory, so that its /proc shows what an engine's does.

With ENGINE_PULLS in the environment: where a file `pull` appears beside it, with a number of MiB in it, the decode
worker's engine READs so many from the prefill worker's, whose metadata it gets over a side channel, and then writes
`pulled`.
"""
import ctypes
import mmap
import os
import socket
import sys
import threading
import time
import types

if "torch" not in sys.modules:
    # Older wheels import it only to tell tensors from tuples.
    torch = types.ModuleType("torch")
    torch.Tensor = type("Tensor", (), {})
    torch.dtype = type("dtype", (), {})
    torch.device = type("device", (), {})
    sys.modules["torch"] = torch

from nixl._api import nixl_agent, nixl_agent_config

SIZE = 16 << 20
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
role = next((word for word in sys.argv if word in ("prefill", "decode")), "engine")
agent = nixl_agent(role + "-engine", nixl_agent_config(backends=[]))
agent.create_backend("UCX", {})
memory = mmap.mmap(-1, SIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
agent.register_memory(agent.get_reg_descs([(address, SIZE, 0, "")], "DRAM"))


def serve(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"%d\n" % address + agent.get_agent_metadata())


def pull(blocks):
    with socket.create_connection((os.environ.get("ENGINE_PEER", "192.0.2.1"), 5600)) as connection:
        told = b"".join(iter(lambda: connection.recv(65536), b""))
    theirs, _, metadata = told.partition(b"\n")
    peer = agent.add_remote_agent(metadata)
    peer = peer.decode() if isinstance(peer, bytes) else peer
    local = agent.get_xfer_descs([(address, SIZE, 0)], "DRAM")
    remote = agent.get_xfer_descs([(int(theirs), SIZE, 0)], "DRAM")
    for _ in range(blocks):
        handle = agent.initialize_xfer("READ", local, remote, peer)
        state = agent.transfer(handle)
        while state == "PROC":
            time.sleep(0.001)
            state = agent.check_xfer_state(handle)
        if state != "DONE":
            raise RuntimeError(state)
        handle.release() if hasattr(handle, "release") else agent.release_xfer_handle(handle)


pulls = "ENGINE_PULLS" in os.environ
if pulls and role == "prefill":
    threading.Thread(target=serve, args=(socket.create_server(("", 5600)),), daemon=True).start()
print("engine ready", flush=True)
while not pulls or role != "decode":
    time.sleep(3600)
while True:
    time.sleep(0.1)
    try:
        with open(folder + "/pull") as file:
            wanted = int(file.read())
        os.remove(folder + "/pull")
    except (OSError, ValueError):
        continue
    pull(wanted // (SIZE >> 20))
    open(folder + "/pulled", "w").close()
