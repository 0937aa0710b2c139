/* The common part of every test program: options, checks, and the line with the result. C11 and C++, no CUDA.
 *
 * A program prints `PASS name: detail` and exits 0, or prints `FAIL name: what, expected, got` and exits 1. It prints
 * `UNSUPPORTED name: why` and exits 77 only where a device attribute states that the device lacks the feature. The name
 * is that of the executable, because one source is built in several ways. All other output is the same in each run on
 * the same device, except for two kinds of lines: `# measured: ...` (times and rates), and `# here: ...` (facts that
 * depend on the way to the device).
 */
#ifndef HAWSER_PROGRAMS_CHECK_H
#define HAWSER_PROGRAMS_CHECK_H

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK_EXIT_UNSUPPORTED 77 /* automake and JUnit runners treat this exit code as "skipped" */

#if defined(__GNUC__)
#define CHECK_PRINTF __attribute__((format(printf, 1, 2)))
#else
#define CHECK_PRINTF
#endif

static int check_argc;
static char **check_argv;
static const char *check_name = "?";

/* Stores the arguments for check_option() and takes the program's name from them. Call it first in main(). */
static inline void check_begin(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    check_argc = argc;
    check_argv = argv;
    check_name = slash != NULL ? slash + 1 : argv[0];
}

/* The number after `option` on the command line; `otherwise` without that option. */
static inline long check_option(const char *option, long otherwise) {
    for (int i = 1; i + 1 < check_argc; i++) {
        if (strcmp(check_argv[i], option) == 0) {
            return strtol(check_argv[i + 1], NULL, 10);
        }
    }
    return otherwise;
}

static inline void check_print_(const char *word, const char *format, va_list arguments) {
    fflush(stdout);
    printf("%s %s: ", word, check_name);
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
}

/* Prints the failure and exits the program with 1. Any thread. */
static inline void CHECK_PRINTF check_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    check_print_("FAIL", format, arguments);
    va_end(arguments);
    exit(1);
}

/* Prints that the device lacks the tested feature and exits the program with 77. */
static inline void CHECK_PRINTF check_unsupported(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    check_print_("UNSUPPORTED", format, arguments);
    va_end(arguments);
    exit(CHECK_EXIT_UNSUPPORTED);
}

/* The last statement of main(): `return check_pass("%d elements", n);` */
static inline int CHECK_PRINTF check_pass(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    check_print_("PASS", format, arguments);
    va_end(arguments);
    return 0;
}

/* Prints a time or a rate, which differs between runs. */
static inline void CHECK_PRINTF check_measured(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("# measured: ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

/* Prints whether the device has a feature, according to its attribute, and which case was checked. */
static inline void CHECK_PRINTF check_here(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("# here: ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

static inline void check_equal(const char *what, long long expected, long long got) {
    if (expected != got) {
        check_fail("%s, expected %lld, got %lld", what, expected, got);
    }
}

/* As check_equal(), for element `index` of an array. */
static inline void check_element(const char *what, long long index, long long expected, long long got) {
    if (expected != got) {
        check_fail("%s[%lld], expected %lld, got %lld", what, index, expected, got);
    }
}

/* |expected - got| <= tolerance; a NaN fails. */
static inline void check_near(const char *what, long long index, double expected, double got, double tolerance) {
    if (!(fabs(expected - got) <= tolerance)) {
        check_fail("%s[%lld], expected %.9g within %.3g, got %.9g", what, index, expected, tolerance, got);
    }
}

static inline void check_text(const char *what, const char *expected, const char *got) {
    if (got == NULL || strcmp(expected, got) != 0) {
        check_fail("%s, expected \"%s\", got \"%s\"", what, expected, got != NULL ? got : "(null)");
    }
}

static inline void check_true(const char *what, int condition) {
    if (!condition) {
        check_fail("%s, expected true, got false", what);
    }
}

/* Generates reproducible test data (xorshift32). The caller keeps the state, which is never 0. */
static inline uint32_t check_random(uint32_t *state) {
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    *state = x;
    return x;
}

/* Uniform in [-1, 1), exactly representable in a float. */
static inline float check_random_float(uint32_t *state) {
    return (float) (int32_t) (check_random(state) >> 8) / 8388608.0f - 1.0f;
}

/* Seconds of a monotonic clock; for printed figures, never for a check. */
static inline double check_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

#endif
