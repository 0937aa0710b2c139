/*
 * cuFFT beside the Driver API: transforms of one to three dimensions in float and double, complex and real, in place and
 * out of place, of even, odd and prime sizes, in batches and with strides, held against sums that the program computes;
 * own work areas, streams, sizes, properties, destroyed plans and wrong calls. The functions are found by name.
 * Without a cuFFT at the other end, a plan returns CUFFT_NOT_SUPPORTED.
 */
#include "check_library.h"

#include <math.h>

enum { SUCCESS = 0, INVALID_PLAN = 1, NOT_SUPPORTED = 16, FORWARD = -1, INVERSE = 1 };
enum { R2C = 0x2a, C2R = 0x2c, C2C = 0x29, D2Z = 0x6a, Z2D = 0x6c, Z2Z = 0x69 };
enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5, C_16F = 6 };
enum { MAJOR_VERSION = 0, MAX_NUM_HOST_THREADS = 2 };
/* The function that makes a plan. */
enum { SIMPLE, MANY, MAKE_MANY, MANY64, XT, MAKERS };
#define MAX_RANK 3
#define GUARD 64 /* elements behind the output, which no transform writes */
#define REPEATS 200

typedef int handle_t;
typedef CUdeviceptr data_t; /* C's pointers to device memory */

#define MANY_OF(integer)                                                                                               \
    int, const integer *, const integer *, integer, integer, const integer *, integer, integer, int, integer
#define XT_PARAMETERS                                                                                                  \
    int, const long long *, const long long *, long long, long long, int, const long long *, long long, long long,     \
        int, long long, size_t *, int
DECLARE(cufftCreate, handle_t *);
DECLARE(cufftDestroy, handle_t);
DECLARE(cufftGetVersion, int *);
DECLARE(cufftGetProperty, int, int *);
DECLARE(cufftSetStream, handle_t, CUstream);
DECLARE(cufftSetWorkArea, handle_t, data_t);
DECLARE(cufftSetAutoAllocation, handle_t, int);
DECLARE(cufftSetPlanPropertyInt64, handle_t, int, long long);
DECLARE(cufftGetPlanPropertyInt64, handle_t, int, long long *);
DECLARE(cufftPlan1d, handle_t *, int, int, int);
DECLARE(cufftPlan2d, handle_t *, int, int, int);
DECLARE(cufftPlan3d, handle_t *, int, int, int, int);
DECLARE(cufftPlanMany, handle_t *, MANY_OF(int));
DECLARE(cufftMakePlan1d, handle_t, int, int, int, size_t *);
DECLARE(cufftMakePlanMany, handle_t, MANY_OF(int), size_t *);
DECLARE(cufftMakePlanMany64, handle_t, MANY_OF(long long), size_t *);
DECLARE(cufftXtMakePlanMany, handle_t, XT_PARAMETERS);
DECLARE(cufftXtGetSizeMany, handle_t, XT_PARAMETERS);
DECLARE(cufftGetSize, handle_t, size_t *);
DECLARE(cufftGetSize1d, handle_t, int, int, int, size_t *);
DECLARE(cufftGetSizeMany64, handle_t, MANY_OF(long long), size_t *);
DECLARE(cufftEstimate1d, int, int, int, size_t *);
DECLARE(cufftEstimate2d, int, int, int, size_t *);
DECLARE(cufftEstimate3d, int, int, int, int, size_t *);
DECLARE(cufftEstimateMany, MANY_OF(int), size_t *);
DECLARE(cufftExecC2C, handle_t, data_t, data_t, int);
DECLARE(cufftExecR2C, handle_t, data_t, data_t);
DECLARE(cufftExecC2R, handle_t, data_t, data_t);
DECLARE(cufftExecZ2Z, handle_t, data_t, data_t, int);
DECLARE(cufftExecD2Z, handle_t, data_t, data_t);
DECLARE(cufftExecZ2D, handle_t, data_t, data_t);
DECLARE(cufftXtExec, handle_t, data_t, data_t, int);

