/* The driver calls of each runtime call, over a driver that records. Built once per major version. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudart_types.h"
#include "fake_cuda.h"

void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *hostFun, char *deviceFun, const char *deviceName, int limit,
                            uint3 *tid, uint3 *bid, dim3 *bDim, dim3 *gDim, int *wSize);
void __cudaRegisterVar(void **handle, char *hostVar, char *deviceAddress, const char *deviceName, int ext, size_t size,
                       int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **hostVarPtrAddress, char *deviceAddress, const char *deviceName,
                              int ext, size_t size, int constant, int global);
char __cudaInitModule(void **handle);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *func);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                                    cudaStream_t stream);
cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args);
cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *func);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaMalloc(void **pointer, size_t size);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaDestroyExternalMemory(void *extMem);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                  size_t width, size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                       size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
                            unsigned int flags);
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset3D(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent);
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceDisablePeerAccess(int peerDevice);
cudaError_t cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                                   size_t wOffsetSrc, size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *params);
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned int version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned int version,
                                                  unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s does not hold\n", __FILE__, __LINE__, __func__, #condition);                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const dim3 ONE = {1, 1, 1};
static const dim3 THREADS = {32, 1, 1};
/* Stand-ins for nvcc's output: one wrapper for each fat binary, host addresses for kernels and variables. */
static uint64_t wrapperA[3] = {0x00000001466243B1, 0, 0};
static uint64_t wrapperB[3] = {0x00000002466243B1, 0, 0};
static uint64_t wrapperC[3] = {0x00000001466243B1, 0, 0};
static char kernelA, kernelAbsent, kernelB, variableA;
static void **imageA, **imageB;

