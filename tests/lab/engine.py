"""Stands in for an engine: holds a NIXL agent with registered memory, so that its /proc shows what an engine's does."""
import ctypes
import mmap
import sys
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

agent = nixl_agent("engine", nixl_agent_config(backends=[]))
agent.create_backend("UCX", {})
memory = mmap.mmap(-1, 1 << 20)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
agent.register_memory(agent.get_reg_descs([(address, 1 << 20, 0, "")], "DRAM"))
print("engine ready", flush=True)
while True:
    time.sleep(3600)
