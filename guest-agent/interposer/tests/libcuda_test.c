/* libcuda.so.1 from a program's side, against a broker in a thread. Each rule runs in a process of its own. */
#include "fake_broker.h"
#include "rules.h"

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

static CUcontext start(void) {
    CUdevice device;
    CUcontext context;
    broker_start(BROKER_KIND);
    HWS_CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    return context;
}

static void shouldFindNoDeviceWhereNobodyListens(void) {
    setenv("HAWSER_CONNECT_TIMEOUT_MS", "200", 1);
    broker_announce();
    int count;
    HWS_CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    HWS_CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE && cuInit(0) == CUDA_ERROR_NO_DEVICE);
    HWS_CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
}

static void *start_broker_later(void *unused) {
    (void) unused;
    usleep(300000);
    broker_listen(BROKER_KIND);
    return NULL;
}

static void shouldWaitForABrokerThatStartsLater(void) {
    pthread_t starter;
    setenv("HAWSER_LOG", "error", 1); /* a slow machine may wait long enough for the line about the wait */
    broker_announce();
    HWS_CHECK(pthread_create(&starter, NULL, start_broker_later, NULL) == 0);
    HWS_CHECK(cuInit(0) == CUDA_SUCCESS);
    HWS_CHECK(pthread_join(starter, NULL) == 0);
}

static void shouldFindNoDeviceWithoutConfiguration(void) {
    setenv("HAWSER_CONFIG", "/dev/null", 1);
    HWS_CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE);
}

static void shouldFindNoDeviceWhenTheBrokerIsSilent(void) {
    setenv("HAWSER_CONNECT_TIMEOUT_MS", "100", 1);
    broker_start(BROKER_SILENT);
    HWS_CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE);
}

static void shouldFindNoDeviceWhenTheBrokerRefuses(void) {
    broker_start(BROKER_REFUSES);
    HWS_CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE);
}

static void shouldFollowTheBrokerToTheVgpu(void) {
    int count;
    broker_start(BROKER_MOVES_ONCE);
    HWS_CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS && count == BROKER_DEVICES);
    HWS_CHECK(broker_connections == 2);
}

static void shouldFindNoDeviceWhenItIsSentOnAgain(void) {
    broker_start(BROKER_MOVES);
    HWS_CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE);
    HWS_CHECK(broker_connections == 2);
}

static void shouldFindTheSecondBrokerOfAList(void) {
    char list[160];
    int count;
    broker_start(BROKER_KIND);
    snprintf(list, sizeof list, "127.0.0.1:1, %s", broker_address);
    setenv("HAWSER_BROKER", list, 1);
    HWS_CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS && count == BROKER_DEVICES);
}

static void shouldFilterAndRenumberDevices(void) {
    setenv("CUDA_VISIBLE_DEVICES", "2,GPU-1010,7,1", 1);
    broker_start(BROKER_KIND);
    int count, value;
    char name[256], bus[32];
    CUdevice device;
    HWS_CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 2);
    HWS_CHECK(cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS && strcmp(name, "Fake GPU 2") == 0);
    HWS_CHECK(cuDeviceGetName(name, sizeof name, 1) == CUDA_SUCCESS && strcmp(name, "Fake GPU 0") == 0);
    HWS_CHECK(cuDeviceGet(&device, 2) == CUDA_ERROR_INVALID_DEVICE);
    HWS_CHECK(cuDeviceGetPCIBusId(bus, sizeof bus, 0) == CUDA_SUCCESS && strcmp(bus, "0000:02:00.0") == 0);
    HWS_CHECK(cuDeviceGetByPCIBusId(&device, "0000:00:00.0") == CUDA_SUCCESS && device == 1);
    HWS_CHECK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 0) == CUDA_SUCCESS && value == 0);
    static const CUdevice_attribute absent[] = {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
                                                CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED};
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(cuDeviceGetAttribute(&value, absent[i], 0) == CUDA_SUCCESS && value == 0);
    }
    HWS_CHECK(cuDeviceGetAttribute(&value, (CUdevice_attribute) 9999, 0) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldHideEveryDeviceForAnEmptyList(void) {
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    broker_start(BROKER_KIND);
    HWS_CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE);
}

static void shouldKeepAStackOfContexts(void) {
    CUcontext primary = start(), other, current;
    CUdeviceptr memory;
    CUdevice device = -1;
    HWS_CHECK(cuCtxCreate_v2(&other, 0, 1) == CUDA_SUCCESS && cuCtxGetDevice(&device) == CUDA_SUCCESS && device == 1);
    HWS_CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == other);
    HWS_CHECK(cuCtxPopCurrent_v2(&current) == CUDA_SUCCESS && current == other);
    HWS_CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == primary);
    HWS_CHECK(cuCtxPushCurrent_v2((CUcontext) 0x1234) == CUDA_ERROR_INVALID_CONTEXT);
    HWS_CHECK(cuCtxSetCurrent(NULL) == CUDA_SUCCESS && cuCtxPopCurrent_v2(NULL) == CUDA_ERROR_INVALID_CONTEXT);
    HWS_CHECK(cuMemAlloc_v2(&memory, 16) == CUDA_ERROR_INVALID_CONTEXT);
    HWS_CHECK(cuCtxDestroy_v2(other) == CUDA_SUCCESS && cuCtxPushCurrent_v2(other) == CUDA_ERROR_INVALID_CONTEXT);
    HWS_CHECK(cuCtxDestroy_v2(primary) == CUDA_ERROR_INVALID_CONTEXT);
    unsigned flags;
    int active;
    HWS_CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS && active == 1);
    HWS_CHECK(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
    HWS_CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS && active == 0);
    HWS_CHECK(cuDevicePrimaryCtxRelease_v2(0) == CUDA_ERROR_INVALID_CONTEXT);
}

