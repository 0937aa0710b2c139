/*
 * Layers by the older functions of cuDNN: convolutions with padding, strides, dilation and groups in all directions,
 * bias and rectification, pooling, and normalization, held against sums that the program computes.
 */
#include <stddef.h>

#define FUNCTIONS(F)                                                                                                   \
    F(int, cudnnCreateFilterDescriptor, desc_t *)                                                                      \
    F(int, cudnnDestroyFilterDescriptor, desc_t)                                                                       \
    F(int, cudnnSetFilter4dDescriptor, desc_t, int, int, int, int, int, int)                                           \
    F(int, cudnnCreateConvolutionDescriptor, desc_t *)                                                                 \
    F(int, cudnnDestroyConvolutionDescriptor, desc_t)                                                                  \
    F(int, cudnnSetConvolution2dDescriptor, desc_t, int, int, int, int, int, int, int, int)                            \
    F(int, cudnnSetConvolutionMathType, desc_t, int)                                                                   \
    F(int, cudnnSetConvolutionGroupCount, desc_t, int)                                                                 \
    F(int, cudnnGetConvolutionNdForwardOutputDim, desc_t, desc_t, desc_t, int, int *)                                  \
    F(int, cudnnGetConvolutionForwardAlgorithm_v7, handle_t, desc_t, desc_t, desc_t, desc_t, int, int *, perf_t *)     \
    F(int, cudnnGetConvolutionBackwardDataAlgorithm_v7, handle_t, desc_t, desc_t, desc_t, desc_t, int, int *,          \
      perf_t *)                                                                                                        \
    F(int, cudnnGetConvolutionBackwardFilterAlgorithm_v7, handle_t, desc_t, desc_t, desc_t, desc_t, int, int *,        \
      perf_t *)                                                                                                        \
    F(int, cudnnFindConvolutionForwardAlgorithm, handle_t, desc_t, desc_t, desc_t, desc_t, int, int *, perf_t *)       \
    F(int, cudnnFindConvolutionBackwardDataAlgorithm, handle_t, desc_t, desc_t, desc_t, desc_t, int, int *, perf_t *)  \
    F(int, cudnnFindConvolutionBackwardFilterAlgorithm, handle_t, desc_t, desc_t, desc_t, desc_t, int, int *,          \
      perf_t *)                                                                                                        \
    F(int, cudnnFindConvolutionForwardAlgorithmEx, handle_t, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t, desc_t, \
      CUdeviceptr, int, int *, perf_t *, CUdeviceptr, size_t)                                                          \
    F(int, cudnnFindConvolutionBackwardDataAlgorithmEx, handle_t, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t,    \
      desc_t, CUdeviceptr, int, int *, perf_t *, CUdeviceptr, size_t)                                                  \
    F(int, cudnnFindConvolutionBackwardFilterAlgorithmEx, handle_t, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t,  \
      desc_t, CUdeviceptr, int, int *, perf_t *, CUdeviceptr, size_t)                                                  \
    F(int, cudnnGetConvolutionForwardAlgorithmMaxCount, handle_t, int *)                                               \
    F(int, cudnnGetConvolutionBackwardDataAlgorithmMaxCount, handle_t, int *)                                          \
    F(int, cudnnGetConvolutionBackwardFilterAlgorithmMaxCount, handle_t, int *)                                        \
    F(int, cudnnConvolutionForward, handle_t, const void *, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t, int,     \
      CUdeviceptr, size_t, const void *, desc_t, CUdeviceptr)                                                          \
    F(int, cudnnConvolutionBackwardData, handle_t, const void *, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t,     \
      int, CUdeviceptr, size_t, const void *, desc_t, CUdeviceptr)                                                     \
    F(int, cudnnConvolutionBackwardFilter, handle_t, const void *, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t,   \
      int, CUdeviceptr, size_t, const void *, desc_t, CUdeviceptr)                                                     \
    F(int, cudnnConvolutionBackwardBias, handle_t, const void *, desc_t, CUdeviceptr, const void *, desc_t,            \
      CUdeviceptr)                                                                                                     \
    F(int, cudnnConvolutionBiasActivationForward, handle_t, const void *, desc_t, CUdeviceptr, desc_t, CUdeviceptr,    \
      desc_t, int, CUdeviceptr, size_t, const void *, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t, desc_t,        \
      CUdeviceptr)                                                                                                     \
    F(int, cudnnCreateActivationDescriptor, desc_t *)                                                                  \
    F(int, cudnnDestroyActivationDescriptor, desc_t)                                                                   \
    F(int, cudnnSetActivationDescriptor, desc_t, int, int, double)                                                     \
    F(int, cudnnCreatePoolingDescriptor, desc_t *)                                                                     \
    F(int, cudnnDestroyPoolingDescriptor, desc_t)                                                                      \
    F(int, cudnnSetPooling2dDescriptor, desc_t, int, int, int, int, int, int, int, int)                                \
    F(int, cudnnPoolingForward, handle_t, desc_t, const void *, desc_t, CUdeviceptr, const void *, desc_t,             \
      CUdeviceptr)                                                                                                     \
    F(int, cudnnPoolingBackward, handle_t, desc_t, const void *, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t,     \
      CUdeviceptr, const void *, desc_t, CUdeviceptr)                                                                  \
    F(int, cudnnCreateLRNDescriptor, desc_t *)                                                                         \
    F(int, cudnnDestroyLRNDescriptor, desc_t)                                                                          \
    F(int, cudnnSetLRNDescriptor, desc_t, unsigned int, double, double, double)                                        \
    F(int, cudnnLRNCrossChannelForward, handle_t, desc_t, int, const void *, desc_t, CUdeviceptr, const void *,        \
      desc_t, CUdeviceptr)                                                                                             \
    F(int, cudnnLRNCrossChannelBackward, handle_t, desc_t, int, const void *, desc_t, CUdeviceptr, desc_t,             \
      CUdeviceptr, desc_t, CUdeviceptr, const void *, desc_t, CUdeviceptr)                                             \
    F(int, cudnnBatchNormalizationForwardTraining, handle_t, int, const void *, const void *, desc_t, CUdeviceptr,     \
      desc_t, CUdeviceptr, desc_t, CUdeviceptr, CUdeviceptr, double, CUdeviceptr, CUdeviceptr, double, CUdeviceptr,    \
      CUdeviceptr)                                                                                                     \
    F(int, cudnnBatchNormalizationForwardInference, handle_t, int, const void *, const void *, desc_t, CUdeviceptr,    \
      desc_t, CUdeviceptr, desc_t, CUdeviceptr, CUdeviceptr, CUdeviceptr, CUdeviceptr, double)                         \
    F(int, cudnnBatchNormalizationBackward, handle_t, int, const void *, const void *, const void *, const void *,     \
      desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t, CUdeviceptr, CUdeviceptr, CUdeviceptr,    \
      double, CUdeviceptr, CUdeviceptr)

