/*
 * Prints the Runtime API's results in cases that the documentation leaves open. Run it on a machine with a GPU with
 * NVIDIA's library and with ours: the outputs must be the same (compare-behaviour.sh).
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

__global__ void one(int *p) {
    *p = 1;
}
__global__ void wild() {
    *(volatile int *) 16 = 1;
}
__global__ void big() {
    __shared__ int s[4];
    s[threadIdx.x & 3] = 0;
}
__device__ int variable[4] = {1, 2, 3, 4};
static int notVariable;
static int notFunction() {
    return 1;
}

#define SHOW(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t got = (call);                                                                                      \
        cudaError_t peek = cudaPeekAtLastError();                                                                      \
        cudaError_t last = cudaGetLastError();                                                                         \
        printf("%s -> %d, peek %d, last %d, again %d\n", #call, got, peek, last, cudaGetLastError());                  \
    } while (0)

static void *thread(void *) {
    int device = -1;
    SHOW(cudaGetDevice(&device));
    printf("device %d\n", device);
    void *p;
    SHOW(cudaMalloc(&p, 16));
    SHOW(cudaFree(p));
    return NULL;
}

static void show_pointer(const char *name, const void *p, const void *base) {
    cudaPointerAttributes a;
    memset(&a, 0x55, sizeof a);
    SHOW(cudaPointerGetAttributes(&a, p));
    printf("%s: type %d device %d dev %d host %d\n", name, a.type, a.device,
           a.devicePointer == NULL    ? 0
               : a.devicePointer == p ? 1
                                      : 2,
           a.hostPointer == NULL    ? 0
               : a.hostPointer == p ? 1
                                    : 2);
    (void) base;
}

int main() {
    int n = -1;
    unsigned flags = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    SHOW(cudaGetDevice(&n));
    SHOW(cudaGetDeviceFlags(&flags));
    printf("flags %x\n", flags);
    SHOW(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync | cudaDeviceMapHost));
    SHOW(cudaGetDeviceFlags(&flags));
    printf("flags %x\n", flags);
    SHOW(cudaSetDeviceFlags(0x1000));
    SHOW(cudaSetDevice(-1));
    SHOW(cudaSetDevice(100));
    SHOW(cudaSetDevice(0));
    SHOW(cudaGetDeviceFlags(&flags));
    printf("flags %x\n", flags);
    SHOW(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
    SHOW(cudaInitDevice(0, 0, 0));
    SHOW(cudaInitDevice(0, 0, 2));
    SHOW(cudaSetValidDevices(NULL, 0));
    SHOW(cudaSetValidDevices(&n, 100));
    SHOW(cudaDeviceGetAttribute(&n, (cudaDeviceAttr) 0, 0));
    SHOW(cudaDeviceGetAttribute(&n, (cudaDeviceAttr) 9999, 0));
    SHOW(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0));
    SHOW(cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 77));
    cudaDeviceProp prop;
    SHOW(cudaGetDeviceProperties(&prop, 77));
    SHOW(cudaGetDeviceProperties(&prop, 0));
    const unsigned char *bytes = (const unsigned char *) &prop;
    for (size_t i = 0; i < offsetof(cudaDeviceProp, reserved); i += 4) {
        printf("%08x%c", *(const unsigned *) (bytes + i), i % 64 == 60 ? '\n' : ' ');
    }
    printf("\n");
    char bus[32];
    SHOW(cudaDeviceGetPCIBusId(bus, 32, 0));
    SHOW(cudaDeviceGetPCIBusId(bus, 3, 0));
    SHOW(cudaDeviceGetByPCIBusId(&n, "ffff:ff:ff.0"));

    void *p = (void *) 1;
    SHOW(cudaMalloc(&p, 0));
    printf("malloc(0) %d\n", p == NULL);
    SHOW(cudaMalloc(NULL, 16));
    SHOW(cudaMalloc(&p, (size_t) 1 << 50));
    SHOW(cudaFree((void *) 16));
    SHOW(cudaFreeHost((void *) 16));
    SHOW(cudaFree(NULL));
    SHOW(cudaFreeHost(NULL));
    void *h = (void *) 1;
    SHOW(cudaHostAlloc(&h, 0, 0));
    printf("hostAlloc(0) %d\n", h == NULL);
    SHOW(cudaHostAlloc(&h, 4096, 0x1000));
    SHOW(cudaHostAlloc(&h, 4096, 0));
    SHOW(cudaHostGetFlags(&flags, h));
    printf("host flags %x\n", flags);
    SHOW(cudaHostGetFlags(&flags, &n));
    void *dh;
    SHOW(cudaHostGetDevicePointer(&dh, h, 1));
    SHOW(cudaHostGetDevicePointer(&dh, &n, 0));
    SHOW(cudaHostUnregister(&n));
    SHOW(cudaHostRegister(NULL, 16, 0));
    static char registered[8192];
    SHOW(cudaHostRegister(registered, sizeof registered, 0));
    SHOW(cudaHostRegister(registered, sizeof registered, 0));
    SHOW(cudaHostUnregister(registered));
    char *d;
    SHOW(cudaMalloc((void **) &d, 4096));
    size_t pitch;
    void *pp;
    SHOW(cudaMallocPitch(&pp, &pitch, 100, 10));
    printf("pitch %zu\n", pitch);
    SHOW(cudaMallocPitch(&pp, &pitch, 0, 10));
    printf("pitch %zu %d\n", pitch, pp == NULL);
    cudaPitchedPtr p3;
    SHOW(cudaMalloc3D(&p3, make_cudaExtent(100, 4, 3)));
    printf("3d pitch %zu x %zu y %zu\n", p3.pitch, p3.xsize, p3.ysize);
    show_pointer("device", d, d);
    show_pointer("inside", d + 100, d);
    show_pointer("pinned", h, h);
    show_pointer("stack", &n, &n);
    show_pointer("null", NULL, NULL);
    show_pointer("symbolhost", &variable, NULL);

    char local[4096];
    SHOW(cudaMemcpy(d, local, 100, (cudaMemcpyKind) 7));
    SHOW(cudaMemcpy(d, local, 0, (cudaMemcpyKind) 7));
    SHOW(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(NULL, local, 10, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(d, NULL, 10, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(d, local, 5000, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(local, local + 100, 10, cudaMemcpyHostToHost));
    SHOW(cudaMemcpy(d, local, 10, cudaMemcpyDefault));
    SHOW(cudaMemcpy(d, local, 10, cudaMemcpyDeviceToDevice));
    SHOW(cudaMemcpy(local, d, 10, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy2D(d, 10, local, 100, 20, 4, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy2D(d, 100, local, 10, 20, 4, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy2D(d, 100, local, 100, 20, 0, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy2D(d, 100, local, 100, 20, 4, (cudaMemcpyKind) 9));
    SHOW(cudaMemset(d, 1, 0));
    SHOW(cudaMemset(NULL, 1, 0));
    SHOW(cudaMemset(NULL, 1, 4));
    SHOW(cudaMemset(d, 1, 5000));
    SHOW(cudaMemset2D(d, 4, 1, 8, 2));
    SHOW(cudaMemset2D(d, 4, 1, 8, 1));
    SHOW(cudaMemset2D(d, 4, 1, 8, 0));
    cudaMemcpy3DParms m = {0};
    SHOW(cudaMemcpy3D(&m));
    m.srcPtr = make_cudaPitchedPtr(local, 16, 16, 4);
    m.dstPtr = make_cudaPitchedPtr(d, 16, 16, 4);
    m.extent = make_cudaExtent(32, 4, 2);
    m.kind = cudaMemcpyHostToDevice;
    SHOW(cudaMemcpy3D(&m));
    m.extent = make_cudaExtent(16, 4, 2);
    SHOW(cudaMemcpy3D(&m));
    m.kind = cudaMemcpyDefault;
    SHOW(cudaMemcpy3D(&m));

    size_t size;
    void *address;
    SHOW(cudaGetSymbolAddress(&address, &notVariable));
    SHOW(cudaGetSymbolSize(&size, &notVariable));
    SHOW(cudaGetSymbolSize(&size, variable));
    printf("size %zu\n", size);
    SHOW(cudaMemcpyToSymbol(variable, local, 17, 0, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpyToSymbol(variable, local, 4, 13, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpyToSymbol(variable, local, 4, 0, cudaMemcpyDeviceToHost));
    SHOW(cudaMemcpyFromSymbol(local, variable, 4, 0, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpyFromSymbol(local, variable, 0, 100, cudaMemcpyDeviceToHost));

    void *args[] = {&d};
    SHOW(cudaLaunchKernel((void *) notFunction, dim3(1), dim3(1), args, 0, 0));
    SHOW(cudaLaunchKernel((void *) one, dim3(0), dim3(1), args, 0, 0));
    SHOW(cudaLaunchKernel((void *) one, dim3(1), dim3(0), args, 0, 0));
    SHOW(cudaLaunchKernel((void *) one, dim3(1), dim3(2048), args, 0, 0));
    SHOW(cudaLaunchKernel((void *) one, dim3(1), dim3(1, 1, 65), args, 0, 0));
    SHOW(cudaLaunchKernel((void *) one, dim3(1, 65536), dim3(1), args, 0, 0));
    SHOW(cudaLaunchKernel((void *) one, dim3(1), dim3(1), args, 1 << 20, 0));
    SHOW(cudaLaunchKernel((void *) one, dim3(1), dim3(1), args, 100000, 0));
    SHOW((one<<<1, 2048>>>((int *) d), cudaPeekAtLastError()));
    SHOW((one<<<1, 1>>>((int *) d), cudaPeekAtLastError()));
    SHOW(cudaLaunchCooperativeKernel((void *) one, dim3(1000000), dim3(1), args, 0, 0));
    cudaLaunchConfig_t config = {};
    SHOW(cudaLaunchKernelExC(&config, (void *) one, args));
    cudaFuncAttributes fa;
    SHOW(cudaFuncGetAttributes(&fa, (void *) notFunction));
    SHOW(cudaFuncGetAttributes(NULL, (void *) one));
    SHOW(cudaFuncGetAttributes(&fa, (void *) big));
    printf("%zu %zu %zu %d %d %d %d %d %d %d\n", fa.sharedSizeBytes, fa.constSizeBytes, fa.localSizeBytes,
           fa.maxThreadsPerBlock, fa.numRegs, fa.ptxVersion, fa.binaryVersion, fa.cacheModeCA,
           fa.maxDynamicSharedSizeBytes, fa.preferredShmemCarveout);
    SHOW(cudaFuncSetAttribute((void *) one, (cudaFuncAttribute) 99, 1));
    SHOW(cudaFuncSetAttribute((void *) one, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24));
    SHOW(cudaFuncSetAttribute((void *) one, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    SHOW(cudaFuncSetCacheConfig((void *) one, cudaFuncCachePreferL1));
    const char *name = NULL;
    SHOW(cudaFuncGetName(&name, (void *) one));
    printf("name %s\n", name);
    size_t offset = 99, bytes2 = 99;
    SHOW(cudaFuncGetParamInfo((void *) one, 0, &offset, &bytes2));
    SHOW(cudaFuncGetParamInfo((void *) one, 1, &offset, &bytes2));
    SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (void *) one, 128, 0));
    printf("blocks %d\n", n);
    SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (void *) one, 0, 0));
    SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (void *) notFunction, 128, 0));
    SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, (void *) one, 128, 0));
    cudaKernel_t kernel;
    cudaFunction_t function;
    SHOW(cudaGetKernel(&kernel, (void *) one));
    SHOW(cudaGetKernel(&kernel, (void *) notFunction));
    SHOW(cudaGetFuncBySymbol(&function, (void *) one));

    cudaStream_t s;
    cudaEvent_t e, f;
    SHOW(cudaStreamCreateWithFlags(&s, 77));
    SHOW(cudaStreamCreate(&s));
    SHOW(cudaStreamDestroy(0));
    SHOW(cudaStreamDestroy(cudaStreamLegacy));
    SHOW(cudaStreamCreate(NULL));
    SHOW(cudaEventCreateWithFlags(&e, 0x100));
    SHOW(cudaEventCreate(&e));
    SHOW(cudaEventCreate(&f));
    float ms = 0;
    SHOW(cudaEventElapsedTime(&ms, e, f));
    SHOW(cudaEventQuery(e));
    SHOW(cudaEventSynchronize(e));
    SHOW(cudaEventRecord(e, s));
    SHOW(cudaEventElapsedTime(&ms, e, f));
    SHOW(cudaEventDestroy(0));
    SHOW(cudaStreamWaitEvent(s, e, 77));
    SHOW(cudaStreamWaitEvent(s, 0, 0));
    SHOW(cudaEventRecord(0, 0));
    SHOW(cudaLaunchHostFunc(s, NULL, NULL));
    int lo, hi;
    SHOW(cudaDeviceGetStreamPriorityRange(&lo, &hi));
    SHOW(cudaDeviceGetStreamPriorityRange(NULL, NULL));
    SHOW(cudaStreamGetPriority(s, NULL));
    cudaStreamCaptureStatus status;
    unsigned long long id = 42;
    SHOW(cudaStreamIsCapturing(s, &status));
    SHOW(cudaStreamIsCapturing(s, NULL));
    SHOW(cudaStreamGetCaptureInfo(s, &status, &id));
    void *fn = (void *) 1;
    cudaDriverEntryPointQueryResult q = (cudaDriverEntryPointQueryResult) 9;
    SHOW(cudaGetDriverEntryPointByVersion("cuMemAlloc", &fn, 13000, cudaEnableDefault, &q));
    printf("%d %d\n", fn != NULL, q);
    fn = (void *) 1;
    SHOW(cudaGetDriverEntryPointByVersion("cuNoSuch", &fn, 13000, cudaEnableDefault, &q));
    printf("%d %d\n", fn != NULL, q);
    fn = (void *) 1;
    SHOW(cudaGetDriverEntryPointByVersion("cuNoSuch", &fn, 13000, cudaEnableDefault, NULL));
    printf("%d\n", fn != NULL);
    fn = (void *) 1;
    SHOW(cudaGetDriverEntryPointByVersion("cuLibraryLoadData", &fn, 11000, cudaEnableDefault, &q));
    printf("%d %d\n", fn != NULL, q);
    SHOW(cudaGetDriverEntryPointByVersion("cuMemAlloc", &fn, 13000, 7, &q));
    size_t limit;
    SHOW(cudaDeviceGetLimit(&limit, (cudaLimit) 77));
    SHOW(cudaDeviceSetLimit((cudaLimit) 77, 1));
    SHOW(cudaDeviceEnablePeerAccess(0, 0));
    SHOW(cudaDeviceEnablePeerAccess(100, 0));
    SHOW(cudaDeviceCanAccessPeer(&n, 0, 0));
    SHOW(cudaDeviceCanAccessPeer(&n, 0, 100));
    cudaMemPool_t pool;
    SHOW(cudaDeviceGetDefaultMemPool(&pool, 0));
    SHOW(cudaDeviceGetDefaultMemPool(&pool, 100));
    SHOW(cudaMallocAsync(&p, 0, s));
    SHOW(cudaMallocAsync(&p, 16, s));
    SHOW(cudaFreeAsync(NULL, s));
    SHOW(cudaFreeAsync(p, s));
    SHOW(cudaMallocManaged(&p, 0));
    SHOW(cudaMallocManaged(&p, 16, 7));
    cudaFuncCache cache;
    SHOW(cudaDeviceGetCacheConfig(&cache));
    cudaSharedMemConfig banks;
    SHOW(cudaDeviceGetSharedMemConfig(&banks));
    printf("banks %d\n", banks);
    pthread_t t;
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    int version;
    SHOW(cudaRuntimeGetVersion(&version));
    printf("%d\n", version);

    SHOW(cudaDeviceReset());
    SHOW(cudaGetDevice(&n));
    SHOW(cudaMalloc((void **) &d, 64));
    SHOW((one<<<1, 1>>>((int *) d), cudaDeviceSynchronize()));
    SHOW(cudaMemcpyFromSymbol(local, variable, 16, 0, cudaMemcpyDeviceToHost));
    SHOW((wild<<<1, 1>>>(), cudaPeekAtLastError()));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaMalloc((void **) &d, 64));
    SHOW(cudaGetDevice(&n));
    SHOW(cudaStreamQuery(0));
    SHOW(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
    SHOW(cudaFree(0));
    SHOW(cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 0));
    SHOW((one<<<1, 1>>>((int *) d), cudaPeekAtLastError()));
    SHOW(cudaDeviceReset());
    SHOW(cudaMalloc((void **) &d, 64));
    SHOW((one<<<1, 1>>>((int *) d), cudaDeviceSynchronize()));
    return 0;
}