static void shouldCopyThereAndBackAndKnowPointers(void) {
    start();
    enum { BYTES = 5 * 1024 * 1024 + 3 };
    uint8_t *source = malloc(BYTES), *back = calloc(1, BYTES), *pinned;
    for (int i = 0; i < BYTES; i++) {
        source[i] = (uint8_t) (i * 7 + (i >> 12));
    }
    CUdeviceptr memory, base;
    size_t size;
    unsigned type = 0;
    HWS_CHECK(cuMemAlloc_v2(&memory, BYTES) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyHtoD_v2(memory, source, BYTES) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyDtoH_v2(back, memory, BYTES) == CUDA_SUCCESS && memcmp(source, back, BYTES) == 0);
    HWS_CHECK(cuMemcpyHtoD_v2(memory + 1, source, BYTES) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemcpyDtoH_v2(back, memory + BYTES, 1) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemHostAlloc((void **) &pinned, BYTES, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyAsync((CUdeviceptr) (uintptr_t) pinned, memory, BYTES, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamSynchronize(NULL) == CUDA_SUCCESS && memcmp(source, pinned, BYTES) == 0);
    HWS_CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 5) == CUDA_SUCCESS);
    HWS_CHECK(type == CU_MEMORYTYPE_DEVICE);
    HWS_CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr) (uintptr_t) pinned) == 0);
    HWS_CHECK(type == CU_MEMORYTYPE_HOST);
    HWS_CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 64) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemGetAddressRange_v2(&base, &size, memory + 100) == CUDA_SUCCESS && base == memory && size == BYTES);
    HWS_CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS && cuMemFreeHost(pinned) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemHostRegister_v2(source, BYTES, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuMemHostRegister_v2(source + 9, 1, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    HWS_CHECK(cuMemHostUnregister(source) == CUDA_SUCCESS);
    HWS_CHECK(cuMemHostUnregister(source) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    HWS_CHECK(cuMemFree_v2(memory + 1) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuMemFree_v2(memory) == CUDA_SUCCESS && cuMemFree_v2(memory) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldCopyBoxes(void) {
    start();
    enum { WIDTH = 700, ROWS = 900, SLICES = 3, PITCH = 1024, HEIGHT = 1000 };
    CUdeviceptr memory;
    HWS_CHECK(cuMemAlloc_v2(&memory, (size_t) PITCH * HEIGHT * (SLICES + 1)) == CUDA_SUCCESS);
    uint8_t *source = malloc(WIDTH * ROWS * SLICES), *back = calloc(1, WIDTH * ROWS * SLICES);
    for (int i = 0; i < WIDTH * ROWS * SLICES; i++) {
        source[i] = (uint8_t) (i * 11 + (i >> 9));
    }
    CUDA_MEMCPY3D copy = {
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = source,
        .srcPitch = WIDTH,
        .srcHeight = ROWS,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = memory,
        .dstPitch = PITCH,
        .dstHeight = HEIGHT,
        .dstXInBytes = 13,
        .dstY = 21,
        .dstZ = 1,
        .WidthInBytes = WIDTH,
        .Height = ROWS,
        .Depth = SLICES,
    };
    HWS_CHECK(cuMemcpy3D_v2(&copy) == CUDA_SUCCESS);
    CUDA_MEMCPY3D out = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = memory,
        .srcPitch = PITCH,
        .srcHeight = HEIGHT,
        .srcXInBytes = 13,
        .srcY = 21,
        .srcZ = 1,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = (CUdeviceptr) (uintptr_t) back,
        .dstPitch = WIDTH,
        .dstHeight = ROWS,
        .WidthInBytes = WIDTH,
        .Height = ROWS,
        .Depth = SLICES,
    };
    HWS_CHECK(cuMemcpy3D_v2(&out) == CUDA_SUCCESS && memcmp(source, back, WIDTH * ROWS * SLICES) == 0);
    /* The fake worker's memory is ours: the bytes beside the box must be unchanged. */
    const uint8_t *device = (const uint8_t *) (uintptr_t) memory;
    HWS_CHECK(device[((size_t) HEIGHT + 21) * PITCH + 12] == 0
              && device[((size_t) HEIGHT + 21) * PITCH + 13 + WIDTH] == 0);
    copy.Depth = SLICES + 1;
    HWS_CHECK(cuMemcpy3D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
    copy.Depth = SLICES;
    copy.dstPitch = WIDTH;
    HWS_CHECK(cuMemcpy3D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMCPY2D wild = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = source,
                          .srcPitch = WIDTH,
                          .WidthInBytes = 8,
                          .Height = SIZE_MAX,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = memory,
                          .dstPitch = PITCH};
    HWS_CHECK(cuMemcpy2D_v2(&wild) == CUDA_ERROR_INVALID_VALUE);
}

static void shouldPackParametersAndRefuseBadLaunches(void) {
    start();
    CUmodule module;
    CUfunction function, again;
    HWS_CHECK(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
    HWS_CHECK(cuModuleLoadData(&module, "no image") == CUDA_ERROR_INVALID_IMAGE);
    HWS_CHECK(cuModuleGetFunction(&function, module, "kernel") == CUDA_SUCCESS);
    uint64_t before = atomic_load(&broker_round_trips);
    HWS_CHECK(cuModuleGetFunction(&again, module, "kernel") == CUDA_SUCCESS && again == function);
    HWS_CHECK(atomic_load(&broker_round_trips) == before);
    int a = 0x11223344;
    double b = 2.5;
    char c = 'z';
    void *params[] = {&a, &b, &c};
    HWS_CHECK(cuLaunchKernel(function, 3, 2, 1, 64, 2, 1, 256, NULL, params, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    const uint8_t *packed = broker_launch + 64; /* after the fixed part of hwsLaunch */
    HWS_CHECK(memcmp(packed, &a, 4) == 0 && memcmp(packed + 8, &b, 8) == 0 && packed[16] == 'z');
    HWS_CHECK(broker_u64(packed, 0) >> 32 == 0);
    uint8_t own[24] = {1, 2, 3};
    size_t size = 17;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, own, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS && memcmp(packed, own, 17) == 0);
    memset(own, 7, sizeof own);
    size = 2; /* a shorter buffer: zeros follow */
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS && broker_u64(packed, 0) == 0x0707);
    HWS_CHECK(broker_u64(packed, 8) == 0 && packed[16] == 0);
    const struct {
        size_t bytes;
        CUresult result;
    } sizes[] = {
        {0, CUDA_ERROR_INVALID_VALUE},
        {18, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
        {32764, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
        {32765, CUDA_ERROR_INVALID_VALUE},
        {SIZE_MAX, CUDA_ERROR_INVALID_VALUE},
    };
    for (int i = 0; i < 5; i++) {
        size = sizes[i].bytes;
        HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra) == sizes[i].result);
    }
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuLaunchKernel(function, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1024, 2, 1, 0, NULL, params, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 48897, NULL, params, NULL) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuLaunchKernel((CUfunction) 7, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, (CUstream) 77, params, NULL) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
    HWS_CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL) == CUDA_ERROR_INVALID_HANDLE);
}

static void shouldAnswerStateWithoutARoundTrip(void) {
    start();
    CUstream stream;
    unsigned flags = 9;
    int priority = 9;
    unsigned long long id;
    uint64_t before = atomic_load(&broker_round_trips);
    HWS_CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS && flags == CU_STREAM_NON_BLOCKING);
    HWS_CHECK(cuStreamGetPriority(stream, &priority) == CUDA_SUCCESS && priority == -1);
    HWS_CHECK(cuStreamGetId(stream, &id) == CUDA_SUCCESS && id != 0);
    HWS_CHECK(cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamGetFlags(stream, &flags) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(atomic_load(&broker_round_trips) == before);
}

static CUfunction some_kernel(void) {
    CUmodule module;
    CUfunction function;
    HWS_CHECK(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
    HWS_CHECK(cuModuleGetFunction(&function, module, "kernel") == CUDA_SUCCESS);
    return function;
}

static int blocks_of(CUfunction function, int block_size, size_t dynamic_bytes) {
    int blocks = -1;
    HWS_CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, block_size, dynamic_bytes)
              == CUDA_SUCCESS);
    return blocks;
}

static void shouldAnswerOccupancyAsTheWorkerDoesAndAskOnce(void) {
    start();
    CUfunction function = some_kernel();
    uint64_t before = atomic_load(&broker_round_trips);
    for (int round = 0; round < 3; round++) {
        HWS_CHECK(blocks_of(function, 256, 0) == 5);
        HWS_CHECK(blocks_of(function, 256, 40000) == 3);
        HWS_CHECK(blocks_of(function, 100, 0) == 15);
        size_t bytes;
        HWS_CHECK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 3, 256) == CUDA_SUCCESS && bytes == 30000);
    }
    HWS_CHECK(atomic_load(&broker_round_trips) == before + 4);
    int blocks = -1;
    HWS_CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 0, 0) == CUDA_ERROR_INVALID_VALUE);
    HWS_CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (CUfunction) 7, 32, 0) == CUDA_ERROR_INVALID_HANDLE);
    HWS_CHECK(blocks == -1 && atomic_load(&broker_round_trips) == before + 4);
}

