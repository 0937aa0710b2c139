/* Fills the device's memory by every kind of allocation, up to the free memory of cuMemGetInfo. The allocation that
 * exceeds it fails with CUDA_ERROR_OUT_OF_MEMORY and has no other effect, a smaller one still works, and all memory
 * becomes free again. With `--total MiB` the device must have exactly that much memory; with `--empty 1` all of it must
 * be free at the start. */
#include "check_memory.h"

#define MOST 4096
#define MARK 0x5a

static fill_t held[MOST];
static CUstream stream;
static CUdeviceptr witness; /* memory that must not change */

static size_t free_bytes(void) {
    size_t free_now = 0, total = 0;
    CU_OK(cuMemGetInfo(&free_now, &total));
    return free_now;
}

static size_t power_of_two(size_t most) {
    size_t power = CHECK_MEMORY_PAGE;
    while (power <= most / 2) {
        power *= 2;
    }
    return power;
}

static void check_witness(void) {
    unsigned char bytes[4096];
    CU_OK(cuMemsetD8(witness, MARK, sizeof(bytes) / 2));
    CU_OK(cuMemcpyDtoH(bytes, witness, sizeof(bytes)));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        check_element("memory beside a refused allocation", (long long) i, MARK, bytes[i]);
    }
}

static void fill(fill_way_t way) {
    size_t before = free_bytes(), most = fill_most(way), sum = 0;
    size_t chunk = power_of_two(before / 8 < most ? before / 8 : most);
    int count = 0;
    CUresult result;
    while ((result = fill_take(&held[count], way, chunk, stream)) == CUDA_SUCCESS) {
        sum += chunk;
        check_true("room for what was allocated", ++count < MOST);
    }
    if (result != CUDA_ERROR_OUT_OF_MEMORY) {
        check_fail("%s: allocation %d, expected 2 CUDA_ERROR_OUT_OF_MEMORY, got %d", fill_names[way], count,
                   (int) result);
    }
    /* At most the free memory, and most of it: a driver rounds up, for some kinds at each allocation. */
    check_true(fill_names[way], sum <= before && sum >= before / 4 * 3);
    check_witness();
    size_t left = free_bytes(), smaller = power_of_two(left / 2);
    if (left >= (size_t) 128 << 20 && smaller <= most) {
        CU_OK(fill_take(&held[count], way, smaller, stream));
        count++;
    }
    check_witness();
    fill_t huge;
    CU_IS(CUDA_ERROR_OUT_OF_MEMORY, fill_take(&huge, FILL_PLAIN, (size_t) 1 << 50, stream));
    while (count > 0) {
        CU_OK(fill_give(&held[--count], stream));
    }
    CU_OK(cuCtxSynchronize());
    size_t after = free_bytes();
    /* If a graph's launch fails, driver 580 keeps the memory that the launch had taken until the process ends. */
    if (way != FILL_GRAPH && after < before - before / 16) {
        check_fail("%s: free memory at the end, expected about %zu, got %zu", fill_names[way], before, after);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    size_t total = 0, said = 0, free_now = 0;
    CU_OK(cuDeviceTotalMem(&total, 0));
    CU_OK(cuMemGetInfo(&free_now, &said));
    check_true("cuMemGetInfo and cuDeviceTotalMem agree", said == total && free_now <= total);
    long expected = check_option("--total", 0);
    if (expected != 0) {
        check_equal("the device's memory in MiB", expected, (long long) (total >> 20));
    }
    if (check_option("--empty", 0)) {
        check_equal("free bytes before anything is allocated", (long long) total, (long long) free_now);
    }
    CU_OK(cuStreamCreate(&stream, 0));
    witness = check_device(NULL, 4096);
    CU_OK(cuMemsetD8(witness, MARK, 4096));
    for (int way = 0; way < FILL_WAYS; way++) {
        if (fill_supported((fill_way_t) way)) {
            fill((fill_way_t) way);
        } else {
            check_here("no memory of the way \"%s\"", fill_names[way]);
        }
    }
    CU_OK(cuMemFree(witness));
    CU_OK(cuStreamDestroy(stream));
    return check_pass("memory taken in every way until there was no more");
}