static void run_in_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void shouldCallNothingUntilFirstUse(void) {
    imageA = __cudaRegisterFatBinary(wrapperA);
    __cudaRegisterFunction(imageA, &kernelA, NULL, "a", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(imageA, &kernelAbsent, NULL, "absent", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(imageA, &variableA, NULL, "variable", 0, 64, 0, 0);
    __cudaRegisterFatBinaryEnd(imageA);
    imageB = __cudaRegisterFatBinary(wrapperB);
    __cudaRegisterFunction(imageB, &kernelB, NULL, "b", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(imageB);
    int version;
    CHECK(cudaGetLastError() == cudaSuccess && cudaRuntimeGetVersion(&version) == cudaSuccess);
    CHECK(version == (HWS_CUDART_MAJOR == 13 ? 13000 : 12090));
    CHECK(fake_count() == 0);
}

static void shouldCreateNoContextToNameTheDevice(void) {
    int device = -1;
    CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0);
    CHECK(fake_calls_of("cuInit") == 1 && fake_calls_of("cuDevicePrimaryCtxRetain") == 0);
    fake_clear();
    CHECK(cudaGetDevice(&device) == cudaSuccess && fake_count() == 0);
}

static void *raceToLaunch(void *barrier) {
    pthread_barrier_wait(barrier);
    CHECK(cudaLaunchKernel(&kernelA, ONE, THREADS, NULL, 0, NULL) == cudaSuccess);
    return NULL;
}

static void shouldLoadImageOnceAtFirstLaunchFromManyThreads(void) {
    enum { COUNT = 8 };
    pthread_t threads[COUNT];
    pthread_barrier_t barrier;
    fake_clear();
    CHECK(pthread_barrier_init(&barrier, NULL, COUNT) == 0);
    for (int i = 0; i < COUNT; i++) {
        CHECK(pthread_create(&threads[i], NULL, raceToLaunch, &barrier) == 0);
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(fake_calls_of("cuLibraryLoadData") == 1);
    CHECK(fake_calls_of("cuDevicePrimaryCtxRetain") == 1);
    CHECK(fake_calls_of("cuLaunchKernel") == COUNT);
    for (int i = 0; i < fake_count(); i++) {
        if (strcmp(fake_call(i)->name, "cuLibraryLoadData") == 0) {
            CHECK(fake_call(i)->a == (uint64_t) (uintptr_t) wrapperA); /* the wrapper itself, not what it points to */
        }
    }
}

static void shouldSendOneCallForALaterLaunch(void) {
    CHECK(cudaLaunchKernel(&kernelA, ONE, THREADS, NULL, 0, NULL) == cudaSuccess);
    fake_clear();
    CHECK(cudaLaunchKernel(&kernelA, ONE, THREADS, NULL, 0, (cudaStream_t) 0x77) == cudaSuccess);
    CHECK(fake_count() == 1 && strcmp(fake_call(0)->name, "cuLaunchKernel") == 0);
    CHECK(fake_call(0)->b == 0x77 && fake_call(0)->c == ((uint64_t) 1 << 32 | 32));
}

static void shouldLoadOnlyTheImageThatIsUsed(void) {
    fake_clear();
    cudaKernel_t kernel = NULL;
    CHECK(__cudaGetKernel(&kernel, &kernelB) == cudaSuccess && kernel != NULL);
    CHECK(fake_calls_of("cuLibraryLoadData") == 1 && fake_call(0)->a == (uint64_t) (uintptr_t) wrapperB);
    fake_clear();
    CHECK(__cudaLaunchKernel_ptsz(kernel, ONE, THREADS, NULL, 0, NULL) == cudaSuccess);
    CHECK(fake_count() == 1 && fake_call(0)->b == 2);
    CHECK(cudaGetKernel(&kernel, &kernelB) == cudaSuccess);
    CHECK(cudaLaunchKernel(kernel, ONE, THREADS, NULL, 0, NULL) == cudaSuccess); /* a cudaKernel_t for a function */
}

static void shouldRefuseFunctionsThatAreNotThere(void) {
    static char never;
    cudaKernel_t kernel = NULL;
    cudaError_t unknown = HWS_CUDART_MAJOR == 13 ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;
    CHECK(cudaLaunchKernel(&never, ONE, ONE, NULL, 0, NULL) == unknown);
    CHECK(cudaLaunchKernel(&variableA, ONE, ONE, NULL, 0, NULL) == unknown);
    CHECK(__cudaGetKernel(&kernel, &kernelAbsent) == cudaErrorInvalidDeviceFunction && kernel == NULL);
    CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction && cudaGetLastError() == cudaSuccess);
    void *address = &never;
    CHECK(cudaGetSymbolAddress(&address, &never) == cudaErrorInvalidSymbol && address == &never);
    CHECK(cudaGetSymbolAddress(&address, &kernelA) == cudaErrorInvalidSymbol);
    (void) cudaGetLastError();
}

static void shouldTellBadLaunchShapesAsTheVersionDoes(void) {
    fake_clear();
    fake_fail("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE);
    dim3 none = {0, 1, 1};
    dim3 many = {64, 64, 1};
    cudaError_t shape = HWS_CUDART_MAJOR == 13 ? cudaErrorInvalidValue : cudaErrorInvalidConfiguration;
    CHECK(cudaLaunchKernel(&kernelA, none, ONE, NULL, 0, NULL) == shape);
    CHECK(cudaLaunchKernel(&kernelA, ONE, many, NULL, 0, NULL) == shape);
    CHECK(cudaLaunchKernel(&kernelA, ONE, ONE, NULL, 1 << 20, NULL) == cudaErrorInvalidValue);
    (void) cudaGetLastError();
    fake_clear();
}

static void shouldNestCallConfigurations(void) {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    for (unsigned int i = 1; i <= 3; i++) {
        CHECK(__cudaPushCallConfiguration((dim3) {i, 1, 1}, THREADS, i, (cudaStream_t) (uintptr_t) i) == 0);
    }
    for (unsigned int i = 3; i >= 1; i--) {
        CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaSuccess);
        CHECK(grid.x == i && block.x == 32 && shared == i && stream == (cudaStream_t) (uintptr_t) i);
    }
    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaErrorMissingConfiguration);
    CHECK(cudaGetLastError() == cudaErrorMissingConfiguration);
}

static void shouldPassLaunchAttributesOn(void) {
    cudaLaunchAttribute attributes[2];
    memset(attributes, 0, sizeof attributes);
    cudaLaunchConfig_t config = {ONE, THREADS, 0, (cudaStream_t) 5, attributes, 2};
    fake_clear();
    CHECK(cudaLaunchKernelExC(&config, &kernelA, NULL) == cudaSuccess);
    CHECK(fake_count() == 1 && fake_call(0)->b == 5 && fake_call(0)->c == (uint64_t) (uintptr_t) attributes + 2);
}

static void shouldTranslateEveryDriverError(void) {
    for (int code = 1; code < 1100; code++) {
        void *pointer = &code;
        int expected = cudaErrorUnknown;
        switch (code) {
#define HWS_ERROR(value, name, text) case value:
#include "errors.def"
#undef HWS_ERROR
            expected = code;
            break;
            default:
                break;
        }
        fake_clear();
        fake_fail("cuMemAlloc_v2", code);
        CHECK((int) cudaMalloc(&pointer, 16) == expected && pointer == &code); /* outputs only on success */
        CHECK((int) cudaPeekAtLastError() == expected && (int) cudaGetLastError() == expected);
        CHECK(cudaGetLastError() == cudaSuccess);
    }
    fake_clear();
}

static void shouldNotRecordNotReady(void) {
    fake_clear();
    fake_fail("cuStreamQuery", CUDA_ERROR_NOT_READY);
    CHECK(cudaStreamQuery(NULL) == cudaErrorNotReady && cudaPeekAtLastError() == cudaSuccess);
    fake_clear();
}

static void *freshThread(void *unused) {
    int device = -1;
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0);
    CHECK(cudaSetDevice(1) == cudaSuccess && cudaGetDevice(&device) == cudaSuccess && device == 1);
    CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice && cudaGetDevice(&device) == cudaSuccess && device == 1);
    return unused;
}