/* cudnnConvolutionFwdAlgoPerf_t; those of the other directions have the same layout. */
typedef struct perf {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
} perf_t;

#include "check_cudnn.h"

enum { PROPAGATE = 1, PRECOMPUTED = 1, RECTIFIED = 1 };
enum { DATA = 0, FILTER = 1, RESULT = 2 };
#define ROOM 8192 /* numbers of a tensor, as compare() has */

static const float two = 2, half = 0.5f, zero = 0, one = 1;

/* Fractions without ties: the maximum of a window is one element. */
static float fraction(int seed, int at) {
    return (float) ((at * 389 + seed * 97) % 1021 - 510) / 256;
}

static void fill(float *values, int count, int seed) {
    for (int i = 0; i < count; i++) {
        values[i] = fraction(seed, i);
    }
}

typedef struct layer {
    int batch, channels, height, width, filters, groups, window, pad, stride, dilation, mode, optional;
} layer_t;

static int output(int size, const layer_t *layer) {
    return 1 + (size + 2 * layer->pad - (layer->window - 1) * layer->dilation - 1) / layer->stride;
}

/* Adds the products of a convolution to the data, the filter or the result. */
static void convolve(const layer_t *l, float *x, float *w, float *y, int target) {
    int rows = output(l->height, l), columns = output(l->width, l), area = l->window * l->window;
    int channels = l->channels / l->groups, filters = l->filters / l->groups;
    for (int i = 0; i < l->batch * l->filters * rows * columns; i++) {
        int n = i / (l->filters * rows * columns), k = i / (rows * columns) % l->filters;
        for (int j = 0; j < channels * area; j++) {
            int c = j / area, tap = l->mode == CROSS_CORRELATION ? j % area : area - 1 - j % area;
            int row = i / columns % rows * l->stride - l->pad + j % area / l->window * l->dilation;
            int column = i % columns * l->stride - l->pad + j % area % l->window * l->dilation;
            if (row < 0 || row >= l->height || column < 0 || column >= l->width) {
                continue;
            }
            float *in = &x[((n * l->channels + k / filters * channels + c) * l->height + row) * l->width + column];
            float *by = &w[(k * channels + c) * area + tap];
            if (target == RESULT) {
                y[i] += *in * *by;
            } else if (target == DATA) {
                *in += y[i] * *by;
            } else {
                *by += y[i] * *in;
            }
        }
    }
}

