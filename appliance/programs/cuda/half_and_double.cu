// Half, single and double precision: bit-exact operations, exhaustive conversions, and mathematical functions compared
// with the host's libm within the error bounds of the CUDA programming guide (in units in the last place).
#include "check_cuda.h"

#include <cmath>
#include <cuda_fp16.h>

static const int MATH_FUNCTIONS = 24;
// CUDA C++ Programming Guide, mathematical functions: maximum error in ulp, plus one for the host's own rounding.
static const struct {
    const char *name;
    double single_ulp;
    double double_ulp;
} MATH[MATH_FUNCTIONS] = {
    {"sqrt", 0, 0}, {"cbrt", 1, 1}, {"rsqrt", 2, 1}, {"exp", 2, 1},     {"exp2", 2, 1}, {"expm1", 1, 1},
    {"log", 1, 1},  {"log2", 1, 1}, {"log10", 2, 1}, {"log1p", 1, 1},   {"sin", 2, 2},  {"cos", 2, 2},
    {"tan", 4, 2},  {"asin", 2, 2}, {"acos", 2, 2},  {"atan", 2, 2},    {"sinh", 3, 2}, {"cosh", 2, 1},
    {"tanh", 2, 1}, {"erf", 2, 2},  {"erfc", 4, 5},  {"tgamma", 5, 10}, {"pow", 4, 2},  {"atan2", 3, 2},
};

template <typename T> __host__ __device__ static T reciprocal_root(T x) {
#ifdef __CUDA_ARCH__
    return rsqrt(x);
#else
    return 1 / std::sqrt(x);
#endif
}

// x is in (0, 1], y in [-1, 1].
template <typename T> __host__ __device__ static void functions(T x, T y, T *out) {
#ifndef __CUDA_ARCH__
    using namespace std;
#endif
    T wide = y * 20;
    out[0] = sqrt(x * 1000);
    out[1] = cbrt(wide);
    out[2] = reciprocal_root(x * 100);
    out[3] = exp(wide);
    out[4] = exp2(wide);
    out[5] = expm1(y);
    out[6] = log(x * 50);
    out[7] = log2(x * 50);
    out[8] = log10(x * 50);
    out[9] = log1p(y * (T) 0.5);
    out[10] = sin(wide);
    out[11] = cos(wide);
    out[12] = tan(y);
    out[13] = asin(y);
    out[14] = acos(y);
    out[15] = atan(wide);
    out[16] = sinh(y * 4);
    out[17] = cosh(y * 4);
    out[18] = tanh(y * 3);
    out[19] = erf(y * 2);
    out[20] = erfc(y * 2);
    out[21] = tgamma(x * 6);
    out[22] = pow(x * 4, y * 5);
    out[23] = atan2(y, x - (T) 0.5);
}

template <typename T> __global__ void run_math(const T *x, const T *y, T *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        functions(x[i], y[i], out + (size_t) i * MATH_FUNCTIONS);
    }
}

// Operations whose result IEEE 754 defines exactly.
template <typename T> struct Exact;

template <> struct Exact<float> {
    __device__ static void run(float a, float b, float c, float *out) {
        out[0] = __fadd_rn(a, b);
        out[1] = __fsub_rn(a, b);
        out[2] = __fmul_rn(a, b);
        out[3] = __fdiv_rn(a, b);
        out[4] = __fsqrt_rn(fabsf(a));
        out[5] = __fmaf_rn(a, b, c);
        out[6] = fminf(a, b);
        out[7] = rintf(a * 16);
        out[8] = truncf(a * 16);
        out[9] = floorf(a * 16);
        out[10] = ceilf(a * 16);
        out[11] = fmodf(a * 100, b);
        out[12] = copysignf(a, b);
        out[13] = (float) (int) (a * 1000);
        out[14] = ldexpf(a, (int) (b * 8));
        out[15] = a < b ? 1 : 0;
    }
};

