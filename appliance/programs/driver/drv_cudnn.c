/*
 * cuDNN beside the Driver API: version and errors, convolutions in both directions by the graph API, a number by value,
 * batch normalization, softmax, and an LSTM where the other end has recurrent networks, held against sums that the
 * program computes. Without a cuDNN at the other end cudnnCreate returns CUDNN_STATUS_NOT_SUPPORTED.
 */
#define FUNCTIONS(F)                                                                                                   \
    F(int, cudnnGetTensorNdDescriptor, desc_t, int, int *, int *, int *, int *)                                        \
    F(int, cudnnSoftmaxForward, handle_t, int, int, const void *, desc_t, CUdeviceptr, const void *, desc_t,           \
      CUdeviceptr)                                                                                                     \
    F(int, cudnnBatchNormalizationForwardTraining, handle_t, int, const void *, const void *, desc_t, CUdeviceptr,     \
      desc_t, CUdeviceptr, desc_t, CUdeviceptr, CUdeviceptr, double, CUdeviceptr, CUdeviceptr, double, CUdeviceptr,    \
      CUdeviceptr)                                                                                                     \
    F(int, cudnnCreateDropoutDescriptor, desc_t *)                                                                     \
    F(int, cudnnDestroyDropoutDescriptor, desc_t)                                                                      \
    F(int, cudnnSetDropoutDescriptor, desc_t, handle_t, float, CUdeviceptr, size_t, unsigned long long)                \
    F(int, cudnnCreateRNNDescriptor, desc_t *)                                                                         \
    F(int, cudnnDestroyRNNDescriptor, desc_t)                                                                          \
    F(int, cudnnSetRNNDescriptor_v8, desc_t, int, int, int, int, int, int, int, int, int, int, int, int, desc_t,       \
      unsigned int)                                                                                                    \
    F(int, cudnnCreateRNNDataDescriptor, desc_t *)                                                                     \
    F(int, cudnnDestroyRNNDataDescriptor, desc_t)                                                                      \
    F(int, cudnnSetRNNDataDescriptor, desc_t, int, int, int, int, int, const int *, void *)                            \
    F(int, cudnnGetRNNWeightSpaceSize, handle_t, desc_t, size_t *)                                                     \
    F(int, cudnnGetRNNTempSpaceSizes, handle_t, desc_t, int, desc_t, size_t *, size_t *)                               \
    F(int, cudnnGetRNNWeightParams, handle_t, desc_t, int, size_t, CUdeviceptr, int, desc_t, void **, desc_t, void **) \
    F(int, cudnnRNNForward, handle_t, desc_t, int, CUdeviceptr, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t,      \
      CUdeviceptr, CUdeviceptr, desc_t, CUdeviceptr, CUdeviceptr, size_t, CUdeviceptr, size_t, CUdeviceptr, size_t,    \
      CUdeviceptr)

#include "check_cudnn.h"

#define BATCH 2
#define CHANNELS 3
#define FILTERS 4
#define SIZE 8
#define WINDOW 3
#define STEPS 3
#define INPUT 3
#define HIDDEN 4
#define X_ELEMENTS (BATCH * CHANNELS * SIZE * SIZE)
#define W_ELEMENTS (FILTERS * CHANNELS * WINDOW * WINDOW)
#define Y_ELEMENTS (BATCH * FILTERS * SIZE * SIZE)

/* The three directions of a convolution with the same sizes: fills y, dx or dw from the two others. */
static void convolve(float *x, float *w, float *y, int direction) {
    memset(direction == OPERATION_FORWARD             ? y
               : direction == OPERATION_BACKWARD_DATA ? x
                                                      : w,
           0,
           sizeof(float)
               * (direction == OPERATION_FORWARD             ? Y_ELEMENTS
                      : direction == OPERATION_BACKWARD_DATA ? X_ELEMENTS
                                                             : W_ELEMENTS));
    for (int n = 0; n < BATCH; n++) {
        for (int k = 0; k < FILTERS; k++) {
            for (int at = 0; at < SIZE * SIZE; at++) {
                for (int c = 0; c < CHANNELS; c++) {
                    for (int window = 0; window < WINDOW * WINDOW; window++) {
                        int row = at / SIZE + window / WINDOW - 1, column = at % SIZE + window % WINDOW - 1;
                        if (row < 0 || row >= SIZE || column < 0 || column >= SIZE) {
                            continue;
                        }
                        float *in = &x[((n * CHANNELS + c) * SIZE + row) * SIZE + column];
                        float *by = &w[(k * CHANNELS + c) * WINDOW * WINDOW + window];
                        float *out = &y[(n * FILTERS + k) * SIZE * SIZE + at];
                        if (direction == OPERATION_FORWARD) {
                            *out += *in * *by;
                        } else if (direction == OPERATION_BACKWARD_DATA) {
                            *in += *out * *by;
                        } else {
                            *by += *in * *out;
                        }
                    }
                }
            }
        }
    }
}

