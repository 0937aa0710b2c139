/*
 * Element by element with the older functions of cuDNN: softmax, activations, operators, reductions, changes of
 * layout and a capture, held against sums that the program computes. A function that the other end does not serve
 * returns NOT_SUPPORTED, and cudnnGetLastErrorString names it.
 */
#define FUNCTIONS(F)                                                                                                   \
    F(int, cudnnCreateActivationDescriptor, desc_t *)                                                                  \
    F(int, cudnnDestroyActivationDescriptor, desc_t)                                                                   \
    F(int, cudnnSetActivationDescriptor, desc_t, int, int, double)                                                     \
    F(int, cudnnActivationForward, handle_t, desc_t, const void *, desc_t, CUdeviceptr, const void *, desc_t,          \
      CUdeviceptr)                                                                                                     \
    F(int, cudnnActivationBackward, handle_t, desc_t, const void *, desc_t, CUdeviceptr, desc_t, CUdeviceptr, desc_t,  \
      CUdeviceptr, const void *, desc_t, CUdeviceptr)                                                                  \
    F(int, cudnnSoftmaxForward, handle_t, int, int, const void *, desc_t, CUdeviceptr, const void *, desc_t,           \
      CUdeviceptr)                                                                                                     \
    F(int, cudnnSoftmaxBackward, handle_t, int, int, const void *, desc_t, CUdeviceptr, desc_t, CUdeviceptr,           \
      const void *, desc_t, CUdeviceptr)                                                                               \
    F(int, cudnnAddTensor, handle_t, const void *, desc_t, CUdeviceptr, const void *, desc_t, CUdeviceptr)             \
    F(int, cudnnTransformTensor, handle_t, const void *, desc_t, CUdeviceptr, const void *, desc_t, CUdeviceptr)       \
    F(int, cudnnScaleTensor, handle_t, desc_t, CUdeviceptr, const void *)                                              \
    F(int, cudnnCreateOpTensorDescriptor, desc_t *)                                                                    \
    F(int, cudnnDestroyOpTensorDescriptor, desc_t)                                                                     \
    F(int, cudnnSetOpTensorDescriptor, desc_t, int, int, int)                                                          \
    F(int, cudnnOpTensor, handle_t, desc_t, const void *, desc_t, CUdeviceptr, const void *, desc_t, CUdeviceptr,      \
      const void *, desc_t, CUdeviceptr)                                                                               \
    F(int, cudnnCreateReduceTensorDescriptor, desc_t *)                                                                \
    F(int, cudnnDestroyReduceTensorDescriptor, desc_t)                                                                 \
    F(int, cudnnSetReduceTensorDescriptor, desc_t, int, int, int, int, int)                                            \
    F(int, cudnnGetReductionWorkspaceSize, handle_t, desc_t, desc_t, desc_t, size_t *)                                 \
    F(int, cudnnReduceTensor, handle_t, desc_t, CUdeviceptr, size_t, CUdeviceptr, size_t, const void *, desc_t,        \
      CUdeviceptr, const void *, desc_t, CUdeviceptr)

#include "check_cudnn.h"
#include "check_graphs.h"

enum { NHWC = 1, HALF = 2, PROPAGATE = 1, BATCH = 2, CHANNELS = 5, AREA = 6, ELEMENTS = BATCH * CHANNELS * AREA };

static const float two = 2, half = 0.5f, zero = 0, one = 1;

static desc_t data;

/* Fractions without ties. */
static void fill(float *values, int count, int seed) {
    for (int i = 0; i < count; i++) {
        values[i] = (float) ((i * 389 + seed * 97) % 1021 - 510) / 256;
    }
}

/* Uploads four tensors of different numbers: x, y, dy and dx. */
static void upload_all(float values[4][ELEMENTS], CUdeviceptr *memory) {
    for (int i = 0; i < 4; i++) {
        memory[i] = upload(values[i], ELEMENTS);
    }
}

