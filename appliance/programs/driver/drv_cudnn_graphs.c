/*
 * Graphs of several operations of cuDNN: a convolution with a bias and a rectification behind it, and a product of
 * matrices, held against sums that the program computes. A library may have no plan for such a graph in float. Tensors
 * between the operations are virtual.
 */
#define FUNCTIONS(F)

#include "check_cudnn.h"

enum { MATMUL = 18, OPERATION_MATMUL = 19, ADD = 0, RECTIFY = 100 };
#define BATCH 2
#define CHANNELS 4
#define FILTERS 8
#define SIZE 8
#define WINDOW 3
#define X_ELEMENTS (BATCH * CHANNELS * SIZE * SIZE)
#define W_ELEMENTS (FILTERS * CHANNELS * WINDOW * WINDOW)
#define Y_ELEMENTS (BATCH * FILTERS * SIZE * SIZE)

static desc_t pointwise(int mode, desc_t x, desc_t b, desc_t y, desc_t *function) {
    int type = FLOAT;
    desc_t operation = begin(OPERATION_POINTWISE);
    *function = begin(POINTWISE);
    OK(cudnnBackendSetAttribute(*function, 0, TYPE_POINTWISE_MODE, 1, &mode));
    OK(cudnnBackendSetAttribute(*function, 1, TYPE_DATA_TYPE, 1, &type));
    OK(cudnnBackendFinalize(*function));
    OK(cudnnBackendSetAttribute(operation, 750, TYPE_DESCRIPTOR, 1, function));
    OK(cudnnBackendSetAttribute(operation, 751, TYPE_DESCRIPTOR, 1, &x));
    if (b != NULL) {
        OK(cudnnBackendSetAttribute(operation, 752, TYPE_DESCRIPTOR, 1, &b));
    }
    OK(cudnnBackendSetAttribute(operation, 753, TYPE_DESCRIPTOR, 1, &y));
    OK(cudnnBackendFinalize(operation));
    return operation;
}

static float expected(const float *x, const float *w, const float *bias, int n, int k, int at) {
    float sum = bias[k];
    for (int c = 0; c < CHANNELS; c++) {
        for (int window = 0; window < WINDOW * WINDOW; window++) {
            int row = at / SIZE + window / WINDOW - 1, column = at % SIZE + window % WINDOW - 1;
            if (row >= 0 && row < SIZE && column >= 0 && column < SIZE) {
                sum += x[((n * CHANNELS + c) * SIZE + row) * SIZE + column]
                    * w[(k * CHANNELS + c) * WINDOW * WINDOW + window];
            }
        }
    }
    return sum > 0 ? sum : 0;
}

/* Returns whether the library has a plan. */
static int check_chain(handle_t handle) {
    static const int64_t x_sizes[4] = {BATCH, CHANNELS, SIZE, SIZE}, w_sizes[4] = {FILTERS, CHANNELS, WINDOW, WINDOW};
    static const int64_t y_sizes[4] = {BATCH, FILTERS, SIZE, SIZE}, b_sizes[4] = {1, FILTERS, 1, 1};
    static const int64_t uids[4] = {'x', 'w', 'b', 'y'};
    static float x[X_ELEMENTS], w[W_ELEMENTS], bias[FILTERS], y[Y_ELEMENTS];
    float one = 1, zero = 0;
    for (int i = 0; i < X_ELEMENTS; i++) {
        x[i] = number(1, i);
    }
    for (int i = 0; i < W_ELEMENTS; i++) {
        w[i] = number(2, i);
    }
    for (int k = 0; k < FILTERS; k++) {
        bias[k] = number(3, k);
    }
    for (int i = 0; i < Y_ELEMENTS; i++) {
        y[i] = expected(x, w, bias, i / (FILTERS * SIZE * SIZE), i / (SIZE * SIZE) % FILTERS, i % (SIZE * SIZE));
    }
    desc_t descs[7] = {tensor('x', x_sizes, IN_MEMORY),
                       tensor('w', w_sizes, IN_MEMORY),
                       tensor('b', b_sizes, IN_MEMORY),
                       tensor('y', y_sizes, IN_MEMORY),
                       tensor('1', y_sizes, VIRTUAL),
                       tensor('2', y_sizes, VIRTUAL),
                       convolution()};
    desc_t functions[2], operations[3] = {begin(OPERATION_FORWARD), NULL, NULL};
    OK(cudnnBackendSetAttribute(operations[0], 700, TYPE_FLOAT, 1, &one));
    OK(cudnnBackendSetAttribute(operations[0], 701, TYPE_FLOAT, 1, &zero));
    OK(cudnnBackendSetAttribute(operations[0], 702, TYPE_DESCRIPTOR, 1, &descs[6]));
    OK(cudnnBackendSetAttribute(operations[0], 704, TYPE_DESCRIPTOR, 1, &descs[0]));
    OK(cudnnBackendSetAttribute(operations[0], 703, TYPE_DESCRIPTOR, 1, &descs[1]));
    OK(cudnnBackendSetAttribute(operations[0], 705, TYPE_DESCRIPTOR, 1, &descs[4]));
    OK(cudnnBackendFinalize(operations[0]));
    operations[1] = pointwise(ADD, descs[4], descs[2], descs[5], &functions[0]);
    operations[2] = pointwise(RECTIFY, descs[5], NULL, descs[3], &functions[1]);
    CUdeviceptr memory[4] = {upload(x, X_ELEMENTS), upload(w, W_ELEMENTS), upload(bias, FILTERS),
                             upload(y, Y_ELEMENTS)};
    CU_OK(cuMemsetD32(memory[3], 0, Y_ELEMENTS));
    void *pointers[4] = {(void *) memory[0], (void *) memory[1], (void *) memory[2], (void *) memory[3]};
    int done = run_graph(handle, 3, operations, 4, uids, pointers, 2);
    if (done) {
        compare("a rectified convolution", y, memory[3], Y_ELEMENTS, 0.05);
    }
    for (int i = 0; i < 3; i++) {
        OK(cudnnBackendDestroyDescriptor(operations[i]));
    }
    for (int i = 0; i < 2; i++) {
        OK(cudnnBackendDestroyDescriptor(functions[i]));
    }
    for (int i = 0; i < 7; i++) {
        OK(cudnnBackendDestroyDescriptor(descs[i]));
    }
    for (int i = 0; i < 4; i++) {
        CU_OK(cuMemFree(memory[i]));
    }
    return done;
}