static void load(void) {
    open_library("libcufft.so.12", "libcufft.so.11");
    FIND(cufftCreate);
    FIND(cufftDestroy);
    FIND(cufftGetVersion);
    FIND(cufftGetProperty);
    FIND(cufftSetStream);
    FIND(cufftSetWorkArea);
    FIND(cufftSetAutoAllocation);
    FIND(cufftSetPlanPropertyInt64);
    FIND(cufftGetPlanPropertyInt64);
    FIND(cufftPlan1d);
    FIND(cufftPlan2d);
    FIND(cufftPlan3d);
    FIND(cufftPlanMany);
    FIND(cufftMakePlan1d);
    FIND(cufftMakePlanMany);
    FIND(cufftMakePlanMany64);
    FIND(cufftXtMakePlanMany);
    FIND(cufftXtGetSizeMany);
    FIND(cufftGetSize);
    FIND(cufftGetSize1d);
    FIND(cufftGetSizeMany64);
    FIND(cufftEstimate1d);
    FIND(cufftEstimate2d);
    FIND(cufftEstimate3d);
    FIND(cufftEstimateMany);
    FIND(cufftExecC2C);
    FIND(cufftExecR2C);
    FIND(cufftExecC2R);
    FIND(cufftExecZ2Z);
    FIND(cufftExecD2Z);
    FIND(cufftExecZ2D);
    FIND(cufftXtExec);
}

#define WRONG(call) check_true(#call " is an error", (call) != SUCCESS)

/* A transform of real or complex numbers. */
typedef struct transform {
    int rank, n[MAX_RANK], batch;
    int type, direction; /* the type in float; the direction of real numbers follows from it */
    int is_double, in_place;
    int maker;
    int is_advanced; /* with the layouts of sides() */
} transform_t;

/* The elements of input or output: an index is batch * dist plus coordinates * steps. */
typedef struct side {
    int is_complex, sizes[MAX_RANK], embed[MAX_RANK], stride, dist;
    int steps[MAX_RANK];
    int elements; /* from the first to the last one, of all batches */
} side_t;

static int product(const int *numbers, int count) {
    int result = 1;
    for (int i = 0; i < count; i++) {
        result *= numbers[i];
    }
    return result;
}

/* The layout of a side. Without an advanced layout elements are packed; real rows in place are as long as complex ones. */
static side_t side_of(const transform_t *t, int is_input) {
    int last = t->rank - 1;
    side_t side = {.is_complex = is_input ? t->type != R2C : t->type != C2R, .stride = 1};
    for (int i = 0; i < t->rank; i++) {
        side.sizes[i] = t->n[i];
    }
    if (side.is_complex && t->type != C2C) {
        side.sizes[last] = t->n[last] / 2 + 1;
    }
    for (int i = 0; i < t->rank; i++) {
        side.embed[i] = side.sizes[i] + (t->is_advanced ? (is_input ? 1 : 2) : 0);
    }
    if (t->in_place && !side.is_complex && !t->is_advanced) {
        side.embed[last] = 2 * (t->n[last] / 2 + 1);
    }
    if (t->is_advanced) {
        side.stride = is_input ? 2 : 3;
    }
    side.dist = product(side.embed, t->rank) * side.stride + (t->is_advanced ? 5 : 0);
    int step = side.stride;
    for (int i = last; i >= 0; i--) {
        side.steps[i] = step;
        step *= side.embed[i];
    }
    side.elements = side.dist * t->batch;
    return side;
}

/* The place of element `at` of a batch, of elements in the order of their coordinates. */
static int place_of(const transform_t *t, const side_t *side, int batch, int at) {
    int place = batch * side->dist;
    for (int i = t->rank - 1; i >= 0; i--) {
        place += at % side->sizes[i] * side->steps[i];
        at /= side->sizes[i];
    }
    return place;
}

