/* Adds to blocks of device memory in rounds, and does nothing in between, as a notebook does. All addresses and values
 * stay. Of large blocks the program checks about 256 windows in all, at regular distances.
 *
 *   --mib N       memory of all blocks; default 16
 *   --blocks N    number of blocks; default 8
 *   --rounds N    default 3
 *   --pause-ms N  time between two rounds; default 0
 *   --wait 1      prints READY after the first round, and goes on when the standard input ends; its last line then has
 *                 the seconds of the other rounds
 *   --until-end 1 prints READY after the first round, and does further rounds, at most --rounds, until the standard
 *                 input ends; then it prints the longest time between the ends of two rounds */
#include "check_driver.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

enum { MAX_BLOCKS = 1024, PATTERN = 97 * 4096, MAX_WINDOWS = 256 };

static CUdeviceptr blocks[MAX_BLOCKS];
static int block_count, count, values[PATTERN]; /* count: values of a block */

/* Fills a block with a pattern, which it copies on the device. */
static void fill(int i) {
    for (int at = 0; at < PATTERN; at++) {
        values[at] = i + at % 97;
    }
    CU_OK(cuMemAlloc(&blocks[i], (size_t) count * sizeof *values));
    size_t filled = count < PATTERN ? count : PATTERN;
    CU_OK(cuMemcpyHtoD(blocks[i], values, filled * sizeof *values));
    while (filled < (size_t) count) {
        size_t length = count - filled < filled ? count - filled : filled;
        CU_OK(cuMemcpyDtoD(blocks[i] + filled * sizeof *values, blocks[i], length * sizeof *values));
        filled += length;
    }
}

static void add(CUfunction function, int addend) {
    for (int i = 0; i < block_count; i++) {
        CHECK_LAUNCH(function, (count + 255) / 256, 256, 0, NULL, &blocks[i], &count, &addend);
    }
}

static void check(int i, int expected) {
    int windows = (count - 1) / PATTERN + 1, step = (windows - 1) / (MAX_WINDOWS / block_count + 1) + 1;
    for (int window = 0; window < windows; window += step) {
        int first = window * PATTERN, length = count - first < PATTERN ? count - first : PATTERN;
        CU_OK(cuMemcpyDtoH(values, blocks[i] + (size_t) first * sizeof *values, (size_t) length * sizeof *values));
        for (int at = 0; at < length; at++) {
            check_element("a block", (long long) i * count + first + at, i + at % 97 + expected, values[at]);
        }
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_context();
    long rounds = check_option("--rounds", 3), pause_ms = check_option("--pause-ms", 0);
    block_count = (int) check_option("--blocks", 8);
    check_true("--blocks", block_count > 0 && block_count <= MAX_BLOCKS);
    size_t bytes = ((size_t) check_option("--mib", 16) << 20) / (size_t) block_count;
    check_true("--mib", bytes >= sizeof *values && bytes / sizeof *values <= INT_MAX - PATTERN);
    count = (int) (bytes / sizeof *values);
    static CUdeviceptr seen[MAX_BLOCKS];
    CUfunction function = check_function(check_module("kernels.ptx"), "add_value");
    for (int i = 0; i < block_count; i++) {
        fill(i);
    }
    CUdeviceptr table = check_device(blocks, sizeof blocks);
    double begun = check_seconds(), last = 0, longest = 0;
    long until_end = check_option("--until-end", 0);
    int sum = 0;
    for (int round = 1; round <= rounds; round++) {
        add(function, round);
        CU_OK(cuCtxSynchronize());
        sum += round;
        if (until_end) {
            double now = check_seconds();
            longest = round > 1 && now - last > longest ? now - last : longest;
            last = now;
            if (round == 1) {
                printf("READY\n");
                fflush(stdout);
            }
            if (poll(&(struct pollfd) {.fd = STDIN_FILENO, .events = POLLIN}, 1, 0) > 0) {
                rounds = round;
            }
        }
        if (round == 1 && check_option("--wait", 0)) {
            printf("READY\n");
            fflush(stdout);
            while (getchar() != EOF) {
            }
            begun = check_seconds();
        }
        nanosleep(&(struct timespec) {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000}, NULL);
    }
    double took = check_seconds() - begun;
    CU_OK(cuMemcpyDtoH(seen, table, sizeof seen));
    check_true("the addresses in device memory", memcmp(seen, blocks, sizeof seen) == 0);
    for (int i = 0; i < block_count; i++) {
        check(i, sum);
        CU_OK(cuMemFree(blocks[i]));
    }
    CU_OK(cuMemFree(table));
    if (until_end) {
        check_measured("the longest time between two rounds was %.1f ms", longest * 1e3);
    }
    if (check_option("--wait", 0) == 0) {
        return check_pass("%ld rounds over %d blocks of %d values", rounds, block_count, count);
    }
    return check_pass("%ld rounds over %d blocks of %d values in %.3f s", rounds, block_count, count, took);
}
