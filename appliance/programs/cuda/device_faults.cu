// Kernels that fault. Each case runs in its own process, because the error stays with the context. The next process
// must work.
#include "check_cuda.h"

#include <sys/wait.h>
#include <unistd.h>

#undef NDEBUG
#include <cassert>

__global__ void write_at(int *address, long long offset) {
    address[offset] = 1;
}

__global__ void read_at(const int *address, int *out) {
    *out = *address + 1;
}

__global__ void misaligned(char *address) {
    *(int *) (address + 1) = 1;
}

__global__ void trap(int when) {
    if (when == threadIdx.x) {
        __trap();
    }
}

__global__ void asserts(int value) {
    assert(value == 0);
}

__global__ void add(int *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i]++;
    }
}

struct Case {
    const char *name;
    cudaError_t error;
};

static const Case CASES[] = {
    {"no fault", cudaSuccess},
    {"write to address 0", cudaErrorIllegalAddress},
    {"write far behind an allocation", cudaErrorIllegalAddress},
    {"read of a host address", cudaErrorIllegalAddress},
    {"misaligned write", cudaErrorMisalignedAddress},
    {"trap", cudaErrorLaunchFailure},
    {"assert", cudaErrorAssert},
};
constexpr int CASE_COUNT = sizeof(CASES) / sizeof(CASES[0]);

static int run_case(int number) {
    int *device = device_array<int>(1024);
    CUDA_OK(cudaMemset(device, 0, 4096));
    cudaStream_t other;
    CUDA_OK(cudaStreamCreate(&other));
    switch (number) {
        case 0:
            add<<<4, 256>>>(device, 1024);
            break;
        case 1:
            write_at<<<1, 1>>>(nullptr, 0);
            break;
        case 2:
            write_at<<<1, 1>>>(device, 1LL << 40);
            break;
        case 3:
            read_at<<<1, 1>>>((const int *) 0x7fff00001000ULL, device);
            break;
        case 4:
            misaligned<<<1, 1>>>((char *) device);
            break;
        case 5:
            trap<<<1, 64>>>(33);
            break;
        default:
            asserts<<<1, 1>>>(number);
            break;
    }
    LAUNCH_OK();
    cudaError_t expected = CASES[number].error;
    check_cuda_(cudaDeviceSynchronize(), expected, CASES[number].name, __FILE__, __LINE__);
    if (expected != cudaSuccess) {
        // The error stays: every later call in every stream returns it, even after the program has read it.
        CUDA_IS(expected, cudaGetLastError());
        int *more = nullptr;
        CUDA_IS(expected, cudaMalloc(&more, 4));
        CUDA_IS(expected, cudaStreamSynchronize(other));
        int host = 0;
        CUDA_IS(expected, cudaMemcpy(&host, device, 4, cudaMemcpyDeviceToHost));
        CUDA_IS(expected, cudaGetLastError());
        CUDA_IS(expected, cudaDeviceSynchronize());
    } else {
        check_equal("the result of the well one", 1, host_copy(device, 1024)[1023]);
    }
    return 0;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int number = (int) check_option("--case", -1);
    if (number >= 0) {
        return run_case(number < CASE_COUNT ? number : 0);
    }
    for (int i = 0; i <= CASE_COUNT; i++) {
        int which = i % CASE_COUNT; // the last one is the valid case again, after all the faults
        pid_t child = fork();
        if (child == 0) {
            char text[16];
            snprintf(text, sizeof(text), "%d", which);
            execl("/proc/self/exe", argv[0], "--case", text, (char *) nullptr);
            _exit(126);
        }
        int status = 0;
        check_true("the child's end", child > 0 && waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            check_fail("case \"%s\", expected exit 0, got %s %d", CASES[which].name,
                       WIFEXITED(status) ? "exit" : "signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        }
    }
    return check_pass("%d cases, each in a process of its own", CASE_COUNT);
}