/* Transforms complex numbers (pairs) in every dimension by sums. */
static void sum_up(const transform_t *t, double *data, int sign) {
    int total = product(t->n, t->rank), step = total;
    for (int dimension = 0; dimension < t->rank; dimension++) {
        int n = t->n[dimension];
        step /= n;
        double *roots = malloc(sizeof *roots * 2 * (size_t) n), *line = malloc(sizeof *line * 2 * (size_t) n);
        for (int k = 0; k < n; k++) {
            double angle = sign * 2 * 3.14159265358979323846 * k / n;
            roots[2 * k] = cos(angle);
            roots[2 * k + 1] = sin(angle);
        }
        for (int first = 0; first < total; first++) {
            if (first / step % n != 0) {
                continue;
            }
            for (int k = 0; k < n; k++) {
                double real = 0, imaginary = 0;
                for (int j = 0; j < n; j++) {
                    const double *x = data + 2 * (first + j * step), *w = roots + 2 * (int) ((long) j * k % n);
                    real += x[0] * w[0] - x[1] * w[1];
                    imaginary += x[0] * w[1] + x[1] * w[0];
                }
                line[2 * k] = real;
                line[2 * k + 1] = imaginary;
            }
            for (int k = 0; k < n; k++) {
                memcpy(data + 2 * (first + k * step), line + 2 * k, 2 * sizeof *line);
            }
        }
        free(roots);
        free(line);
    }
}

/* The numbers of a whole transform that a side has: of half a spectrum, the first half of each row. */
static int whole_index(const transform_t *t, const side_t *side, int at) {
    int row = side->sizes[t->rank - 1];
    return at / row * t->n[t->rank - 1] + at % row;
}

static void put(const transform_t *t, const side_t *side, void *buffer, int place, const double *number) {
    for (int part = 0; part <= side->is_complex; part++) {
        int at = side->is_complex ? 2 * place + part : place;
        if (t->is_double) {
            ((double *) buffer)[at] = number[part];
        } else {
            ((float *) buffer)[at] = (float) number[part];
        }
    }
}

static double get(const transform_t *t, const side_t *side, const void *buffer, int place, int part) {
    int at = side->is_complex ? 2 * place + part : place;
    return t->is_double ? ((const double *) buffer)[at] : ((const float *) buffer)[at];
}

static size_t bytes_of(const transform_t *t, const side_t *side) {
    return (size_t) (side->elements + GUARD) * (side->is_complex ? 2 : 1) * (t->is_double ? 8 : 4);
}

static int typed(const transform_t *t) {
    return t->is_double ? t->type | 0x40 : t->type;
}

static long long *widen(const int *numbers, long long *wide) {
    for (int i = 0; i < MAX_RANK; i++) {
        wide[i] = numbers[i];
    }
    return wide;
}

/* Makes a plan by the function that the transform wants. */
static handle_t plan_of(const transform_t *t, const side_t *in, const side_t *out, int *status) {
    handle_t plan = -1;
    size_t size = 1, same = 2;
    const int *inembed = t->is_advanced ? in->embed : NULL, *onembed = t->is_advanced ? out->embed : NULL;
    long long n[MAX_RANK], wide_in[MAX_RANK], wide_out[MAX_RANK];
    widen(t->n, n);
    const long long *winembed = t->is_advanced ? widen(in->embed, wide_in) : NULL;
    const long long *wonembed = t->is_advanced ? widen(out->embed, wide_out) : NULL;
    int real = t->is_double ? R_64F : R_32F, complex = t->is_double ? C_64F : C_32F;
    if (t->maker > MANY) {
        OK(cufftCreate(&plan));
    }
    switch (t->maker) {
        case SIMPLE:
            *status = t->rank == 1 ? cufftPlan1d(&plan, t->n[0], typed(t), t->batch)
                : t->rank == 2     ? cufftPlan2d(&plan, t->n[0], t->n[1], typed(t))
                                   : cufftPlan3d(&plan, t->n[0], t->n[1], t->n[2], typed(t));
            break;
        case MANY:
            *status = cufftPlanMany(&plan, t->rank, t->n, inembed, in->stride, in->dist, onembed, out->stride,
                                    out->dist, typed(t), t->batch);
            break;
        case MAKE_MANY:
            *status = cufftMakePlanMany(plan, t->rank, t->n, inembed, in->stride, in->dist, onembed, out->stride,
                                        out->dist, typed(t), t->batch, &size);
            break;
        case MANY64:
            *status = cufftMakePlanMany64(plan, t->rank, n, winembed, in->stride, in->dist, wonembed, out->stride,
                                          out->dist, typed(t), t->batch, &size);
            break;
        default:
            *status = cufftXtMakePlanMany(plan, t->rank, n, winembed, in->stride, in->dist,
                                          in->is_complex ? complex : real, wonembed, out->stride, out->dist,
                                          out->is_complex ? complex : real, t->batch, &size, complex);
    }
    if (t->maker > MANY && *status == SUCCESS) {
        OK(cufftGetSize(plan, &same));
        check_equal("the work size", (long long) size, (long long) same);
    }
    return plan;
}

