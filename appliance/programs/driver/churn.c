/* A guest that randomly allocates and frees memory of every kind until its standard input ends, for tests of the
 * accounting. Prints READY after its first allocations. `--seed N` seeds the random sequence, `--most MiB` sets the
 * largest allocation, `--fault N` makes a kernel fault after N rounds. At its end it prints how often an allocation
 * failed for lack of memory. If the device is lost, it prints `ERROR code` and exits with 3. */
#include "check_memory.h"

#include <poll.h>

#define MOST 64

static int ended(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    char byte;
    return poll(&input, 1, 0) > 0 && read(0, &byte, 1) == 0;
}

static void lost(CUresult result) {
    printf("ERROR %d\n", (int) result);
    fflush(stdout);
    exit(3);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    uint32_t random = (uint32_t) check_option("--seed", 1) * 2654435761u + 1;
    size_t pages = (size_t) check_option("--most", 16) / 2;
    long fault = check_option("--fault", 0), rounds = 0, refused = 0;
    CUmodule module = check_module("kernels.ptx");
    CUfunction add = check_function(module, "add_value");
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, 0));
    fill_t held[MOST];
    int count = 0, supported[FILL_WAYS];
    /* Before the loop: the query of attributes accepts no error, but in the loop the session may end at any time. */
    for (int way = 0; way < FILL_WAYS; way++) {
        supported[way] = fill_supported((fill_way_t) way);
    }
    while (!ended()) {
        CUresult result = CUDA_SUCCESS;
        if (count < MOST && (count == 0 || check_random(&random) % 5 < 3)) {
            fill_way_t way = (fill_way_t) (check_random(&random) % FILL_WAYS);
            size_t bytes = CHECK_MEMORY_PAGE << check_random(&random) % 4;
            bytes = bytes > pages * CHECK_MEMORY_PAGE ? CHECK_MEMORY_PAGE : bytes;
            result = supported[way] ? fill_take(&held[count], way, bytes, stream) : CUDA_ERROR_OUT_OF_MEMORY;
            count += result == CUDA_SUCCESS;
        }
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            refused++;
            result = CUDA_SUCCESS;
            if (count == 0) {
                continue;
            }
        }
        if (result == CUDA_SUCCESS && count > 0 && check_random(&random) % 5 < 3) {
            int at = (int) (check_random(&random) % (uint32_t) count);
            result = fill_give(&held[at], stream);
            held[at] = held[--count];
        }
        if (result != CUDA_SUCCESS) {
            lost(result);
        }
        if (++rounds == 20) {
            printf("READY\n");
            fflush(stdout);
        }
        if (rounds == fault) {
            CUdeviceptr nowhere = 64;
            int length = 1024, one = 1;
            void *parameters[] = {&nowhere, &length, &one};
            result = cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, stream, parameters, NULL);
            result = result != CUDA_SUCCESS ? result : cuCtxSynchronize();
            lost(result);
        }
    }
    while (count > 0) {
        CU_OK(fill_give(&held[--count], stream));
    }
    CU_OK(cuCtxSynchronize());
    check_measured("%ld rounds, %ld refused", rounds, refused);
    return check_pass("everything given back");
}
