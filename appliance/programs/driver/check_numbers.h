/* Numbers of four types, as programs of solvers compute with them and as they lie on the device. */
#ifndef CHECK_NUMBERS_H
#define CHECK_NUMBERS_H

#include "check_library.h"

#include <complex.h>

typedef double _Complex number_t;
typedef CUdeviceptr data_t; /* C's pointers to device memory */

/* A type of numbers: its letter, the error that is allowed, its cudaDataType and that of its parts. */
typedef struct type {
    char letter;
    int is_complex, is_double;
    double allowed;
    int number, real;
} type_t;

static inline size_t element_bytes(const type_t *t) {
    return (t->is_complex ? 2 : 1) * (t->is_double ? sizeof(double) : sizeof(float));
}

static inline void encode(const type_t *t, void *to, const number_t *from, int count) {
    for (int i = 0; i < count; i++) {
        double parts[2] = {creal(from[i]), cimag(from[i])};
        for (int p = 0; p < (t->is_complex ? 2 : 1); p++) {
            int at = t->is_complex ? 2 * i + p : i;
            if (t->is_double) {
                ((double *) to)[at] = parts[p];
            } else {
                ((float *) to)[at] = (float) parts[p];
            }
        }
    }
}

static inline void decode(const type_t *t, number_t *to, const void *from, int count) {
    for (int i = 0; i < count; i++) {
        double parts[2] = {0, 0};
        for (int p = 0; p < (t->is_complex ? 2 : 1); p++) {
            int at = t->is_complex ? 2 * i + p : i;
            parts[p] = t->is_double ? ((const double *) from)[at] : ((const float *) from)[at];
        }
        to[i] = parts[0] + parts[1] * I;
    }
}

/* The next number of a sequence, the same in every run; its parts lie between -0.5 and 0.5. */
static inline number_t next_number(const type_t *t) {
    static unsigned int seed = 12345;
    double parts[2] = {0, 0};
    for (int p = 0; p < (t->is_complex ? 2 : 1); p++) {
        seed = seed * 1664525u + 1013904223u;
        parts[p] = (double) (seed >> 8) / (1 << 24) - 0.5;
    }
    return parts[0] + parts[1] * I;
}

#endif
