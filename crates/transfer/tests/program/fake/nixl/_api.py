"""Stands in for NIXL: moves bytes between two processes of this machine, and fails as it is told to (UCX_FAKE_*)."""
import ctypes
import os
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
FAULT = os.environ.get("UCX_FAKE_FAULT", "")


class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def table(operation, carrier):
    words = {
        "READ": "remote memory read by ucp_get*(multi) into host memory from host",
        "WRITE": "remote memory write by ucp_put*(multi) from host memory to host",
    }[operation]
    for row in ("+-----+-----+-----+", "| fake intra-node cfg#1 | %s |" % words, "+-----+-----+-----+",
                "| 0..inf | zero-copy | %s |" % carrier, "+-----+-----+-----+"):
        sys.stderr.write("[1.0] [fake:%d:0]   %s\n" % (os.getpid(), row))


class nixl_agent_config:
    def __init__(self, backends):
        pass


class Handle:
    def release(self):
        pass


class nixl_agent:
    nixl_mems = {"DRAM": 0, "VRAM": 1}

    def __init__(self, name, config):
        self.shown = set()

    def create_backend(self, name, parameters):
        print("on stdout, without a mark")
        if FAULT == "flood":
            for n in range(24000):
                sys.stderr.write("ibv_reg_mr(address=0x%x) failed: Cannot allocate memory\n" % n)
        if FAULT == "crash":
            os.kill(os.getpid(), 11)
        if FAULT == "refuse":
            raise RuntimeError("refused as told")

    def register_memory(self, listed):
        if listed.kind == 1 and FAULT == "no-vram":
            raise RuntimeError("VRAM memory is detected as host")

    def deregister_memory(self, listed):
        if FAULT == "crash-late":
            os.kill(os.getpid(), 11)

    def get_agent_metadata(self):
        return b"%d" % os.getpid()

    def add_remote_agent(self, metadata):
        if FAULT == "hang":
            # Holds the lock of the interpreter, as a call into C++ does.
            ctypes.PyDLL(None).sleep(1000)
        self.peer = int(metadata)
        return b"peer"

    def initialize_xfer(self, operation, local, remote, peer):
        if operation not in self.shown:
            self.shown.add(operation)
            if FAULT != "no-table":
                table(operation, os.environ.get("UCX_FAKE_CARRIER", "cma/memory"))
        handle = Handle()
        handle.all = operation, local.all[0], remote.all[0]
        return handle

    def transfer(self, handle):
        operation, (here, size, _), (there, _, _) = handle.all
        if FAULT == "lost":
            return "DONE"
        if FAULT == "corrupt":
            size -= 1
        call = libc.process_vm_readv if operation == "READ" else libc.process_vm_writev
        done = 0
        while done < size:
            mine, its = iovec(here + done, size - done), iovec(there + done, size - done)
            moved = call(self.peer, ctypes.byref(mine), 1, ctypes.byref(its), 1, 0)
            if moved <= 0:
                raise RuntimeError("errno %d" % ctypes.get_errno())
            done += moved
        if FAULT == "slow":
            self.until = time.time() + 1000
            return "PROC"
        return "DONE"

    def check_xfer_state(self, handle):
        return "PROC"