static int execute(const transform_t *t, handle_t plan, data_t in, data_t out) {
    if (t->maker == XT) {
        return cufftXtExec(plan, in, out, t->direction);
    }
    switch (typed(t)) {
        case C2C:
            return cufftExecC2C(plan, in, out, t->direction);
        case R2C:
            return cufftExecR2C(plan, in, out);
        case C2R:
            return cufftExecC2R(plan, in, out);
        case Z2Z:
            return cufftExecZ2Z(plan, in, out, t->direction);
        case D2Z:
            return cufftExecD2Z(plan, in, out);
        default:
            return cufftExecZ2D(plan, in, out);
    }
}

/* Memory of a transform and its expected result. */
typedef struct memory {
    side_t in, out;
    void *host_in, *host_out;
    double *expected; /* whole transforms, batch after batch */
    data_t device_in, device_out;
} memory_t;

static memory_t prepare(const transform_t *t) {
    memory_t m = {.in = side_of(t, 1), .out = side_of(t, 0)};
    int total = product(t->n, t->rank), numbers = product(m.in.sizes, t->rank);
    size_t in_bytes = bytes_of(t, &m.in), out_bytes = bytes_of(t, &m.out);
    m.host_in = calloc(1, in_bytes);
    m.host_out = malloc(out_bytes);
    m.expected = calloc((size_t) total * (size_t) t->batch * 2, sizeof(double));
    uint32_t seed = (uint32_t) (total * 31 + t->type);
    for (int b = 0; b < t->batch; b++) {
        double *data = m.expected + 2 * (size_t) total * (size_t) b;
        for (int i = 0; i < total; i++) {
            data[2 * i] = check_random_float(&seed) - 0.5;
            data[2 * i + 1] = t->type == C2C ? check_random_float(&seed) - 0.5 : 0;
        }
        if (t->type == C2R) { /* the spectrum of real numbers */
            sum_up(t, data, FORWARD);
        }
        for (int i = 0; i < numbers; i++) {
            put(t, &m.in, m.host_in, place_of(t, &m.in, b, i), data + 2 * whole_index(t, &m.in, i));
        }
        sum_up(t, data, t->direction);
    }
    memset(m.host_out, 0x5a, out_bytes);
    CU_OK(cuMemAlloc(&m.device_in, in_bytes > out_bytes ? in_bytes : out_bytes));
    m.device_out = m.device_in;
    if (!t->in_place) {
        CU_OK(cuMemAlloc(&m.device_out, out_bytes));
    }
    /* In place, the guard lies behind the input, which is as long as the output. */
    size_t data_bytes = in_bytes / (size_t) (m.in.elements + GUARD) * (size_t) m.in.elements;
    CU_OK(cuMemcpyHtoD(m.device_out, m.host_out, out_bytes));
    CU_OK(cuMemcpyHtoD(m.device_in, m.host_in, data_bytes));
    return m;
}