template <> struct Exact<double> {
    __device__ static void run(double a, double b, double c, double *out) {
        out[0] = __dadd_rn(a, b);
        out[1] = __dsub_rn(a, b);
        out[2] = __dmul_rn(a, b);
        out[3] = __ddiv_rn(a, b);
        out[4] = __dsqrt_rn(fabs(a));
        out[5] = __fma_rn(a, b, c);
        out[6] = fmin(a, b);
        out[7] = rint(a * 16);
        out[8] = trunc(a * 16);
        out[9] = floor(a * 16);
        out[10] = ceil(a * 16);
        out[11] = fmod(a * 100, b);
        out[12] = copysign(a, b);
        out[13] = (double) (long long) (a * 1000);
        out[14] = ldexp(a, (int) (b * 8));
        out[15] = a < b ? 1 : 0;
    }
};

template <typename T> static void exact_on_host(T a, T b, T c, T *out) {
    out[0] = a + b;
    out[1] = a - b;
    out[2] = a * b;
    out[3] = a / b;
    out[4] = std::sqrt(std::fabs(a));
    out[5] = std::fma(a, b, c);
    out[6] = std::fmin(a, b);
    out[7] = std::rint(a * 16);
    out[8] = std::trunc(a * 16);
    out[9] = std::floor(a * 16);
    out[10] = std::ceil(a * 16);
    out[11] = std::fmod(a * 100, b);
    out[12] = std::copysign(a, b);
    out[13] = sizeof(T) == 4 ? (T) (int) (a * 1000) : (T) (long long) (a * 1000);
    out[14] = std::ldexp(a, (int) (b * 8));
    out[15] = a < b ? 1 : 0;
}

template <typename T> __global__ void run_exact(const T *a, T *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 2 < count) {
        Exact<T>::run(a[i], a[i + 1], a[i + 2], out + (size_t) i * 16);
    }
}

template <typename T> static double ulp(T value) {
    T magnitude = std::fabs(value);
    return (double) (std::nextafter(magnitude, std::numeric_limits<T>::infinity()) - magnitude);
}

template <typename T> static void math(const char *precision) {
    const int count = 600;
    uint32_t seed = 31;
    std::vector<T> x(count), y(count);
    for (int i = 0; i < count; i++) {
        x[i] = (T) ((check_random_float(&seed) + 1.0 + 1e-4) / 2.001);
        y[i] = (T) check_random_float(&seed);
    }
    T *device_x = device_copy(x), *device_y = device_copy(y);
    T *device_out = device_array<T>((size_t) count * MATH_FUNCTIONS);
    run_math<T><<<(count + 63) / 64, 64>>>(device_x, device_y, device_out, count);
    LAUNCH_OK();
    std::vector<T> out = host_copy(device_out, (size_t) count * MATH_FUNCTIONS);
    for (int i = 0; i < count; i++) {
        // The arguments are rounded as on the device; the function is computed in the wider type.
        T here[MATH_FUNCTIONS];
        functions<T>(x[i], y[i], here);
        for (int f = 0; f < MATH_FUNCTIONS; f++) {
            double bound = (sizeof(T) == 4 ? MATH[f].single_ulp : MATH[f].double_ulp) + 1;
            T got = out[(size_t) i * MATH_FUNCTIONS + f];
            double off = std::fabs((double) got - (double) here[f]) / ulp(here[f]);
            if (!(off <= bound)) {
                check_fail("%s %s of x=%.17g y=%.17g, expected %.17g within %g ulp, got %.17g (%.1f ulp)", precision,
                           MATH[f].name, (double) x[i], (double) y[i], (double) here[f], bound, (double) got, off);
            }
        }
    }
    CUDA_OK(cudaFree(device_x));
    CUDA_OK(cudaFree(device_y));
    CUDA_OK(cudaFree(device_out));
}

