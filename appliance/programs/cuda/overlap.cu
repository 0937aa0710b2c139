// Concurrent streams, shown without a clock: kernels continue only when copies and kernels of other streams, issued
// after them, have done their part. If any of that work waits for a running kernel, the kernel gives up and the program
// fails.
#include "check_cuda.h"

constexpr int ROUNDS = 20;
constexpr unsigned long long LIMIT_NS = 30000000000ull; // a kernel gives up after this time

__device__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

// Whether the word became `wanted` before the time limit.
__device__ bool await(const volatile int *word, int wanted) {
    unsigned long long start = now();
    while (*word != wanted) {
        if (now() - start > LIMIT_NS) {
            return false;
        }
    }
    __threadfence_system();
    return true;
}

// Writes the square of each number in `question`, plus one, to `answer`; stops at the first number that does not
// arrive.
__global__ void answer_questions(const volatile int *question, volatile int *answer, int rounds) {
    for (int i = 1; i <= rounds && await(question, i); i++) {
        *answer = i * i + 1;
        __threadfence_system();
    }
}

__global__ void wait_for(const volatile int *word, int wanted, int *result) {
    *result = await(word, wanted) ? 1 : -1;
}

__global__ void set(volatile int *word, int value) {
    *word = value;
    __threadfence_system();
}

// Copies in both directions while a kernel runs, and the results of queries about the kernel.
static void copies_beside_a_kernel() {
    cudaStream_t computing, copying;
    cudaEvent_t before, behind;
    int *host;
    CUDA_OK(cudaStreamCreateWithFlags(&computing, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamCreateWithFlags(&copying, cudaStreamNonBlocking));
    CUDA_OK(cudaEventCreate(&before));
    CUDA_OK(cudaEventCreate(&behind));
    CUDA_OK(cudaMallocHost(&host, 2 * sizeof(int)));
    int *question = device_array<int>(1), *answer = device_array<int>(1);
    CUDA_OK(cudaMemset(question, 0, sizeof(int)));
    CUDA_OK(cudaMemset(answer, 0, sizeof(int)));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaEventRecord(before, computing));
    answer_questions<<<1, 1, 0, computing>>>(question, answer, ROUNDS);
    LAUNCH_OK();
    CUDA_OK(cudaEventRecord(behind, computing));
    CUDA_OK(cudaEventSynchronize(before));
    for (int i = 1; i <= ROUNDS; i++) {
        CUDA_IS(cudaErrorNotReady, cudaStreamQuery(computing));
        CUDA_IS(cudaErrorNotReady, cudaEventQuery(behind));
        host[0] = i;
        CUDA_OK(cudaMemcpyAsync(question, &host[0], sizeof(int), cudaMemcpyHostToDevice, copying));
        bool is_running;
        do { // the kernel writes `answer` while it runs
            is_running = cudaStreamQuery(computing) == cudaErrorNotReady;
            CUDA_OK(cudaMemcpyAsync(&host[1], answer, sizeof(int), cudaMemcpyDeviceToHost, copying));
            CUDA_OK(cudaStreamSynchronize(copying));
        } while (host[1] != i * i + 1 && is_running);
        check_element("answer", i, i * i + 1, host[1]);
    }
    CUDA_OK(cudaStreamSynchronize(computing));
    CUDA_OK(cudaEventQuery(behind));
    CUDA_OK(cudaFreeHost(host));
    CUDA_OK(cudaFree(question));
    CUDA_OK(cudaFree(answer));
    CUDA_OK(cudaEventDestroy(before));
    CUDA_OK(cudaEventDestroy(behind));
    CUDA_OK(cudaStreamDestroy(computing));
    CUDA_OK(cudaStreamDestroy(copying));
}

// Kernels of other streams run beside a kernel that waits for them, as does a long copy.
static void kernels_beside_a_kernel() {
    constexpr int STREAMS = 4;
    constexpr size_t LONG_INTS = 4 << 20;
    cudaStream_t waiting, others[STREAMS];
    CUDA_OK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
    int *words = device_array<int>(STREAMS), *results = device_array<int>(STREAMS),
        *large = device_array<int>(LONG_INTS);
    int *host;
    CUDA_OK(cudaMallocHost(&host, LONG_INTS * sizeof(int)));
    for (size_t i = 0; i < LONG_INTS; i++) {
        host[i] = (int) (i * 7);
    }
    CUDA_OK(cudaMemset(words, 0, STREAMS * sizeof(int)));
    CUDA_OK(cudaMemset(results, 0, STREAMS * sizeof(int)));
    CUDA_OK(cudaDeviceSynchronize());
    for (int s = 0; s < STREAMS; s++) {
        CUDA_OK(cudaStreamCreateWithFlags(&others[s], cudaStreamNonBlocking));
        wait_for<<<1, 1, 0, waiting>>>(words + s, s + 1, results + s);
        LAUNCH_OK();
    }
    CUDA_OK(cudaMemcpyAsync(large, host, LONG_INTS * sizeof(int), cudaMemcpyHostToDevice, others[0]));
    CUDA_OK(cudaStreamSynchronize(others[0])); // done while the first waits
    CUDA_IS(cudaErrorNotReady, cudaStreamQuery(waiting));
    for (int s = STREAMS - 1; s >= 0; s--) {
        set<<<1, 1, 0, others[s]>>>(words + s, s + 1);
        LAUNCH_OK();
        CUDA_OK(cudaStreamSynchronize(others[s]));
    }
    CUDA_OK(cudaStreamSynchronize(waiting));
    std::vector<int> got = host_copy(results, STREAMS);
    for (int s = 0; s < STREAMS; s++) {
        check_element("kernel that waited", s, 1, got[s]);
        CUDA_OK(cudaStreamDestroy(others[s]));
    }
    std::vector<int> copied = host_copy(large, LONG_INTS);
    for (size_t i = 0; i < LONG_INTS; i += 4097) {
        check_element("copied beside a kernel", (long) i, (int) (i * 7), copied[i]);
    }
    CUDA_OK(cudaStreamDestroy(waiting));
    CUDA_OK(cudaFreeHost(host));
    CUDA_OK(cudaFree(words));
    CUDA_OK(cudaFree(results));
    CUDA_OK(cudaFree(large));
}

// The first launch loads a kernel's code, and loading may wait for running work.
static void load_code() {
    int *word = device_array<int>(1);
    set<<<1, 1>>>(word, 1);
    wait_for<<<1, 1>>>(word, 1, word);
    answer_questions<<<1, 1>>>(word, word, 0);
    LAUNCH_OK();
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaFree(word));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load_code();
    copies_beside_a_kernel();
    kernels_beside_a_kernel();
    return check_pass("copies and kernels beside kernels that wait for them");
}
