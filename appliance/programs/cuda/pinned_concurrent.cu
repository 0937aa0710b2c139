// Pinned memory that the host and running kernels use at the same time, through the host's address: flags and progress
// in both directions, blocks that a kernel uses after copies have used them, graphs, host functions and threads.
#include "check_conversation.h"

#include <atomic>
#include <string.h>
#include <thread>

static const int COUNT = 1 << 16;

template <typename T> static T *pinned_array(size_t count, unsigned int flags) {
    T *array = nullptr;
    CUDA_OK(cudaHostAlloc(&array, count * sizeof(T), flags));
    return array;
}

// Counts up in host memory, and waits for the host in the middle.
__global__ void count_up(volatile int *progress, volatile int *go, int until) {
    for (int i = 1; i <= until; i++) {
        if (i == until / 2) {
            while (*go == 0) {
            }
        }
        *progress = i;
    }
}

__global__ void add(int *values, int count, int addend) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] += addend;
    }
}

__global__ void total(const int *values, int count, unsigned long long *sum) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(sum, (unsigned long long) values[i]);
    }
}

static void launch_add(int *values, int count, int addend, cudaStream_t stream) {
    add<<<(count + 255) / 256, 256, 0, stream>>>(values, count, addend);
    LAUNCH_OK();
}

static void check_values(const char *what, const int *values, int factor, int addend) {
    for (int i = 0; i < COUNT; i++) {
        check_element(what, i, (long long) i * factor + addend, values[i]);
    }
}

static void converse_pinned(size_t apart, unsigned int flags) {
    int *words = pinned_array<int>(conversation_size(apart), flags);
    converse(words, apart);
    CUDA_OK(cudaFreeHost(words));
}

static void progress() {
    const int until = 100;
    volatile int *counter = pinned_array<int>(1, cudaHostAllocMapped),
                 *go = pinned_array<int>(1, cudaHostAllocPortable);
    count_up<<<1, 1>>>((int *) counter, (int *) go, until);
    LAUNCH_OK();
    int last = 0;
    while (*counter < until / 2 - 1) {
        int now = *counter;
        check_true("progress never falls", now >= last);
        last = now;
    }
    check_true("the kernel waits", *counter < until / 2);
    *go = 1;
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("progress at the end", until, *counter);
    CUDA_OK(cudaFreeHost((int *) counter));
    CUDA_OK(cudaFreeHost((int *) go));
}

// Copies use a block before, while and after a kernel uses it for the first time.
static void copies() {
    int *block = pinned_array<int>(COUNT, cudaHostAllocDefault),
        *other = pinned_array<int>(COUNT, cudaHostAllocDefault);
    int *device = device_array<int>(COUNT);
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < COUNT; i++) {
        block[i] = i;
    }
    CUDA_OK(cudaMemcpyAsync(device, block, COUNT * sizeof(int), cudaMemcpyHostToDevice, stream));
    launch_add(device, COUNT, 1, stream);
    CUDA_OK(cudaMemcpyAsync(block, device, COUNT * sizeof(int), cudaMemcpyDeviceToHost, stream));
    launch_add(block, COUNT, 10, stream); // the first use by a kernel, with a copy in flight
    CUDA_OK(cudaMemcpyAsync(device, block, COUNT * sizeof(int), cudaMemcpyHostToDevice, stream));
    CUDA_OK(cudaMemcpyAsync(other, device, COUNT * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    check_values("after copies and a kernel", block, 1, 11);
    check_values("copied on", other, 1, 11);
    CUDA_OK(cudaMemset(block, 0, 100 * sizeof(int)));
    CUDA_OK(cudaMemcpy(other, block, COUNT * sizeof(int), cudaMemcpyDefault));
    check_equal("filled", 0, other[99]);
    check_equal("not filled", 100 + 11, other[100]);
    for (int i = 0; i < COUNT; i++) {
        block[i] = 2 * i;
    }
    CUDA_OK(cudaMemcpy2DAsync(device, 400, block, 400, 400, 100, cudaMemcpyHostToDevice, stream));
    CUDA_OK(cudaMemcpy2DAsync(block + 10000, 400, device, 400, 400, 100, cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 10000; i++) {
        check_element("a box", i, 2 * i, block[10000 + i]);
    }
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFreeHost(block));
    CUDA_OK(cudaFreeHost(other));
}

// Copies that wait behind work read the bytes of their time, although a kernel uses the block meanwhile.
static void waiting_copies() {
    int *block = pinned_array<int>(COUNT, cudaHostAllocDefault), *device = device_array<int>(COUNT);
    std::atomic<int> go{0};
    cudaStream_t first, second;
    CUDA_OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CUDA_OK(cudaLaunchHostFunc(
        first,
        [](void *data) {
            while (*(std::atomic<int> *) data == 0) {
            }
        },
        &go));
    CUDA_OK(cudaMemcpyAsync(device, block, COUNT * sizeof(int), cudaMemcpyHostToDevice, first));
    launch_add(block, COUNT, 5, second);
    CUDA_OK(cudaStreamSynchronize(second));
    for (int i = 0; i < 400; i += 2) {
        block[i] += 3;
    }
    go = 1;
    CUDA_OK(cudaStreamSynchronize(first));
    std::vector<int> found = host_copy(device, COUNT);
    for (int i = 0; i < COUNT; i++) {
        check_element("a copy that waited", i, i < 400 && i % 2 == 0 ? 8 : 5, found[i]);
    }
    CUDA_OK(cudaStreamDestroy(first));
    CUDA_OK(cudaStreamDestroy(second));
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFreeHost(block));
}

