/* Adds to blocks of device memory in rounds, and does nothing in between, as a notebook does. All addresses and values
 * stay. `--mib N` is the memory of all blocks, `--pause-ms N` the time between two rounds. With `--wait 1` the program
 * prints READY after the first round, and goes on when its standard input ends. */
#include "check_driver.h"

#include <time.h>

#define BLOCKS 8

static void add(CUfunction function, CUdeviceptr *blocks, int count, int addend) {
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_LAUNCH(function, (count + 255) / 256, 256, 0, NULL, &blocks[i], &count, &addend);
    }
}

static void check(const CUdeviceptr *blocks, int *values, int count, int expected) {
    for (int i = 0; i < BLOCKS; i++) {
        CU_OK(cuMemcpyDtoH(values, blocks[i], (size_t) count * sizeof *values));
        for (int at = 0; at < count; at++) {
            check_element("a block", (long long) i * count + at, i + at % 97 + expected, values[at]);
        }
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    long rounds = check_option("--rounds", 3), pause_ms = check_option("--pause-ms", 0);
    int count = (int) ((size_t) check_option("--mib", 16) * (1 << 20) / BLOCKS / sizeof(int)), sum = 0;
    int *values = check_memory((size_t) count * sizeof *values);
    CUdeviceptr blocks[BLOCKS], table, seen[BLOCKS];
    CUfunction function = check_function(check_module("kernels.ptx"), "add_value");
    for (int i = 0; i < BLOCKS; i++) {
        for (int at = 0; at < count; at++) {
            values[at] = i + at % 97;
        }
        blocks[i] = check_device(values, (size_t) count * sizeof *values);
    }
    table = check_device(blocks, sizeof blocks);
    for (int round = 1; round <= rounds; round++) {
        add(function, blocks, count, round);
        CU_OK(cuCtxSynchronize());
        sum += round;
        if (round == 1 && check_option("--wait", 0)) {
            printf("READY\n");
            fflush(stdout);
            while (getchar() != EOF) {
            }
        }
        nanosleep(&(struct timespec) {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000}, NULL);
    }
    CU_OK(cuMemcpyDtoH(seen, table, sizeof seen));
    check_true("the addresses in device memory", memcmp(seen, blocks, sizeof seen) == 0);
    check(blocks, values, count, sum);
    for (int i = 0; i < BLOCKS; i++) {
        CU_OK(cuMemFree(blocks[i]));
    }
    CU_OK(cuMemFree(table));
    free(values);
    return check_pass("%ld rounds over %d blocks of %d values", rounds, BLOCKS, count);
}
