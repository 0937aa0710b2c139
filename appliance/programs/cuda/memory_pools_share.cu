// A memory pool that a process exports to a file descriptor, and whose allocations another process imports.
#include "check_cuda.h"
#include "check_processes.h"

static const int COUNT = 100000;
static const int PIECES = 8;

static int sockets[2]; // the parent's end and the child's

__global__ void add(int *values, int count, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += addend;
    }
}

static void add_to(int *values, int addend, cudaStream_t stream) {
    add<<<(COUNT + 255) / 256, 256, 0, stream>>>(values, COUNT, addend);
    LAUNCH_OK();
}

static void check_values(const char *what, int *values, int expected) {
    std::vector<int> got = host_copy(values, COUNT);
    for (int i = 0; i < COUNT; i++) {
        check_element(what, i, expected, got[i]);
    }
}

static bool begin() {
    CUDA_OK(cudaSetDevice(0));
    return (check_attribute(cudaDevAttrMemoryPoolSupportedHandleTypes) & cudaMemHandleTypePosixFileDescriptor) != 0;
}

static void child(int in, int out) {
    close(sockets[0]); // so that it sees the end of a failed parent
    char supported;
    receive_bytes(in, &supported, 1);
    if (!supported) {
        return;
    }
    check_true("both processes have pools for others", begin());
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreate(&stream));
    int descriptor = receive_descriptor(sockets[1]);
    cudaMemPool_t pool;
    check_true("another file is no pool",
               cudaMemPoolImportFromShareableHandle(&pool, (void *) (intptr_t) sockets[1],
                                                    cudaMemHandleTypePosixFileDescriptor, 0)
                   != cudaSuccess);
    cudaGetLastError();
    CUDA_OK(cudaMemPoolImportFromShareableHandle(&pool, (void *) (intptr_t) descriptor,
                                                 cudaMemHandleTypePosixFileDescriptor, 0));
    close(descriptor);
    void *none;
    CUDA_IS(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&none, 4096, pool, stream));
    CUDA_IS(cudaErrorInvalidValue, cudaDeviceSetMemPool(0, pool));
    cudaGetLastError();
    for (int piece = 0; piece < PIECES; piece++) {
        struct cudaMemPoolPtrExportData data;
        receive_bytes(in, &data, sizeof data);
        int *values;
        CUDA_OK(cudaMemPoolImportPointer((void **) &values, pool, &data));
        check_values("what the parent has written", values, piece);
        add_to(values, 100, stream);
        CUDA_OK(cudaStreamSynchronize(stream));
        if (piece % 2 == 0) {
            CUDA_OK(cudaFreeAsync(values, stream));
            CUDA_OK(cudaStreamSynchronize(stream));
        } else {
            CUDA_OK(cudaFree(values));
        }
        send_bytes(out, "", 1);
    }
    CUDA_OK(cudaMemPoolDestroy(pool));
    CUDA_OK(cudaStreamDestroy(stream));
}

static cudaMemPool_t exported_pool(size_t maxSize) {
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    props.location.type = cudaMemLocationTypeDevice;
    props.maxSize = maxSize;
    cudaMemPool_t pool;
    CUDA_OK(cudaMemPoolCreate(&pool, &props));
    return pool;
}

static unsigned long long used(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    unsigned long long bytes = 0;
    CUDA_OK(cudaMemPoolGetAttribute(pool, attribute, &bytes));
    return bytes;
}

// The pool without another process: its counters, its current use by cudaMallocAsync, its access.
static void check_alone(cudaMemPool_t pool, cudaStream_t stream) {
    int *values;
    cudaMemPool_t before, of_pointer;
    CUDA_OK(cudaDeviceGetMemPool(&before, 0));
    CUDA_OK(cudaDeviceSetMemPool(0, pool));
    CUDA_OK(cudaMallocAsync((void **) &values, COUNT * sizeof(int), stream));
    CUDA_OK(cudaDeviceSetMemPool(0, before));
    check_true("memory in use", used(pool, cudaMemPoolAttrUsedMemCurrent) >= COUNT * sizeof(int));
    CUDA_OK(cudaMemsetAsync(values, 0, COUNT * sizeof(int), stream));
    cudaPointerAttributes attributes;
    CUDA_OK(cudaPointerGetAttributes(&attributes, values));
    check_equal("the memory's type", cudaMemoryTypeDevice, attributes.type);
    add_to(values, 7, stream);
    CUDA_OK(cudaStreamSynchronize(stream));
    check_values("memory of the current pool", values, 7);
    CUDA_OK(cudaFreeAsync(values, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("nothing is in use", 0, (long long) used(pool, cudaMemPoolAttrUsedMemCurrent));
    check_true("the high watermark stays", used(pool, cudaMemPoolAttrUsedMemHigh) >= COUNT * sizeof(int));
    unsigned long long threshold = 1 << 20;
    CUDA_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    check_equal("the threshold", 1 << 20, (long long) used(pool, cudaMemPoolAttrReleaseThreshold));
    CUDA_OK(cudaMemPoolTrimTo(pool, 0));
    cudaMemLocation here = {};
    here.type = cudaMemLocationTypeDevice;
    cudaMemAccessFlags flags;
    CUDA_OK(cudaMemPoolGetAccess(&flags, pool, &here));
    check_equal("the device's access", cudaMemAccessFlagsProtReadWrite, flags);
    CUDA_OK(cudaDeviceGetDefaultMemPool(&of_pointer, 0));
    int descriptor;
    CUDA_IS(cudaErrorInvalidValue,
            cudaMemPoolExportToShareableHandle(&descriptor, of_pointer, cudaMemHandleTypePosixFileDescriptor, 0));
    cudaGetLastError();
    struct cudaMemPoolPtrExportData data;
    int *plain = device_array<int>(COUNT);
    CUDA_IS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&data, plain));
    cudaGetLastError();
    CUDA_OK(cudaFree(plain));
}

static void parent(int in, int out) {
    bool supported = begin();
    send_bytes(out, supported ? "\1" : "", 1);
    if (!supported) {
        return;
    }
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreate(&stream));
    cudaMemPool_t pool = exported_pool(0);
    check_alone(pool, stream);
    int descriptor = -1;
    CUDA_OK(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    send_descriptor(sockets[0], descriptor);
    close(descriptor);
    for (int piece = 0; piece < PIECES; piece++) {
        int *values;
        CUDA_OK(cudaMallocFromPoolAsync((void **) &values, COUNT * sizeof(int), pool, stream));
        CUDA_OK(cudaMemsetAsync(values, 0, COUNT * sizeof(int), stream));
        add_to(values, piece, stream);
        CUDA_OK(cudaStreamSynchronize(stream));
        struct cudaMemPoolPtrExportData data;
        CUDA_OK(cudaMemPoolExportPointer(&data, values));
        send_bytes(out, &data, sizeof data);
        char turn;
        receive_bytes(in, &turn, 1);
        check_values("what the child has added", values, piece + 100);
        CUDA_OK(cudaFreeAsync(values, stream));
    }
    CUDA_OK(cudaStreamSynchronize(stream));
    check_equal("nothing is in use at the end", 0, (long long) used(pool, cudaMemPoolAttrUsedMemCurrent));
    CUDA_OK(cudaMemPoolDestroy(pool));
    CUDA_OK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_true("a pair of sockets", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    check_processes(child, parent);
    if (!begin()) {
        check_unsupported("pools are not shared between processes");
    }
    return check_pass("%d allocations of a pool in two processes", PIECES);
}