static void write_next(void *data) {
    int *words = (int *) data;
    words[0] = words[1] + 1;
}

// The graph's copies are nodes before its kernel uses the block.
static void graphs() {
    int *block = pinned_array<int>(COUNT, cudaHostAllocDefault), *device = device_array<int>(COUNT);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CUDA_OK(cudaMemcpyAsync(device, block, COUNT * sizeof(int), cudaMemcpyHostToDevice, stream));
    launch_add(device, COUNT, 1, stream);
    CUDA_OK(cudaMemcpyAsync(block, device, COUNT * sizeof(int), cudaMemcpyDeviceToHost, stream));
    launch_add(block, COUNT, 10, stream);
    CUDA_OK(cudaLaunchHostFunc(stream, write_next, block));
    launch_add(block, 1, 100, stream);
    CUDA_OK(cudaMemcpyAsync(device, block, COUNT * sizeof(int), cudaMemcpyHostToDevice, stream));
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < COUNT; i++) {
        block[i] = i;
    }
    for (int round = 1; round <= 3; round++) {
        CUDA_OK(cudaGraphLaunch(exec, stream));
        CUDA_OK(cudaStreamSynchronize(stream));
        std::vector<int> found = host_copy(device, COUNT);
        for (int i = 0; i < COUNT; i++) {
            int expected = i == 0 ? 1 + 11 * round + 1 + 100 : i + 11 * round;
            check_element("a graph's block", i, expected, block[i]);
            check_element("a graph's copy", i, expected, found[i]);
        }
    }
    CUDA_OK(cudaGraphExecDestroy(exec));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(device));
    CUDA_OK(cudaFreeHost(block));
}

// What a host function writes, the work behind it reads; in pinned and in managed memory.
static void host_functions(int *words, cudaStream_t stream) {
    for (int round = 0; round < 10; round++) {
        words[1] = round;
        launch_add(words, 2, 1000, stream);
        CUDA_OK(cudaLaunchHostFunc(stream, write_next, words));
        launch_add(words, 1, 7, stream);
        CUDA_OK(cudaStreamSynchronize(stream));
        check_element("behind a host function", round, round + 1000 + 1 + 7, words[0]);
    }
}

static void functions() {
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *words = pinned_array<int>(2, cudaHostAllocDefault);
    host_functions(words, stream);
    CUDA_OK(cudaFreeHost(words));
    if (check_attribute(cudaDevAttrConcurrentManagedAccess)) {
        CUDA_OK(cudaMallocManaged(&words, 2 * sizeof(int)));
        host_functions(words, stream);
        CUDA_OK(cudaFree(words));
    }
    CUDA_OK(cudaStreamDestroy(stream));
}

// Threads copy to one half of new blocks while another thread's kernel uses the other half for the first time.
static void races() {
    const int half = 20000, rounds = 40;
    std::vector<int> numbers(half);
    for (int i = 0; i < half; i++) {
        numbers[i] = i;
    }
    int *device = device_copy(numbers);
    std::vector<int *> blocks(rounds);
    for (int *&block : blocks) {
        block = pinned_array<int>(2 * half, cudaHostAllocDefault);
    }
    std::atomic<int> copied{0}, launched{0};
    std::thread copying([&] {
        cudaStream_t stream;
        CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (int round = 0; round < rounds; round++) {
            while (launched < round) {
            }
            if (round % 2 == 0) {
                CUDA_OK(
                    cudaMemcpyAsync(blocks[round] + half, device, half * sizeof(int), cudaMemcpyDeviceToHost, stream));
                CUDA_OK(cudaStreamSynchronize(stream));
            } else {
                CUDA_OK(cudaMemcpy(blocks[round] + half, device, half * sizeof(int), cudaMemcpyDeviceToHost));
            }
            copied++;
        }
        CUDA_OK(cudaStreamDestroy(stream));
    });
    cudaStream_t stream;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < rounds; round++) {
        while (copied < round) {
        }
        launch_add(blocks[round], half, round + 1, stream);
        CUDA_OK(cudaStreamSynchronize(stream));
        launched++;
    }
    copying.join();
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < half; i++) {
            check_element("the kernel's half", i, round + 1, blocks[round][i]);
            check_element("the copy's half", i, i, blocks[round][half + i]);
        }
        CUDA_OK(cudaFreeHost(blocks[round]));
    }
    CUDA_OK(cudaStreamDestroy(stream));
    CUDA_OK(cudaFree(device));
}

