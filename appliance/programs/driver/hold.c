/* A guest that runs until its standard input ends, for tests of events during a program's run. Prints READY when it has
 * a context and memory. Then it launches and synchronises in a loop; with `--idle 1` it only waits. `--memory MiB` sets
 * how much device memory it holds, `--pinned MiB` how much host memory. If the device is lost, CUDA returns an error:
 * the program prints `ERROR code name` and exits with 3. */
#include "check_driver.h"

#include <poll.h>

static void lost(const char *call, CUresult result) {
    const char *name = "?";
    cuGetErrorName(result, &name);
    printf("ERROR %d %s %s\n", (int) result, name, call);
    fflush(stdout);
    exit(3);
}

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        CUresult result_ = (call);                                                                                     \
        if (result_ != CUDA_SUCCESS) {                                                                                 \
            lost(#call, result_);                                                                                      \
        }                                                                                                              \
    } while (0)

/* Whether standard input has ended; waits up to timeout_ms for the end (-1: without limit). */
static int ended(int timeout_ms) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    char byte;
    return poll(&input, 1, timeout_ms) > 0 && read(0, &byte, 1) == 0;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    CUmodule module = check_module("kernels.ptx");
    CUfunction add = check_function(module, "add_value");
    size_t bytes = (size_t) check_option("--memory", 16) << 20;
    CUdeviceptr memory = check_device(NULL, bytes), values = check_device(NULL, 4096);
    long pinned_mib = check_option("--pinned", 0);
    void *pinned = NULL;
    if (pinned_mib > 0) {
        CU_OK(cuMemAllocHost_v2(&pinned, (size_t) pinned_mib << 20));
        memset(pinned, 1, (size_t) pinned_mib << 20);
    }
    int count = 1024, one = 1;
    CU_OK(cuMemsetD8(memory, 1, bytes));
    CU_OK(cuMemsetD32(values, 0, 1024));
    CU_OK(cuCtxSynchronize());
    printf("READY\n");
    fflush(stdout);
    int rounds = 0, got[1024];
    if (check_option("--idle", 0)) {
        while (!ended(-1)) {
        }
    }
    do {
        void *parameters[] = {&values, &count, &one};
        TRY(cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
        TRY(cuCtxSynchronize());
        rounds++;
    } while (!ended(0));
    TRY(cuMemcpyDtoH(got, values, sizeof(got)));
    for (int i = 0; i < 1024; i++) {
        check_element("rounds counted on the device", i, rounds, got[i]);
    }
    if (pinned != NULL) {
        TRY(cuMemFreeHost(pinned));
    }
    TRY(cuMemFree(memory));
    TRY(cuMemFree(values));
    return check_pass("%d rounds", rounds);
}