/* A library may lack algorithms for an optional layer, whose padding is larger than its window. */
static void ask(int status, const layer_t *layer) {
    if (!layer->optional || status == SUCCESS) {
        OK(status);
    }
}

/* The fastest algorithm by trial, with and without tensors of the program. The trials overwrite the target. */
static perf_t search(handle_t handle, int target, const desc_t descs[3], desc_t conv, const CUdeviceptr memory[3]) {
    enum { REQUESTED = 4, SPACE = 4 << 20 };
    perf_t results[REQUESTED], others[REQUESTED];
    int count = 0, other_count = 0, most = 0;
    desc_t x = descs[DATA], w = descs[FILTER], y = descs[RESULT];
    CUdeviceptr space;
    CU_OK(cuMemAlloc(&space, SPACE));
    if (target == RESULT) {
        OK(cudnnGetConvolutionForwardAlgorithmMaxCount(handle, &most));
        OK(cudnnFindConvolutionForwardAlgorithm(handle, x, w, conv, y, REQUESTED, &other_count, others));
        OK(cudnnFindConvolutionForwardAlgorithmEx(handle, x, memory[DATA], w, memory[FILTER], conv, y, memory[RESULT],
                                                  REQUESTED, &count, results, space, SPACE));
    } else if (target == DATA) {
        OK(cudnnGetConvolutionBackwardDataAlgorithmMaxCount(handle, &most));
        OK(cudnnFindConvolutionBackwardDataAlgorithm(handle, w, y, conv, x, REQUESTED, &other_count, others));
        OK(cudnnFindConvolutionBackwardDataAlgorithmEx(handle, w, memory[FILTER], y, memory[RESULT], conv, x,
                                                       memory[DATA], REQUESTED, &count, results, space, SPACE));
    } else {
        OK(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(handle, &most));
        OK(cudnnFindConvolutionBackwardFilterAlgorithm(handle, x, y, conv, w, REQUESTED, &other_count, others));
        OK(cudnnFindConvolutionBackwardFilterAlgorithmEx(handle, x, memory[DATA], y, memory[RESULT], conv, w,
                                                         memory[FILTER], REQUESTED, &count, results, space, SPACE));
    }
    check_true("a search finds algorithms", most > 0 && count > 0 && count <= REQUESTED);
    check_true("a search without tensors finds algorithms", other_count > 0 && other_count <= REQUESTED);
    check_true("the first algorithm has a time", results[0].status == SUCCESS && results[0].time > 0);
    check_true("the first algorithm without tensors has a time", others[0].status == SUCCESS && others[0].time > 0);
    check_true("the first algorithm has room", results[0].memory <= SPACE);
    for (int i = 1; i < count && results[i].status == SUCCESS; i++) {
        check_true("faster algorithms come first", results[i - 1].time <= results[i].time);
    }
    CU_OK(cuMemFree(space));
    return results[0];
}