static void shouldKeepDeviceAndErrorPerThread(void) {
    int device = -1;
    CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
    run_in_thread(freshThread, NULL);
    CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
}

static void shouldChooseTheDriversCopyByKindAndStream(void) {
    static const struct {
        enum cudaMemcpyKind kind;
        const char *sync, *own, *async;
    } rows[] = {
        {cudaMemcpyHostToDevice, "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoDAsync_v2"},
        {cudaMemcpyDeviceToHost, "cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds", "cuMemcpyDtoHAsync_v2"},
        {cudaMemcpyDeviceToDevice, "cuMemcpyDtoD_v2", "cuMemcpyDtoD_v2_ptds", "cuMemcpyDtoDAsync_v2"},
        {cudaMemcpyDefault, "cuMemcpy", "cuMemcpy_ptds", "cuMemcpyAsync"},
        {cudaMemcpyHostToHost, "cuMemcpy", "cuMemcpy_ptds", "cuMemcpyAsync"},
    };
    char bytes[16];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_clear();
        CHECK(cudaMemcpy(bytes, bytes + 8, 8, rows[i].kind) == cudaSuccess);
        CHECK(cudaMemcpy_ptds(bytes, bytes + 8, 8, rows[i].kind) == cudaSuccess);
        CHECK(cudaMemcpyAsync(bytes, bytes + 8, 8, rows[i].kind, NULL) == cudaSuccess);
        CHECK(fake_count() == 3 && strcmp(fake_call(0)->name, rows[i].sync) == 0);
        CHECK(strcmp(fake_call(1)->name, rows[i].own) == 0 && strcmp(fake_call(2)->name, rows[i].async) == 0);
    }
    fake_clear();
    CHECK(cudaMemcpyAsync(bytes, bytes, 4, cudaMemcpyHostToDevice, NULL) == cudaSuccess && fake_call(0)->c == 0);
    CHECK(cudaMemcpyAsync_ptsz(bytes, bytes, 4, cudaMemcpyHostToDevice, NULL) == cudaSuccess && fake_call(1)->c == 2);
    CHECK(cudaStreamSynchronize_ptsz((cudaStream_t) 9) == cudaSuccess && fake_call(2)->a == 9);
    CHECK(cudaMemcpy(NULL, NULL, 0, (enum cudaMemcpyKind) 7) == cudaSuccess && fake_count() == 3);
    CHECK(cudaMemcpy(bytes, bytes, 1, (enum cudaMemcpyKind) 7) == cudaErrorInvalidMemcpyDirection);
    CHECK(cudaMemcpy(NULL, bytes, 1, cudaMemcpyHostToDevice) == cudaErrorInvalidValue && fake_count() == 3);
    (void) cudaGetLastError();
}