static CUtensorMap map_at(uint64_t address) {
    CUtensorMap map;
    cuuint64_t dims[2] = {64, 32}, stride = 256;
    cuuint32_t box[2] = {32, 8}, steps[2] = {1, 1};
    HWS_CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *) (uintptr_t) address, dims,
                                     &stride, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                     CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
              == CUDA_SUCCESS);
    return map;
}

static void shouldAskOnceForTheSameTensorMap(void) {
    start();
    uint64_t before = atomic_load(&broker_round_trips);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 8; i++) {
            HWS_CHECK(map_at(0x10000 + 256 * i).opaque[0] == 0x10000 + 256 * i);
        }
    }
    HWS_CHECK(atomic_load(&broker_round_trips) == before + 8);
    CUtensorMap other = map_at(0x10000);
    HWS_CHECK(cuTensorMapReplaceAddress(&other, (void *) 0x20000) == CUDA_SUCCESS && other.opaque[0] == 0x20000);
    HWS_CHECK(other.opaque[1] == 3 && atomic_load(&broker_round_trips) == before + 9);
    for (int round = 0; round < 2; round++) { /* more than places: each still gets its own */
        for (uint64_t i = 0; i < 3000; i++) {
            HWS_CHECK(map_at(0x100000 + 256 * i).opaque[0] == 0x100000 + 256 * i);
        }
    }
}

