

# What the kernel says about this process, its interfaces and ports. Everything here only reads.

PORT_COUNTERS = (
    # InfiniBand and mlx5, in units of four bytes (kernel, Documentation/ABI/stable/sysfs-class-infiniband).
    "counters/port_xmit_data",
    "counters/port_rcv_data",
    # EFA (kernel, drivers/infiniband/hw/efa/efa_verbs.c).
    "hw_counters/tx_bytes",
    "hw_counters/rx_bytes",
    "hw_counters/rdma_read_bytes",
    "hw_counters/rdma_read_resp_bytes",
    "hw_counters/rdma_write_bytes",
    "hw_counters/rdma_write_recv_bytes",
    # soft-RoCE (kernel, drivers/infiniband/sw/rxe/rxe_hw_counters.c).
    "hw_counters/sent_pkts",
    "hw_counters/rcvd_pkts",
)

LIBRARIES = re.compile(
    r"/lib(?:nixl|plugin_|uc[pstm]|ibverbs|mlx5|efa|fabric|cuda|nvidia-ml)[^/]*\.so[^/]*$|/_bindings[^/]*\.so$"
)

MAX_ENTRIES = 512


def text_of(path, limit=1 << 20):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = b""
        while len(data) < limit:
            part = os.read(fd, min(65536, limit - len(data)))
            if not part:
                break
            data += part
        return data.decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(fd)


def listing(path):
    try:
        return sorted(os.listdir(path))[:MAX_ENTRIES]
    except OSError:
        return []


def number(text):
    try:
        return int(text.strip())
    except (AttributeError, ValueError):
        return None


