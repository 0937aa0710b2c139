// Cases of the runtime that random arguments do not reach: calls before the first context, a second thread, bounds of
// launches, copies and attributes, and calls after the error of a kernel and after cudaDeviceReset. They are the same in
// every run, and their lines have indices from FIRST_CASE on.
//
// A line's result is four codes: of the call, of cudaPeekAtLastError, and of cudaGetLastError twice.
#ifndef HAWSER_RANDOM_CALLS_CASES_H
#define HAWSER_RANDOM_CALLS_CASES_H

#include "state.h"

#include <pthread.h>

static const unsigned FIRST_CASE = 1000000;
static unsigned case_index = FIRST_CASE;

__global__ void one(int *p) {
    *p = 1;
}

__global__ void wild() {
    *(volatile int *) 16 = 1;
}

__global__ void shares() {
    volatile __shared__ int words[4];
    words[threadIdx.x & 3] = 0;
}

__device__ int case_variable[4] = {1, 2, 3, 4};
static int no_variable;

static int no_function() {
    return 1;
}

static void print_case(const char *text, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void print_case(const char *text, int result, const char *format, ...) {
    int peek = cudaPeekAtLastError(), last = cudaGetLastError(), again = cudaGetLastError();
    va_list arguments;
    printf("%u %s = %d/%d/%d/%d ", case_index++, text, result, peek, last, again);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

#define CASE(call) print_case(#call, (int) (call), "%s", "")
// With outputs of the call.
#define GIVES(call, ...)                                                                                               \
    do {                                                                                                               \
        int case_result = (int) (call);                                                                                \
        print_case(#call, case_result, __VA_ARGS__);                                                                   \
    } while (0)
#define LAUNCH(name, launch) (launch, print_case("launch(" name ")", (int) cudaPeekAtLastError(), "%s", ""))

static void device_cases() {
    int n = -1;
    unsigned flags = 0;
    char bus[32];
    GIVES(cudaGetDevice(&n), "device=%d", n);
    GIVES(cudaGetDeviceFlags(&flags), "flags=%x", flags);
    CASE(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync | cudaDeviceMapHost));
    GIVES(cudaGetDeviceFlags(&flags), "flags=%x", flags);
    CASE(cudaSetDeviceFlags(0x1000));
    CASE(cudaSetDevice(-1));
    CASE(cudaSetDevice(100));
    CASE(cudaSetDevice(0));
    GIVES(cudaGetDeviceFlags(&flags), "flags=%x", flags);
    CASE(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
    CASE(cudaInitDevice(0, 0, 0));
    CASE(cudaInitDevice(0, 0, 2));
    CASE(cudaSetValidDevices(NULL, 0));
    CASE(cudaSetValidDevices(&n, 100));
    CASE(cudaDeviceGetAttribute(&n, (cudaDeviceAttr) 0, 0));
    CASE(cudaDeviceGetAttribute(&n, (cudaDeviceAttr) 9999, 0));
    CASE(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0));
    CASE(cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 77));
    // The bytes that are written: a value may equal one of the two that were there.
    static unsigned char some[2 * sizeof(cudaDeviceProp)], other[sizeof some];
    memset(some, 0x55, sizeof some);
    memset(other, 0xAA, sizeof other);
    CASE(cudaGetDeviceProperties((cudaDeviceProp *) some, 77));
    CASE(cudaGetDeviceProperties((cudaDeviceProp *) some, 0));
    int result = cudaGetDeviceProperties((cudaDeviceProp *) other, 0);
    size_t written = sizeof some;
    while (written > 0 && some[written - 1] == 0x55 && other[written - 1] == 0xAA) {
        written--;
    }
    print_case("cudaGetDeviceProperties(again)", result, "bytes=%zu", written);
    CASE(cudaDeviceGetPCIBusId(bus, 32, 0));
    CASE(cudaDeviceGetPCIBusId(bus, 3, 0));
    CASE(cudaDeviceGetByPCIBusId(&n, "ffff:ff:ff.0"));
}

static void memory_cases(char *device, char *pinned) {
    void *memory = (void *) 1, *mapped;
    static char registered[8192];
    unsigned flags = 0;
    int n = 0;
    size_t pitch = 0;
    cudaPitchedPtr box;
    GIVES(cudaMalloc(&memory, 0), "null=%d", memory == NULL);
    CASE(cudaMalloc(NULL, 16));
    CASE(cudaMalloc(&memory, (size_t) 1 << 50));
    CASE(cudaFree((void *) 16));
    CASE(cudaFreeHost((void *) 16));
    CASE(cudaFree(NULL));
    CASE(cudaFreeHost(NULL));
    memory = (void *) 1;
    GIVES(cudaHostAlloc(&memory, 0, 0), "null=%d", memory == NULL);
    CASE(cudaHostAlloc(&memory, 4096, 0x1000));
    GIVES(cudaHostGetFlags(&flags, pinned), "flags=%x", flags);
    CASE(cudaHostGetFlags(&flags, &n));
    CASE(cudaHostGetDevicePointer(&mapped, pinned, 1));
    CASE(cudaHostGetDevicePointer(&mapped, &n, 0));
    CASE(cudaHostUnregister(&n));
    CASE(cudaHostRegister(NULL, 16, 0));
    CASE(cudaHostRegister(registered, sizeof registered, 0));
    CASE(cudaHostRegister(registered, sizeof registered, 0));
    CASE(cudaHostUnregister(registered));
    GIVES(cudaMallocPitch(&memory, &pitch, 100, 10), "pitch=%zu", pitch);
    GIVES(cudaMallocPitch(&memory, &pitch, 0, 10), "pitch=%zu null=%d", pitch, memory == NULL);
    GIVES(cudaMalloc3D(&box, make_cudaExtent(100, 4, 3)), "pitch=%zu width=%zu rows=%zu", box.pitch, box.xsize,
          box.ysize);
    const struct {
        const char *text;
        const void *address;
    } rows[] = {{"cudaPointerGetAttributes(device)", device}, {"cudaPointerGetAttributes(inside)", device + 100},
                {"cudaPointerGetAttributes(pinned)", pinned}, {"cudaPointerGetAttributes(stack)", &n},
                {"cudaPointerGetAttributes(null)", NULL},     {"cudaPointerGetAttributes(variable)", &case_variable}};
    for (const auto &row : rows) {
        cudaPointerAttributes a;
        memset(&a, 0x55, sizeof a);
        int result = cudaPointerGetAttributes(&a, row.address);
        print_case(row.text, result, "type=%d device=%d dev=%d host=%d", a.type, a.device,
                   a.devicePointer == NULL              ? 0
                       : a.devicePointer == row.address ? 1
                                                        : 2,
                   a.hostPointer == NULL              ? 0
                       : a.hostPointer == row.address ? 1
                                                      : 2);
    }
}

static void copy_cases(char *device) {
    char local[4096] = {};
    CASE(cudaMemcpy(device, local, 100, (cudaMemcpyKind) 7));
    CASE(cudaMemcpy(device, local, 0, (cudaMemcpyKind) 7));
    CASE(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
    CASE(cudaMemcpy(NULL, local, 10, cudaMemcpyHostToDevice));
    CASE(cudaMemcpy(device, NULL, 10, cudaMemcpyHostToDevice));
    CASE(cudaMemcpy(device, local, 5000, cudaMemcpyHostToDevice));
    CASE(cudaMemcpy(local, local + 100, 10, cudaMemcpyHostToHost));
    CASE(cudaMemcpy(device, local, 10, cudaMemcpyDefault));
    CASE(cudaMemcpy(device, local, 10, cudaMemcpyDeviceToDevice));
    CASE(cudaMemcpy(local, device, 10, cudaMemcpyHostToDevice));
    CASE(cudaMemcpy2D(device, 10, local, 100, 20, 4, cudaMemcpyHostToDevice));
    CASE(cudaMemcpy2D(device, 100, local, 10, 20, 4, cudaMemcpyHostToDevice));
    CASE(cudaMemcpy2D(device, 100, local, 100, 20, 0, cudaMemcpyHostToDevice));
    CASE(cudaMemcpy2D(device, 100, local, 100, 20, 4, (cudaMemcpyKind) 9));
    CASE(cudaMemset(device, 1, 0));
    CASE(cudaMemset(NULL, 1, 0));
    CASE(cudaMemset(NULL, 1, 4));
    CASE(cudaMemset(device, 1, 5000));
    CASE(cudaMemset2D(device, 4, 1, 8, 2));
    CASE(cudaMemset2D(device, 4, 1, 8, 1));
    CASE(cudaMemset2D(device, 4, 1, 8, 0));
    cudaMemcpy3DParms box = {};
    CASE(cudaMemcpy3D(&box));
    box.srcPtr = make_cudaPitchedPtr(local, 16, 16, 4);
    box.dstPtr = make_cudaPitchedPtr(device, 16, 16, 4);
    box.extent = make_cudaExtent(32, 4, 2);
    box.kind = cudaMemcpyHostToDevice;
    CASE(cudaMemcpy3D(&box));
    box.extent = make_cudaExtent(16, 4, 2);
    CASE(cudaMemcpy3D(&box));
    box.kind = cudaMemcpyDefault;
    CASE(cudaMemcpy3D(&box));
    size_t size = 0;
    void *address;
    CASE(cudaGetSymbolAddress(&address, &no_variable));
    CASE(cudaGetSymbolSize(&size, &no_variable));
    GIVES(cudaGetSymbolSize(&size, case_variable), "bytes=%zu", size);
    CASE(cudaMemcpyToSymbol(case_variable, local, 17, 0, cudaMemcpyHostToDevice));
    CASE(cudaMemcpyToSymbol(case_variable, local, 4, 13, cudaMemcpyHostToDevice));
    CASE(cudaMemcpyToSymbol(case_variable, local, 4, 0, cudaMemcpyDeviceToHost));
    CASE(cudaMemcpyFromSymbol(local, case_variable, 4, 0, cudaMemcpyHostToDevice));
    CASE(cudaMemcpyFromSymbol(local, case_variable, 0, 100, cudaMemcpyDeviceToHost));
}

static void launch_cases(char *device) {
    void *args[] = {&device};
    const void *kernel = (const void *) one, *none = (const void *) no_function;
    CASE(cudaLaunchKernel(none, dim3(1), dim3(1), args, 0, 0));
    CASE(cudaLaunchKernel(kernel, dim3(0), dim3(1), args, 0, 0));
    CASE(cudaLaunchKernel(kernel, dim3(1), dim3(0), args, 0, 0));
    CASE(cudaLaunchKernel(kernel, dim3(1), dim3(2048), args, 0, 0));
    CASE(cudaLaunchKernel(kernel, dim3(1), dim3(1, 1, 65), args, 0, 0));
    CASE(cudaLaunchKernel(kernel, dim3(1, 65536), dim3(1), args, 0, 0));
    CASE(cudaLaunchKernel(kernel, dim3(1), dim3(1), args, 1 << 20, 0));
    CASE(cudaLaunchKernel(kernel, dim3(1), dim3(1), args, 100000, 0));
    LAUNCH("2048 threads", (one<<<1, 2048>>>((int *) device)));
    LAUNCH("1 thread", (one<<<1, 1>>>((int *) device)));
    CASE(cudaLaunchCooperativeKernel(kernel, dim3(1000000), dim3(1), args, 0, 0));
    cudaLaunchConfig_t config = {};
    CASE(cudaLaunchKernelExC(&config, kernel, args));
    cudaFuncAttributes a = {};
    CASE(cudaFuncGetAttributes(&a, none));
    CASE(cudaFuncGetAttributes(NULL, kernel));
    GIVES(cudaFuncGetAttributes(&a, (const void *) shares), "shared=%zu threads=%d", a.sharedSizeBytes,
          a.maxThreadsPerBlock);
    CASE(cudaFuncSetAttribute(kernel, (cudaFuncAttribute) 99, 1));
    CASE(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24));
    CASE(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    CASE(cudaFuncSetCacheConfig(kernel, cudaFuncCachePreferL1));
    const char *name = NULL;
    GIVES(cudaFuncGetName(&name, kernel), "name=%s", name);
    size_t offset = 99, bytes = 99;
    GIVES(cudaFuncGetParamInfo(kernel, 0, &offset, &bytes), "offset=%zu bytes=%zu", offset, bytes);
    CASE(cudaFuncGetParamInfo(kernel, 1, &offset, &bytes));
    int n = -1;
    GIVES(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, 128, 0), "blocks=%d", n);
    CASE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, 0, 0));
    CASE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, none, 128, 0));
    CASE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, kernel, 128, 0));
    cudaKernel_t got;
    cudaFunction_t function;
    CASE(cudaGetKernel(&got, kernel));
    CASE(cudaGetKernel(&got, none));
    CASE(cudaGetFuncBySymbol(&function, kernel));
}

