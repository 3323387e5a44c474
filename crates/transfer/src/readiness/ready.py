

# Readiness: an agent in the engine's place, which makes backends and moves nothing; and the engine's metrics.

MAX_PRINTED = 4 << 20
MAX_MEMORY_KIB = 3 << 20
MAX_PAGE = 8 << 20
MAX_PORTS = 8
PAGE_SECONDS = 3
# What is kept of a page of metrics; anything else may be the engine's users' business.
KEPT = ("vllm:nixl_", "agent_", "sglang:num_transfer_failed_reqs", "sglang:kv_transfer_")
LEFT_OUT = ("_bucket", "_created")


def say(**message):
    write_all(1, MARK + json.dumps(message).encode("utf-8") + b"\n")


def trial(plan, answers_fd):
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
    try:
        tell(say="step", step="import")
        api, bindings = load(plan.get("package"))
        tell(say="loaded", package=api.nixl_agent.__module__.split(".")[0], version=version_of(api))
        tell(say="step", step="agent")
        agent = api.nixl_agent(plan["name"], api.nixl_agent_config(backends=[]))
        try:
            listed = sorted(str(name) for name in agent.get_plugin_list())
        except Exception:
            listed = []
        tell(say="listed", plugins=listed)
        for name in plan["backends"]:
            tell(say="step", step="backend " + name)
            try:
                agent.create_backend(name, {})
                tell(say="backend", name=name, error=None)
            except Exception as error:
                tell(say="backend", name=name, error="%s: %s" % (type(error).__name__, error))
        tell(say="held", libraries=libraries(), open=devices_open())
        tell(say="done")
    except BaseException as error:
        tell(say="failed", error="%s: %s" % (type(error).__name__, error))
    flush_streams()
    # Destructors of NIXL and of libraries beside it have crashed at exit; the work is done.
    os._exit(0)


# ---- metrics

def words_of(pid):
    return [w.decode("utf-8", "replace") for w in (raw_of("/proc/%s/cmdline" % pid)).split(b"\0")]


def raw_of(path, limit=1 << 20):
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except OSError:
        return b""


def ports_of(pids):
    """Ports on which the engine may have metrics, and what names each; only those on which somebody listens."""
    found = {}

    def add(text, named_by):
        try:
            port = int(text)
        except ValueError:
            return
        if 0 < port < 65536:
            found.setdefault(port, named_by)

    for pid in pids:
        words = words_of(pid)
        for at, word in enumerate(words):
            if word.startswith("--port="):
                add(word[7:], "--port")
            elif word == "--port" and at + 1 < len(words):
                add(words[at + 1], "--port")
        for entry in raw_of("/proc/%s/environ" % pid).split(b"\0"):
            name, _, value = entry.decode("utf-8", "replace").partition("=")
            if name in ("NIXL_TELEMETRY_PROMETHEUS_PORT", "DYN_SYSTEM_PORT"):
                add(value, name)
            elif name == "NIXL_TELEMETRY_ENABLE" and value.lower() in ("y", "yes", "on", "true", "enable", "1"):
                found.setdefault(9090, "NIXL's default")
        text = " ".join(words[:4])
        if "dynamo" not in text:
            if "vllm" in text or "trtllm" in text:
                found.setdefault(8000, "the engine's default")
            elif "sglang" in text:
                found.setdefault(30000, "the engine's default")
    listening = set()
    for name in ("tcp", "tcp6"):
        for line in (text_of("/proc/self/net/" + name, 4 << 20) or "").splitlines()[1:]:
            row = line.split()
            if len(row) > 3 and row[3] == "0A":
                listening.add(int(row[1].rsplit(":", 1)[1], 16))
    return [(port, by) for port, by in sorted(found.items()) if port in listening][:MAX_PORTS]


