# check-interconnect: one end of a measured NIXL transfer. Standard library and the worker's own nixl only.
#
# It comes on stdin, and so do its orders, one JSON object a line. It writes nothing to the disk, loads nixl in a child,
# and ends the child when stdin ends, when the time is over, or when it is told to. Answers go to stdout, one JSON
# object behind MARK a line; whatever NIXL and UCX print goes to stderr, bounded.
import base64
import ctypes
import errno
import fcntl
import hashlib
import json
import mmap
import os
import re
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time
import traceback

MARK = b"@check-interconnect@"

# One line of the wire; metadata of NIXL has some hundred bytes, tables of sockets some ten thousand.
MAX_LINE = 4 << 20


def write_all(fd, data):
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view):]
        except InterruptedError:
            continue


class Lines:
    """Complete lines of a file descriptor; None at its end."""

    def __init__(self, fd):
        self.fd = fd
        self.rest = b""
        self.over = False

    def read(self):
        """What is there now, as complete lines."""
        try:
            data = os.read(self.fd, 65536)
        except (InterruptedError, BlockingIOError):
            return []
        except OSError:
            data = b""
        if not data:
            self.over = True
            left, self.rest = self.rest, b""
            return [left] if left else []
        parts = (self.rest + data).split(b"\n")
        self.rest = parts.pop()
        if len(self.rest) > MAX_LINE:
            parts.append(self.rest)
            self.rest = b""
        return parts

    def wait(self):
        """The next order, as an object; None at the end."""
        waiting = getattr(self, "waiting", [])
        while not waiting:
            if self.over:
                return None
            waiting = [line for line in self.read() if line.strip()]
        line, self.waiting = waiting[0], waiting[1:]
        return json.loads(line.decode("utf-8"))


def flush_streams():
    """UCX writes through C stdio, and os._exit drops what is buffered there."""
    try:
        ctypes.CDLL(None).fflush(None)
    except Exception:
        pass
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