static void free_all(const CUdeviceptr *memory) {
    for (int i = 0; i < 4; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
}

static void check_softmax(handle_t handle, int algorithm, int mode) {
    enum { LOG = 2, CHANNEL = 1 };
    float values[4][ELEMENTS], result[ELEMENTS];
    double sums[BATCH * AREA] = {0}, products[BATCH * AREA] = {0};
    for (int i = 0; i < 4; i++) {
        fill(values[i], ELEMENTS, i);
    }
#define GROUP(i) (mode == CHANNEL ? (i) / (CHANNELS * AREA) * AREA + (i) % AREA : (i) / (CHANNELS * AREA))
    for (int i = 0; i < ELEMENTS; i++) {
        sums[GROUP(i)] += exp(values[0][i]);
    }
    for (int i = 0; i < ELEMENTS; i++) {
        double share = exp(values[0][i]) / sums[GROUP(i)];
        result[i] = (float) (algorithm == LOG ? log(share) : share);
        products[GROUP(i)] += values[2][i] * (algorithm == LOG ? 1 : result[i]);
    }
    CUdeviceptr memory[4];
    upload_all(values, memory);
    OK(cudnnSoftmaxForward(handle, algorithm, mode, &one, data, memory[0], &zero, data, memory[1]));
    compare("a softmax", result, memory[1], ELEMENTS, 1e-4);
    OK(cudnnSoftmaxBackward(handle, algorithm, mode, &two, data, memory[1], data, memory[2], &half, data, memory[3]));
    for (int i = 0; i < ELEMENTS; i++) {
        double gradient = algorithm == LOG ? values[2][i] - exp(result[i]) * products[GROUP(i)]
                                           : result[i] * (values[2][i] - products[GROUP(i)]);
        values[3][i] = (float) (2 * gradient + 0.5 * values[3][i]);
    }
    compare("a gradient of a softmax", values[3], memory[3], ELEMENTS, 1e-3);
    free_all(memory);
}

static void check_activation(handle_t handle, int mode) {
    enum { SIGMOID = 0, RELU = 1, TANH = 2, CLIPPED = 3, ELU = 4 };
    const double limit = 1.25; /* no element is at an edge */
    float values[4][ELEMENTS];
    for (int i = 0; i < 4; i++) {
        fill(values[i], ELEMENTS, i);
    }
    CUdeviceptr memory[4];
    desc_t activation = NULL;
    upload_all(values, memory);
    OK(cudnnCreateActivationDescriptor(&activation));
    OK(cudnnSetActivationDescriptor(activation, mode, PROPAGATE, limit));
    for (int i = 0; i < ELEMENTS; i++) {
        double x = values[0][i], y, slope;
        switch (mode) {
            case SIGMOID:
                y = 1 / (1 + exp(-x));
                slope = y * (1 - y);
                break;
            case TANH:
                y = tanh(x);
                slope = 1 - y * y;
                break;
            case ELU:
                y = x > 0 ? x : limit * (exp(x) - 1);
                slope = x > 0 ? 1 : y + limit;
                break;
            default:
                y = x > 0 ? x : 0;
                slope = x > 0 ? 1 : 0;
                if (mode == CLIPPED && x > limit) {
                    y = limit;
                    slope = 0;
                }
        }
        values[1][i] = (float) y;
        values[3][i] = (float) (2 * slope * values[2][i] + 0.5 * values[3][i]);
    }
    OK(cudnnActivationForward(handle, activation, &one, data, memory[0], &zero, data, memory[1]));
    compare("an activation", values[1], memory[1], ELEMENTS, 1e-4);
    OK(cudnnActivationBackward(handle, activation, &two, data, memory[1], data, memory[2], data, memory[0], &half, data,
                               memory[3]));
    compare("a gradient of an activation", values[3], memory[3], ELEMENTS, 1e-3);
    OK(cudnnDestroyActivationDescriptor(activation));
    free_all(memory);
}

static void check_operator(handle_t handle, int kind) {
    enum { ADD = 0, MUL = 1, MIN = 2, MAX = 3, SQRT = 4 };
    float values[4][ELEMENTS];
    for (int i = 0; i < 4; i++) {
        fill(values[i], ELEMENTS, i);
    }
    for (int i = 0; i < ELEMENTS; i++) {
        values[0][i] = fabsf(values[0][i]);
    }
    CUdeviceptr memory[4];
    desc_t operator= NULL, channels = tensor4(1, CHANNELS, 1, 1);
    upload_all(values, memory);
    OK(cudnnCreateOpTensorDescriptor(&operator));
    OK(cudnnSetOpTensorDescriptor(operator, kind, FLOAT, PROPAGATE));
    for (int i = 0; i < ELEMENTS; i++) {
        double a = 2 * values[0][i], b = 0.5 * values[1][i / AREA % CHANNELS], result;
        switch (kind) {
            case ADD:
                result = a + b;
                break;
            case MUL:
                result = a * b;
                break;
            case MIN:
                result = a < b ? a : b;
                break;
            case MAX:
                result = a > b ? a : b;
                break;
            default:
                result = kind == SQRT ? sqrt(a) : 1 - a;
        }
        values[2][i] = (float) (result + 0.5 * values[2][i]);
    }
    OK(cudnnOpTensor(handle, operator, & two, data, memory[0], &half, channels, memory[1], &half, data, memory[2]));
    compare("an operator", values[2], memory[2], ELEMENTS, 1e-4);
    OK(cudnnDestroyOpTensorDescriptor(operator));
    OK(cudnnDestroyTensorDescriptor(channels));
    free_all(memory);
}

static void check_reduction(handle_t handle, int kind) {
    enum { ADD = 0, MUL = 1, MIN = 2, MAX = 3, AMAX = 4, AVG = 5, NORM1 = 6, NORM2 = 7, FACTORS = 8 };
    enum { NO_INDICES = 0, INDICES_32 = 0, COUNT = BATCH * AREA };
    float x[ELEMENTS], y[CHANNELS];
    fill(x, ELEMENTS, 1);
    for (int i = 0; i < ELEMENTS; i += 7) {
        x[i] = kind == FACTORS ? 0 : x[i];
    }
    for (int c = 0; c < CHANNELS; c++) {
        double sum = kind == MUL || kind == FACTORS ? 1 : kind == MIN ? 1e9 : kind == MAX ? -1e9 : 0;
        for (int i = 0; i < COUNT; i++) {
            double value = x[(i / AREA * CHANNELS + c) * AREA + i % AREA];
            sum = kind == MUL     ? sum * value
                : kind == FACTORS ? sum * (value == 0 ? 1 : value)
                : kind == MIN     ? fmin(sum, value)
                : kind == MAX     ? fmax(sum, value)
                : kind == AMAX    ? fmax(sum, fabs(value))
                : kind == NORM1   ? sum + fabs(value)
                : kind == NORM2   ? sum + value * value
                                  : sum + value;
        }
        y[c] = (float) (kind == AVG ? sum / COUNT : kind == NORM2 ? sqrt(sum) : sum);
    }
    desc_t reduction = NULL, channels = tensor4(1, CHANNELS, 1, 1);
    OK(cudnnCreateReduceTensorDescriptor(&reduction));
    OK(cudnnSetReduceTensorDescriptor(reduction, kind, FLOAT, PROPAGATE, NO_INDICES, INDICES_32));
    CUdeviceptr in = upload(x, ELEMENTS), out = upload(x, CHANNELS), workspace;
    size_t bytes = 0;
    OK(cudnnGetReductionWorkspaceSize(handle, reduction, data, channels, &bytes));
    CU_OK(cuMemAlloc(&workspace, bytes + 256));
    OK(cudnnReduceTensor(handle, reduction, 0, 0, workspace, bytes, &two, data, in, &half, channels, out));
    double most = 1;
    for (int c = 0; c < CHANNELS; c++) {
        y[c] = 2 * y[c] + 0.5f * x[c];
        most = fmax(most, fabs(y[c]));
    }
    compare("a reduction", y, out, CHANNELS, 1e-5 * most);
    CU_OK(cuMemFree(in));
    CU_OK(cuMemFree(out));
    CU_OK(cuMemFree(workspace));
    OK(cudnnDestroyReduceTensorDescriptor(reduction));
    OK(cudnnDestroyTensorDescriptor(channels));
}

/* Adds a bias, scales, and changes the layout. */
static void check_tensors(handle_t handle) {
    float values[4][ELEMENTS], expected[ELEMENTS];
    for (int i = 0; i < 4; i++) {
        fill(values[i], ELEMENTS, i);
    }
    CUdeviceptr memory[4];
    desc_t channels = tensor4(1, CHANNELS, 1, 1), last = NULL;
    upload_all(values, memory);
    OK(cudnnAddTensor(handle, &two, channels, memory[0], &half, data, memory[1]));
    for (int i = 0; i < ELEMENTS; i++) {
        values[1][i] = 2 * values[0][i / AREA % CHANNELS] + 0.5f * values[1][i];
    }
    compare("a sum of tensors", values[1], memory[1], ELEMENTS, 1e-4);
    OK(cudnnScaleTensor(handle, data, memory[1], &two));
    OK(cudnnCreateTensorDescriptor(&last));
    OK(cudnnSetTensor4dDescriptor(last, NHWC, FLOAT, BATCH, CHANNELS, 2, AREA / 2));
    OK(cudnnTransformTensor(handle, &half, data, memory[1], &two, last, memory[2]));
    for (int i = 0; i < ELEMENTS; i++) { /* batch, area, channels */
        int from = (i / (CHANNELS * AREA) * CHANNELS + i % CHANNELS) * AREA + i / CHANNELS % AREA;
        expected[i] = values[1][from] + 2 * values[2][i];
    }
    compare("a tensor with its channels last", expected, memory[2], ELEMENTS, 1e-4);
    OK(cudnnDestroyTensorDescriptor(channels));
    OK(cudnnDestroyTensorDescriptor(last));
    free_all(memory);
}

/* Calls of a capturing stream run at each launch of the graph, with the numbers of the call. */
static void check_capture(handle_t handle) {
    float x[ELEMENTS], y[ELEMENTS], factor = 2;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    fill(x, ELEMENTS, 1);
    CUdeviceptr memory = upload(x, ELEMENTS), sum = upload(x, ELEMENTS);
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cudnnSetStream(handle, stream));
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cudnnScaleTensor(handle, data, memory, &factor));
    OK(cudnnAddTensor(handle, &one, data, memory, &one, data, sum));
    CU_OK(cuStreamEndCapture(stream, &graph));
    compare("a tensor before the launch", x, memory, ELEMENTS, 0);
    factor = 100;
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    for (int turn = 0; turn < 3; turn++) {
        CU_OK(cuGraphLaunch(exec, stream));
    }
    for (int i = 0; i < ELEMENTS; i++) {
        y[i] = 15 * x[i]; /* 1 + 2 + 4 + 8 */
    }
    compare("a sum of three launches", y, sum, ELEMENTS, 1e-3);
    OK(cudnnSetStream(handle, NULL));
    CU_OK(cuGraphExecDestroy(exec));
    CU_OK(cuGraphDestroy(graph));
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(memory));
    CU_OK(cuMemFree(sum));
}