static void stream_cases() {
    cudaStream_t stream;
    cudaEvent_t start, end;
    float milliseconds = 0;
    CASE(cudaStreamCreateWithFlags(&stream, 77));
    CASE(cudaStreamCreate(&stream));
    CASE(cudaStreamDestroy(0));
    CASE(cudaStreamDestroy(cudaStreamLegacy));
    CASE(cudaStreamCreate(NULL));
    CASE(cudaEventCreateWithFlags(&start, 0x100));
    CASE(cudaEventCreate(&start));
    CASE(cudaEventCreate(&end));
    CASE(cudaEventElapsedTime(&milliseconds, start, end));
    CASE(cudaEventQuery(start));
    CASE(cudaEventSynchronize(start));
    CASE(cudaEventRecord(start, stream));
    CASE(cudaEventElapsedTime(&milliseconds, start, end));
    CASE(cudaEventDestroy(0));
    CASE(cudaStreamWaitEvent(stream, start, 77));
    CASE(cudaStreamWaitEvent(stream, 0, 0));
    CASE(cudaEventRecord(0, 0));
    CASE(cudaLaunchHostFunc(stream, NULL, NULL));
    int low, high;
    CASE(cudaDeviceGetStreamPriorityRange(&low, &high));
    CASE(cudaDeviceGetStreamPriorityRange(NULL, NULL));
    CASE(cudaStreamGetPriority(stream, NULL));
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    unsigned long long id = 42;
    GIVES(cudaStreamIsCapturing(stream, &status), "status=%d", status);
    CASE(cudaStreamIsCapturing(stream, NULL));
    GIVES(cudaStreamGetCaptureInfo(stream, &status, &id), "id=%llu", id);
    void *memory;
    CASE(cudaMallocAsync(&memory, 0, stream));
    CASE(cudaMallocAsync(&memory, 16, stream));
    CASE(cudaFreeAsync(NULL, stream));
    CASE(cudaFreeAsync(memory, stream));
    CASE(cudaMallocManaged(&memory, 0));
    CASE(cudaMallocManaged(&memory, 16, 7));
}

