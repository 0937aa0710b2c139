/* Copies far larger than a record or the credit window, pageable and pinned.
 *
 *   --size N      length in MiB; default 72
 *   --rounds N    default 1
 *   --pause-ms N  time between two rounds; default 0 */
#include "check_driver.h"

#include <time.h>

static uint64_t word(size_t i, long round) {
    return i * 0x9E3779B97F4A7C15ULL + (uint64_t) round;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    size_t bytes = (size_t) check_option("--size", 72) << 20, count = bytes / 8;
    uint64_t *host = check_memory(bytes), *pinned;
    CU_OK(cuMemAllocHost_v2((void **) &pinned, bytes));
    CUdeviceptr first = check_device(NULL, bytes + 8), second = check_device(NULL, bytes);
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    long rounds = check_option("--rounds", 1), pause_ms = check_option("--pause-ms", 0);
    double in = 0, out = 0;
    for (long round = 1; round <= rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            host[i] = word(i, round);
        }
        double start = check_seconds();
        CU_OK(cuMemcpyHtoD(first + 8, host, bytes));
        CU_OK(cuCtxSynchronize());
        in += check_seconds() - start;
        CU_OK(cuMemcpyDtoD(second, first + 8, bytes));
        CU_OK(cuCtxSynchronize());
        start = check_seconds();
        CU_OK(cuMemcpyDtoH(pinned, second, bytes));
        out += check_seconds() - start;
        for (size_t i = 0; i < count; i++) {
            if (pinned[i] != word(i, round)) {
                check_fail("word %zu, expected %llx, got %llx", i, (unsigned long long) word(i, round),
                           (unsigned long long) pinned[i]);
            }
        }
        CU_OK(cuMemcpyHtoDAsync(first, pinned + 1, bytes - 8, stream));
        CU_OK(cuMemcpyDtoHAsync(host, first, bytes - 8, stream));
        CU_OK(cuStreamSynchronize(stream));
        check_equal("asynchronous there and back", 0, memcmp(host, pinned + 1, bytes - 8));
        nanosleep(&(struct timespec) {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000}, NULL);
    }
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(first));
    CU_OK(cuMemFree(second));
    CU_OK(cuMemFreeHost(pinned));
    free(host);
    check_measured("in %.0f MB/s, out %.0f MB/s", (double) (bytes * (size_t) rounds) / in / 1e6,
                   (double) (bytes * (size_t) rounds) / out / 1e6);
    return check_pass("%zu MiB", bytes >> 20);
}