static void shouldDescribeBoxesToTheDriver(void) {
    char bytes[64];
    fake_clear();
    CHECK(cudaMemcpy2DAsync(bytes, 16, bytes, 8, 8, 2, cudaMemcpyDeviceToHost, (cudaStream_t) 6) == cudaSuccess);
    CHECK(fake_call(0)->a == (CU_MEMORYTYPE_DEVICE << 8 | CU_MEMORYTYPE_HOST));
    CHECK(fake_call(0)->b == ((uint64_t) 8 << 32 | 16) && fake_call(0)->c == 6);
    CHECK(cudaMemcpy2DAsync(bytes, 4, bytes, 8, 8, 2, cudaMemcpyDefault, NULL) == cudaErrorInvalidPitchValue);
    struct cudaPitchedPtr pitched = {(void *) 0x10000, 64, 32, 4};
    CHECK(cudaMemset3D(pitched, 0, (struct cudaExtent) {32, 4, 3}) == cudaSuccess);
    CHECK(fake_count() == 2 && fake_call(1)->c == ((uint64_t) 32 << 32 | 12)); /* slices without a gap: one fill */
    CHECK(cudaMemset3D(pitched, 0, (struct cudaExtent) {32, 2, 3}) == cudaSuccess);
    CHECK(fake_count() == 5 && fake_call(3)->a == 0x10000 + 64 * 4);
    (void) cudaGetLastError();
}

static void shouldAskForAVariableOnceAndCheckItsBounds(void) {
    char bytes[64];
    void *address = NULL;
    fake_clear();
    CHECK(cudaGetSymbolAddress(&address, &variableA) == cudaSuccess && address == (void *) 0xD0000000);
    CHECK(cudaMemcpyToSymbolAsync(&variableA, bytes, 60, 4, cudaMemcpyHostToDevice, NULL) == cudaSuccess);
    CHECK(fake_calls_of("cuLibraryGetGlobal") == 1 && fake_call(1)->a == 0xD0000004);
    CHECK(cudaMemcpyToSymbolAsync(&variableA, bytes, 61, 4, cudaMemcpyHostToDevice, NULL) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyToSymbolAsync(&variableA, bytes, 1, SIZE_MAX, cudaMemcpyHostToDevice, NULL)
          == cudaErrorInvalidValue);
    CHECK(cudaMemcpyToSymbolAsync(&variableA, bytes, 1, 0, cudaMemcpyDeviceToHost, NULL)
          == cudaErrorInvalidMemcpyDirection);
    CHECK(fake_count() == 2);
    (void) cudaGetLastError();
}

static void shouldUseANewPrimaryContextAfterReset(void) {
    void *address = NULL;
    fake_clear();
    CHECK(cudaDeviceReset() == cudaSuccess);
    CHECK(fake_calls_of("cuDevicePrimaryCtxReset_v2") == 1);
    CHECK(fake_calls_of("cuLibraryUnload") == 0); /* the other device still has its copy */
    CHECK(cudaMalloc(&address, 16) == cudaSuccess);
    CHECK(fake_calls_of("cuDevicePrimaryCtxRetain") == 1 && fake_calls_of("cuCtxSetCurrent") == 1);
    CHECK(cudaGetSymbolAddress(&address, &variableA) == cudaSuccess);
    CHECK(fake_calls_of("cuLibraryGetGlobal") == 1); /* cached values of the old context are invalid */
}

static void *resetDeviceOne(void *unused) {
    CHECK(cudaSetDevice(1) == cudaSuccess && cudaDeviceReset() == cudaSuccess);
    return unused;
}

static void shouldLoadImagesAnewAfterTheOnlyDeviceIsReset(void) {
    cudaKernel_t kept = NULL;
    CHECK(__cudaGetKernel(&kept, &kernelA) == cudaSuccess);
    run_in_thread(resetDeviceOne, NULL);
    fake_clear();
    CHECK(cudaDeviceReset() == cudaSuccess && fake_calls_of("cuLibraryUnload") == 2);
    /* nvcc's code keeps the handle across the reset */
    CHECK(__cudaLaunchKernel_ptsz(kept, ONE, THREADS, NULL, 0, NULL) == cudaSuccess);
    CHECK(fake_calls_of("cuLibraryLoadData") == 1 && fake_calls_of("cuLibraryGetKernel") == 1);
    CHECK(cudaLaunchKernel(&kernelB, ONE, THREADS, NULL, 0, NULL) == cudaSuccess);
    CHECK(fake_calls_of("cuLibraryLoadData") == 2);
}

static cudaError_t callbackStatus;
static void callback(cudaStream_t stream, cudaError_t status, void *userData) {
    CHECK(stream == NULL && userData == &callbackStatus);
    callbackStatus = status;
}

