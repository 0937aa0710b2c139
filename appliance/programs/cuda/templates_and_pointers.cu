// Templates, device function pointers in tables and as kernel parameters, virtual functions, recursion, lambdas, local arrays.
#include "check_cuda.h"

template <typename T, int N> struct Polynomial {
    T coefficients[N];
    __host__ __device__ T operator()(T x) const {
        T sum = 0;
        for (int i = N - 1; i >= 0; i--) {
            sum = sum * x + coefficients[i];
        }
        return sum;
    }
};

template <typename T, typename F> __global__ void map(T *values, int count, F function) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        values[i] = function(values[i]);
    }
}

typedef int (*Operation)(int, int);

__device__ __noinline__ int add(int a, int b) {
    return a + b;
}

__device__ __noinline__ int subtract(int a, int b) {
    return a - b;
}

__device__ __noinline__ int power(int a, int b) {
    return b == 0 ? 1 : a * power(a, b - 1);
}

__device__ Operation operations[] = {add, subtract, power};

__global__ void call_table(int *out) {
    out[threadIdx.x] = operations[threadIdx.x % 3](3, (int) threadIdx.x / 3);
}

__global__ void call_parameter(Operation operation, int *out) {
    out[0] = operation(40, 2);
}

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {
    }
};

struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {
    }
    __device__ float area() const override {
        return side * side;
    }
};

struct Rectangle : Shape {
    float width, height;
    __device__ Rectangle(float w, float h) : width(w), height(h) {
    }
    __device__ float area() const override {
        return width * height;
    }
};

__global__ void areas(float *out, int kind) {
    Square square(3);
    Rectangle rectangle(2, 5);
    const Shape *shapes[2] = {&square, &rectangle};
    out[0] = shapes[kind & 1]->area();
    out[1] = shapes[(kind + 1) & 1]->area();
}

// A local array with indices unknown to the compiler, which must be in local memory.
__global__ void sort_local(int *values) {
    int local[16];
    for (int i = 0; i < 16; i++) {
        local[i] = values[threadIdx.x * 16 + i];
    }
    for (int i = 1; i < 16; i++) {
        int value = local[i], j = i;
        while (j > 0 && local[j - 1] > value) {
            local[j] = local[j - 1];
            j--;
        }
        local[j] = value;
    }
    for (int i = 0; i < 16; i++) {
        values[threadIdx.x * 16 + i] = local[i];
    }
}

static int host_operation(int which, int a, int b) {
    int result = 1;
    for (int i = 0; i < b; i++) {
        result *= a;
    }
    return which == 0 ? a + b : which == 1 ? a - b : result;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    std::vector<double> inputs(100);
    for (int i = 0; i < 100; i++) {
        inputs[i] = i - 50;
    }
    double *doubles = device_copy(inputs);
    Polynomial<double, 4> cubic = {{1, -2, 0.5, 0.25}};
    map<<<4, 32>>>(doubles, 100, cubic);
    LAUNCH_OK();
    std::vector<double> mapped = host_copy(doubles, 100);
    for (int i = 0; i < 100; i++) {
        check_near("polynomial", i, cubic(inputs[i]), mapped[i], 1e-9);
    }

    std::vector<unsigned char> small(64, 250);
    unsigned char *bytes = device_copy(small);
    map<<<1, 64>>>(bytes, 64, Polynomial<unsigned char, 2>{{9, 1}});
    LAUNCH_OK();
    check_equal("unsigned char wraps", (unsigned char) (250 + 9), host_copy(bytes, 64)[63]);

    int *ints = device_array<int>(512);
    call_table<<<1, 24>>>(ints);
    LAUNCH_OK();
    std::vector<int> results = host_copy(ints, 24);
    for (int i = 0; i < 24; i++) {
        check_element("table of functions", i, host_operation(i % 3, 3, i / 3), results[i]);
    }
    Operation operation = nullptr;
    CUDA_OK(cudaMemcpyFromSymbol(&operation, operations, sizeof(operation), sizeof(operation)));
    check_true("an address of a function", operation != nullptr);
    call_parameter<<<1, 1>>>(operation, ints);
    LAUNCH_OK();
    check_equal("function as parameter", 38, host_copy(ints, 1)[0]);

    float *floats = device_array<float>(2);
    areas<<<1, 1>>>(floats, 0);
    LAUNCH_OK();
    std::vector<float> got = host_copy(floats, 2);
    check_near("square", 0, 9, got[0], 0);
    check_near("rectangle", 1, 10, got[1], 0);

    uint32_t seed = 21;
    std::vector<int> unsorted(512);
    for (int &value : unsorted) {
        value = (int) (check_random(&seed) % 1000);
    }
    CUDA_OK(cudaMemcpy(ints, unsorted.data(), 512 * sizeof(int), cudaMemcpyHostToDevice));
    sort_local<<<1, 32>>>(ints);
    LAUNCH_OK();
    std::vector<int> sorted = host_copy(ints, 512);
    for (int row = 0; row < 32; row++) {
        long long before = 0, after = 0;
        for (int i = 0; i < 16; i++) {
            before += unsorted[row * 16 + i];
            after += sorted[row * 16 + i];
            check_true("sorted", i == 0 || sorted[row * 16 + i - 1] <= sorted[row * 16 + i]);
        }
        check_equal("sum of the sorted", before, after);
    }
    CUDA_OK(cudaFree(doubles));
    CUDA_OK(cudaFree(bytes));
    CUDA_OK(cudaFree(ints));
    CUDA_OK(cudaFree(floats));
    return check_pass("templates, function pointers, virtual functions, recursion, local arrays");
}
