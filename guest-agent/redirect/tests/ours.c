/* The function with arguments of the stand-in for our runtime. */
#include "theirs.h"

double cudaLaunchKernel(long a, long b, long c, long d, long e, long f, long g, long h, double i, double j, double k,
                        double l, double m, double n, double o, double p, double q) {
    return (double) (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h) + 9 * i + 10 * j + 11 * k + 12 * l
        + 13 * m + 14 * n + 15 * o + 16 * p + 17 * q;
}
