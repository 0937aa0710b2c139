/* Shared by the files of hawser_benchmark. A figure is one line of JSON on stdout. One thread. */
#ifndef HAWSER_BENCHMARKS_BENCHMARK_H
#define HAWSER_BENCHMARKS_BENCHMARK_H

#include "check_driver.h"

#include <stdbool.h>

/* The command line: the numbers for all parts. */
typedef struct benchmark_options {
    double budget_s;  /* for each measurement that repeats its subject */
    double warm_up_s; /* before the first measurement of a process */
    size_t max_bytes; /* of the longest copy */
    int small_copies; /* of 8 bytes, each way */
    int scale;        /* percent of the application loops' full number of steps */
    bool light;       /* smaller matrices and fewer bodies, for a software GPU */
} benchmark_options_t;

/* Changes the order of the values. */
double benchmark_median(double *values, int count);

/* Prints {"name": "part.what", "unit": unit, "value": value}. */
void benchmark_figure(const char *part, const char *what, const char *unit, double value);

/* The same with the mean beside it. */
void benchmark_figure_with_mean(const char *part, const char *what, const char *unit, double median, double mean);

/* Loads a function of a module that lies beside the program. */
CUfunction benchmark_function(const char *file, const char *name);

/* Launches `four`, an empty kernel with four parameters. */
void benchmark_launch(CUfunction four, CUstream stream);

/* Reads standard input to its end: the process at the other end decides when this one continues. */
void benchmark_await_end_of_input(void);

/* The parts. A context is current, except for limits, which use no CUDA. */
void benchmark_copies(const benchmark_options_t *options, bool only_pinned);
void benchmark_small_copies(const benchmark_options_t *options);
void benchmark_managed(const benchmark_options_t *options);
void benchmark_applications(const benchmark_options_t *options);
void benchmark_tenant(const benchmark_options_t *options);
void benchmark_limits(const benchmark_options_t *options);

#endif