static desc_t matrix(int64_t uid, int64_t rows, int64_t columns) {
    int64_t sizes[3] = {BATCH, rows, columns}, strides[3] = {rows * columns, columns, 1}, alignment = 16;
    int type = FLOAT;
    desc_t made = begin(TENSOR);
    OK(cudnnBackendSetAttribute(made, 901, TYPE_DATA_TYPE, 1, &type));
    OK(cudnnBackendSetAttribute(made, 902, TYPE_INT64, 3, sizes));
    OK(cudnnBackendSetAttribute(made, 903, TYPE_INT64, 3, strides));
    OK(cudnnBackendSetAttribute(made, 906, TYPE_INT64, 1, &uid));
    OK(cudnnBackendSetAttribute(made, 900, TYPE_INT64, 1, &alignment));
    OK(cudnnBackendFinalize(made));
    return made;
}

/* Returns whether the library has a plan. */
static int check_product(handle_t handle) {
    enum { ROWS = 8, INNER = 12, COLUMNS = 16 };
    static const int64_t uids[3] = {'a', 'b', 'c'};
    static float a[BATCH * ROWS * INNER], b[BATCH * INNER * COLUMNS], c[BATCH * ROWS * COLUMNS];
    int type = FLOAT;
    for (int i = 0; i < BATCH * ROWS * INNER; i++) {
        a[i] = number(4, i);
    }
    for (int i = 0; i < BATCH * INNER * COLUMNS; i++) {
        b[i] = number(5, i);
    }
    for (int i = 0; i < BATCH * ROWS * COLUMNS; i++) {
        c[i] = 0;
        for (int k = 0; k < INNER; k++) {
            c[i] += a[i / COLUMNS * INNER + k] * b[(i / (ROWS * COLUMNS) * INNER + k) * COLUMNS + i % COLUMNS];
        }
    }
    desc_t descs[3] = {matrix('a', ROWS, INNER), matrix('b', INNER, COLUMNS), matrix('c', ROWS, COLUMNS)};
    desc_t product = begin(MATMUL), operation = begin(OPERATION_MATMUL);
    OK(cudnnBackendSetAttribute(product, 1500, TYPE_DATA_TYPE, 1, &type));
    OK(cudnnBackendFinalize(product));
    OK(cudnnBackendSetAttribute(operation, 1523, TYPE_DESCRIPTOR, 1, &product));
    for (int i = 0; i < 3; i++) {
        OK(cudnnBackendSetAttribute(operation, 1520 + i, TYPE_DESCRIPTOR, 1, &descs[i]));
    }
    OK(cudnnBackendFinalize(operation));
    CUdeviceptr memory[3] = {upload(a, BATCH * ROWS * INNER), upload(b, BATCH * INNER * COLUMNS),
                             upload(c, BATCH * ROWS * COLUMNS)};
    CU_OK(cuMemsetD32(memory[2], 0, BATCH * ROWS * COLUMNS));
    void *pointers[3] = {(void *) memory[0], (void *) memory[1], (void *) memory[2]};
    int done = run(handle, operation, 3, uids, pointers, 2);
    if (done) {
        compare("a product of matrices", c, memory[2], BATCH * ROWS * COLUMNS, 0.05);
    }
    OK(cudnnBackendDestroyDescriptor(operation));
    OK(cudnnBackendDestroyDescriptor(product));
    for (int i = 0; i < 3; i++) {
        OK(cudnnBackendDestroyDescriptor(descs[i]));
        CU_OK(cuMemFree(memory[i]));
    }
    return done;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    load();
    check_context();
    handle_t handle = NULL;
    OK(cudnnCreate(&handle));
    int chain = check_chain(handle), product = check_product(handle);
    OK(cudnnDestroy(handle));
    check_here("%s", chain ? "a convolution, a bias and a rectification" : "no plan for a chain of operations");
    check_here("%s", product ? "a product of matrices" : "no plan for a product of matrices");
    return check_pass("graphs of several operations");
}
