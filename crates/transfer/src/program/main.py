

# The parent: it never loads nixl, so nothing that blocks there can keep it from ending everything.

MAX_OUTPUT = 2 << 20
MAX_ALIKE = 40


class Output:
    """Passes on what NIXL and UCX print, and leaves out what floods."""

    def __init__(self):
        self.alike = {}
        self.bytes = 0
        self.left_out = 0

    def take(self, line):
        # Rows of tables are alike and all wanted; addresses and numbers tell floods apart from nothing.
        if b"|" not in line and b"+-" not in line:
            key = re.sub(rb"0x[0-9a-f]+|[0-9]+", b"0", line)[:200]
            count = self.alike.get(key, 0) + 1
            if len(self.alike) < 4096 or key in self.alike:
                self.alike[key] = count
            if count > MAX_ALIKE:
                self.left_out += 1
                return
        if self.bytes + len(line) > MAX_OUTPUT:
            self.left_out += 1
            return
        self.bytes += len(line) + 1
        write_all(2, line[:8192] + b"\n")


def say(**message):
    write_all(1, MARK + json.dumps(message).encode("utf-8") + b"\n")


def supervise(plan, orders):
    to_child, child_reads = reversed(os.pipe())
    from_child, child_writes = os.pipe()
    printed, child_prints = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(child_prints, 1)
            os.dup2(child_prints, 2)
            for fd in (null, to_child, from_child, printed, child_prints):
                os.close(fd)
            work(plan, child_reads, child_writes)
        finally:
            os._exit(1)
    for fd in (child_reads, child_writes, child_prints):
        os.close(fd)

    def ended(*_):
        try:
            os.kill(child, signal.SIGKILL)
            # The first process of a container may never wait for it, and it would stay in the list of processes.
            for _ in range(100):
                if os.waitpid(child, os.WNOHANG)[0]:
                    break
                time.sleep(0.02)
        except OSError:
            pass
        finally:
            os._exit(0)

    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(name, ended)
    # Also when a write blocks, because nobody reads any more.
    signal.signal(signal.SIGALRM, ended)
    signal.alarm(int(plan["seconds"]) + 2)
    until = time.monotonic() + plan["seconds"]

    answers, output, shown = Lines(from_child), Lines(printed), Output()
    poll = select.poll()
    for fd in (orders.fd, from_child, printed):
        poll.register(fd, select.POLLIN | select.POLLHUP)
    step, why, told_done = None, None, False
    for line in orders.lines_left():
        write_all(to_child, line + b"\n")
    while why is None:
        left = until - time.monotonic()
        if left <= 0:
            why = "deadline"
            break
        for fd, _ in poll.poll(min(left, 1.0) * 1000):
            if fd == orders.fd:
                for line in orders.read():
                    if not line.strip():
                        continue
                    if line.startswith(b'{"do":"look"'):
                        say(say="look", step=step, connections=open_connections(child))
                        continue
                    try:
                        write_all(to_child, line + b"\n")
                    except OSError:
                        pass
                if orders.over:
                    ended()
            elif fd == from_child:
                for line in answers.read():
                    message = json.loads(line.decode("utf-8"))
                    if message["say"] == "step":
                        step = message["step"]
                    told_done = told_done or message["say"] in ("done", "failed")
                    write_all(1, MARK + line + b"\n")
                if answers.over:
                    poll.unregister(fd)
                    why = "ended"
            else:
                for line in output.read():
                    shown.take(line)
                if output.over:
                    poll.unregister(fd)
    if why == "deadline":
        say(say="look", step=step, connections=open_connections(child))
        os.kill(child, signal.SIGKILL)
    # What it printed last.
    os.set_blocking(printed, False)
    while not output.over:
        ready, _, _ = select.select([printed], [], [], 0.5)
        if not ready:
            break
        for line in output.read():
            shown.take(line)
    _, status = os.waitpid(child, 0)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    say(
        say="end",
        why=why,
        step=step,
        finished=told_done,
        signal=killed,
        left_out=shown.left_out,
    )
    os._exit(0)


def main():
    orders = Lines(0)
    plan = orders.wait()
    if plan is None:
        os._exit(0)
    orders.lines_left = lambda: orders.__dict__.pop("waiting", [])
    supervise(plan, orders)


main()