static void query_cases() {
    static const struct {
        const char *name;
        unsigned version;
        unsigned long long flags;
        bool asks;
    } rows[] = {{"cuMemAlloc", 13000, cudaEnableDefault, true},
                {"cuNoSuch", 13000, cudaEnableDefault, true},
                {"cuNoSuch", 13000, cudaEnableDefault, false},
                {"cuLibraryLoadData", 11000, cudaEnableDefault, true},
                {"cuMemAlloc", 13000, 7, true},
                {"", 13000, cudaEnableDefault, true}};
    for (const auto &row : rows) {
        void *function = (void *) 1;
        cudaDriverEntryPointQueryResult status = (cudaDriverEntryPointQueryResult) 9;
        int result =
            cudaGetDriverEntryPointByVersion(row.name, &function, row.version, row.flags, row.asks ? &status : NULL);
        print_case(text_of("cudaGetDriverEntryPointByVersion(%s %u %llu)", row.name, row.version, row.flags).c_str(),
                   result, "found=%d status=%d", function != NULL, status);
    }
    size_t limit;
    int n;
    cudaMemPool_t pool;
    cudaFuncCache cache;
    cudaSharedMemConfig banks = cudaSharedMemBankSizeEightByte;
    CASE(cudaDeviceGetLimit(&limit, (cudaLimit) 77));
    CASE(cudaDeviceSetLimit((cudaLimit) 77, 1));
    CASE(cudaDeviceEnablePeerAccess(0, 0));
    CASE(cudaDeviceEnablePeerAccess(100, 0));
    CASE(cudaDeviceDisablePeerAccess(0));
    CASE(cudaDeviceCanAccessPeer(&n, 0, 0));
    CASE(cudaDeviceCanAccessPeer(&n, 0, 100));
    CASE(cudaDeviceGetDefaultMemPool(&pool, 0));
    CASE(cudaDeviceGetDefaultMemPool(&pool, 100));
    CASE(cudaDeviceGetCacheConfig(&cache));
    GIVES(cudaDeviceGetSharedMemConfig(&banks), "banks=%d", banks);
    int version = 0;
    GIVES(cudaRuntimeGetVersion(&version), "version=%d", version);
}

