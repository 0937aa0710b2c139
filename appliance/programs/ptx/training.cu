// The kernels of drv_training_step: what a framework's own kernels do between products. One thread for a row or an
// element; sums in the order of the indices, so that results are the same in each run.

// Softmax of each row, in place.
extern "C" __global__ void softmax(float *values, unsigned rows, unsigned columns) {
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float *at = values + row * columns, most = at[0], sum = 0;
    for (unsigned i = 1; i < columns; i++) {
        most = fmaxf(most, at[i]);
    }
    for (unsigned i = 0; i < columns; i++) {
        at[i] = expf(at[i] - most);
        sum += at[i];
    }
    for (unsigned i = 0; i < columns; i++) {
        at[i] /= sum;
    }
}

// The gradient of softmax: gradient = scale * softmax * (gradient - sum(softmax * gradient)), in place.
extern "C" __global__ void softmax_backward(const float *values, float *gradient, unsigned rows, unsigned columns,
                                            float scale) {
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float sum = 0;
    for (unsigned i = row * columns; i < (row + 1) * columns; i++) {
        sum += values[i] * gradient[i];
    }
    for (unsigned i = row * columns; i < (row + 1) * columns; i++) {
        gradient[i] = scale * values[i] * (gradient[i] - sum);
    }
}

// The gradient of the mean of squares: gradient = (result - target) * scale.
extern "C" __global__ void difference(const float *result, const float *target, float *gradient, unsigned count,
                                      float scale) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        gradient[i] = (result[i] - target[i]) * scale;
    }
}

// sum = the sum of the squares of all values. One thread.
extern "C" __global__ void squares(const float *values, float *sum, unsigned count, float scale) {
    float total = 0;
    for (unsigned i = 0; i < count; i++) {
        total += values[i] * values[i];
    }
    *sum = total * scale;
}

// The gradient of GELU's approximation by tanh, which cublasLt's epilogue computes, in place. `before`: its argument.
extern "C" __global__ void gelu_backward(const float *before, float *gradient, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float x = before[i], inner = 0.7978845608f * (x + 0.044715f * x * x * x);
        float e = expf(2 * inner), t = (e - 1) / (e + 1);
        gradient[i] *= 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
    }
}

// The gradient of a bias: sums of columns.
extern "C" __global__ void column_sums(const float *values, float *sums, unsigned rows, unsigned columns) {
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    float sum = 0;
    for (unsigned row = 0; row < rows; row++) {
        sum += values[row * columns + column];
    }
    sums[column] = sum;
}

// The optimiser: parameter = parameter - rate * gradient.
extern "C" __global__ void descend(float *parameters, const float *gradient, unsigned count, float rate) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        parameters[i] -= rate * gradient[i];
    }
}