static void compare(const transform_t *t, memory_t *m, const char *what) {
    size_t out_bytes = bytes_of(t, &m->out), element = out_bytes / (size_t) (m->out.elements + GUARD);
    CU_OK(cuMemcpyDtoH(m->host_out, m->device_out, out_bytes));
    int total = product(t->n, t->rank), numbers = product(m->out.sizes, t->rank);
    double difference = 0, norm = 0;
    for (int b = 0; b < t->batch; b++) {
        for (int i = 0; i < numbers; i++) {
            const double *expected =
                m->expected + 2 * ((size_t) total * (size_t) b + (size_t) whole_index(t, &m->out, i));
            for (int part = 0; part <= m->out.is_complex; part++) {
                double got = get(t, &m->out, m->host_out, place_of(t, &m->out, b, i), part);
                difference += (got - expected[part]) * (got - expected[part]);
                norm += expected[part] * expected[part];
            }
        }
    }
    if (!(sqrt(difference / norm) < (t->is_double ? 1e-12 : 5e-6))) {
        check_fail("%s: %dD of %d %d %d, batch %d, type 0x%x, direction %d, maker %d%s%s, expected the sums, got an "
                   "error of %g",
                   what, t->rank, t->n[0], t->n[1], t->n[2], t->batch, typed(t), t->direction, t->maker,
                   t->in_place ? ", in place" : "", t->is_advanced ? ", strides" : "", sqrt(difference / norm));
    }
    for (size_t i = 0; i < GUARD * element; i++) {
        check_element("a byte behind the output", (long long) i, 0x5a,
                      ((unsigned char *) m->host_out)[out_bytes - GUARD * element + i]);
    }
}

static void release(const transform_t *t, memory_t *m) {
    CU_OK(cuMemFree(m->device_in));
    if (!t->in_place) {
        CU_OK(cuMemFree(m->device_out));
    }
    free(m->host_in);
    free(m->host_out);
    free(m->expected);
}

static void check_transform(const transform_t *t) {
    memory_t m = prepare(t);
    int status = SUCCESS;
    handle_t plan = plan_of(t, &m.in, &m.out, &status);
    if (status != SUCCESS) {
        check_fail("a plan: %dD of %d %d %d, type 0x%x, maker %d, expected success, got %d", t->rank, t->n[0], t->n[1],
                   t->n[2], typed(t), t->maker, status);
    }
    OK(execute(t, plan, m.device_in, m.device_out));
    compare(t, &m, "a transform");
    OK(cufftDestroy(plan));
    release(t, &m);
}

/* Every type and direction of a size. Returns their number. */
static int check_size(int rank, const int *n, int batch, int maker, int is_advanced) {
    static const struct {
        int type, direction;
    } kinds[] = {{C2C, FORWARD}, {C2C, INVERSE}, {R2C, FORWARD}, {C2R, INVERSE}};
    int checked = 0;
    for (int i = 0; i < 4; i++) {
        for (int is_double = 0; is_double < 2; is_double++) {
            for (int in_place = 0; in_place < (is_advanced ? 1 : 2); in_place++) {
                transform_t t = {.rank = rank,
                                 .batch = batch,
                                 .type = kinds[i].type,
                                 .direction = kinds[i].direction,
                                 .is_double = is_double,
                                 .in_place = in_place,
                                 .maker = maker,
                                 .is_advanced = is_advanced};
                memcpy(t.n, n, sizeof t.n);
                check_transform(&t);
                checked++;
            }
        }
    }
    return checked;
}

