/* Memory in descriptors, for programs of several processes, and the declarations of its functions. */
#ifndef HAWSER_PROGRAMS_CHECK_SHARING_H
#define HAWSER_PROGRAMS_CHECK_SHARING_H

#include "check_processes.h"
#include "check_vmm.h"

#include <fcntl.h>
#include <stdbool.h>

#ifndef HAWSER_NVIDIA_HEADER
CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                        CUmemAllocationHandleType shHandleType);
#endif

static const CUmemAllocationHandleType FILE_DESCRIPTOR = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
static int sockets[2]; /* the parent's end and the child's */
static CUmemAllocationProp prop;
static size_t unit;

static inline void turn(int out) {
    send_bytes(out, "", 1);
}

static inline void wait_turn(int in) {
    char byte;
    receive_bytes(in, &byte, 1);
}

static inline bool begin(void) {
    check_context();
    int supported = 0;
    CU_OK(cuDeviceGetAttribute(&supported, (CUdevice_attribute) 103, 0)); /* memory is exported to descriptors */
    if (!supported) {
        return false;
    }
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = FILE_DESCRIPTOR;
    CU_OK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    return true;
}

static inline CUmemGenericAllocationHandle create(size_t units) {
    CUmemGenericAllocationHandle handle;
    CU_OK(cuMemCreate(&handle, units * unit, &prop, 0));
    return handle;
}

static inline int export_memory(CUmemGenericAllocationHandle handle) {
    int descriptor = -1;
    CU_OK(cuMemExportToShareableHandle(&descriptor, handle, FILE_DESCRIPTOR, 0));
    check_true("a descriptor", fcntl(descriptor, F_GETFD) >= 0);
    return descriptor;
}

static inline CUmemGenericAllocationHandle import_memory(int descriptor) {
    CUmemGenericAllocationHandle handle = 0;
    CU_OK(cuMemImportFromShareableHandle(&handle, (void *) (intptr_t) descriptor, FILE_DESCRIPTOR));
    return handle;
}

static inline CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t units) {
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;
    CU_OK(cuMemAddressReserve(&address, units * unit, 0, 0, 0));
    CU_OK(cuMemMap(address, units * unit, 0, handle, 0));
    CU_OK(cuMemSetAccess(address, units * unit, &access, 1));
    return address;
}

static inline void unmap(CUdeviceptr address, size_t units) {
    CU_OK(cuCtxSynchronize());
    CU_OK(cuMemUnmap(address, units * unit));
    CU_OK(cuMemAddressFree(address, units * unit));
}

static inline void fill(CUdeviceptr address, size_t units, int value) {
    CU_OK(cuMemsetD32(address, (unsigned) value, units * unit / sizeof(int)));
    CU_OK(cuCtxSynchronize());
}

static inline void check_filled(const char *what, CUdeviceptr address, size_t units, int value) {
    size_t count = units * unit / sizeof(int);
    int *values = check_memory(count * sizeof(int));
    CU_OK(cuMemcpyDtoH(values, address, count * sizeof(int)));
    for (size_t i = 0; i < count; i++) {
        check_element(what, (long long) i, value, values[i]);
    }
    free(values);
}

#endif