// Small and large blocks come and go; each sum arrives in a block of its own.
static void blocks() {
    for (int round = 0; round < 3; round++) {
        std::vector<unsigned long long *> sums(100);
        int *values = pinned_array<int>(COUNT << (2 * round), cudaHostAllocDefault);
        for (int i = 0; i < COUNT; i++) {
            values[i] = i % 1000;
        }
        for (size_t i = 0; i < sums.size(); i++) {
            sums[i] = pinned_array<unsigned long long>(1 + i % 7 * 200, i % 2 == 0 ? cudaHostAllocMapped : 0);
            check_equal("pinned memory comes as zeros", 0, (long long) *sums[i]);
            total<<<4, 64>>>(values, (int) i * 600, sums[i]);
            LAUNCH_OK();
        }
        CUDA_OK(cudaDeviceSynchronize());
        unsigned long long expected = 0;
        for (size_t i = 0; i < sums.size(); i++) {
            check_element("sum", (long long) i, (long long) expected, (long long) *sums[i]);
            for (size_t j = i * 600; j < (i + 1) * 600; j++) {
                expected += j % 1000;
            }
            CUDA_OK(cudaFreeHost(sums[i]));
        }
        CUDA_OK(cudaFreeHost(values));
    }
}

// Freed blocks take no memory of the device. Other processes may take some meanwhile, but not in each of several tries.
static void leftovers() {
    const size_t count = 1 << 22, tolerance = 64 << 20;
    const int tries = 10;
    bool has_all = false;
    for (int i = 0; i < tries && !has_all; i++) {
        size_t before = 0, after = 0, total = 0;
        CUDA_OK(cudaMemGetInfo(&before, &total));
        for (int round = 0; round < 16; round++) {
            int *block = pinned_array<int>(count, round % 2 == 0 ? cudaHostAllocMapped : cudaHostAllocDefault);
            launch_add(block + count - 1, 1, 5, nullptr);
            CUDA_OK(cudaDeviceSynchronize());
            check_equal("the last value", 5, block[count - 1]);
            CUDA_OK(cudaFreeHost(block));
        }
        CUDA_OK(cudaMemGetInfo(&after, &total));
        has_all = after + tolerance >= before;
    }
    check_true("the device has its memory again", has_all);
}

static void pointers() {
    char *block = pinned_array<char>(9000, cudaHostAllocDefault), *device = nullptr;
    cudaPointerAttributes attributes;
    CUDA_OK(cudaPointerGetAttributes(&attributes, block + 5));
    check_equal("type", cudaMemoryTypeHost, attributes.type);
    check_true("the device's pointer of a plain block", attributes.devicePointer == block + 5);
    CUDA_OK(cudaHostGetDevicePointer(&device, block + 5, 0));
    check_true("the host's pointer is the device's", device == block + 5);
    CUDA_OK(cudaPointerGetAttributes(&attributes, device));
    check_equal("type afterwards", cudaMemoryTypeHost, attributes.type);
    check_true("the host's pointer", attributes.hostPointer == block + 5);
    check_equal("the last byte", 0, block[8999]);
    CUDA_OK(cudaFreeHost(block));
    CUDA_IS(cudaErrorInvalidValue, cudaHostGetDevicePointer(&device, block, 0));
    cudaGetLastError();
}

// The end of a context takes its pinned memory along, and disturbs no later work.
static void resets() {
    int *block = pinned_array<int>(COUNT, cudaHostAllocMapped);
    launch_add(block, COUNT, 1, nullptr);
    CUDA_OK(cudaDeviceSynchronize());
    check_equal("before the reset", 1, block[COUNT - 1]);
    CUDA_OK(cudaDeviceReset());
    copies();
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    if (!check_attribute(cudaDevAttrCanMapHostMemory)) {
        check_unsupported("the device cannot map host memory (attribute 19)");
    }
    copies();
    waiting_copies();
    graphs();
    functions();
    pointers();
    blocks();
    leftovers();
    progress();
    converse_pinned(16, cudaHostAllocDefault);
    converse_pinned(4096, cudaHostAllocMapped);
    races();
    resets();
    return check_pass("flags, progress, copies, graphs, functions and races of pinned memory");
}