/* Returns whether the library has algorithms for the layer in all directions. */
static int check_convolution(handle_t handle, const layer_t *l) {
    static float values[3][ROOM], expected[3][ROOM];
    int rows = output(l->height, l), columns = output(l->width, l), sizes[4];
    int counts[3] = {l->batch * l->channels * l->height * l->width,
                     l->filters * l->channels / l->groups * l->window * l->window,
                     l->batch * l->filters * rows * columns};
    desc_t x = tensor4(l->batch, l->channels, l->height, l->width), w = NULL, conv = NULL;
    desc_t y = tensor4(l->batch, l->filters, rows, columns);
    OK(cudnnCreateFilterDescriptor(&w));
    OK(cudnnSetFilter4dDescriptor(w, FLOAT, NCHW, l->filters, l->channels / l->groups, l->window, l->window));
    OK(cudnnCreateConvolutionDescriptor(&conv));
    OK(cudnnSetConvolution2dDescriptor(conv, l->pad, l->pad, l->stride, l->stride, l->dilation, l->dilation, l->mode,
                                       FLOAT));
    OK(cudnnSetConvolutionGroupCount(conv, l->groups));
    OK(cudnnSetConvolutionMathType(conv, FMA_MATH)); /* without TF32 */
    OK(cudnnGetConvolutionNdForwardOutputDim(conv, x, w, 4, sizes));
    check_true("the sizes of the result", sizes[1] == l->filters && sizes[2] == rows && sizes[3] == columns);
    perf_t found[3];
    int returned[3] = {0}, done = 1;
    ask(cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, conv, y, 1, &returned[RESULT], &found[RESULT]), l);
    ask(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w, y, conv, x, 1, &returned[DATA], &found[DATA]), l);
    ask(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x, y, conv, w, 1, &returned[FILTER], &found[FILTER]), l);
    for (int target = 0; target < 3; target++) {
        done = done && returned[target] == 1 && found[target].status == SUCCESS;
    }
    check_true("algorithms for a convolution", done || l->optional);
    for (int run = 0; done && run < 6; run++) { /* with the algorithms of the heuristics, then with those of trials */
        int target = run % 3;
        CUdeviceptr memory[3], space;
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < counts[i]; j++) {
                values[i][j] = number(i + 1, j);
                expected[i][j] = i == target ? 0 : values[i][j];
            }
            memory[i] = upload(values[i], (size_t) counts[i]);
        }
        if (run >= 3) {
            found[target] = search(handle, target, (desc_t[]) {x, w, y}, conv, memory);
            CU_OK(cuMemFree(memory[target]));
            memory[target] = upload(values[target], (size_t) counts[target]);
        }
        convolve(l, expected[DATA], expected[FILTER], expected[RESULT], target);
        double most = 500;
        for (int j = 0; j < counts[target]; j++) {
            expected[target][j] = 2 * expected[target][j] + 0.5f * values[target][j];
            most = fmax(most, fabs(expected[target][j]));
        }
        CU_OK(cuMemAlloc(&space, found[target].memory + 256));
        int algorithm = found[target].algorithm;
        size_t bytes = found[target].memory;
        if (target == RESULT) {
            OK(cudnnConvolutionForward(handle, &two, x, memory[DATA], w, memory[FILTER], conv, algorithm, space, bytes,
                                       &half, y, memory[RESULT]));
        } else if (target == DATA) {
            OK(cudnnConvolutionBackwardData(handle, &two, w, memory[FILTER], y, memory[RESULT], conv, algorithm, space,
                                            bytes, &half, x, memory[DATA]));
        } else {
            OK(cudnnConvolutionBackwardFilter(handle, &two, x, memory[DATA], y, memory[RESULT], conv, algorithm, space,
                                              bytes, &half, w, memory[FILTER]));
        }
        compare(target == RESULT     ? "a result of a convolution"
                    : target == DATA ? "a gradient of data"
                                     : "a gradient of a filter",
                expected[target], memory[target], (size_t) counts[target], 1e-4 * most);
        for (int i = 0; i < 3; i++) {
            CU_OK(cuMemFree(memory[i]));
        }
        CU_OK(cuMemFree(space));
    }
    OK(cudnnDestroyTensorDescriptor(x));
    OK(cudnnDestroyTensorDescriptor(y));
    OK(cudnnDestroyFilterDescriptor(w));
    OK(cudnnDestroyConvolutionDescriptor(conv));
    return done;
}