static size_t shared_of(int block_size) {
    return block_size > 512 ? 40000 : 0;
}

static void shouldChooseTheLargestBlockWithMostThreads(void) {
    start();
    CUfunction function = some_kernel();
    int grid = 0, block = 0;
    HWS_CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 0) == CUDA_SUCCESS);
    HWS_CHECK(block == 736 && grid == 20);
    HWS_CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, shared_of, 0, 0) == CUDA_SUCCESS);
    HWS_CHECK(block == 64 && grid == 230);
    HWS_CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 100) == CUDA_SUCCESS);
    HWS_CHECK(block == 100 && grid == 150);
}

static void shouldForgetOccupancyWhenWhatItDependsOnChanges(void) {
    start();
    CUfunction function = some_kernel();
    HWS_CHECK(blocks_of(function, 256, 0) == 5);
    HWS_CHECK(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_SHARED) == CUDA_SUCCESS);
    HWS_CHECK(blocks_of(function, 256, 0) == 4);
    HWS_CHECK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1) == CUDA_SUCCESS);
    HWS_CHECK(blocks_of(function, 256, 0) == 3);
    HWS_CHECK(cuKernelSetCacheConfig((CUkernel) function, CU_FUNC_CACHE_PREFER_NONE, 0) == CUDA_SUCCESS);
    HWS_CHECK(blocks_of(function, 256, 0) == 5);
    uint64_t before = atomic_load(&broker_round_trips);
    HWS_CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50) == CUDA_SUCCESS);
    HWS_CHECK(blocks_of(function, 256, 0) == 5 && atomic_load(&broker_round_trips) == before + 2);
}

static void shouldRefuseACooperativeGridThatTheDeviceDoesNotHold(void) {
    start();
    CUfunction function = some_kernel();
    int a = 1;
    double b = 2;
    char c = 3;
    void *params[] = {&a, &b, &c};
    HWS_CHECK(cuLaunchCooperativeKernel(function, 25, 2, 1, 64, 4, 1, 0, NULL, params) == CUDA_SUCCESS);
    HWS_CHECK(cuLaunchCooperativeKernel(function, 51, 1, 1, 256, 1, 1, 0, NULL, params)
              == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    CUlaunchConfig config = {.gridDimX = 51,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 256,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &attribute,
                             .numAttrs = 1};
    HWS_CHECK(cuLaunchKernelEx(&config, function, params, NULL) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    config.gridDimX = 50;
    HWS_CHECK(cuLaunchKernelEx(&config, function, params, NULL) == CUDA_SUCCESS);
    attribute.value.cooperative = 0;
    config.gridDimX = 51;
    HWS_CHECK(cuLaunchKernelEx(&config, function, params, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS && atomic_load(&broker_launches) == 3);
}

static uint64_t round_trips_of_synchronise(void) {
    uint64_t before = atomic_load(&broker_round_trips);
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    return atomic_load(&broker_round_trips) - before;
}

static void *copy_in(void *memory) {
    char byte = 1;
    CUcontext context = NULL;
    HWS_CHECK(cuCtxGetCurrent(&context) == CUDA_SUCCESS && context == NULL);
    HWS_CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyHtoD_v2(*(CUdeviceptr *) memory, &byte, 1) == CUDA_SUCCESS);
    return NULL;
}

static void shouldNotAskOnceForWorkThatACopyHasWaitedFor(void) {
    start();
    CUdeviceptr memory;
    char bytes[16] = {0};
    HWS_CHECK(cuMemAlloc_v2(&memory, sizeof bytes) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) == CUDA_SUCCESS);
    HWS_CHECK(round_trips_of_synchronise() == 1); /* nothing was known before the copy */
    HWS_CHECK(round_trips_of_synchronise() == 1);
    HWS_CHECK(cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) == CUDA_SUCCESS);
    HWS_CHECK(round_trips_of_synchronise() == 0);
    HWS_CHECK(round_trips_of_synchronise() == 1);
    HWS_CHECK(cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) == CUDA_SUCCESS);
    HWS_CHECK(round_trips_of_synchronise() == 0);
    /* A copy to the device returns when the library has read its bytes. */
    HWS_CHECK(cuMemcpyHtoD_v2(memory, bytes, sizeof bytes) == CUDA_SUCCESS);
    HWS_CHECK(round_trips_of_synchronise() == 1);
    HWS_CHECK(cuMemcpyHtoD_v2(memory, bytes, sizeof bytes) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) == CUDA_SUCCESS);
    HWS_CHECK(round_trips_of_synchronise() == 1);
    /* Records of other threads count. */
    HWS_CHECK(cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) == CUDA_SUCCESS);
    pthread_t thread;
    HWS_CHECK(pthread_create(&thread, NULL, copy_in, &memory) == 0 && pthread_join(thread, NULL) == 0);
    HWS_CHECK(round_trips_of_synchronise() == 1);
}

