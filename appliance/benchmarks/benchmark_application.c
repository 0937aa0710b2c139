/* Loops like those of applications: kernels that depend on each other, with small copies between them. */
#include "benchmark.h"

enum { TILE = 16, REPEATS = 3 };

static const char IMAGE_MATRIX[] = "kernels.ptx", IMAGE[] = "benchmark.ptx";

static int steps_of(const benchmark_options_t *options, int steps) {
    int scaled = (int) ((long) steps * options->scale / 100);
    return scaled < 2 ? 2 : scaled;
}

/* Square matrices: a product, its blend into a factor, 64 bytes to the host, a decision there, 64 bytes back. */
typedef struct matrices {
    CUfunction multiply, blend;
    CUdeviceptr a, b, c;
    int size;
} matrices_t;

static matrices_t matrices_make(int size) {
    size_t count = (size_t) size * (size_t) size;
    float *values = check_memory(count * sizeof(float));
    uint32_t random = 1;
    matrices_t m = {.multiply = benchmark_function(IMAGE_MATRIX, "matrix_mul"),
                    .blend = benchmark_function(IMAGE, "blend"),
                    .size = size};
    for (size_t i = 0; i < count; i++) {
        values[i] = check_random_float(&random) / (float) size;
    }
    m.a = check_device(values, count * sizeof(float));
    m.b = check_device(values, count * sizeof(float));
    m.c = check_device(values, count * sizeof(float));
    free(values);
    return m;
}

static void matrices_free(const matrices_t *m) {
    CU_OK(cuMemFree(m->a));
    CU_OK(cuMemFree(m->b));
    CU_OK(cuMemFree(m->c));
}

static void matrices_multiply(const matrices_t *m, CUstream stream) {
    CUdeviceptr a = m->a, b = m->b, c = m->c;
    int size = m->size, count = size * size;
    float by = 0.01f;
    void *product[] = {&a, &b, &c, &size};
    unsigned int blocks = (unsigned int) (size / TILE);
    CU_OK(cuLaunchKernel(m->multiply, blocks, blocks, 1, TILE, TILE, 1, 0, stream, product, NULL));
    CHECK_LAUNCH(m->blend, (count + 255) / 256, 256, 0, stream, &a, &c, &count, &by);
}

static double matrices_run(const matrices_t *m, int steps) {
    float line[16];
    double start = check_seconds();
    for (int step = 0; step < steps; step++) {
        matrices_multiply(m, NULL);
        CU_OK(cuMemcpyDtoH(line, m->c, sizeof(line)));
        line[step % 16] *= 0.5f;
        CU_OK(cuMemcpyHtoD(m->b, line, sizeof(line)));
    }
    CU_OK(cuCtxSynchronize());
    return check_seconds() - start;
}

static void matrices(const benchmark_options_t *options, const char *name, int size, int steps) {
    double seconds[REPEATS];
    matrices_t m = matrices_make(size);
    steps = steps_of(options, steps);
    matrices_run(&m, 1 + steps / 4);
    for (int i = 0; i < REPEATS; i++) {
        seconds[i] = matrices_run(&m, steps);
    }
    benchmark_figure("applications", name, "ms", benchmark_median(seconds, REPEATS) * 1e3);
    matrices_free(&m);
}

/*
 * Bodies that attract each other: each step has two kernels and an event, and each tenth step copies one body to the
 * host.
 */
static double bodies_run(CUfunction forces, CUfunction move, CUdeviceptr memory[3], int count, int steps,
                         CUevent event) {
    float body[4], step_s = 0.001f;
    double start = check_seconds();
    for (int step = 0; step < steps; step++) {
        CHECK_LAUNCH(forces, count / 256, 256, 0, NULL, &memory[0], &memory[2], &count);
        CHECK_LAUNCH(move, count / 256, 256, 0, NULL, &memory[0], &memory[1], &memory[2], &step_s, &count);
        CU_OK(cuEventRecord(event, NULL));
        if (step % 10 == 9) {
            CU_OK(cuMemcpyDtoH(body, memory[0], sizeof(body)));
            check_true("a body's place is a number", isfinite(body[0]) && isfinite(body[1]) && isfinite(body[2]));
        }
    }
    CU_OK(cuEventSynchronize(event));
    return check_seconds() - start;
}

static void bodies(const benchmark_options_t *options, int count, int steps) {
    double seconds[REPEATS];
    CUfunction forces = benchmark_function(IMAGE, "nbody_forces"), move = benchmark_function(IMAGE, "nbody_move");
    size_t bytes = (size_t) count * 4 * sizeof(float);
    float *values = check_memory(bytes);
    uint32_t random = 2;
    for (int i = 0; i < 4 * count; i++) {
        values[i] = i % 4 == 3 ? 1.0f / (float) count : check_random_float(&random);
    }
    CUdeviceptr memory[3] = {check_device(values, bytes), check_device(NULL, bytes), check_device(NULL, bytes)};
    CUevent event;
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CU_OK(cuMemsetD8(memory[1], 0, bytes));
    steps = steps_of(options, steps);
    bodies_run(forces, move, memory, count, 1 + steps / 4, event);
    for (int i = 0; i < REPEATS; i++) {
        seconds[i] = bodies_run(forces, move, memory, count, steps, event);
    }
    benchmark_figure("applications", "nbody", "ms", benchmark_median(seconds, REPEATS) * 1e3);
    CU_OK(cuEventDestroy(event));
    for (int i = 0; i < 3; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
    free(values);
}

void benchmark_applications(const benchmark_options_t *options) {
    if (options->light) {
        matrices(options, "matrix_small", 64, 100);
        matrices(options, "matrix_large", 128, 20);
        bodies(options, 512, 40);
    } else {
        matrices(options, "matrix_small", 1024, 500);
        matrices(options, "matrix_large", 2048, 100);
        bodies(options, 16384, 500);
    }
}

/* One of several identical tenants: products in bursts, and between them a mebibyte each way. */
void benchmark_tenant(const benchmark_options_t *options) {
    enum { BYTES = 1 << 20, BURST = 8 };
    matrices_t m = matrices_make(options->light ? 64 : 512);
    char *host = check_memory(BYTES);
    CUdeviceptr memory = check_device(host, BYTES);
    int steps = steps_of(options, options->light ? 40 : 500);
    double start = 0;
    for (int step = -(1 + steps / 4); step < steps; step++) {
        if (step == 0) {
            CU_OK(cuCtxSynchronize());
            printf("READY\n");
            fflush(stdout);
            benchmark_await_end_of_input();
            start = check_seconds();
        }
        for (int i = 0; i < BURST; i++) {
            matrices_multiply(&m, NULL);
        }
        CU_OK(cuMemcpyHtoD(memory, host, BYTES));
        CU_OK(cuMemcpyDtoH(host, memory, BYTES));
    }
    benchmark_figure("tenant", "work", "ms", (check_seconds() - start) * 1e3);
    matrices_free(&m);
    CU_OK(cuMemFree(memory));
    free(host);
}