/* nvcc's host code reads a managed variable through this pointer, and passes its address for its symbol. */
static int *managedPointer;

static void shouldKeepManagedVariablesOverAReset(void) {
    void **image = __cudaRegisterFatBinary(wrapperC), *address = NULL;
    fake_clear();
    __cudaRegisterManagedVar(image, (void **) &managedPointer, NULL, "managed", 0, sizeof(int), 0, 0);
    __cudaRegisterFatBinaryEnd(image);
    CHECK(managedPointer == NULL);
    fake_managed[0] = 7;
    CHECK(__cudaInitModule(image) == 1 && managedPointer == &fake_managed[0] && *managedPointer == 7);
    CHECK(cudaGetSymbolAddress(&address, managedPointer) == cudaSuccess && address == managedPointer);
    CHECK(cudaGetSymbolAddress(&address, &managedPointer) == cudaSuccess && address == managedPointer);
    *managedPointer = 41;
    CHECK(cudaDeviceReset() == cudaSuccess);
    CHECK(managedPointer != &fake_managed[0] && *managedPointer == 41);
    *managedPointer = 42;
    fake_managed[fake_managed_at = 1] = 7; /* a load sets the initial value */
    CHECK(cudaGetSymbolAddress(&address, managedPointer) == cudaSuccess && address == &fake_managed[1]);
    CHECK(managedPointer == &fake_managed[1] && *managedPointer == 42);
    __cudaUnregisterFatBinary(image);
    CHECK(cudaGetSymbolAddress(&address, &managedPointer) == cudaErrorInvalidSymbol);
    CHECK(cudaGetSymbolAddress(&address, managedPointer) == cudaErrorInvalidSymbol);
    (void) cudaGetLastError();
}

static void shouldTranslateTheStatusForCallbacks(void) {
    CHECK(cudaStreamAddCallback(NULL, callback, &callbackStatus, 0) == cudaSuccess);
    CHECK(callbackStatus == cudaErrorIllegalAddress);
    CHECK(cudaStreamAddCallback(NULL, callback, NULL, 1) == cudaErrorInvalidValue);
    (void) cudaGetLastError();
}

static void shouldAskForEntryPointsOfTheRightStream(void) {
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult status;
    fake_clear();
    CHECK(cudaGetDriverEntryPointByVersion("cuX", &function, 12000, cudaEnableDefault, &status) == cudaSuccess);
    CHECK(cudaGetDriverEntryPointByVersion_ptsz("cuX", &function, 12000, cudaEnableDefault, NULL) == cudaSuccess);
    CHECK(fake_call(0)->a == 12000 && fake_call(0)->b == cudaEnableLegacyStream);
    CHECK(fake_call(1)->b == cudaEnablePerThreadDefaultStream);
    CHECK(cudaGetDriverEntryPointByVersion("", &function, 1, cudaEnableDefault, &status) == cudaSuccess);
    CHECK(cudaGetDriverEntryPointByVersion(NULL, &function, 1, cudaEnableDefault, &status) == cudaErrorInvalidValue);
    (void) cudaGetLastError();
}

static void shouldAnswerThatADeviceIsNoPeerOfItself(void) {
    int own = -1;
    CHECK(cudaGetDevice(&own) == cudaSuccess);
    fake_clear();
    CHECK(cudaDeviceDisablePeerAccess(own) == cudaErrorPeerAccessNotEnabled);
    CHECK(fake_calls_of("cuCtxDisablePeerAccess") == 0);
    CHECK(cudaDeviceDisablePeerAccess(1 - own) == cudaSuccess && fake_calls_of("cuCtxDisablePeerAccess") == 1);
    fake_fail("cuStreamGetFlags", CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cudaDeviceDisablePeerAccess(own) == cudaErrorIllegalAddress);
    fake_clear();
    (void) cudaGetLastError();
}