template <typename T> static void exact(const char *precision) {
    const int count = 2000;
    uint32_t seed = 13;
    std::vector<T> values(count);
    for (int i = 0; i < count; i++) {
        values[i] = (T) check_random_float(&seed) + (T) check_random_float(&seed) / 123456789;
        values[i] = values[i] == 0 ? 1 : values[i];
        if (i % 5 == 0) {
            values[i] *= (T) 1e-30;
        }
    }
    T *device_values = device_copy(values), *device_out = device_array<T>((size_t) count * 16);
    run_exact<T><<<(count + 127) / 128, 128>>>(device_values, device_out, count);
    LAUNCH_OK();
    std::vector<T> out = host_copy(device_out, (size_t) count * 16);
    for (int i = 0; i + 2 < count; i++) {
        T expected[16];
        exact_on_host(values[i], values[i + 1], values[i + 2], expected);
        for (int n = 0; n < 16; n++) {
            if (memcmp(&expected[n], &out[(size_t) i * 16 + n], sizeof(T)) != 0) {
                check_fail("%s operation %d of %.17g and %.17g, expected %.17g, got %.17g", precision, n,
                           (double) values[i], (double) values[i + 1], (double) expected[n],
                           (double) out[(size_t) i * 16 + n]);
            }
        }
    }
    CUDA_OK(cudaFree(device_values));
    CUDA_OK(cudaFree(device_out));
}

struct HalfResults {
    unsigned short sum, product, fused, minimum, from_int, negated;
    float single;
    double through_double;
};

__global__ void halves(HalfResults *out) {
    unsigned int bits = blockIdx.x * blockDim.x + threadIdx.x;
    __half a = __ushort_as_half((unsigned short) bits), b = __ushort_as_half((unsigned short) (0x3555 + bits % 1024));
    HalfResults *own = out + bits;
    own->single = __half2float(a);
    own->sum = __half_as_ushort(__hadd_rn(a, b));
    own->product = __half_as_ushort(__hmul_rn(a, b));
    own->fused = __half_as_ushort(__hfma(a, b, b));
    own->minimum = __half_as_ushort(__hlt(a, b) ? a : b);
    own->from_int = __half_as_ushort(__int2half_rn((int) bits - 32768));
    own->negated = __half_as_ushort(__hneg(a));
    __half2 pair = __hmul2(__halves2half2(a, b), __float2half2_rn(2.0f));
    own->through_double = (double) __low2float(pair) + (double) __high2float(pair);
}

static unsigned short half_of(float value) {
    return __half_as_ushort(__float2half_rn(value));
}

static void half_precision() {
    HalfResults *device_out = device_array<HalfResults>(65536);
    halves<<<256, 256>>>(device_out);
    LAUNCH_OK();
    std::vector<HalfResults> out = host_copy(device_out, 65536);
    for (int bits = 0; bits < 65536; bits++) {
        float a = __half2float(__ushort_as_half((unsigned short) bits));
        float b = __half2float(__ushort_as_half((unsigned short) (0x3555 + bits % 1024)));
        const HalfResults &got = out[bits];
        check_element("half of an integer", bits, half_of((float) (bits - 32768)), got.from_int);
        if (std::isnan(a)) {
            check_true("half to single: NaN stays NaN", std::isnan(got.single));
            continue;
        }
        check_element("half to single", bits, 0, memcmp(&a, &got.single, 4));
        // Sum and product of two halves are exact or rounded once in double, so one rounding to half is right.
        check_element("half sum", bits, __half_as_ushort(__double2half((double) a + b)), got.sum);
        check_element("half product", bits, __half_as_ushort(__double2half((double) a * b)), got.product);
        check_element("half fma", bits, __half_as_ushort(__double2half((double) a * b + b)), got.fused);
        check_element("half less", bits, a < b ? bits : 0x3555 + bits % 1024, got.minimum);
        check_element("half negated", bits, bits ^ 0x8000, got.negated);
        float twice_a = __half2float(__float2half_rn(a * 2)), twice_b = __half2float(__float2half_rn(b * 2));
        check_element("half2 doubled", bits, 1, (double) twice_a + twice_b == got.through_double);
    }
    CUDA_OK(cudaFree(device_out));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    exact<float>("single");
    exact<double>("double");
    math<float>("single");
    math<double>("double");
    half_precision();
    return check_pass("16 exact operations, %d functions in two precisions, all 65536 halves", MATH_FUNCTIONS);
}