static int check_convolutions(handle_t handle) {
    static const layer_t layers[] = {
        {2, 3, 6, 5, 4, 1, 3, 1, 1, 1, CROSS_CORRELATION, 0},
        {2, 4, 7, 6, 6, 2, 3, 2, 2, 1, CROSS_CORRELATION, 0},
        {1, 2, 9, 8, 3, 1, 3, 1, 1, 1, 0, 0},
        {1, 2, 9, 8, 3, 1, 3, 1, 1, 2, CROSS_CORRELATION, 0},
        {2, 2, 8, 8, 2, 2, 2, 0, 3, 1, CROSS_CORRELATION, 0},
        {2, 8, 20, 19, 8, 1, 3, 1, 1, 1, CROSS_CORRELATION, 0},
        {1, 3, 4, 4, 2, 1, 3, 4, 1, 1, CROSS_CORRELATION, 1},
    };
    int done = 0;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        done += check_convolution(handle, &layers[i]);
    }
    return done;
}

/* A convolution of one element with bias and rectification, and the gradient of the bias. */
static void check_bias(handle_t handle) {
    enum {
        BATCH = 2,
        CHANNELS = 3,
        FILTERS = 4,
        AREA = 20,
        IN = BATCH * CHANNELS * AREA,
        OUT = BATCH * FILTERS * AREA
    };
    float x[IN], w[FILTERS * CHANNELS], z[OUT], bias[FILTERS], y[OUT], sums[FILTERS];
    for (int i = 0; i < IN; i++) {
        x[i] = number(1, i);
    }
    for (int i = 0; i < FILTERS * CHANNELS; i++) {
        w[i] = number(2, i);
    }
    for (int k = 0; k < FILTERS; k++) {
        bias[k] = number(4, k);
        sums[k] = 0.5f * bias[k];
    }
    for (int i = 0; i < OUT; i++) {
        int n = i / (FILTERS * AREA), k = i / AREA % FILTERS;
        z[i] = number(3, i);
        float sum = 0;
        for (int c = 0; c < CHANNELS; c++) {
            sum += x[(n * CHANNELS + c) * AREA + i % AREA] * w[k * CHANNELS + c];
        }
        y[i] = fmaxf(0, 2 * sum + 0.5f * z[i] + bias[k]);
        sums[k] += 2 * z[i];
    }
    desc_t in = tensor4(BATCH, CHANNELS, 4, 5), out = tensor4(BATCH, FILTERS, 4, 5), biases = tensor4(1, FILTERS, 1, 1);
    desc_t filter = NULL, conv = NULL, rectified = NULL;
    OK(cudnnCreateFilterDescriptor(&filter));
    OK(cudnnSetFilter4dDescriptor(filter, FLOAT, NCHW, FILTERS, CHANNELS, 1, 1));
    OK(cudnnCreateConvolutionDescriptor(&conv));
    OK(cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, CROSS_CORRELATION, FLOAT));
    OK(cudnnCreateActivationDescriptor(&rectified));
    OK(cudnnSetActivationDescriptor(rectified, RECTIFIED, PROPAGATE, 0));
    CUdeviceptr memory[] = {
        upload(x, IN), upload(w, FILTERS * CHANNELS), upload(z, OUT), upload(bias, FILTERS), upload(z, OUT), 0};
    CU_OK(cuMemAlloc(&memory[5], 1 << 20));
    OK(cudnnConvolutionBiasActivationForward(handle, &two, in, memory[0], filter, memory[1], conv, PRECOMPUTED,
                                             memory[5], 1 << 20, &half, out, memory[2], biases, memory[3], rectified,
                                             out, memory[4]));
    compare("a rectified convolution", y, memory[4], OUT, 0.05);
    OK(cudnnConvolutionBackwardBias(handle, &two, out, memory[2], &half, biases, memory[3]));
    compare("a gradient of a bias", sums, memory[3], FILTERS, 1e-3);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
    OK(cudnnDestroyTensorDescriptor(in));
    OK(cudnnDestroyTensorDescriptor(out));
    OK(cudnnDestroyTensorDescriptor(biases));
    OK(cudnnDestroyFilterDescriptor(filter));
    OK(cudnnDestroyConvolutionDescriptor(conv));
    OK(cudnnDestroyActivationDescriptor(rectified));
}