def addresses():
    """Interface by address."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex()[:MAX_ENTRIES]:
            try:
                # SIOCGIFADDR
                answer = fcntl.ioctl(probe, 0x8915, struct.pack("256s", name.encode()[:15]))
                found[socket.inet_ntoa(answer[20:24])] = name
            except OSError:
                pass
    for line in (text_of("/proc/self/net/if_inet6") or "").splitlines():
        words = line.split()
        if len(words) == 6:
            found[socket.inet_ntop(socket.AF_INET6, bytes.fromhex(words[0]))] = words[5]
    return found


def interfaces():
    """Bytes of each interface of this network namespace; /proc/net is the namespace's, /sys may be another's."""
    found = {}
    for line in (text_of("/proc/self/net/dev") or "").splitlines():
        name, colon, rest = line.rpartition(":")
        words = rest.split()
        if colon and len(words) >= 16 and len(found) < MAX_ENTRIES:
            found[name.strip()] = {"received": int(words[0]), "sent": int(words[8])}
    return found or None


def speeds():
    found = {}
    for name in interfaces() or {}:
        value = number(text_of("/sys/class/net/%s/speed" % name))
        if value is not None and value > 0:
            found[name] = value
    return found


def ports():
    """Counters of each RDMA port, as they are; a port belongs to the whole machine."""
    found = {}
    for device in listing("/sys/class/infiniband"):
        for port in listing("/sys/class/infiniband/%s/ports" % device):
            base = "/sys/class/infiniband/%s/ports/%s/" % (device, port)
            values = {}
            for counter in PORT_COUNTERS:
                value = number(text_of(base + counter))
                if value is not None:
                    values[counter.split("/")[1]] = value
            found["%s:%s" % (device, port)] = values
    return found


def port_facts():
    found = {}
    for device in listing("/sys/class/infiniband"):
        for port in listing("/sys/class/infiniband/%s/ports" % device):
            base = "/sys/class/infiniband/%s/ports/%s/" % (device, port)
            found["%s:%s" % (device, port)] = {
                "state": (text_of(base + "state") or "").strip(),
                "rate": (text_of(base + "rate") or "").strip(),
                "link_layer": (text_of(base + "link_layer") or "").strip(),
                "netdev": (text_of(base + "gid_attrs/ndevs/0") or "").strip(),
            }
    return found


def own_sockets():
    """TCP connections of this very process and the bytes of each, from the kernel (TCP_INFO, linux/tcp.h)."""
    found = []
    for name in listing("/proc/self/fd"):
        fd = int(name)
        try:
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
            copy = socket.socket(fileno=os.dup(fd))
        except OSError:
            continue
        with copy:
            if copy.family not in (socket.AF_INET, socket.AF_INET6) or copy.type != socket.SOCK_STREAM:
                continue
            try:
                local, remote = copy.getsockname(), copy.getpeername()
                info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            except OSError:
                # It listens, or it is not connected.
                continue
            if len(info) < 136:
                return None
            sent, received = struct.unpack_from("QQ", info, 120)
            found.append({
                "local": plain_address(local),
                "remote": plain_address(remote),
                "sent": sent,
                "received": received,
            })
    return found


def plain_address(address):
    host = address[0].split("%")[0]
    if host.startswith("::ffff:") and "." in host:
        host = host[7:]
    return [host, address[1]]


STATES = {"01": "established", "02": "syn-sent", "03": "syn-received", "08": "close-wait", "0A": "listen"}


def open_connections(pid):
    """TCP connections of another process with their state, without asking it: it may hang."""
    inodes = set()
    for name in listing("/proc/%s/fd" % pid):
        try:
            target = os.readlink("/proc/%s/fd/%s" % (pid, name))
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for file, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in (text_of("/proc/%s/net/%s" % (pid, file)) or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[9] in inodes and len(found) < MAX_ENTRIES:
                found.append({
                    "local": hex_address(words[1], family),
                    "remote": hex_address(words[2], family),
                    "state": STATES.get(words[3], words[3]),
                })
    return found


def hex_address(text, family):
    host, port = text.split(":")
    raw = bytes.fromhex(host)
    # Each word of the address is in the order of this machine.
    words = struct.unpack("=%dI" % (len(raw) // 4), raw)
    return plain_address((socket.inet_ntop(family, struct.pack(">%dI" % len(words), *words)), int(port, 16)))


def devices_open():
    """Devices that this process has open: RDMA and GPU."""
    found = set()
    for name in listing("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + name)
        except OSError:
            continue
        if target.startswith(("/dev/infiniband/", "/dev/nvidia", "/dev/gdrdrv")):
            found.add(target)
    return sorted(found)


def libraries():
    """Libraries of the path of the KV cache that are mapped."""
    found = set()
    for line in (text_of("/proc/self/maps", 16 << 20) or "").splitlines():
        path = line.split(None, 5)[-1]
        if path.startswith("/") and LIBRARIES.search(path):
            found.add(path)
    return sorted(found)[:MAX_ENTRIES]


def closed():
    """Nodes of RDMA devices that this process may not open, as libibverbs would."""
    found = []
    for name in listing("/dev/infiniband"):
        if not name.startswith("uverbs"):
            continue
        try:
            os.close(os.open("/dev/infiniband/" + name, os.O_RDWR | os.O_CLOEXEC))
        except OSError:
            found.append("/dev/infiniband/" + name)
    return found


def namespaces():
    found = {}
    for name in ("pid", "net", "ipc", "uts", "mnt", "user"):
        try:
            found[name] = os.readlink("/proc/self/ns/" + name)
        except OSError:
            pass
    return found


def host_facts():
    status = text_of("/proc/self/status") or ""
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.M)
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return {
        "hostname": socket.gethostname(),
        "boot": (text_of("/proc/sys/kernel/random/boot_id") or "").strip(),
        "namespaces": namespaces(),
        "addresses": addresses(),
        "speeds": speeds(),
        "ports": port_facts(),
        "python": sys.version.split()[0],
        "locked_memory": None if locked == resource.RLIM_INFINITY else locked,
        "may_lock": bool(capabilities and int(capabilities.group(1), 16) >> 14 & 1),
        "devices": ["/dev/infiniband/" + name for name in listing("/dev/infiniband")],
        "closed": closed(),
    }


def snapshot():
    return {"interfaces": interfaces(), "ports": ports(), "sockets": own_sockets()}
