/* Copies far larger than a record or the credit window, pageable and pinned, `--size MiB`. */
#include "check_driver.h"

static uint64_t word(size_t i) {
    return i * 0x9E3779B97F4A7C15ULL + 1;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    size_t bytes = (size_t) check_option("--size", 72) << 20, count = bytes / 8;
    uint64_t *host = check_memory(bytes), *pinned;
    CU_OK(cuMemAllocHost_v2((void **) &pinned, bytes));
    for (size_t i = 0; i < count; i++) {
        host[i] = word(i);
    }
    CUdeviceptr first = check_device(NULL, bytes + 8), second = check_device(NULL, bytes);
    double start = check_seconds();
    CU_OK(cuMemcpyHtoD(first + 8, host, bytes));
    CU_OK(cuCtxSynchronize());
    double in = check_seconds() - start;
    CU_OK(cuMemcpyDtoD(second, first + 8, bytes));
    CU_OK(cuCtxSynchronize());
    start = check_seconds();
    CU_OK(cuMemcpyDtoH(pinned, second, bytes));
    double out = check_seconds() - start;
    for (size_t i = 0; i < count; i++) {
        if (pinned[i] != word(i)) {
            check_fail("word %zu, expected %llx, got %llx", i, (unsigned long long) word(i),
                       (unsigned long long) pinned[i]);
        }
    }
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuMemcpyHtoDAsync(first, pinned + 1, bytes - 8, stream));
    CU_OK(cuMemcpyDtoHAsync(host, first, bytes - 8, stream));
    CU_OK(cuStreamSynchronize(stream));
    check_equal("asynchronous there and back", 0, memcmp(host, pinned + 1, bytes - 8));
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(first));
    CU_OK(cuMemFree(second));
    CU_OK(cuMemFreeHost(pinned));
    free(host);
    check_measured("in %.0f MB/s, out %.0f MB/s", (double) bytes / in / 1e6, (double) bytes / out / 1e6);
    return check_pass("%zu MiB", bytes >> 20);
}
