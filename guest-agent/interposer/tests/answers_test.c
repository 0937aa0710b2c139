/* Results of libcuda.so.1 for wrong calls, which are those of driver 580 on an H200, and its lines on stderr. */
#include "asker.h"
#include "kernel_program.h"

#include <fcntl.h>

/* Bytes that are written for each attribute, from 1 on; 0 for an attribute without an answer here. */
static const uint8_t widths[] = {0, 8, 4, 8, 8, 0, 4, 8, 4, 4, 4, 8, 8, 4, 8, 4, 4, 8, 8, 8, 8, 4};

static unsigned written(const uint8_t *bytes, const uint8_t *other) {
    unsigned width = 0;
    for (unsigned i = 0; i < 32; i++) {
        width = bytes[i] != 0xA5 || other[i] != 0x5A ? i + 1 : width; /* a value may equal the byte that was there */
    }
    return width;
}

static void check_widths(CUdeviceptr pointer) {
    for (int i = 0; i < 32; i++) {
        CUpointer_attribute attribute = (CUpointer_attribute) i;
        uint8_t one[32], two[32];
        void *list[1] = {one};
        bool known = i >= 1 && i <= 21;
        memset(one, 0xA5, sizeof one);
        memset(two, 0x5A, sizeof two);
        CUresult result = cuPointerGetAttribute(one, attribute, pointer);
        HWS_CHECK(result == cuPointerGetAttribute(two, attribute, pointer));
        HWS_CHECK(result == CUDA_SUCCESS ? written(one, two) == widths[i] : written(one, two) == 0);
        memset(one, 0xA5, sizeof one);
        memset(two, 0x5A, sizeof two);
        result = cuPointerGetAttributes(1, &attribute, list, pointer);
        list[0] = two;
        HWS_CHECK(result == cuPointerGetAttributes(1, &attribute, list, pointer));
        HWS_CHECK(result == (known && i != CU_POINTER_ATTRIBUTE_P2P_TOKENS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
        bool range = attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
        HWS_CHECK(written(one, two) == (result == CUDA_SUCCESS && !(range && pointer == 64) ? widths[i] : 0));
    }
}

static void shouldWriteAttributesOfPointersInTheDriversWidths(void) {
    start_kernel_program();
    CUdeviceptr memory;
    void *pinned;
    HWS_CHECK(cuMemAlloc_v2(&memory, 4096) == CUDA_SUCCESS && cuMemHostAlloc(&pinned, 4096, 0) == CUDA_SUCCESS);
    check_widths(memory + 5);
    check_widths((CUdeviceptr) (uintptr_t) pinned + 5);
    check_widths(64); /* no pointer of this process */
    const CUdeviceptr flagged[] = {memory + 1, (CUdeviceptr) (uintptr_t) pinned};
    for (int i = 0; i < 2; i++) {
        int wanted[] = {0, 1, 2, 0x100, -256}, got = -1;
        HWS_CHECK(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, flagged[i]) == CUDA_SUCCESS);
        HWS_CHECK(got == 0);
        for (int j = 0; j < 5; j++) {
            got = -1;
            HWS_CHECK(cuPointerSetAttribute(&wanted[j], CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, flagged[i]) == 0);
            HWS_CHECK(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, flagged[i]) == 0);
            HWS_CHECK(got == (wanted[j] != 0));
        }
    }
    CUpointer_attribute host = CU_POINTER_ATTRIBUTE_HOST_POINTER;
    CUdeviceptr same = 0;
    void *list[1] = {&same};
    HWS_CHECK(cuPointerGetAttributes(1, &host, list, 64) == CUDA_SUCCESS && same == 64);
}

static void shouldRefuseAttributesOfPoolsThatThereAreNot(void) {
    start_kernel_program();
    CUmemoryPool pool;
    uint64_t value = 0;
    HWS_CHECK(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamQuery(stream) == CUDA_SUCCESS); /* the broker has counted the record that made the stream */
    uint64_t calls = atomic_load(&broker_calls);
    const int unknown[] = {-1, 0, 9, 10, 99, INT32_MAX};
    for (int i = 0; i < 6; i++) {
        CUmemPool_attribute attribute = (CUmemPool_attribute) unknown[i];
        HWS_CHECK(cuMemPoolGetAttribute(pool, attribute, &value) == CUDA_ERROR_INVALID_VALUE);
        HWS_CHECK(cuMemPoolSetAttribute(pool, attribute, &value) == CUDA_ERROR_INVALID_VALUE);
    }
    HWS_CHECK(atomic_load(&broker_calls) == calls);
}