/* Returns whether the library computes in half; otherwise it says so. */
static int check_half(handle_t handle) {
    desc_t desc = NULL;
    char reason[256] = "";
    CUdeviceptr memory;
    CU_OK(cuMemAlloc(&memory, 1024));
    CU_OK(cuMemsetD32(memory, 0, 256));
    OK(cudnnCreateTensorDescriptor(&desc));
    OK(cudnnSetTensor4dDescriptor(desc, NCHW, HALF, 1, 4, 1, 1));
    int status = cudnnSoftmaxForward(handle, 1, 0, &one, desc, memory, &zero, desc, memory);
    if (status == NOT_SUPPORTED) {
        cudnnGetLastErrorString(reason, sizeof reason);
        check_true("the reason names the function", strstr(reason, "cudnnSoftmaxForward") != NULL);
    } else {
        OK(status);
    }
    CU_OK(cuCtxSynchronize());
    CU_OK(cuMemFree(memory));
    OK(cudnnDestroyTensorDescriptor(desc));
    return status == SUCCESS;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    handle_t handle = NULL;
    OK(cudnnCreate(&handle));
    data = tensor4(BATCH, CHANNELS, 2, AREA / 2);
    for (int i = 0; i < 6; i++) {
        check_softmax(handle, i / 2, i % 2);
        check_operator(handle, i);
    }
    for (int mode = 0; mode < 5; mode++) {
        check_activation(handle, mode);
    }
    for (int kind = 0; kind < 9; kind++) {
        check_reduction(handle, kind);
    }
    check_tensors(handle);
    check_capture(handle);
    check_here("%s", check_half(handle) ? "tensors in half" : "no tensors in half");
    OK(cudnnDestroyTensorDescriptor(data));
    OK(cudnnDestroy(handle));
    return check_pass("6 softmaxes, 6 operators, 5 activations, 9 reductions, sums, layouts and a capture");
}