static void check_convolution(handle_t handle, int direction) {
    static const int64_t x_sizes[4] = {BATCH, CHANNELS, SIZE, SIZE}, w_sizes[4] = {FILTERS, CHANNELS, WINDOW, WINDOW};
    static const int64_t y_sizes[4] = {BATCH, FILTERS, SIZE, SIZE}, uids[3] = {'x', 'w', 'y'};
    static float x[X_ELEMENTS], w[W_ELEMENTS], y[Y_ELEMENTS];
    /* Attributes of the operation: alpha, beta, the convolution, and x, w and y. */
    int names[6] = {700, 701, 702, 704, 703, 705};
    if (direction == OPERATION_BACKWARD_DATA) {
        memcpy(names, (int[]) {706, 707, 708, 710, 709, 711}, sizeof names);
    } else if (direction == OPERATION_BACKWARD_FILTER) {
        memcpy(names, (int[]) {712, 713, 714, 716, 715, 717}, sizeof names);
    }
    for (int i = 0; i < X_ELEMENTS; i++) {
        x[i] = number(1, i);
    }
    for (int i = 0; i < W_ELEMENTS; i++) {
        w[i] = number(2, i);
    }
    for (int i = 0; i < Y_ELEMENTS; i++) {
        y[i] = number(3, i);
    }
    CUdeviceptr memory[3] = {upload(x, X_ELEMENTS), upload(w, W_ELEMENTS), upload(y, Y_ELEMENTS)};
    convolve(x, w, y, direction);
    desc_t descs[4] = {tensor('x', x_sizes, 0), tensor('w', w_sizes, 0), tensor('y', y_sizes, 0), convolution()};
    desc_t operation = begin(direction);
    float one = 1, zero = 0;
    OK(cudnnBackendSetAttribute(operation, names[0], TYPE_FLOAT, 1, &one));
    OK(cudnnBackendSetAttribute(operation, names[1], TYPE_FLOAT, 1, &zero));
    OK(cudnnBackendSetAttribute(operation, names[2], TYPE_DESCRIPTOR, 1, &descs[3]));
    for (int i = 0; i < 3; i++) {
        OK(cudnnBackendSetAttribute(operation, names[3 + i], TYPE_DESCRIPTOR, 1, &descs[i]));
    }
    desc_t graph = begin(GRAPH);
    check_true("a graph with an unfinished operation",
               cudnnBackendSetAttribute(graph, 801, TYPE_DESCRIPTOR, 1, &operation) != SUCCESS
                   || cudnnBackendFinalize(graph) != SUCCESS);
    OK(cudnnBackendDestroyDescriptor(graph));
    OK(cudnnBackendFinalize(operation));
    void *pointers[3] = {(void *) memory[0], (void *) memory[1], (void *) memory[2]};
    for (int turn = 0; turn < 2; turn++) { /* the second one finds the descriptors of the first */
        check_true("a plan of a convolution", run(handle, operation, 3, uids, pointers, 3));
    }
    compare(direction == OPERATION_FORWARD             ? "y"
                : direction == OPERATION_BACKWARD_DATA ? "dx"
                                                       : "dw",
            direction == OPERATION_FORWARD             ? y
                : direction == OPERATION_BACKWARD_DATA ? x
                                                       : w,
            memory[direction == OPERATION_FORWARD             ? 2
                       : direction == OPERATION_BACKWARD_DATA ? 0
                                                              : 1],
            direction == OPERATION_FORWARD             ? Y_ELEMENTS
                : direction == OPERATION_BACKWARD_DATA ? X_ELEMENTS
                                                       : W_ELEMENTS,
            0.05);
    OK(cudnnBackendDestroyDescriptor(operation));
    for (int i = 0; i < 4; i++) {
        OK(cudnnBackendDestroyDescriptor(descs[i]));
    }
    for (int i = 0; i < 3; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
}

/* A product with a number by value, which lies in the program's memory. Returns whether the library has such a plan. */
static int check_value(handle_t handle) {
    static const int64_t sizes[4] = {BATCH, CHANNELS, SIZE, SIZE}, one[4] = {1, 1, 1, 1}, uids[3] = {1, 2, 3};
    static float x[X_ELEMENTS], y[X_ELEMENTS];
    int mode = MULTIPLY, type = FLOAT;
    float factor = 2.5f;
    for (int i = 0; i < X_ELEMENTS; i++) {
        x[i] = number(4, i);
        y[i] = x[i] * factor;
    }
    CUdeviceptr from = upload(x, X_ELEMENTS), to = upload(x, X_ELEMENTS);
    desc_t descs[3] = {tensor(1, sizes, 0), tensor(2, one, 1), tensor(3, sizes, 0)};
    desc_t pointwise = begin(POINTWISE), operation = begin(OPERATION_POINTWISE);
    OK(cudnnBackendSetAttribute(pointwise, 0, TYPE_POINTWISE_MODE, 1, &mode));
    OK(cudnnBackendSetAttribute(pointwise, 1, TYPE_DATA_TYPE, 1, &type));
    OK(cudnnBackendFinalize(pointwise));
    OK(cudnnBackendSetAttribute(operation, 750, TYPE_DESCRIPTOR, 1, &pointwise));
    for (int i = 0; i < 3; i++) {
        OK(cudnnBackendSetAttribute(operation, 751 + i, TYPE_DESCRIPTOR, 1, &descs[i]));
    }
    OK(cudnnBackendFinalize(operation));
    void *pointers[3] = {(void *) from, &factor, (void *) to};
    int done = run(handle, operation, 3, uids, pointers, 1);
    if (done) {
        compare("a product with a number by value", y, to, X_ELEMENTS, 1e-5);
    }
    OK(cudnnBackendDestroyDescriptor(operation));
    OK(cudnnBackendDestroyDescriptor(pointwise));
    for (int i = 0; i < 3; i++) {
        OK(cudnnBackendDestroyDescriptor(descs[i]));
    }
    CU_OK(cuMemFree(from));
    CU_OK(cuMemFree(to));
    return done;
}

static void check_normalization(handle_t handle) {
    enum { SPATIAL = 1, AREA = SIZE * SIZE, COUNT = BATCH * AREA };
    static float x[X_ELEMENTS], y[X_ELEMENTS];
    float scale[CHANNELS], bias[CHANNELS], zeros[CHANNELS] = {0}, mean[CHANNELS], inverse[CHANNELS];
    const double epsilon = 1e-3;
    for (int i = 0; i < X_ELEMENTS; i++) {
        x[i] = number(5, i);
    }
    for (int c = 0; c < CHANNELS; c++) {
        double sum = 0, squares = 0;
        scale[c] = (float) (c + 1);
        bias[c] = (float) (c - 1);
        for (int i = 0; i < COUNT; i++) {
            double value = x[(i / AREA * CHANNELS + c) * AREA + i % AREA];
            sum += value;
            squares += value * value;
        }
        mean[c] = (float) (sum / COUNT);
        inverse[c] = (float) (1 / sqrt(squares / COUNT - sum / COUNT * sum / COUNT + epsilon));
        for (int i = 0; i < COUNT; i++) {
            int at = (i / AREA * CHANNELS + c) * AREA + i % AREA;
            y[at] = (x[at] - mean[c]) * inverse[c] * scale[c] + bias[c];
        }
    }
    desc_t data = tensor4(BATCH, CHANNELS, SIZE, SIZE), channels = tensor4(1, CHANNELS, 1, 1);
    CUdeviceptr in = upload(x, X_ELEMENTS), out = upload(x, X_ELEMENTS), scales = upload(scale, CHANNELS);
    CUdeviceptr biases = upload(bias, CHANNELS), running = upload(zeros, CHANNELS), variance = upload(zeros, CHANNELS);
    CUdeviceptr saved = upload(zeros, CHANNELS), saved_inverse = upload(zeros, CHANNELS);
    float one = 1, zero = 0;
    for (int turn = 0; turn < 3; turn++) {
        OK(cudnnBatchNormalizationForwardTraining(handle, SPATIAL, &one, &zero, data, in, data, out, channels, scales,
                                                  biases, 1.0, running, variance, epsilon, saved, saved_inverse));
    }
    compare("a normalized tensor", y, out, X_ELEMENTS, 1e-3);
    compare("a saved mean", mean, saved, CHANNELS, 1e-4);
    compare("a running mean", mean, running, CHANNELS, 1e-4);
    compare("a saved inverse", inverse, saved_inverse, CHANNELS, 1e-3);
    CUdeviceptr memory[] = {in, out, scales, biases, running, variance, saved, saved_inverse};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
    OK(cudnnDestroyTensorDescriptor(data));
    OK(cudnnDestroyTensorDescriptor(channels));
}

static void check_softmax(handle_t handle) {
    enum { ACCURATE = 1, INSTANCE = 0, CLASSES = 10 };
    float x[BATCH * CLASSES], y[BATCH * CLASSES], one = 1, zero = 0;
    for (int n = 0; n < BATCH; n++) {
        double sum = 0;
        for (int i = 0; i < CLASSES; i++) {
            x[n * CLASSES + i] = number(6, n * CLASSES + i);
            sum += exp(x[n * CLASSES + i]);
        }
        for (int i = 0; i < CLASSES; i++) {
            y[n * CLASSES + i] = (float) (exp(x[n * CLASSES + i]) / sum);
        }
    }
    desc_t desc = tensor4(BATCH, CLASSES, 1, 1);
    CUdeviceptr memory = upload(x, BATCH * CLASSES);
    OK(cudnnSoftmaxForward(handle, ACCURATE, INSTANCE, &one, desc, memory, &zero, desc, memory));
    compare("a softmax", y, memory, BATCH * CLASSES, 1e-5);
    CU_OK(cuMemFree(memory));
    OK(cudnnDestroyTensorDescriptor(desc));
}

static double sigmoid(double value) {
    return 1 / (1 + exp(-value));
}

/* One layer of an LSTM. Weights come from where the library says that they lie. Returns whether the library has it. */
static int check_lstm(handle_t handle) {
    enum {
        STANDARD = 0,
        LSTM = 2,
        DOUBLE_BIAS = 2,
        UNIDIRECTIONAL = 0,
        LINEAR = 0,
        INFERENCE = 0,
        PADDED = 1,
        GATES = 8
    };
    int lengths[BATCH] = {STEPS, STEPS}, sizes[3] = {1, BATCH, HIDDEN}, strides[3] = {BATCH * HIDDEN, HIDDEN, 1};
    desc_t dropout = NULL, rnn = NULL, in = NULL, out = NULL, state = NULL, matrix = NULL, vector = NULL;
    OK(cudnnCreateDropoutDescriptor(&dropout));
    OK(cudnnSetDropoutDescriptor(dropout, handle, 0, 0, 0, 0));
    OK(cudnnCreateRNNDescriptor(&rnn));
    int status = cudnnSetRNNDescriptor_v8(rnn, STANDARD, LSTM, DOUBLE_BIAS, UNIDIRECTIONAL, LINEAR, FLOAT, FLOAT,
                                          FMA_MATH, INPUT, HIDDEN, HIDDEN, 1, dropout, PADDED);
    if (status == NOT_SUPPORTED) {
        OK(cudnnDestroyRNNDescriptor(rnn));
        OK(cudnnDestroyDropoutDescriptor(dropout));
        return 0;
    }
    OK(status);
    OK(cudnnCreateRNNDataDescriptor(&in));
    OK(cudnnCreateRNNDataDescriptor(&out));
    OK(cudnnSetRNNDataDescriptor(in, FLOAT, 0, STEPS, BATCH, INPUT, lengths, NULL));
    OK(cudnnSetRNNDataDescriptor(out, FLOAT, 0, STEPS, BATCH, HIDDEN, lengths, NULL));
    OK(cudnnCreateTensorDescriptor(&state));
    OK(cudnnSetTensorNdDescriptor(state, FLOAT, 3, sizes, strides));
    OK(cudnnCreateTensorDescriptor(&matrix));
    OK(cudnnCreateTensorDescriptor(&vector));
    size_t weight_bytes = 0, workspace_bytes = 0, reserve_bytes = 0;
    OK(cudnnGetRNNWeightSpaceSize(handle, rnn, &weight_bytes));
    OK(cudnnGetRNNTempSpaceSizes(handle, rnn, INFERENCE, in, &workspace_bytes, &reserve_bytes));
    static float weights[4096], x[STEPS * BATCH * INPUT], y[STEPS * BATCH * HIDDEN], zeros[STEPS * BATCH * HIDDEN];
    size_t count = weight_bytes / sizeof(float);
    check_true("the size of the weights", count >= 4 * HIDDEN * (INPUT + HIDDEN + 2) && count <= 4096);
    for (size_t i = 0; i < count; i++) {
        weights[i] = number(7, (int) i) / 8;
    }
    for (int i = 0; i < STEPS * BATCH * INPUT; i++) {
        x[i] = number(8, i) / 4;
    }
    CUdeviceptr space = upload(weights, count), source = upload(x, STEPS * BATCH * INPUT), lengths_memory;
    CUdeviceptr result = upload(zeros, STEPS * BATCH * HIDDEN), workspace;
    CU_OK(cuMemAlloc(&lengths_memory, sizeof lengths));
    CU_OK(cuMemcpyHtoD(lengths_memory, lengths, sizeof lengths));
    CU_OK(cuMemAlloc(&workspace, workspace_bytes + 256));
    const float *by[GATES], *bias[GATES];
    for (int gate = 0; gate < GATES; gate++) {
        void *m = NULL, *b = NULL;
        int type = -1, dims = 0, matrix_sizes[8], matrix_strides[8];
        OK(cudnnGetRNNWeightParams(handle, rnn, 0, weight_bytes, space, gate, matrix, &m, vector, &b));
        OK(cudnnGetTensorNdDescriptor(matrix, 8, &type, &dims, matrix_sizes, matrix_strides));
        void *same = NULL;
        OK(cudnnGetRNNWeightParams(handle, rnn, 0, weight_bytes, space, gate, matrix, &same, NULL, NULL));
        check_true("a matrix without its bias", same == m);
        check_true("a matrix of weights",
                   type == FLOAT && dims == 3 && matrix_sizes[1] == HIDDEN
                       && matrix_sizes[2] == (gate < 4 ? INPUT : HIDDEN));
        by[gate] = weights + ((CUdeviceptr) m - space) / sizeof(float);
        bias[gate] = weights + ((CUdeviceptr) b - space) / sizeof(float);
    }
    for (int n = 0; n < BATCH; n++) {
        double h[HIDDEN] = {0}, c[HIDDEN] = {0};
        for (int step = 0; step < STEPS; step++) {
            double gates[4][HIDDEN];
            for (int gate = 0; gate < 4; gate++) { /* input, forget, new memory, output */
                for (int i = 0; i < HIDDEN; i++) {
                    double sum = bias[gate][i] + bias[gate + 4][i];
                    for (int j = 0; j < INPUT; j++) {
                        sum += by[gate][i * INPUT + j] * x[(step * BATCH + n) * INPUT + j];
                    }
                    for (int j = 0; j < HIDDEN; j++) {
                        sum += by[gate + 4][i * HIDDEN + j] * h[j];
                    }
                    gates[gate][i] = gate == 2 ? tanh(sum) : sigmoid(sum);
                }
            }
            for (int i = 0; i < HIDDEN; i++) {
                c[i] = gates[1][i] * c[i] + gates[0][i] * gates[2][i];
                h[i] = gates[3][i] * tanh(c[i]);
                y[(step * BATCH + n) * HIDDEN + i] = (float) h[i];
            }
        }
    }
    for (int turn = 0; turn < 3; turn++) {
        OK(cudnnRNNForward(handle, rnn, INFERENCE, lengths_memory, in, source, out, result, state, 0, 0, state, 0, 0,
                           weight_bytes, space, workspace_bytes, workspace, 0, 0));
    }
    compare("an output of an LSTM", y, result, STEPS * BATCH * HIDDEN, 1e-3);
    CUdeviceptr memory[] = {space, source, lengths_memory, result, workspace};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
    OK(cudnnDestroyTensorDescriptor(matrix));
    OK(cudnnDestroyTensorDescriptor(vector));
    OK(cudnnDestroyTensorDescriptor(state));
    OK(cudnnDestroyRNNDataDescriptor(in));
    OK(cudnnDestroyRNNDataDescriptor(out));
    OK(cudnnDestroyRNNDescriptor(rnn));
    OK(cudnnDestroyDropoutDescriptor(dropout));
    return 1;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    check_text("the name of a status", "CUDNN_STATUS_NOT_SUPPORTED", cudnnGetErrorString(NOT_SUPPORTED));
    check_true("the version", cudnnGetVersion() / 10000 == 9);
    handle_t handle = NULL;
    OK(cudnnCreate(&handle));
    CUstream stream, got = NULL;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cudnnSetStream(handle, stream));
    OK(cudnnGetStream(handle, &got));
    check_true("the handle's stream", got == stream);
    check_convolution(handle, OPERATION_FORWARD);
    check_convolution(handle, OPERATION_BACKWARD_DATA);
    check_convolution(handle, OPERATION_BACKWARD_FILTER);
    int by_value = check_value(handle);
    check_normalization(handle);
    check_softmax(handle);
    int lstm = check_lstm(handle);
    OK(cudnnDestroy(handle));
    CU_OK(cuStreamDestroy(stream));
    check_here("%s", by_value ? "a number by value" : "no plan with a number by value");
    check_here("%s", lstm ? "an LSTM" : "no recurrent networks");
    return check_pass("3 convolutions, normalization, softmax");
}
