

# The child: it loads nixl and moves bytes.

class Refused(Exception):
    """A step that did not work, with the words of who refused it."""


def stand_in_for_torch():
    """Wheels up to 1.3 import torch only to tell tensors from tuples; it takes seconds and holds much memory."""
    import types
    if "torch" not in sys.modules:
        torch = types.ModuleType("torch")
        for name in ("Tensor", "dtype", "device"):
            setattr(torch, name, type(name, (), {}))
        sys.modules["torch"] = torch
    try:
        import numpy
    except Exception:
        numpy = types.ModuleType("numpy")
        numpy.ndarray = type("ndarray", (), {})
        numpy.uint64 = int
        sys.modules["numpy"] = numpy


def load(package):
    """The engine's own package where it is known, else the one that the meta package takes."""
    import importlib
    stand_in_for_torch()
    errors = []
    names = [package] if package else []
    for name in names + ["nixl", "nixl_cu13", "nixl_cu12", "nixl_rocm"]:
        try:
            api = importlib.import_module(name + "._api")
            bindings = importlib.import_module(api.nixl_agent.__module__.rsplit(".", 1)[0] + "._bindings")
            return api, bindings
        except Exception as error:
            errors.append("%s: %s: %s" % (name, type(error).__name__, error))
    raise Refused("; ".join(errors[:2]))


def version_of(api):
    package = api.nixl_agent.__module__.split(".")[0]
    try:
        from importlib import metadata
    except ImportError:
        return None
    for name in (package.replace("_", "-"), "nixl"):
        try:
            return metadata.version(name)
        except Exception:
            continue
    return None


class Worker:
    def __init__(self, plan, tell):
        self.plan = plan
        self.tell = tell
        self.agent = None
        self.memory = {}
        self.regions = {}
        self.peer = None
        self.peer_regions = {}

    def step(self, name):
        self.tell(say="step", step=name)

    def start(self):
        plan = self.plan
        self.tell(say="hello", facts=host_facts())
        self.step("import")
        self.api, self.bindings = load(plan.get("package"))
        self.tell(say="loaded", version=version_of(self.api), file=self.bindings.__file__)
        self.step("agent")
        self.agent = self.api.nixl_agent(plan["name"], self.api.nixl_agent_config(backends=[]))
        self.step("backend")
        self.agent.create_backend("UCX", dict(plan.get("backend", {})))
        for kind in plan["memory"]:
            self.step("register " + kind)
            try:
                if kind == "gpu":
                    memory = GpuMemory(plan["bytes"], plan.get("gpu", 0))
                    self.tell(say="gpu", name=memory.name, error=None)
                else:
                    memory = HostMemory(plan["bytes"])
                self.register(memory)
                self.memory[kind] = memory
            except Exception as error:
                if kind != "gpu":
                    raise
                # Host memory is still worth a measurement; GPU memory is then never reported.
                self.tell(say="gpu", name=None, error="%s: %s" % (type(error).__name__, error))
        self.tell(
            say="ready",
            metadata=base64.b64encode(self.agent.get_agent_metadata()).decode("ascii"),
            regions={kind: [m.address, m.device] for kind, m in self.memory.items()},
            libraries=libraries(),
            open=devices_open(),
        )

    def register(self, memory):
        # The constructor with a list wants numpy, this one does not.
        listed = self.bindings.nixlRegDList(self.agent.nixl_mems[memory.segment])
        listed.addDesc((memory.address, memory.size, memory.device, ""))
        self.agent.register_memory(listed)
        self.regions[memory.kind] = listed

    def described(self, segment, address, size, device):
        listed = self.bindings.nixlXferDList(self.agent.nixl_mems[segment])
        listed.addDesc((address, size, device))
        return listed

    def connect(self, order):
        self.step("connect")
        name = self.agent.add_remote_agent(base64.b64decode(order["metadata"]))
        self.peer = name.decode("utf-8") if isinstance(name, bytes) else name
        self.peer_regions = order["regions"]
        self.tell(say="connected")

    def kind(self, name):
        memory = self.memory.get(name)
        if memory is None:
            raise Refused("there is no %s memory here" % name)
        return memory

    def places(self, order):
        """Where in the buffer: places of one size, one behind the other."""
        size, count = order["bytes"], order["places"]
        if size <= 0 or not 0 < size * count <= self.plan["bytes"]:
            raise Refused("%s times %s bytes were not planned" % (count, size))
        return [(number * size, size) for number in range(count)]

    def transfer(self, order):
        operation, places = order["operation"], self.places(order)
        local, remote = self.kind(order["local"]), order["remote"]
        address, device = self.peer_regions[remote]
        segment = {"host": "DRAM", "gpu": "VRAM"}[remote]
        self.step("%s %s %s %d" % (operation, order["local"], remote, order["bytes"]))
        # Without a pause between them: on a path that rests TCP begins slowly again, and blocks of KV follow each other.
        seconds = []
        for at, size in places:
            handle = self.agent.initialize_xfer(
                operation,
                self.described(local.segment, local.address + at, size, local.device),
                self.described(segment, address + at, size, device),
                self.peer,
            )
            seconds.append(self.carried(handle))
        self.tell(say="moved", seconds=seconds)

    def carried(self, handle):
        begin = time.perf_counter()
        state = self.agent.transfer(handle)
        while state == "PROC":
            # A short nap after the first millisecond: progress has its own thread, and the engine needs the cores.
            time.sleep(0 if time.perf_counter() - begin < 0.001 else 0.00005)
            state = self.agent.check_xfer_state(handle)
        seconds = time.perf_counter() - begin
        if state != "DONE":
            raise Refused("the transfer ended as %s" % state)
        if hasattr(handle, "release"):
            handle.release()
        else:
            self.agent.release_xfer_handle(handle)
        return seconds

    def order(self, order):
        do = order["do"]
        if do == "connect":
            self.connect(order)
        elif do == "fill":
            memory = self.kind(order["memory"])
            self.tell(say="filled", hashes=[fill(memory, *place) for place in self.places(order)])
        elif do == "hash":
            memory = self.kind(order["memory"])
            self.tell(say="hashed", hashes=[hash_of(memory, *place) for place in self.places(order)])
        elif do == "transfer":
            self.transfer(order)
        elif do == "snapshot":
            flush_streams()
            self.tell(say="snapshot", snapshot=snapshot(), open=devices_open())
        else:
            raise Refused("unknown order %s" % do)

    def close(self):
        for kind, memory in self.memory.items():
            try:
                self.agent.deregister_memory(self.regions[kind])
            except Exception:
                pass
            memory.free()


def work(plan, orders_fd, answers_fd):
    """Runs in the child and never returns."""
    def tell(**message):
        write_all(answers_fd, json.dumps(message).encode("utf-8") + b"\n")

    # Without the parent there is nobody to end it.
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except Exception:
        pass
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(plan["seconds"]) + 5)
    worker = Worker(plan, tell)
    try:
        worker.start()
        orders = Lines(orders_fd)
        while True:
            order = orders.wait()
            if order is None or order["do"] == "end":
                break
            worker.order(order)
        worker.close()
        tell(say="done")
    except BaseException as error:
        flush_streams()
        at = traceback.extract_tb(sys.exc_info()[2])
        tell(say="failed", error="%s: %s" % (type(error).__name__, error), line=at[-1].lineno if at else 0)
    flush_streams()
    # Destructors of NIXL and of libraries beside it have crashed at exit; the work is done.
    os._exit(0)