/* Pools planes of 7 by 6 elements, and spreads a gradient. */
static void check_pooling(handle_t handle, int mode) {
    enum { MAX = 0, INCLUDING = 1, PLANES = 4, HEIGHT = 7, WIDTH = 6, ROWS = 4, COLUMNS = 5 };
    enum { TALL = 3, WIDE = 2, DOWN = 2, IN = PLANES * HEIGHT * WIDTH, OUT = PLANES * ROWS * COLUMNS };
    float x[IN], y[OUT], dy[OUT], dx[IN], result[OUT];
    fill(x, IN, 1);
    fill(dy, OUT, 2);
    fill(dx, IN, 3);
    float before[IN];
    memcpy(before, dx, sizeof before);
    for (int i = 0; i < IN; i++) {
        dx[i] *= 0.5f;
    }
    for (int i = 0; i < OUT; i++) { /* windows of 3 by 2, a padding of 1 by 0, and steps of 2 by 1 */
        int plane = i / (ROWS * COLUMNS), top = i / COLUMNS % ROWS * DOWN - 1, left = i % COLUMNS;
        int from = top < 0 ? 0 : top, to = top + TALL > HEIGHT ? HEIGHT : top + TALL, best = -1;
        float sum = 0, divisor = mode == INCLUDING ? TALL * WIDE : (float) ((to - from) * WIDE);
        for (int row = from; row < to; row++) {
            for (int column = left; column < left + WIDE; column++) {
                int at = (plane * HEIGHT + row) * WIDTH + column;
                sum += x[at];
                best = best < 0 || x[at] > x[best] ? at : best;
            }
        }
        y[i] = mode == MAX ? x[best] : sum / divisor;
        result[i] = 2 * y[i] + 0.5f * dy[i];
        for (int row = from; row < to && mode != MAX; row++) {
            for (int column = left; column < left + WIDE; column++) {
                dx[(plane * HEIGHT + row) * WIDTH + column] += 2 * dy[i] / divisor;
            }
        }
        if (mode == MAX) {
            dx[best] += 2 * dy[i];
        }
    }
    desc_t in = tensor4(2, PLANES / 2, HEIGHT, WIDTH), out = tensor4(2, PLANES / 2, ROWS, COLUMNS), pooling = NULL;
    OK(cudnnCreatePoolingDescriptor(&pooling));
    OK(cudnnSetPooling2dDescriptor(pooling, mode, PROPAGATE, TALL, WIDE, 1, 0, DOWN, 1));
    CUdeviceptr memory[] = {upload(x, IN), upload(dy, OUT), upload(y, OUT), upload(dy, OUT), upload(before, IN)};
    OK(cudnnPoolingForward(handle, pooling, &two, in, memory[0], &half, out, memory[1]));
    compare("a pooled tensor", result, memory[1], OUT, 1e-4);
    OK(cudnnPoolingBackward(handle, pooling, &two, out, memory[2], out, memory[3], in, memory[0], &half, in,
                            memory[4]));
    compare("a gradient of pooling", dx, memory[4], IN, 1e-4);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
    OK(cudnnDestroyTensorDescriptor(in));
    OK(cudnnDestroyTensorDescriptor(out));
    OK(cudnnDestroyPoolingDescriptor(pooling));
}