static int check_sizes(void) {
    static const int lines[] = {2, 3, 8, 15, 16, 31, 49, 60, 97, 111, 256, 509};
    static const int planes[][MAX_RANK] = {{8, 12, 1}, {7, 15, 1}, {17, 37, 1}, {32, 5, 1}};
    static const int boxes[][MAX_RANK] = {{4, 6, 10}, {5, 7, 9}, {3, 8, 37}};
    int checked = 0;
    for (int i = 0; i < (int) (sizeof lines / sizeof *lines); i++) {
        const int n[MAX_RANK] = {lines[i], 1, 1};
        checked += check_size(1, n, i % 3 + 1, SIMPLE, 0);
    }
    for (int i = 0; i < (int) (sizeof planes / sizeof *planes); i++) {
        checked += check_size(2, planes[i], 1, SIMPLE, 0);
    }
    for (int i = 0; i < (int) (sizeof boxes / sizeof *boxes); i++) {
        checked += check_size(3, boxes[i], 1, SIMPLE, 0);
    }
    for (int maker = MANY; maker < MAKERS; maker++) {
        static const int line[MAX_RANK] = {21, 1, 1};
        for (int is_advanced = 0; is_advanced < 2; is_advanced++) {
            checked += check_size(1, line, 4, maker, is_advanced);
            checked += check_size(2, planes[1], 3, maker, is_advanced);
            checked += check_size(3, boxes[0], 2, maker, is_advanced);
        }
    }
    return checked;
}

/* A plan with the program's own work area, executed many times in a stream while other plans come and go. */
static void check_stream(void) {
    transform_t t = {.rank = 2, .n = {36, 50, 1}, .batch = 5, .type = C2C, .direction = FORWARD, .maker = MAKE_MANY};
    memory_t m = prepare(&t);
    handle_t plan;
    size_t size = 0;
    CUstream stream;
    CU_OK(cuStreamCreate(&stream, 0)); /* copies of the default stream come first */
    OK(cufftCreate(&plan));
    OK(cufftSetAutoAllocation(plan, 0));
    OK(cufftMakePlanMany(plan, 2, t.n, NULL, 1, 0, NULL, 1, 0, C2C, t.batch, &size));
    data_t area;
    CU_OK(cuMemAlloc(&area, size > 0 ? size : 256));
    OK(cufftSetWorkArea(plan, area));
    OK(cufftSetStream(plan, stream));
    for (int i = 0; i < REPEATS; i++) {
        OK(cufftExecC2C(plan, m.device_in, m.device_out, i % 2 == 0 ? INVERSE : FORWARD));
        if (i % 50 == 0) {
            handle_t other;
            OK(cufftPlan1d(&other, 64 + i, C2C, 1));
            OK(cufftDestroy(other));
        }
    }
    CU_OK(cuStreamSynchronize(stream));
    compare(&t, &m, "a stream");
    OK(cufftSetStream(plan, NULL));
    CU_OK(cuMemsetD8(m.device_out, 0x5a, bytes_of(&t, &m.out)));
    OK(cufftXtExec(plan, m.device_in, m.device_out, FORWARD));
    compare(&t, &m, "the default stream");
    OK(cufftDestroy(plan));
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(area));
    release(&t, &m);
}

static void check_facts(void) {
    int version = 0, major = 0;
    OK(cufftGetVersion(&version));
    OK(cufftGetProperty(MAJOR_VERSION, &major));
    if (version / 1000 != major || major < 11) {
        check_fail("the version, expected that of cufftGetProperty, got %d and %d", version, major);
    }
    static const int n[MAX_RANK] = {12, 10, 6};
    static const long long wide[MAX_RANK] = {12, 10, 6};
    size_t size;
    OK(cufftEstimate1d(1000, C2C, 2, &size));
    OK(cufftEstimate2d(12, 10, R2C, &size));
    OK(cufftEstimate3d(12, 10, 6, Z2D, &size));
    OK(cufftEstimateMany(3, n, NULL, 1, 0, NULL, 1, 0, Z2Z, 2, &size));
    handle_t plan;
    OK(cufftCreate(&plan));
    OK(cufftGetSize1d(plan, 1000, C2C, 2, &size));
    OK(cufftGetSizeMany64(plan, 3, wide, NULL, 1, 0, NULL, 1, 0, R2C, 2, &size));
    OK(cufftXtGetSizeMany(plan, 2, wide, NULL, 1, 0, C_32F, NULL, 1, 0, C_32F, 2, &size, C_32F));
    OK(cufftDestroy(plan));
    long long threads = 0;
    OK(cufftCreate(&plan));
    int set = cufftSetPlanPropertyInt64(plan, MAX_NUM_HOST_THREADS, 4);
    if (set == SUCCESS) { /* cuFFT 12.0 lacks the property */
        OK(cufftGetPlanPropertyInt64(plan, MAX_NUM_HOST_THREADS, &threads));
        check_equal("the property", 4, threads);
    } else {
        IS(NOT_SUPPORTED, set);
    }
    OK(cufftMakePlan1d(plan, 64, C2C, 1, &size));
    IS(NOT_SUPPORTED, cufftSetPlanPropertyInt64(plan, MAX_NUM_HOST_THREADS, 2)); /* documented: too late */
    OK(cufftDestroy(plan));
}