// A new thread has device 0, and no error.
static void *thread_cases(void *) {
    int n = -1;
    void *memory;
    GIVES(cudaGetDevice(&n), "device=%d", n);
    CASE(cudaMalloc(&memory, 16));
    CASE(cudaFree(memory));
    return NULL;
}

static void reset_cases() {
    int n;
    char *device = NULL, local[16];
    CASE(cudaDeviceReset());
    CASE(cudaGetDevice(&n));
    CASE(cudaMalloc((void **) &device, 64));
    LAUNCH("after a reset", (one<<<1, 1>>>((int *) device)));
    CASE(cudaDeviceSynchronize());
    CASE(cudaMemcpyFromSymbol(local, case_variable, 16, 0, cudaMemcpyDeviceToHost));
    LAUNCH("of a kernel that fails", (wild<<<1, 1>>>()));
    CASE(cudaDeviceSynchronize());
    CASE(cudaMalloc((void **) &device, 64));
    CASE(cudaGetDevice(&n));
    CASE(cudaStreamQuery(0));
    CASE(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
    CASE(cudaFree(0));
    CASE(cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 0));
    LAUNCH("after an error", (one<<<1, 1>>>((int *) device)));
    CASE(cudaDeviceReset());
    CASE(cudaMalloc((void **) &device, 64));
    LAUNCH("after a reset that ends an error", (one<<<1, 1>>>((int *) device)));
    CASE(cudaDeviceSynchronize());
}

// Makes all of them. The process must not have used CUDA before.
static void run_cases() {
    char *device = NULL, *pinned = NULL;
    device_cases();
    CASE(cudaMalloc((void **) &device, 4096));
    CASE(cudaHostAlloc((void **) &pinned, 4096, 0));
    memory_cases(device, pinned);
    copy_cases(device);
    launch_cases(device);
    stream_cases();
    query_cases();
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_cases, NULL) == 0) {
        pthread_join(thread, NULL);
    }
    reset_cases();
    fflush(stdout);
}

#endif