/* Otherwise a process that learns of a record over a pipe could wait for the previous record. */
static void shouldAnswerRecordsOfSharedEventsWhenTheWorkerHasThem(void) {
    start();
    CUevent shared, own;
    HWS_CHECK(cuEventCreate(&own, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    HWS_CHECK(cuEventCreate(&shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS) == CUDA_SUCCESS);
    uint64_t before = atomic_load(&broker_round_trips);
    HWS_CHECK(cuEventRecord(own, NULL) == CUDA_SUCCESS && cuStreamWaitEvent(NULL, own, 0) == CUDA_SUCCESS);
    HWS_CHECK(atomic_load(&broker_round_trips) == before);
    atomic_store(&broker_status_of_next_sync, CUDA_ERROR_NOT_READY); /* the earlier work still runs */
    HWS_CHECK(cuEventRecord(shared, NULL) == CUDA_SUCCESS);
    HWS_CHECK(atomic_load(&broker_round_trips) == before + 1);
    HWS_CHECK(cuStreamWaitEvent(NULL, shared, 0) == CUDA_SUCCESS);
    HWS_CHECK(atomic_load(&broker_round_trips) == before + 2);
    atomic_store(&broker_status_of_next_sync, CUDA_ERROR_LAUNCH_FAILED);
    HWS_CHECK(cuEventRecord(shared, NULL) == CUDA_ERROR_LAUNCH_FAILED);
}

/* Records an event, sends another call, and brings all records of the worker. Returns whether it is to be announced. */
static bool is_announced(CUevent event, CUdeviceptr memory) {
    unsigned before = atomic_load(&broker_event_records);
    HWS_CHECK(cuEventRecord(event, NULL) == CUDA_SUCCESS && cuMemsetD8Async(memory, 0, 8, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    return atomic_load(&broker_event_records) == before + 1;
}

static uint64_t round_trips_of_questions(CUevent event) {
    uint64_t before = atomic_load(&broker_round_trips);
    HWS_CHECK(cuEventQuery(event) == CUDA_SUCCESS && cuEventSynchronize(event) == CUDA_SUCCESS);
    return atomic_load(&broker_round_trips) - before;
}

static void shouldAnswerForAnnouncedEventsWithoutTheWorker(void) {
    start();
    CUevent event, gone;
    CUgraph graph;
    CUgraphNode node;
    CUdeviceptr memory;
    HWS_CHECK(cuMemAlloc_v2(&memory, 8) == CUDA_SUCCESS);
    HWS_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    HWS_CHECK(cuEventCreate(&gone, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    atomic_store(&broker_announces, true);
    for (int i = 0; i < 3; i++) { /* the program waits at once */
        HWS_CHECK(cuEventRecord(event, NULL) == CUDA_SUCCESS && cuEventSynchronize(event) == CUDA_SUCCESS);
    }
    HWS_CHECK(atomic_load(&broker_event_records) == 0);
    HWS_CHECK(!is_announced(event, memory) && round_trips_of_questions(event) == 2);
    HWS_CHECK(is_announced(event, memory) && round_trips_of_questions(event) == 0);
    HWS_CHECK(is_announced(event, memory) && round_trips_of_questions(event) == 0);
    atomic_store(&broker_announces, false); /* the next record is not reached yet */
    HWS_CHECK(is_announced(event, memory) && round_trips_of_questions(event) == 2);
    atomic_store(&broker_announces, true);
    HWS_CHECK(is_announced(event, memory) && !is_announced(event, memory)); /* nobody has asked in between */
    HWS_CHECK(round_trips_of_questions(event) == 2);
    HWS_CHECK(is_announced(event, memory) && cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event) == CUDA_SUCCESS);
    HWS_CHECK(round_trips_of_questions(event) == 2 && !is_announced(event, memory)); /* launches may record it */
    HWS_CHECK(!is_announced(gone, memory) && cuEventQuery(gone) == CUDA_SUCCESS);
    HWS_CHECK(cuEventRecord(gone, NULL) == CUDA_SUCCESS && cuEventDestroy_v2(gone) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_SUCCESS); /* brings the news of the destroyed event */
}

static _Atomic int host_calls;

static void host_function(void *argument) {
    CUdeviceptr memory;
    HWS_CHECK(cuMemAlloc_v2(&memory, 8) == CUDA_ERROR_INVALID_CONTEXT);
    atomic_fetch_add(&host_calls, *(int *) argument);
}

static void stream_callback(CUstream stream, CUresult status, void *argument) {
    HWS_CHECK(stream == NULL && status == CUDA_SUCCESS);
    host_function(argument);
}

static void shouldRunHostFunctionsWhileNobodyWaits(void) {
    start();
    int one = 1;
    for (int i = 0; i < 50; i++) {
        HWS_CHECK(cuLaunchHostFunc(NULL, host_function, &one) == CUDA_SUCCESS);
        HWS_CHECK(cuStreamAddCallback(NULL, stream_callback, &one, 0) == CUDA_SUCCESS);
    }
    while (atomic_load(&host_calls) < 100) {
        usleep(1000); /* ctest's time limit ends a wait for a function that never runs */
    }
}

static void do_nothing(void *unused) {
    (void) unused;
}

typedef enum copy_time { NOW, LATER } copy_time_t;

/* Whether a copy from pinned memory travels at once, or when its stream reaches it. */
static copy_time_t time_of_copy(CUdeviceptr memory, const uint8_t *pinned, CUstream stream) {
    uint64_t before = atomic_load(&broker_host_functions);
    HWS_CHECK(cuMemcpyHtoDAsync_v2(memory, pinned, 8, stream) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_SUCCESS); /* the broker has all records before it */
    return atomic_load(&broker_host_functions) == before ? NOW : LATER;
}

static void shouldSendPinnedMemoryAtOnceWhereTheStreamHasNoWork(void) {
    start();
    uint8_t *pinned;
    CUdeviceptr memory;
    CUstream stream, other;
    CUevent event;
    HWS_CHECK(cuMemAlloc_v2(&memory, 8) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamCreateWithPriority(&other, CU_STREAM_DEFAULT, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    HWS_CHECK(cuMemsetD8Async(memory, 0, 8, other) == CUDA_SUCCESS);
    HWS_CHECK(cuMemAllocHost_v2((void **) &pinned, 8) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == LATER); /* of work before, no stream is known */
    HWS_CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == NOW);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == NOW); /* such copies are no work */
    HWS_CHECK(time_of_copy(memory, pinned, NULL) == NOW && time_of_copy(memory, pinned, other) == NOW);
    HWS_CHECK(cuMemsetD8Async(memory, 0, 8, other) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == NOW);
    HWS_CHECK(time_of_copy(memory, pinned, NULL) == LATER); /* the default stream waits for the other one */
    HWS_CHECK(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, NULL) == NOW && time_of_copy(memory, pinned, other) == NOW);
    HWS_CHECK(cuMemsetD8Async(memory, 0, 8, other) == CUDA_SUCCESS && cuStreamSynchronize(NULL) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, other) == LATER); /* the default stream has no work behind it */
    HWS_CHECK(cuStreamSynchronize(other) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, other) == NOW);
    HWS_CHECK(cuMemsetD8Async(memory, 0, 8, NULL) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, other) == LATER && time_of_copy(memory, pinned, stream) == NOW);
    HWS_CHECK(cuMemsetD8Async(memory, 0, 8, stream) == CUDA_SUCCESS && cuEventRecord(event, stream) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == LATER);
    HWS_CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == LATER); /* the copy came after the event */
    HWS_CHECK(cuEventRecord(event, stream) == CUDA_SUCCESS && cuEventQuery(event) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == NOW);
    HWS_CHECK(cuStreamWaitEvent(stream, event, 0) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == LATER);
    HWS_CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

static void shouldSendPinnedMemoryAtOnceBeforeAllWork(void) {
    start();
    uint8_t *pinned;
    CUdeviceptr memory;
    CUstream stream;
    uint64_t word = 1;
    HWS_CHECK(cuMemAlloc_v2(&memory, 8) == CUDA_SUCCESS);
    HWS_CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyHtoD_v2(memory, &word, sizeof word)
              == CUDA_SUCCESS); /* no work, because it changes no host memory */
    HWS_CHECK(cuMemAllocHost_v2((void **) &pinned, 8) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == NOW && time_of_copy(memory, pinned, NULL) == NOW);
    HWS_CHECK(cuMemsetD8Async(memory, 0, 8, stream) == CUDA_SUCCESS);
    HWS_CHECK(time_of_copy(memory, pinned, stream) == LATER && time_of_copy(memory, pinned, NULL) == NOW);
    HWS_CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

static void shouldReadPinnedMemoryWhenTheStreamReachesTheCopy(void) {
    start();
    enum { BYTES = (9 << 20) + 5 };
    uint8_t *memory = calloc(1, BYTES);
    CUdeviceptr device;
    HWS_CHECK(cuMemAlloc_v2(&device, BYTES) == CUDA_SUCCESS);
    HWS_CHECK(cuMemHostRegister_v2(memory, BYTES, 0) == CUDA_SUCCESS);
    atomic_store(&broker_holds, true);
    HWS_CHECK(cuLaunchHostFunc(NULL, do_nothing, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuMemcpyHtoDAsync_v2(device, memory, BYTES, NULL) == CUDA_SUCCESS);
    memset(memory, 0x5A, BYTES);
    atomic_store(&broker_holds, false);
    const volatile uint8_t *last = (const uint8_t *) (uintptr_t) device + BYTES - 1;
    while (*last == 0) {
        HWS_CHECK(cuStreamQuery(NULL) == CUDA_SUCCESS); /* ctest's time limit ends a wait for bytes that never come */
    }
    HWS_CHECK(memcmp((const void *) (uintptr_t) device, memory, BYTES) == 0);
    HWS_CHECK(cuMemHostUnregister(memory) == CUDA_SUCCESS);
    free(memory);
}

static void shouldNotReadMemoryThatIsNoLongerRegistered(void) {
    start();
    enum { BYTES = 4096 };
    uint8_t *memory = malloc(BYTES);
    CUdeviceptr device;
    memset(memory, 1, BYTES);
    HWS_CHECK(cuMemAlloc_v2(&device, BYTES) == CUDA_SUCCESS);
    HWS_CHECK(cuMemHostRegister_v2(memory, BYTES, 0) == CUDA_SUCCESS);
    atomic_store(&broker_holds, true);
    HWS_CHECK(cuMemsetD8Async(device, 0, BYTES, NULL) == CUDA_SUCCESS); /* else the copy would not wait */
    HWS_CHECK(cuMemcpyHtoDAsync_v2(device, memory, BYTES, NULL) == CUDA_SUCCESS);
    HWS_CHECK(cuMemHostUnregister(memory) == CUDA_SUCCESS);
    free(memory); /* the address sanitizer finds a read from here on */
    atomic_store(&broker_holds, false);
    while (atomic_load(&broker_ended) == 0) {
        HWS_CHECK(cuStreamQuery(NULL) == CUDA_SUCCESS); /* ctest's time limit ends a wait for nothing */
    }
}

static void shouldFailAtOnceAfterAKernelHasFailed(void) {
    CUcontext context = start(), current;
    CUdeviceptr memory;
    HWS_CHECK(cuMemAlloc_v2(&memory, 64) == CUDA_SUCCESS);
    atomic_store(&broker_status_of_next_sync, CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuMemcpyHtoD_v2(memory, &context, sizeof context) == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    HWS_CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context);
}

static void shouldAnswerALostDeviceWhenTheBrokerIsGone(void) {
    start();
    CUdeviceptr memory;
    HWS_CHECK(cuMemAlloc_v2(&memory, 64) == CUDA_SUCCESS);
    broker_vanish();
    HWS_CHECK(cuCtxSynchronize() == CUDA_ERROR_DEVICE_UNAVAILABLE);
    HWS_CHECK(cuMemFree_v2(memory) == CUDA_ERROR_DEVICE_UNAVAILABLE);
    HWS_CHECK(cuInit(0) == CUDA_ERROR_DEVICE_UNAVAILABLE);
}

static void shouldNotBeInitialisedInAForkedChild(void) {
    start();
    CUdeviceptr memory;
    pid_t child = fork();
    if (child == 0) {
        bool right = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuMemAlloc_v2(&memory, 8) == CUDA_ERROR_NOT_INITIALIZED;
        exit(right ? 0 : 1);
    }
    int outcome = -1;
    HWS_CHECK(waitpid(child, &outcome, 0) == child && outcome == 0);
    HWS_CHECK(cuMemAlloc_v2(&memory, 8) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
}

static _Atomic int threads_at_work;

static void *alloc_for_ever(void *context) {
    CUdeviceptr memory;
    HWS_CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    atomic_fetch_add(&threads_at_work, 1);
    CUresult result;
    do {
        result = cuMemAlloc_v2(&memory, 8);
    } while (result == CUDA_SUCCESS);
    HWS_CHECK(result == CUDA_ERROR_DEINITIALIZED);
    return NULL;
}

static void shouldExitWithCallsInFlight(void) {
    CUcontext context = start();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        HWS_CHECK(pthread_create(&threads[i], NULL, alloc_for_ever, context) == 0);
    }
    while (atomic_load(&threads_at_work) < 3) { /* each must have a context before the end */
        usleep(1000);
    }
    usleep(20000);
}

static void shouldLookUpFunctionsAsADriverDoes(void) {
    void *function = &function;
    CUdriverProcAddressQueryResult status;
    HWS_CHECK(cuGetProcAddress_v2("cuMemAlloc", &function, 13000, 0, &status) == CUDA_SUCCESS && status == 0);
    HWS_CHECK(function == (void *) cuMemAlloc_v2);
    HWS_CHECK(cuGetProcAddress_v2("cuLaunchKernel", &function, 13000, 2, &status) == CUDA_SUCCESS);
    HWS_CHECK(function == (void *) cuLaunchKernel_ptsz);
    HWS_CHECK(cuGetProcAddress_v2("cuMemGetInfo", &function, 13000, 2, &status) == CUDA_SUCCESS);
    HWS_CHECK(function == (void *) cuMemGetInfo_v2);
    HWS_CHECK(cuGetProcAddress_v2("cuMemAlloc_v2", &function, 13000, 0, &status) == CUDA_SUCCESS);
    HWS_CHECK(function == NULL && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    HWS_CHECK(cuGetProcAddress_v2("cuLibraryLoadData", &function, 11000, 0, &status) == CUDA_SUCCESS);
    HWS_CHECK(function == NULL && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    static const struct {
        const char *name;
        int since;
        void (*function)(void);
    } later[] = {
        {"cuGraphConditionalHandleCreate", 12030, (void (*)(void)) cuGraphConditionalHandleCreate},
        {"cuGraphAddBatchMemOpNode", 11070, (void (*)(void)) cuGraphAddBatchMemOpNode},
        {"cuGraphExecBatchMemOpNodeSetParams", 11070, (void (*)(void)) cuGraphExecBatchMemOpNodeSetParams},
        {"cuMemPrefetchBatchAsync", 13000, (void (*)(void)) cuMemPrefetchBatchAsync},
        {"cuMemDiscardBatchAsync", 13000, (void (*)(void)) cuMemDiscardBatchAsync},
        {"cuMemDiscardAndPrefetchBatchAsync", 13000, (void (*)(void)) cuMemDiscardAndPrefetchBatchAsync},
    };
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        HWS_CHECK(cuGetProcAddress_v2(later[i].name, &function, later[i].since, 0, &status) == CUDA_SUCCESS);
        HWS_CHECK(memcmp(&function, &later[i].function, sizeof function) == 0 && status == 0);
        HWS_CHECK(cuGetProcAddress_v2(later[i].name, &function, later[i].since - 10, 0, &status) == CUDA_SUCCESS);
        HWS_CHECK(function == NULL && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    }
    HWS_CHECK(cuGetProcAddress_v2("cuMemAlloc", &function, 13000, 3, &status) == CUDA_ERROR_INVALID_VALUE);
    function = &status;
    HWS_CHECK(cuGetProcAddress("cuNothing", &function, 13000, 0) == CUDA_ERROR_NOT_FOUND && function == &status);
}

int main(void) {
    RUN(shouldFindNoDeviceWhereNobodyListens, 1);
    RUN(shouldWaitForABrokerThatStartsLater, 0);
    RUN(shouldFindNoDeviceWithoutConfiguration, 1);
    RUN(shouldFindNoDeviceWhenTheBrokerIsSilent, 1);
    RUN(shouldFindNoDeviceWhenTheBrokerRefuses, 1);
    RUN(shouldFollowTheBrokerToTheVgpu, 0);
    RUN(shouldFindNoDeviceWhenItIsSentOnAgain, 1);
    RUN(shouldFindTheSecondBrokerOfAList, 0);
    RUN(shouldFilterAndRenumberDevices, 0);
    RUN(shouldHideEveryDeviceForAnEmptyList, 0);
    RUN(shouldKeepAStackOfContexts, 0);
    RUN(shouldCopyThereAndBackAndKnowPointers, 0);
    RUN(shouldCopyBoxes, 0);
    RUN(shouldPackParametersAndRefuseBadLaunches, 0);
    RUN(shouldAnswerStateWithoutARoundTrip, 0);
    RUN(shouldAnswerOccupancyAsTheWorkerDoesAndAskOnce, 0);
    RUN(shouldAskOnceForTheSameTensorMap, 0);
    RUN(shouldChooseTheLargestBlockWithMostThreads, 0);
    RUN(shouldForgetOccupancyWhenWhatItDependsOnChanges, 0);
    RUN(shouldRefuseACooperativeGridThatTheDeviceDoesNotHold, 0);
    RUN(shouldNotAskOnceForWorkThatACopyHasWaitedFor, 0);
    RUN(shouldAnswerRecordsOfSharedEventsWhenTheWorkerHasThem, 0);
    RUN(shouldAnswerForAnnouncedEventsWithoutTheWorker, 0);
    RUN(shouldRunHostFunctionsWhileNobodyWaits, 0);
    RUN(shouldSendPinnedMemoryAtOnceBeforeAllWork, 0);
    RUN(shouldSendPinnedMemoryAtOnceWhereTheStreamHasNoWork, 0);
    RUN(shouldReadPinnedMemoryWhenTheStreamReachesTheCopy, 0);
    RUN(shouldNotReadMemoryThatIsNoLongerRegistered, 0);
    RUN(shouldFailAtOnceAfterAKernelHasFailed, 0);
    RUN(shouldAnswerALostDeviceWhenTheBrokerIsGone, 1);
    RUN(shouldNotBeInitialisedInAForkedChild, 0);
    RUN(shouldExitWithCallsInFlight, 0);
    RUN(shouldLookUpFunctionsAsADriverDoes, 0);
    return 0;
}