/* An impulse in 16 bits, whose spectrum is 1 everywhere. A GPU may lack the type. */
static void check_half(void) {
    static const long long n[1] = {64};
    uint16_t data[128] = {0x3c00};
    handle_t plan;
    size_t size;
    OK(cufftCreate(&plan));
    int status = cufftXtMakePlanMany(plan, 1, n, NULL, 1, 0, C_16F, NULL, 1, 0, C_16F, 1, &size, C_16F);
    if (status != NOT_SUPPORTED) {
        IS(SUCCESS, status);
        data_t device;
        CU_OK(cuMemAlloc(&device, sizeof data));
        CU_OK(cuMemcpyHtoD(device, data, sizeof data));
        OK(cufftXtExec(plan, device, device, FORWARD));
        CU_OK(cuMemcpyDtoH(data, device, sizeof data));
        for (int i = 0; i < 64; i++) {
            check_element("the spectrum of an impulse", i, 0x3c00, data[2 * i]);
            check_element("its imaginary part", i, 0, data[2 * i + 1] & 0x7fff);
        }
        CU_OK(cuMemFree(device));
    }
    OK(cufftDestroy(plan));
}

static void check_errors(void) {
    transform_t t = {.rank = 1, .n = {24, 1, 1}, .batch = 1, .type = C2C, .direction = FORWARD};
    memory_t m = prepare(&t);
    handle_t plan = -1, unmade;
    size_t size;
    WRONG(cufftPlan1d(&plan, 0, C2C, 1));
    WRONG(cufftPlan1d(&plan, -8, C2C, 1));
    WRONG(cufftPlan1d(&plan, 8, 0x17, 1));
    WRONG(cufftPlan2d(&plan, 8, -1, R2C));
    WRONG(cufftPlanMany(&plan, 4, m.in.sizes, NULL, 1, 0, NULL, 1, 0, C2C, 1));
    IS(INVALID_PLAN, cufftDestroy(123456));
    IS(INVALID_PLAN, cufftExecC2C(123456, m.device_in, m.device_out, FORWARD));
    IS(INVALID_PLAN, cufftMakePlan1d(123456, 8, C2C, 1, &size));
    OK(cufftCreate(&unmade));
    WRONG(cufftExecC2C(unmade, m.device_in, m.device_out, FORWARD));
    OK(cufftDestroy(unmade));
    OK(cufftPlan1d(&plan, 24, C2C, 1));
    WRONG(cufftMakePlan1d(plan, 24, C2C, 1, &size)); /* a handle gets a plan once */
    WRONG(cufftExecC2C(plan, m.device_in, m.device_out, 0));
    OK(cufftExecC2C(plan, m.device_in, m.device_out, FORWARD));
    compare(&t, &m, "a transform after wrong calls");
    OK(cufftDestroy(plan));
    IS(INVALID_PLAN, cufftExecC2C(plan, m.device_in, m.device_out, FORWARD));
    IS(INVALID_PLAN, cufftDestroy(plan));
    release(&t, &m);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    handle_t first;
    int made = cufftPlan1d(&first, 16, C2C, 1);
    if (made == NOT_SUPPORTED) {
        check_unsupported("cufftPlan1d: %d", made);
    }
    IS(SUCCESS, made);
    OK(cufftDestroy(first));
    check_facts();
    int checked = check_sizes();
    check_stream();
    check_half();
    check_errors();
    return check_pass("%d transforms, %d executions in a stream", checked, REPEATS);
}
