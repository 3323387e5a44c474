

# Memory that is transferred: of the host, and of a GPU through the CUDA driver.

CHUNK = 4 << 20

# What must stay free beside our own buffer: the GPU belongs to the engine.
GPU_RESERVE = 256 << 20


class HostMemory:
    kind = "host"
    segment = "DRAM"
    device = 0

    def __init__(self, size):
        self.size = size
        self.map = mmap.mmap(-1, size)
        self.view = memoryview(self.map)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))

    def put(self, at, data):
        self.view[at:at + len(data)] = data

    def get(self, at, size):
        return self.view[at:at + size]

    def free(self):
        pass


class DriverError(Exception):
    pass


class GpuMemory:
    """Memory of a GPU. Every answer of the driver is looked at; where one is an error, there is no GPU memory."""

    kind = "gpu"
    segment = "VRAM"

    def __init__(self, size, ordinal):
        self.size = size
        self.device = ordinal
        self.context = None
        self.address = None
        self.handle = None
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise DriverError("no CUDA driver: %s" % error)
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if ordinal >= count.value:
            raise DriverError("the driver shows %d GPUs to this process, number %d is not among them" % (count.value, ordinal))
        handle = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(handle), ordinal)
        self.handle = handle
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 255, handle)
        self.name = name.value.decode("utf-8", "replace")
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        self.context = context
        try:
            self.call("cuCtxSetCurrent", context)
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
            if free.value < size + GPU_RESERVE:
                raise DriverError("only %d MiB of GPU memory are free, %d are needed beside a reserve of %d" % (
                    free.value >> 20, size >> 20, GPU_RESERVE >> 20))
            address = ctypes.c_ulonglong()
            self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
            if not address.value:
                raise DriverError("cuMemAlloc_v2 gave no address")
            self.address = address.value
            self.prove()
        except DriverError:
            self.free()
            raise

    def prove(self):
        """The driver says that it is memory of the device, and it keeps what is written there."""
        kind = ctypes.c_uint()
        # CU_POINTER_ATTRIBUTE_MEMORY_TYPE is 2, CU_MEMORYTYPE_DEVICE is 2 (cuda.h).
        self.call("cuPointerGetAttribute", ctypes.byref(kind), 2, ctypes.c_ulonglong(self.address))
        if kind.value != 2:
            raise DriverError("the driver says that its memory is not on the device (memory type %d)" % kind.value)
        pattern = os.urandom(4096)
        self.put(0, pattern)
        if bytes(self.get(0, 4096)) != pattern:
            raise DriverError("GPU memory does not keep what is copied there")

    def call(self, name, *arguments):
        function = getattr(self.driver, name, None)
        if function is None:
            raise DriverError("the CUDA driver has no %s" % name)
        code = function(*arguments)
        if code != 0:
            raise DriverError("%s: %s" % (name, self.error_name(code)))

    def error_name(self, code):
        text = ctypes.c_char_p()
        try:
            if self.driver.cuGetErrorName(code, ctypes.byref(text)) == 0 and text.value:
                return "%s (%d)" % (text.value.decode("ascii", "replace"), code)
        except AttributeError:
            pass
        return "error %d" % code

    def put(self, at, data):
        self.call("cuCtxSetCurrent", self.context)
        staged = (ctypes.c_char * len(data)).from_buffer_copy(data)
        self.call("cuMemcpyHtoD_v2", ctypes.c_ulonglong(self.address + at), staged, ctypes.c_size_t(len(data)))
        # A copy from pageable memory may return before it has arrived.
        self.call("cuCtxSynchronize")

    def get(self, at, size):
        self.call("cuCtxSetCurrent", self.context)
        staged = ctypes.create_string_buffer(size)
        # What the network card has written must be seen.
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", staged, ctypes.c_ulonglong(self.address + at), ctypes.c_size_t(size))
        return staged.raw

    def free(self):
        try:
            if self.address is not None:
                self.call("cuMemFree_v2", ctypes.c_ulonglong(self.address))
            if self.context is not None:
                self.call("cuDevicePrimaryCtxRelease_v2", self.handle)
        except DriverError:
            pass
        self.address = self.context = None


def chunks(at, size):
    """A place of the buffer in pieces, so that no copy of a large one is held."""
    return ((begin, min(CHUNK, at + size - begin)) for begin in range(at, at + size, CHUNK))


def fill(memory, at, size):
    """Fresh random content, so that nothing left from before can pass for it; gives its hash."""
    digest = hashlib.sha256()
    for begin, length in chunks(at, size):
        data = os.urandom(length)
        memory.put(begin, data)
        digest.update(data)
    return digest.hexdigest()


def hash_of(memory, at, size):
    digest = hashlib.sha256()
    for begin, length in chunks(at, size):
        digest.update(memory.get(begin, length))
    return digest.hexdigest()