/* Adds a file with these contents to a link. */
static CUresult add_file(CUjitInputType type, const char *contents) {
    char path[] = "/tmp/hawser-answers-XXXXXX";
    int fd = mkstemp(path);
    size_t bytes = strlen(contents);
    CUlinkState link;
    HWS_CHECK(fd >= 0 && write(fd, contents, bytes) == (ssize_t) bytes && close(fd) == 0);
    HWS_CHECK(cuLinkCreate_v2(0, NULL, NULL, &link) == CUDA_SUCCESS);
    CUresult result = cuLinkAddFile_v2(link, type, path, 0, NULL, NULL);
    CUmodule module;
    HWS_CHECK(bytes != 0 || cuModuleLoad(&module, path) == CUDA_ERROR_INVALID_IMAGE);
    HWS_CHECK(cuLinkDestroy(link) == CUDA_SUCCESS && unlink(path) == 0);
    return result;
}

static void shouldRefuseEmptyInputsOfALink(void) {
    start_kernel_program();
    CUlinkState link;
    char empty[1] = "";
    for (int type = CU_JIT_INPUT_CUBIN; type <= CU_JIT_INPUT_NVVM + 1; type++) {
        HWS_CHECK(add_file((CUjitInputType) type, "") == CUDA_ERROR_INVALID_IMAGE);
    }
    HWS_CHECK(add_file((CUjitInputType) 99, "x") == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(add_file(CU_JIT_INPUT_CUBIN, "x") == CUDA_ERROR_INVALID_IMAGE);
    HWS_CHECK(cuLinkCreate_v2(0, NULL, NULL, &link) == CUDA_SUCCESS);
    HWS_CHECK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, empty, 0, "n", 0, NULL, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, empty, 1, "n", 0, NULL, NULL) == CUDA_ERROR_INVALID_IMAGE);
    HWS_CHECK(cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, "", 0, NULL, NULL) == CUDA_ERROR_INVALID_VALUE);
    CUmodule module;
    HWS_CHECK(cuModuleLoad(&module, "") == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, "/nonexistent", 0, NULL, NULL) == CUDA_ERROR_FILE_NOT_FOUND);
}

static CUresult launch(double second) {
    int first = 1;
    char third = 3;
    void *params[] = {&first, &second, &third};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

/* Passes a pointer among the arguments. This kernel has 8 bytes for it where others have a double. */
static double pointer_to(const void *memory) {
    double word;
    memcpy(&word, &memory, sizeof word);
    return word;
}

static void check_text(bool longer) {
    const char *text;
    HWS_CHECK(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text) == CUDA_SUCCESS);
    HWS_CHECK(strncmp(text, "an illegal memory access was encountered", 40) == 0);
    HWS_CHECK((strstr(text, "pinned") != NULL) == longer);
}