static void shouldFillTheLayoutOfTheCaller(void) {
    struct cudaDeviceProp prop;
    memset(&prop, 0x5A, sizeof prop);
#if HWS_CUDART_MAJOR == 12
    CHECK(cudaGetDeviceProperties(&prop, 1) == cudaSuccess);
    CHECK(prop.reservedSharedMemPerBlock == 1111 && prop.hostRegisterSupported == 0x5A5A5A5A); /* CUDA 11's end */
    CHECK(cudaGetDeviceProperties_v2(&prop, 1) == cudaSuccess && prop.clockRate == 1013);
#else
    CHECK(cudaGetDeviceProperties(&prop, 1) == cudaSuccess && prop.gpuPciDeviceID == 1139);
#endif
    CHECK(strcmp(prop.name, "fake 1") == 0 && prop.warpSize == 1010 && prop.totalConstMem == 1009);
    CHECK(prop.clusterLaunch == 1120 && prop.maxTexture3D[2] == 1026);
    CHECK(cudaGetDeviceProperties(&prop, 2) == cudaErrorInvalidDevice);
    (void) cudaGetLastError();
}

/*
 * CUDA 12's lack the fields that CUDA 13 has added at their ends; layout.c compares those of 13 with NVIDIA's header.
 */
_Static_assert(sizeof(struct cudaResourceDesc) == (HWS_CUDART_MAJOR == 12 ? 64 : 144), "cudaResourceDesc");
_Static_assert(sizeof(struct cudaResourceViewDesc) == (HWS_CUDART_MAJOR == 12 ? 48 : 112), "cudaResourceViewDesc");
_Static_assert(sizeof(struct cudaTextureDesc) == 72, "cudaTextureDesc");

static void shouldCheckCopiesWithArraysBeforeTheDriver(void) {
    cudaArray_t array = (cudaArray_t) &array;
    char host[64];
    fake_clear();
    CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 8, 16, 2, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
    CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 8, 8, 2, cudaMemcpyDeviceToHost) == cudaErrorInvalidMemcpyDirection);
    CHECK(cudaMemcpy2DFromArray(host, 8, array, 0, 0, 8, 2, cudaMemcpyHostToHost) == cudaErrorInvalidMemcpyDirection);
    CHECK(cudaMemcpy2DToArray(NULL, 0, 0, host, 8, 8, 2, cudaMemcpyHostToDevice) == cudaErrorInvalidResourceHandle);
    CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 8, 0, 2, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(fake_calls_of("cuMemcpy2DUnaligned_v2") == 0);
    CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 8, 8, 2, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(fake_calls_of("cuMemcpy2DUnaligned_v2") == 1);
    CHECK(cudaMemcpy2DFromArrayAsync(host, 8, array, 0, 0, 8, 2, cudaMemcpyDefault, NULL) == cudaSuccess);
    CHECK(fake_calls_of("cuMemcpy2DAsync_v2") == 1);
    (void) cudaGetLastError();
}

/* A run between arrays fails during a capture and after the error of a kernel, whatever its arrays are. */
static void shouldCheckTheContextBeforeTheArraysOfARun(void) {
    fake_clear();
    fake_fail("cuMemFree_v2", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(cudaMemcpyArrayToArray(NULL, 0, 0, NULL, 0, 0, 8, cudaMemcpyDefault) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaMemcpyArrayToArray(NULL, 0, 0, NULL, 0, 0, 0, cudaMemcpyDefault) == cudaSuccess);
    CHECK(cudaMemcpyArrayToArray(NULL, 0, 0, NULL, 0, 0, 8, cudaMemcpyHostToHost) == cudaErrorInvalidMemcpyDirection);
    fake_clear();
    fake_fail("cuArray3DGetDescriptor_v2", CUDA_ERROR_INVALID_HANDLE);
    CHECK(cudaMemcpyArrayToArray(NULL, 0, 0, NULL, 0, 0, 8, cudaMemcpyDefault) == cudaErrorInvalidResourceHandle);
    fake_clear();
    (void) cudaGetLastError();
}

static void shouldCheckTheContextBeforeTheBoxOfACopyNode(void) {
    const struct cudaMemcpy3DParms empty = {.kind = cudaMemcpyDefault};
    fake_clear();
    CHECK(cudaGraphMemcpyNodeSetParams(NULL, &empty) == cudaErrorInvalidValue);
    fake_fail("cuStreamGetFlags", CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cudaGraphMemcpyNodeSetParams(NULL, &empty) == cudaErrorIllegalAddress);
    CHECK(fake_calls_of("cuGraphMemcpyNodeSetParams") == 0);
    fake_clear();
    (void) cudaGetLastError();
}

static void shouldRefuseChannelsThatNoArrayHas(void) {
    static const struct cudaChannelFormatDesc bad[] = {
        {32, 32, 32, 0, cudaChannelFormatKindFloat}, {32, 16, 0, 0, cudaChannelFormatKindFloat},
        {8, 0, 0, 0, cudaChannelFormatKindFloat},    {24, 0, 0, 0, cudaChannelFormatKindSigned},
        {0, 8, 0, 0, cudaChannelFormatKindSigned},   {0, 0, 0, 0, cudaChannelFormatKindUnsigned},
        {8, 0, 0, 0, cudaChannelFormatKindNone},     {8, 8, 0, 0, cudaChannelFormatKindUnsignedNormalized8X1}};
    const struct cudaChannelFormatDesc good = {16, 16, 0, 0, cudaChannelFormatKindFloat};
    cudaArray_t array;
    fake_clear();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(cudaMallocArray(&array, &bad[i], 16, 16, 0) == cudaErrorInvalidChannelDescriptor);
    }
    CHECK(cudaMallocArray(&array, NULL, 16, 16, 0) == cudaErrorInvalidValue);
    CHECK(fake_calls_of("cuArray3DCreate_v2") == 0);
    CHECK(cudaMallocArray(&array, &good, 16, 16, 0) == cudaSuccess && fake_calls_of("cuArray3DCreate_v2") == 1);
    (void) cudaGetLastError();
}

