/* Stands in for the CUDA driver: memory of "the GPU" is memory of the host. FAKE_CUDA in the environment says which
 * call fails, and with which number: UCX_FAKE_CUDA=cuMemAlloc_v2:2. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int told(const char *name)
{
    const char *fault = getenv("UCX_FAKE_CUDA");
    size_t length = strlen(name);
    if (fault && !strncmp(fault, name, length) && fault[length] == ':')
        return atoi(fault + length + 1);
    return 0;
}

#define CALL(name, ...) int name(__VA_ARGS__) { int code = told(#name); if (code) return code;
#define END return 0; }

CALL(cuInit, unsigned flags) END
CALL(cuDeviceGetCount, int *count) *count = 1; END
CALL(cuDeviceGet, int *device, int ordinal) *device = ordinal; END
CALL(cuDeviceGetName, char *name, int length, int device) snprintf(name, length, "Stand-in GPU"); END
CALL(cuDevicePrimaryCtxRetain, void **context, int device) *context = (void *)16; END
CALL(cuDevicePrimaryCtxRelease_v2, int device) END
CALL(cuCtxSetCurrent, void *context) END
CALL(cuCtxSynchronize, void) END
CALL(cuMemGetInfo_v2, size_t *free, size_t *total)
    *free = getenv("UCX_FAKE_CUDA_FULL") ? 1 << 20 : (size_t)8 << 30;
    *total = (size_t)8 << 30;
END
CALL(cuMemAlloc_v2, unsigned long long *address, size_t size) *address = (unsigned long long)malloc(size); END
CALL(cuMemFree_v2, unsigned long long address) free((void *)address); END
CALL(cuPointerGetAttribute, unsigned *value, int attribute, unsigned long long address)
    *value = getenv("UCX_FAKE_CUDA_HOST") ? 1 : 2;
END
CALL(cuMemcpyHtoD_v2, unsigned long long to, const void *from, size_t size) memcpy((void *)to, from, size); END
CALL(cuMemcpyDtoH_v2, void *to, unsigned long long from, size_t size) memcpy(to, (void *)from, size); END

int cuGetErrorName(int code, const char **name)
{
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
    return 0;
}