static void shouldSayOnceThatPinnedMemoryIsOutOfSight(void) {
    start_kernel_program();
    static char registered[4096] __attribute__((aligned(4096)));
    void *pinned, *gone;
    HWS_CHECK(cuMemHostAlloc(&pinned, 4096, 0) == CUDA_SUCCESS && cuMemHostAlloc(&gone, 4096, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuMemHostRegister_v2(registered, sizeof registered, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuMemFreeHost(gone) == CUDA_SUCCESS);
    check_text(false);
    HWS_CHECK(launch(1.5) == CUDA_SUCCESS && launch(pointer_to((char *) pinned - 1)) == CUDA_SUCCESS);
    HWS_CHECK(launch(pointer_to(gone)) == CUDA_SUCCESS);
    check_text(false);
    HWS_CHECK(launch(pointer_to(registered + 4095)) == CUDA_SUCCESS); /* continues, with a line */
    HWS_CHECK(launch(pointer_to(pinned)) == CUDA_SUCCESS);
    check_text(true);
    atomic_store(&broker_status_of_next_sync, CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS); /* with the second line */
    HWS_CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS && launch(1.5) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void shouldSayThatPinnedMemoryOfAGraphIsOutOfSight(void) {
    start_kernel_program();
    CUgraph graph;
    void *pinned;
    HWS_CHECK(cuMemHostAlloc(&pinned, 4096, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    HWS_CHECK(launch(pointer_to((char *) pinned + 4095)) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
}

static void shouldSayNothingOfPinnedMemoryForOtherErrors(void) {
    start_kernel_program();
    void *pinned;
    HWS_CHECK(cuMemHostAlloc(&pinned, 4096, 0) == CUDA_SUCCESS && launch(2.5) == CUDA_SUCCESS);
    atomic_store(&broker_status_of_next_sync, CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    check_text(false);
}

static const asker_driver_t driver = {cuGetExportTable, cuDriverGetVersion, cuInit};

static void shouldSayNothingWhenALibraryAsksForTables(void) {
    int version;
    HWS_CHECK(asker_ask(&driver) == CUDA_ERROR_NOT_FOUND);
    start_kernel_program();
    HWS_CHECK(cuDriverGetVersion(&version) == CUDA_SUCCESS && cuInit(0) == CUDA_SUCCESS);
    HWS_CHECK(asker_ask(&driver) == CUDA_ERROR_NOT_FOUND && asker_ask(&driver) == CUDA_ERROR_NOT_FOUND);
}

static void shouldNameTheLibraryWhoseRuntimeFails(void) {
    broker_start(BROKER_KIND);
    HWS_CHECK(asker_start(&driver) == CUDA_ERROR_NOT_FOUND && asker_start(&driver) == CUDA_ERROR_NOT_FOUND);
}

static void shouldReturnTheDriversErrorsForNullHandles(void) {
    start_kernel_program();
    CUmemoryPool pool;
    CUmodule module;
    CUfunction got;
    CUarray plane;
    CUDA_ARRAY_DESCRIPTOR shape;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    const char *name;
    int count;
    uint64_t value = 0;
    HWS_CHECK(cuMemPoolDestroy(NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemPoolGetAttribute(NULL, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuDeviceGetMemPool(&pool, 99) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuDeviceGetDefaultMemPool(&pool, 99) == CUDA_ERROR_INVALID_DEVICE);
    HWS_CHECK(cuArrayGetMemoryRequirements(&needs, NULL, 0) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuArrayGetSparseProperties(&sparse, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMipmappedArrayGetMemoryRequirements(&needs, NULL, 0) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemMapArrayAsync(NULL, 1, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuArrayGetDescriptor_v2(&shape, NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuArrayGetDescriptor_v2(NULL, NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuArrayGetPlane(NULL, NULL, 0) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuArrayGetPlane(&plane, NULL, 0) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuFuncGetModule(&module, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuFuncGetName(&name, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuKernelGetFunction(NULL, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuKernelGetFunction(&got, NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuKernelSetCacheConfig(NULL, CU_FUNC_CACHE_PREFER_L1, 99) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuFuncSetCacheConfig(function, (CUfunc_cache) 1000) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, NULL, 32, 0) == CUDA_ERROR_INVALID_HANDLE);
}

/* The broker's device has neither sparse arrays nor deferred mapping nor an engine for decompressions. */
static void shouldRefuseWhatTheDeviceLacks(void) {
    start_kernel_program();
    CUarray array;
    CUmipmappedArray mipmap;
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    const unsigned flags[] = {CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING,
                              CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        shape.Flags = flags[i];
        HWS_CHECK(cuArray3DCreate_v2(&array, &shape) == CUDA_ERROR_NOT_SUPPORTED);
        HWS_CHECK(cuMipmappedArrayCreate(&mipmap, &shape, 2) == CUDA_ERROR_NOT_SUPPORTED);
    }
    CUarrayMapInfo info = {.deviceBitMask = 1};
    HWS_CHECK(cuMemMapArrayAsync(&info, 1, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemMapArrayAsync(&info, 0, NULL) == CUDA_ERROR_INVALID_VALUE);
    info.deviceBitMask = 2;
    HWS_CHECK(cuMemMapArrayAsync(&info, 1, NULL) == CUDA_ERROR_INVALID_VALUE);
    CUmemDecompressParams params = {.algo = CU_MEM_DECOMPRESS_ALGORITHM_LZ4};
    size_t index = 5;
    HWS_CHECK(cuMemBatchDecompressAsync(&params, 1, 0, &index, NULL) == CUDA_ERROR_NOT_SUPPORTED);
    HWS_CHECK(index == SIZE_MAX);
    HWS_CHECK(cuMemBatchDecompressAsync(&params, 1, 0, NULL, NULL) == CUDA_ERROR_NOT_SUPPORTED);
    HWS_CHECK(cuMemBatchDecompressAsync(&params, 1, 1, &index, NULL) == CUDA_ERROR_NOT_SUPPORTED);
    HWS_CHECK(cuMemBatchDecompressAsync(NULL, 1, 0, &index, NULL) == CUDA_ERROR_NOT_SUPPORTED);
}

/* Checks the last record: its opcode, handles and numbers. */
static void check_part(uint32_t opcode, const uint64_t *words, size_t count) {
    HWS_CHECK(atomic_load(&broker_part_opcode) == opcode);
    HWS_CHECK(memcmp(broker_part, words, count * sizeof *words) == 0);
}

static void shouldSendEachPartOfASparseArray(void) {
    broker_has_all = true;
    start_kernel_program();
    CUarray array, plain;
    CUmipmappedArray mipmap;
    CUmemGenericAllocationHandle memory;
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    HWS_CHECK(cuArray3DCreate_v2(&plain, &shape) == CUDA_SUCCESS);
    shape.Flags = CUDA_ARRAY3D_SPARSE;
    HWS_CHECK(cuArray3DCreate_v2(&array, &shape) == CUDA_SUCCESS);
    HWS_CHECK(cuMipmappedArrayCreate(&mipmap, &shape, 2) == CUDA_SUCCESS);
    HWS_CHECK(cuMemCreate(&memory, 1 << 21, &prop, 0) == CUDA_SUCCESS);
    CUarrayMapInfo info = {.resource.array = array,
                           .subresource.sparseLevel = {1, 2, 3, 4, 5, 6, 7, 8},
                           .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
                           .memHandle.memHandle = memory,
                           .offset = 65536,
                           .deviceBitMask = 1};
    HWS_CHECK(cuMemMapArrayAsync(&info, 1, NULL) == CUDA_SUCCESS);
    check_part(HWS_OPCODE_hwsArrayMap, (uint64_t[]) {(uintptr_t) array, memory, 0, 1, 2, 3, 4, 5, 6, 7, 8, 65536, 0},
               13);
    CUarrayMapInfo tail = {.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                           .resource.mipmap = mipmap,
                           .subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL,
                           .subresource.miptail = {1, 1ull << 33, 65536},
                           .memOperationType = CU_MEM_OPERATION_TYPE_UNMAP,
                           .deviceBitMask = 1};
    HWS_CHECK(cuMemMapArrayAsync(&tail, 1, NULL) == CUDA_SUCCESS);
    check_part(HWS_OPCODE_hwsMipmapUnmap, (uint64_t[]) {(uintptr_t) mipmap, 1, 0, 1, 1ull << 33, 0, 0, 65536}, 8);
    CUarrayMapInfo list[] = {tail, info};
    list[1].offset = 1 << 21;
    atomic_store(&broker_part_opcode, 0);
    HWS_CHECK(cuMemMapArrayAsync(list, 2, NULL) == CUDA_ERROR_INVALID_VALUE);
    list[1].offset = 0;
    list[1].resource.array = plain;
    HWS_CHECK(cuMemMapArrayAsync(list, 2, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(atomic_load(&broker_part_opcode) == 0); /* the whole list is checked first */
}

static void shouldSendABatchOfDecompressions(void) {
    broker_has_all = true;
    start_kernel_program();
    CUdeviceptr memory;
    HWS_CHECK(cuMemAlloc_v2(&memory, 300) == CUDA_SUCCESS);
    CUmemDecompressParams params[2] = {{.srcNumBytes = 100,
                                        .dstNumBytes = 100,
                                        .dstActBytes = (uint32_t *) memory,
                                        .src = (void *) (memory + 100),
                                        .dst = (void *) (memory + 200),
                                        .algo = CU_MEM_DECOMPRESS_ALGORITHM_LZ4}};
    size_t index = 0;
    HWS_CHECK(cuMemBatchDecompressAsync(params, 1, 0, &index, NULL) == CUDA_SUCCESS);
    HWS_CHECK(atomic_load(&broker_part_opcode) == HWS_OPCODE_hwsBatchDecompress);
    const uint64_t words[] = {100, 100, memory, memory + 100, memory + 200, CU_MEM_DECOMPRESS_ALGORITHM_LZ4};
    HWS_CHECK(memcmp(broker_part + 16, words, sizeof words) == 0);
    params[1] = params[0];
    params[1].dstNumBytes = 101;
    HWS_CHECK(cuMemBatchDecompressAsync(params, 2, 0, &index, NULL) == CUDA_ERROR_INVALID_VALUE && index == 1);
    params[1].dstNumBytes = 100;
    params[1].algo = CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE;
    HWS_CHECK(cuMemBatchDecompressAsync(params, 2, 0, &index, NULL) == CUDA_ERROR_NOT_SUPPORTED && index == 1);
}

static void shouldCheckHandlesBeforeTheErrorOfAKernel(void) {
    start_kernel_program();
    CUgraph graph, clone;
    CUgraphNode node;
    CUevent event;
    HWS_CHECK(cuGraphCreate(&graph, 0) == CUDA_SUCCESS && cuEventCreate(&event, 0) == CUDA_SUCCESS);
    atomic_store(&broker_status_of_next_sync, CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuArrayDestroy(NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuEventSynchronize(NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuEventSynchronize(event) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuFuncSetCacheConfig(NULL, CU_FUNC_CACHE_PREFER_L1) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuFuncSetCacheConfig(function, (CUfunc_cache) 1000) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuStreamDestroy_v2(NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuCtxDestroy_v2(NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuCtxRecordEvent(NULL, event) == CUDA_ERROR_INVALID_CONTEXT);
    HWS_CHECK(cuMemPoolTrimTo(NULL, 0) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphAddEmptyNode(&node, graph, NULL, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphClone(&clone, graph) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphEventRecordNodeSetEvent(node, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuGraphInstantiateWithFlags(&(CUgraphExec) {NULL}, graph, 0) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void shouldRefuseAccessToThePoolOfTheDevice(void) {
    start_kernel_program();
    CUmemoryPool pool;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}, .flags = 77};
    HWS_CHECK(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuMemPoolSetAccess(pool, &access, 1) == CUDA_ERROR_INVALID_VALUE);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    HWS_CHECK(cuMemPoolSetAccess(pool, &access, 1) == CUDA_ERROR_INVALID_DEVICE);
}

static void shouldNotRegisterMemoryThatCudaHasAllocated(void) {
    start_kernel_program();
    CUdeviceptr memory;
    void *pinned;
    HWS_CHECK(cuMemAlloc_v2(&memory, 4096) == CUDA_SUCCESS && cuMemHostAlloc(&pinned, 4096, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuMemHostRegister_v2((void *) (uintptr_t) memory, 64, 0) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemHostRegister_v2(pinned, 64, 0) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemHostUnregister((void *) (uintptr_t) memory) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemHostUnregister(pinned) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemHostUnregister(&memory) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* The guest cannot read the device's memory, so it must find out that a claimed host address is the device's. */
static void shouldTakeAClaimedHostAddressForTheMemoryThatItIs(void) {
    start_kernel_program();
    CUdeviceptr from, to;
    HWS_CHECK(cuMemAlloc_v2(&from, 64) == CUDA_SUCCESS && cuMemAlloc_v2(&to, 4096) == CUDA_SUCCESS);
    void *beyond = (void *) (uintptr_t) (from + 63); /* only the check of device memory refuses its second byte */
    HWS_CHECK(cuMemcpyHtoD_v2(to, beyond, 2) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemcpyHtoDAsync_v2(to, beyond, 2, stream) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemcpyDtoH_v2(beyond, to, 2) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemcpyDtoHAsync_v2(beyond, to, 2, stream) == CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = beyond,
                          .srcPitch = 2,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = to,
                          .dstPitch = 2,
                          .WidthInBytes = 2,
                          .Height = 1};
    HWS_CHECK(cuMemcpy2D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = to;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = beyond;
    HWS_CHECK(cuMemcpy2D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
}

int main(void) {
    RUN(shouldReturnTheDriversErrorsForNullHandles, 0);
    RUN(shouldRefuseWhatTheDeviceLacks, 0);
    RUN(shouldSendEachPartOfASparseArray, 0);
    RUN(shouldSendABatchOfDecompressions, 0);
    RUN(shouldCheckHandlesBeforeTheErrorOfAKernel, 0);
    RUN(shouldRefuseAccessToThePoolOfTheDevice, 0);
    RUN(shouldNotRegisterMemoryThatCudaHasAllocated, 0);
    RUN(shouldTakeAClaimedHostAddressForTheMemoryThatItIs, 0);
    RUN(shouldWriteAttributesOfPointersInTheDriversWidths, 0);
    RUN(shouldRefuseAttributesOfPoolsThatThereAreNot, 0);
    RUN(shouldRefuseEmptyInputsOfALink, 0);
    RUN_SAYING(shouldSayOnceThatPinnedMemoryIsOutOfSight, 2, "error 700, an illegal memory access: kernel kernel gets");
    RUN_SAYING(shouldSayThatPinnedMemoryOfAGraphIsOutOfSight, 1, "argumentOffset=8");
    RUN(shouldSayNothingOfPinnedMemoryForOtherErrors, 0);
    RUN(shouldSayNothingWhenALibraryAsksForTables, 0);
    RUN_SAYING(shouldNameTheLibraryWhoseRuntimeFails, 1, "libasker.so contains a statically linked CUDA runtime");
    return 0;
}
