/* Virtual memory management: reserving addresses separately from memory, as PyTorch's expandable segments do. */
#include "check_vmm.h"

static CUmemAllocationProp prop;
static size_t unit;

static CUmemGenericAllocationHandle create(size_t units) {
    CUmemGenericAllocationHandle handle;
    CU_OK(cuMemCreate(&handle, units * unit, &prop, 0));
    return handle;
}

static CUdeviceptr reserve(size_t units) {
    CUdeviceptr address = 0;
    CU_OK(cuMemAddressReserve(&address, units * unit, 0, 0, 0));
    check_true("a reservation is aligned", address != 0 && address % unit == 0);
    return address;
}

static void open_range(CUdeviceptr address, size_t units) {
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CU_OK(cuMemSetAccess(address, units * unit, &access, 1));
}

static void check_range(const char *what, CUdeviceptr address, size_t count, int factor, int addend) {
    int *values = check_memory(count * sizeof(int));
    CU_OK(cuMemcpyDtoH(values, address, count * sizeof(int)));
    for (size_t i = 0; i < count; i++) {
        check_element(what, (long long) i, (long long) i * factor + addend, values[i]);
    }
    free(values);
}

static void fill_range(CUdeviceptr address, size_t count, int factor) {
    int *values = check_memory(count * sizeof(int));
    for (size_t i = 0; i < count; i++) {
        values[i] = (int) i * factor;
    }
    CU_OK(cuMemcpyHtoD(address, values, count * sizeof(int)));
    free(values);
}

/* A kernel, copies and fills across adjacent mappings. */
static void spanning(CUfunction add) {
    CUdeviceptr base = reserve(8);
    CUmemGenericAllocationHandle one = create(1), two = create(2);
    CU_OK(cuMemMap(base, unit, 0, one, 0));
    CU_OK(cuMemMap(base + unit, 2 * unit, 0, two, 0));
    open_range(base, 3);
    int count = (int) (3 * unit / sizeof(int)), addend = 7;
    fill_range(base, (size_t) count, 2);
    CHECK_LAUNCH(add, (count + 255) / 256, 256, 0, NULL, &base, &count, &addend);
    check_range("written over two mappings", base, (size_t) count, 2, 7);
    CU_OK(cuMemcpyDtoD(base + 2 * unit, base + unit / 2, unit));
    check_range("copied over a border", base + 2 * unit, unit / sizeof(int), 2, (int) (unit / 2 / sizeof(int)) * 2 + 7);
    CU_OK(cuMemsetD32(base + unit / 2, 5, 2 * unit / sizeof(int)));
    check_range("filled over a border", base + unit / 2, 2 * unit / sizeof(int), 0, 5);
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(base + 2 * unit, 0, 2 * unit));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(base + 4 * unit, 0, 4));
    CU_OK(cuCtxSynchronize());
    CU_OK(cuMemUnmap(base, 3 * unit));
    CU_OK(cuMemRelease(one));
    CU_OK(cuMemRelease(two));
    CU_OK(cuMemAddressFree(base, 8 * unit));
}

/* Memory keeps its content when it is mapped elsewhere, or at two addresses at the same time. */
static void aliases(CUfunction add) {
    CUdeviceptr base = reserve(4);
    CUmemGenericAllocationHandle memory = create(1);
    int count = (int) (unit / sizeof(int)), addend = 3;
    CU_OK(cuMemMap(base, unit, 0, memory, 0));
    open_range(base, 1);
    fill_range(base, (size_t) count, 3);
    CU_OK(cuCtxSynchronize()); /* a copy of pageable memory may return before its last transfer, into this mapping */
    CU_OK(cuMemUnmap(base, unit));
    CU_OK(cuMemMap(base + 2 * unit, unit, 0, memory, 0));
    CU_OK(cuMemMap(base + 3 * unit, unit, 0, memory, 0));
    open_range(base + 2 * unit, 2);
    check_range("mapped elsewhere", base + 2 * unit, (size_t) count, 3, 0);
    CUdeviceptr second = base + 3 * unit;
    CHECK_LAUNCH(add, (count + 255) / 256, 256, 0, NULL, &second, &count, &addend);
    check_range("seen at the other address", base + 2 * unit, (size_t) count, 3, 3);
    /* Released memory stays while it is mapped; the program can get a new handle of it. */
    CU_OK(cuMemRelease(memory));
    CU_OK(cuMemUnmap(base + 3 * unit, unit));
    check_range("after its release", base + 2 * unit, (size_t) count, 3, 3);
    CUmemGenericAllocationHandle again = 0;
    CU_OK(cuMemRetainAllocationHandle(&again, (void *) (uintptr_t) (base + 2 * unit + 100)));
    CUmemAllocationProp got;
    memset(&got, 0xEE, sizeof got);
    CU_OK(cuMemGetAllocationPropertiesFromHandle(&got, again));
    check_equal("type of the memory", CU_MEM_ALLOCATION_TYPE_PINNED, got.type);
    check_equal("place of the memory", CU_MEM_LOCATION_TYPE_DEVICE, got.location.type);
    check_equal("device of the memory", prop.location.id, got.location.id);
    CU_OK(cuMemMap(base, unit, 0, again, 0));
    open_range(base, 1);
    check_range("by the handle that was had again", base, (size_t) count, 3, 3);
    CU_OK(cuMemUnmap(base, unit));
    CU_OK(cuMemUnmap(base + 2 * unit, unit));
    CU_OK(cuMemRelease(again));
    CU_OK(cuMemAddressFree(base, 4 * unit));
}

