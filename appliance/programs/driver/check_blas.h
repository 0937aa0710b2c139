/* The four types of BLAS, and access to numbers of the type in use. For the programs that call BLAS functions. */
#ifndef HAWSER_PROGRAMS_CHECK_BLAS_H
#define HAWSER_PROGRAMS_CHECK_BLAS_H

#include <complex.h>
#include <stddef.h>

enum { OP_N = 0, OP_T = 1, OP_C = 2, LOWER = 0, UPPER = 1, NON_UNIT = 0, UNIT = 1, LEFT = 0, RIGHT = 1 };

typedef double complex z_t;

typedef struct type {
    char letter;
    size_t bytes;
    int is_complex, is_double;
} type_t;
static const type_t types[] = {{'S', 4, 0, 0}, {'D', 8, 0, 1}, {'C', 8, 1, 0}, {'Z', 16, 1, 1}};
static const type_t *type; /* the one in use */

/* Writes a number of the type in use at an index. */
static void put(void *base, size_t at, z_t value) {
    size_t parts = (size_t) type->is_complex + 1;
    for (size_t part = 0; part < parts; part++) {
        double number = part == 0 ? creal(value) : cimag(value);
        if (type->is_double) {
            ((double *) base)[at * parts + part] = number;
        } else {
            ((float *) base)[at * parts + part] = (float) number;
        }
    }
}

/* Reads a number of the type in use. */
static z_t get(const void *base, size_t at) {
    size_t parts = (size_t) type->is_complex + 1;
    double number[2] = {0, 0};
    for (size_t part = 0; part < parts; part++) {
        number[part] =
            type->is_double ? ((const double *) base)[at * parts + part] : ((const float *) base)[at * parts + part];
    }
    return CMPLX(number[0], number[1]);
}

#endif