def page(port):
    """GET /metrics from the loopback interface, bounded in time and size; without a proxy."""
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=PAGE_SECONDS) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n")
        data = b""
        while len(data) < MAX_PAGE and time.monotonic() - begin < PAGE_SECONDS:
            part = connection.recv(65536)
            if not part:
                break
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    status = head.split(b"\r\n")[0].decode("latin-1").split(" ")
    if len(status) < 2 or not status[0].startswith("HTTP/"):
        raise ValueError("no HTTP")
    if status[1] != "200":
        raise ValueError("HTTP %s" % status[1][:3])
    return body.decode("utf-8", "replace")


def metrics(pids):
    for port, named_by in ports_of(pids):
        values, why = {}, None
        try:
            for line in page(port).splitlines():
                if not line.startswith(KEPT):
                    continue
                name = re.split(r"[{\s]", line, maxsplit=1)[0]
                if name.endswith(LEFT_OUT) or len(values) > 256:
                    continue
                try:
                    value = float(line.rsplit("}", 1)[-1].split()[-1 if "}" not in line else 0])
                except (ValueError, IndexError):
                    continue
                if value == value and abs(value) < 1e300:
                    values[name] = values.get(name, 0.0) + value
        except Exception as error:
            why = "%s: %s" % (type(error).__name__, str(error)[:200])
        say(say="metrics", port=port, named_by=named_by, values=values, error=why)


# ---- the parent

def memory_of(pid):
    found = re.search(r"^VmRSS:\s*(\d+)", text_of("/proc/%s/status" % pid) or "", re.M)
    return int(found.group(1)) if found else 0


def supervise(plan, orders):
    from_child, child_writes = os.pipe()
    printed, child_prints = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(child_prints, 1)
            os.dup2(child_prints, 2)
            for fd in (null, from_child, printed, child_prints):
                os.close(fd)
            trial(plan, child_writes)
        finally:
            os._exit(1)
    for fd in (child_writes, child_prints):
        os.close(fd)

    def ended(*_):
        # The first process of a container need not look after others' children.
        try:
            os.kill(child, signal.SIGKILL)
            until = time.monotonic() + 2
            while time.monotonic() < until and os.waitpid(child, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        finally:
            os._exit(0)

    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(name, ended)
    # Also when a write blocks, because nobody reads any more.
    signal.signal(signal.SIGALRM, ended)
    signal.alarm(int(plan["seconds"]) + 10 + MAX_PORTS * PAGE_SECONDS)
    until = time.monotonic() + plan["seconds"]
    answers, output = Lines(from_child), Lines(printed)
    poll = select.poll()
    for fd in (orders.fd, from_child, printed):
        poll.register(fd, select.POLLIN | select.POLLHUP)
    step, why, size, left_out, finished = None, None, 0, 0, False

    def show(lines):
        nonlocal size, left_out
        for line in lines:
            if size + len(line) > MAX_PRINTED:
                left_out += 1
                continue
            size += len(line) + 1
            write_all(2, line[:8192] + b"\n")

    while why is None:
        if time.monotonic() > until:
            why = "deadline"
            break
        if memory_of(child) > MAX_MEMORY_KIB:
            why = "memory"
            break
        for fd, _ in poll.poll(250):
            if fd == orders.fd:
                orders.read()
                if orders.over:
                    ended()
            elif fd == from_child:
                for line in answers.read():
                    message = json.loads(line.decode("utf-8"))
                    if message["say"] == "step":
                        step = message["step"]
                    finished = finished or message["say"] in ("done", "failed")
                    write_all(1, MARK + line + b"\n")
                if answers.over:
                    poll.unregister(fd)
                    why = "ended"
            else:
                show(output.read())
                if output.over:
                    poll.unregister(fd)
    if why != "ended":
        os.kill(child, signal.SIGKILL)
    os.set_blocking(printed, False)
    while not output.over:
        ready, _, _ = select.select([printed], [], [], 0.5)
        if not ready:
            break
        show(output.read())
    _, status = os.waitpid(child, 0)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    metrics(plan["processes"])
    say(say="end", why=why, step=step, finished=finished, signal=killed, left_out=left_out)
    os._exit(0)


def main():
    orders = Lines(0)
    plan = orders.wait()
    if plan is None:
        os._exit(0)
    supervise(plan, orders)


main()