/* Normalizes over a batch, by its own statistics and by given ones, and computes the gradients. */
static void check_normalization(handle_t handle, int mode) {
    enum { PER_ACTIVATION = 0, BATCH = 4, CHANNELS = 3, AREA = 10, IN = BATCH * CHANNELS * AREA };
    const double epsilon = 1e-2;
    const int count = mode == PER_ACTIVATION ? CHANNELS * AREA : CHANNELS;
    const int members = mode == PER_ACTIVATION ? BATCH : BATCH * AREA;
    float x[IN], y[IN], inferred[IN], dy[IN], dx[IN], scale[CHANNELS * AREA], bias[CHANNELS * AREA];
    double mean[CHANNELS * AREA] = {0}, variance[CHANNELS * AREA] = {0}, sums[CHANNELS * AREA] = {0};
    double products[CHANNELS * AREA] = {0};
    float numbers[4][CHANNELS * AREA], zeros[CHANNELS * AREA] = {0};
    fill(x, IN, 1);
    fill(dy, IN, 2);
    fill(scale, count, 3);
    fill(bias, count, 4);
#define OF(i) (mode == PER_ACTIVATION ? (i) % (CHANNELS * AREA) : (i) / AREA % CHANNELS)
    for (int i = 0; i < IN; i++) {
        mean[OF(i)] += x[i] / members;
    }
    for (int i = 0; i < IN; i++) {
        variance[OF(i)] += (x[i] - mean[OF(i)]) * (x[i] - mean[OF(i)]) / members;
    }
    for (int i = 0; i < IN; i++) {
        double value = (x[i] - mean[OF(i)]) / sqrt(variance[OF(i)] + epsilon);
        y[i] = (float) (bias[OF(i)] + scale[OF(i)] * value);
        inferred[i] = (float) (bias[OF(i)] + scale[OF(i)] * (x[i] - bias[OF(i)]) / sqrt(2 + epsilon));
        sums[OF(i)] += dy[i];
        products[OF(i)] += dy[i] * value;
    }
    for (int i = 0; i < IN; i++) {
        double inverse = 1 / sqrt(variance[OF(i)] + epsilon), value = (x[i] - mean[OF(i)]) * inverse;
        dx[i] = (float) (scale[OF(i)] * inverse * (dy[i] - (sums[OF(i)] + value * products[OF(i)]) / members));
    }
    for (int i = 0; i < count; i++) {
        numbers[0][i] = (float) (0.25 * mean[i]);
        numbers[1][i] = (float) (0.25 * variance[i] * members / (members - 1));
        numbers[2][i] = (float) products[i];
        numbers[3][i] = (float) sums[i];
    }
    desc_t data = tensor4(BATCH, CHANNELS, 2, 5);
    desc_t parameters = mode == PER_ACTIVATION ? tensor4(1, CHANNELS, 2, 5) : tensor4(1, CHANNELS, 1, 1);
    float twos[CHANNELS * AREA];
    for (int i = 0; i < count; i++) {
        twos[i] = 2;
    }
    size_t room = (size_t) count;
    CUdeviceptr in = upload(x, IN), out = upload(x, IN), gradient = upload(dy, IN), scales = upload(scale, room);
    CUdeviceptr biases = upload(bias, room), running = upload(zeros, room), spread = upload(zeros, room);
    CUdeviceptr saved = upload(zeros, room), inverse = upload(zeros, room), fixed = upload(twos, room);
    OK(cudnnBatchNormalizationForwardTraining(handle, mode, &one, &zero, data, in, data, out, parameters, scales,
                                              biases, 0.25, running, spread, epsilon, saved, inverse));
    compare("a normalized tensor", y, out, IN, 1e-3);
    compare("a running mean", numbers[0], running, room, 1e-4);
    compare("a running variance", numbers[1], spread, room, 1e-3);
    OK(cudnnBatchNormalizationForwardInference(handle, mode, &one, &zero, data, in, data, out, parameters, scales,
                                               biases, biases, fixed, epsilon));
    compare("a tensor normalized by given numbers", inferred, out, IN, 1e-3);
    OK(cudnnBatchNormalizationBackward(handle, mode, &one, &zero, &one, &zero, data, in, data, gradient, data, out,
                                       parameters, scales, running, spread, epsilon, saved, inverse));
    compare("a gradient of a normalization", dx, out, IN, 1e-3);
    compare("a gradient of a scale", numbers[2], running, room, 2e-3);
    compare("a gradient of an offset", numbers[3], spread, room, 1e-3);
    CUdeviceptr memory[] = {in, out, gradient, scales, biases, running, spread, saved, inverse, fixed};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
    OK(cudnnDestroyTensorDescriptor(data));
    OK(cudnnDestroyTensorDescriptor(parameters));
}