static void shouldNameAnUnsupportedFunctionOnce(void) {
    int pipes[2];
    char text[512];
    int saved = dup(2);
    CHECK(saved >= 0 && pipe(pipes) == 0 && dup2(pipes[1], 2) == 2);
    cudaError_t first = cudaDestroyExternalMemory(NULL);
    cudaError_t second = cudaDestroyExternalMemory(NULL);
    CHECK(dup2(saved, 2) == 2 && close(pipes[1]) == 0);
    ssize_t length = read(pipes[0], text, sizeof text - 1);
    CHECK(length > 0);
    text[length] = '\0';
    CHECK(first == cudaErrorNotSupported && second == cudaErrorNotSupported);
    CHECK(cudaGetLastError() == cudaErrorNotSupported);
    const char *named = strstr(text, "cudaDestroyExternalMemory");
    CHECK(named != NULL && strstr(named + 1, "cudaDestroyExternalMemory") == NULL);
}

static void shouldUnloadAnImageThatIsUnregistered(void) {
    fake_clear();
    __cudaUnregisterFatBinary(imageB);
    CHECK(fake_calls_of("cuLibraryUnload") == 1);
    CHECK(cudaLaunchKernel(&kernelB, ONE, ONE, NULL, 0, NULL) != cudaSuccess);
    CHECK(cudaLaunchKernel(&kernelA, ONE, ONE, NULL, 0, NULL) == cudaSuccess);
    (void) cudaGetLastError();
    __cudaUnregisterFatBinary(imageA);
}

int main(void) {
    shouldCallNothingUntilFirstUse();
    shouldCreateNoContextToNameTheDevice();
    shouldLoadImageOnceAtFirstLaunchFromManyThreads();
    shouldSendOneCallForALaterLaunch();
    shouldLoadOnlyTheImageThatIsUsed();
    shouldRefuseFunctionsThatAreNotThere();
    shouldTellBadLaunchShapesAsTheVersionDoes();
    shouldNestCallConfigurations();
    shouldPassLaunchAttributesOn();
    shouldTranslateEveryDriverError();
    shouldNotRecordNotReady();
    shouldKeepDeviceAndErrorPerThread();
    shouldChooseTheDriversCopyByKindAndStream();
    shouldDescribeBoxesToTheDriver();
    shouldAskForAVariableOnceAndCheckItsBounds();
    shouldUseANewPrimaryContextAfterReset();
    shouldLoadImagesAnewAfterTheOnlyDeviceIsReset();
    shouldTranslateTheStatusForCallbacks();
    shouldAskForEntryPointsOfTheRightStream();
    shouldFillTheLayoutOfTheCaller();
    shouldCheckTheContextBeforeTheArraysOfARun();
    shouldCheckTheContextBeforeTheBoxOfACopyNode();
    shouldCheckCopiesWithArraysBeforeTheDriver();
    shouldRefuseChannelsThatNoArrayHas();
    shouldNameAnUnsupportedFunctionOnce();
    shouldUnloadAnImageThatIsUnregistered();
    shouldKeepManagedVariablesOverAReset();
    shouldAnswerThatADeviceIsNoPeerOfItself(); /* takes the second device into use */
    return 0;
}