/* A segment grows, loses its middle and gets it back, as in an allocator. */
static void segment(void) {
    enum { PIECES = 24 };
    CUdeviceptr base = reserve(PIECES);
    CUmemGenericAllocationHandle pieces[PIECES];
    size_t count = unit / sizeof(int);
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = create(1);
        CU_OK(cuMemMap(base + (size_t) i * unit, unit, 0, pieces[i], 0));
        open_range(base + (size_t) i * unit, 1);
        CU_OK(cuMemsetD32(base + (size_t) i * unit, (unsigned int) i + 1, count));
    }
    for (int round = 0; round < 3; round++) {
        CU_OK(cuCtxSynchronize());
        for (int i = 5; i < 15; i++) {
            CU_OK(cuMemUnmap(base + (size_t) i * unit, unit));
            CU_OK(cuMemRelease(pieces[i]));
        }
        check_range("before the hole", base + 4 * unit, count, 0, 5);
        check_range("behind the hole", base + 15 * unit, count, 0, 16);
        for (int i = 5; i < 15; i++) {
            pieces[i] = create(1);
            CU_OK(cuMemMap(base + (size_t) i * unit, unit, 0, pieces[i], 0));
        }
        open_range(base + 5 * unit, 10);
        CU_OK(cuMemsetD32(base + 5 * unit, 77, 10 * count));
        check_range("in the hole", base + 5 * unit, 10 * count, 0, 77);
    }
    CU_OK(cuMemUnmap(base, PIECES * unit));
    for (int i = 0; i < PIECES; i++) {
        CU_OK(cuMemRelease(pieces[i]));
    }
    CU_OK(cuMemAddressFree(base, PIECES * unit));
}

static void refusals(void) {
    CUdeviceptr base = reserve(4), other = 0;
    CUmemGenericAllocationHandle memory = create(2), none = 0;
    unsigned long long flags = 99;
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, 0, &prop, 0));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, unit + 4096, &prop, 0));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, unit, &prop, 1));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&other, 0, 0, 0, 0));
    CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(base, 4 * unit, 0, memory, 0));
    CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(base, unit, unit, memory, 0));
    CU_OK(cuMemMap(base, 2 * unit, 0, memory, 0));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemMap(base + unit, 2 * unit, 0, memory, 0));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(base, unit));
    CU_OK(cuMemUnmap(base + 3 * unit, unit));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, unit));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, 4 * unit));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(base, 0, unit));
    CU_OK(cuMemGetAccess(&flags, &prop.location, base));
    check_equal("access before it is set", CU_MEM_ACCESS_FLAGS_PROT_NONE, (long long) flags);
    open_range(base, 2);
    CU_OK(cuMemGetAccess(&flags, &prop.location, base + unit));
    check_equal("access after it is set", CU_MEM_ACCESS_FLAGS_PROT_READWRITE, (long long) flags);
    CU_OK(cuMemUnmap(base, 2 * unit));
    CU_OK(cuMemRelease(memory));
    CU_OK(cuMemAddressFree(base, 4 * unit));
    CU_IS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, 4 * unit));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    int supported = 0;
    CU_OK(cuDeviceGetAttribute(&supported, (CUdevice_attribute) 102, 0));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    if (!supported) {
        CUdeviceptr none;
        CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuMemAddressReserve(&none, 1 << 21, 0, 0, 0));
        CU_IS(CUDA_ERROR_NOT_SUPPORTED, cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
        check_unsupported("the device has no virtual memory management (attribute 102)");
    }
    size_t recommended = 0;
    CU_OK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CU_OK(cuMemGetAllocationGranularity(&recommended, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    check_true("granularities", unit >= 4096 && (unit & (unit - 1)) == 0 && recommended % unit == 0);
    CUmodule module = check_module("kernels.ptx");
    CUfunction add = check_function(module, "add_value");
    spanning(add);
    aliases(add);
    segment();
    refusals();
    CU_OK(cuModuleUnload(module));
    return check_pass("mappings end to end, at two addresses and again, a segment with a hole, refusals");
}