/* Normalizes each element by the channels around its own, and computes the gradient. */
static void check_local(handle_t handle) {
    enum { BATCH = 2, CHANNELS = 7, AREA = 6, IN = BATCH * CHANNELS * AREA, WIDTH = 4, BEHIND = 1, AHEAD = 2 };
    const double alpha = 0.5, beta = 0.75, k = 2;
    float x[IN], y[IN], dy[IN], dx[IN], zeros[IN] = {0};
    double scale[IN];
    fill(x, IN, 1);
    fill(dy, IN, 2);
    for (int i = 0; i < IN; i++) {
        int channel = i / AREA % CHANNELS;
        scale[i] = k;
        for (int c = channel - BEHIND; c <= channel + AHEAD; c++) {
            double value = c < 0 || c >= CHANNELS ? 0 : x[i + (c - channel) * AREA];
            scale[i] += alpha / WIDTH * value * value;
        }
        y[i] = (float) (x[i] * pow(scale[i], -beta));
    }
    for (int i = 0; i < IN; i++) {
        int channel = i / AREA % CHANNELS;
        double sum = 0;
        for (int c = channel - AHEAD; c <= channel + BEHIND; c++) {
            int at = i + (c - channel) * AREA;
            sum += c < 0 || c >= CHANNELS ? 0 : dy[at] * y[at] / scale[at];
        }
        dx[i] = (float) (dy[i] * pow(scale[i], -beta) - 2 * alpha / WIDTH * beta * x[i] * sum);
    }
    desc_t data = tensor4(BATCH, CHANNELS, 2, AREA / 2), local = NULL;
    OK(cudnnCreateLRNDescriptor(&local));
    OK(cudnnSetLRNDescriptor(local, WIDTH, alpha, beta, k));
    CUdeviceptr memory[] = {upload(x, IN), upload(zeros, IN), upload(dy, IN), upload(zeros, IN)};
    OK(cudnnLRNCrossChannelForward(handle, local, 0, &one, data, memory[0], &zero, data, memory[1]));
    compare("a tensor normalized by its channels", y, memory[1], IN, 1e-3);
    OK(cudnnLRNCrossChannelBackward(handle, local, 0, &one, data, memory[1], data, memory[2], data, memory[0], &zero,
                                    data, memory[3]));
    compare("a gradient by channels", dx, memory[3], IN, 1e-3);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
    OK(cudnnDestroyTensorDescriptor(data));
    OK(cudnnDestroyLRNDescriptor(local));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    handle_t handle = NULL;
    CUstream stream;
    OK(cudnnCreate(&handle));
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cudnnSetStream(handle, stream));
    check_here("%d of 7 convolutions", check_convolutions(handle));
    check_bias(handle);
    for (int mode = 0; mode < 3; mode++) {
        check_pooling(handle, mode);
    }
    for (int mode = 0; mode < 2; mode++) {
        check_normalization(handle, mode);
    }
    check_local(handle);
    OK(cudnnDestroy(handle));
    CU_OK(cuStreamDestroy(stream));
    return check_pass("convolutions, bias, 3 poolings, 3 normalizations");
}
