/* Batches and the 64-bit functions of drv_cusolver.c, wrong calls, and calls in a stream. */
#ifndef HAWSER_PROGRAMS_DRV_CUSOLVER_GENERIC_H
#define HAWSER_PROGRAMS_DRV_CUSOLVER_GENERIC_H

static void check_batches(const type_t *t) {
    static matrix_t a[BATCH], b[BATCH], product;
    data_t matrices[BATCH], sides[BATCH], da = make(BATCH), db = make(BATCH);
    for (int i = 0; i < BATCH; i++) {
        fill_definite(t, &a[i], SMALL);
        fill(t, &b[i], SMALL, 1);
        if (i == 1) {
            AT(&a[i], 2, 2) = -1;
        }
        matrices[i] = make(LD * LD);
        sides[i] = make(LD);
        upload(t, matrices[i], a[i].a, LD * LD);
        upload(t, sides[i], b[i].a, LD);
    }
    CU_OK(cuMemcpyHtoD(da, matrices, sizeof matrices));
    CU_OK(cuMemcpyHtoD(db, sides, sizeof sides));
    OK(CALL_OF(t, "potrfBatched", (handle_t, int, int, data_t, int, data_t, int), handle, LOWER, SMALL, da, LD, info,
               BATCH));
    for (int i = 0; i < BATCH; i++) {
        check_element("the info of potrfBatched", i, i == 1 ? 3 : 0, info_at(i));
    }
    AT(&a[1], 2, 2) = 100; /* now with a factor of its own */
    upload(t, matrices[1], a[1].a, LD * LD);
    CU_OK(cuMemcpyHtoD(da, &matrices[1], sizeof matrices[1]));
    OK(CALL_OF(t, "potrfBatched", (handle_t, int, int, data_t, int, data_t, int), handle, LOWER, SMALL, da, LD, info,
               1));
    expect_info("the info of potrfBatched with one matrix", 0);
    CU_OK(cuMemcpyHtoD(da, matrices, sizeof matrices));
    OK(CALL_OF(t, "potrsBatched", (handle_t, int, int, int, data_t, int, data_t, int, data_t, int), handle, LOWER,
               SMALL, 1, da, LD, db, LD, info, BATCH));
    expect_info("the info of potrsBatched", 0);
    for (int i = 0; i < BATCH; i++) {
        memset(&product, 0, sizeof product);
        download(t, product.a, sides[i], LD);
        multiply(&product, &a[i], OP_N, &product, OP_N, SMALL, 1, SMALL);
        compare(t, "potrsBatched", &b[i], &product, SMALL, 1);
        CU_OK(cuMemFree(matrices[i]));
        CU_OK(cuMemFree(sides[i]));
    }
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(db));
}

static void *params;
static unsigned char host_work[1 << 20];

/* The workspaces that a 64-bit function wants. */
typedef struct spaces {
    size_t device, host;
} spaces_t;

static spaces_t made(spaces_t s) {
    need(s.device + 16);
    check_true("the host workspace fits", s.host <= sizeof host_work);
    return s;
}

static void check_generic_solvers(const type_t *t) {
    static matrix_t a, b, x;
    data_t da = make(LD * LD), db = make(LD * LD), pivots = make(N);
    spaces_t s;
    fill_definite(t, &a, N);
    fill(t, &b, N, NRHS);
    upload(t, da, a.a, LD * LD);
    upload(t, db, b.a, LD * NRHS);
    OK(CALL("cusolverDnXpotrf_bufferSize",
            (handle_t, void *, int, int64_t, int, data_t, int64_t, int, size_t *, size_t *), handle, params, LOWER, N,
            t->number, da, LD, t->number, &s.device, &s.host));
    s = made(s);
    OK(CALL("cusolverDnXpotrf",
            (handle_t, void *, int, int64_t, int, data_t, int64_t, int, data_t, size_t, void *, size_t, data_t), handle,
            params, LOWER, N, t->number, da, LD, t->number, work, s.device, host_work, s.host, info));
    expect_info("the info of Xpotrf", 0);
    OK(CALL("cusolverDnXpotrs",
            (handle_t, void *, int, int64_t, int64_t, int, data_t, int64_t, int, data_t, int64_t, data_t), handle,
            params, LOWER, N, NRHS, t->number, da, LD, t->number, db, LD, info));
    expect_info("the info of Xpotrs", 0);
    memset(&x, 0, sizeof x);
    download(t, x.a, db, LD * NRHS);
    multiply(&x, &a, OP_N, &x, OP_N, N, NRHS, N);
    compare(t, "Xpotrs", &b, &x, N, NRHS);

    fill(t, &a, N, N);
    upload(t, da, a.a, LD * LD);
    upload(t, db, b.a, LD * NRHS);
    OK(CALL("cusolverDnXgetrf_bufferSize",
            (handle_t, void *, int64_t, int64_t, int, data_t, int64_t, int, size_t *, size_t *), handle, params, N, N,
            t->number, da, LD, t->number, &s.device, &s.host));
    s = made(s);
    OK(CALL(
        "cusolverDnXgetrf",
        (handle_t, void *, int64_t, int64_t, int, data_t, int64_t, data_t, int, data_t, size_t, void *, size_t, data_t),
        handle, params, N, N, t->number, da, LD, pivots, t->number, work, s.device, host_work, s.host, info));
    expect_info("the info of Xgetrf", 0);
    OK(CALL("cusolverDnXgetrs",
            (handle_t, void *, int, int64_t, int64_t, int, data_t, int64_t, data_t, int, data_t, int64_t, data_t),
            handle, params, OP_N, N, NRHS, t->number, da, LD, pivots, t->number, db, LD, info));
    expect_info("the info of Xgetrs", 0);
    memset(&x, 0, sizeof x);
    download(t, x.a, db, LD * NRHS);
    multiply(&x, &a, OP_N, &x, OP_N, N, NRHS, N);
    compare(t, "Xgetrs", &b, &x, N, NRHS);

    static matrix_t r, q;
    fill(t, &a, M, N);
    upload(t, da, a.a, LD * LD);
    OK(CALL("cusolverDnXgeqrf_bufferSize",
            (handle_t, void *, int64_t, int64_t, int, data_t, int64_t, int, data_t, int, size_t *, size_t *), handle,
            params, M, N, t->number, da, LD, t->number, pivots, t->number, &s.device, &s.host));
    s = made(s);
    OK(CALL("cusolverDnXgeqrf",
            (handle_t, void *, int64_t, int64_t, int, data_t, int64_t, int, data_t, int, data_t, size_t, void *, size_t,
             data_t),
            handle, params, M, N, t->number, da, LD, t->number, pivots, t->number, work, s.device, host_work, s.host,
            info));
    expect_info("the info of Xgeqrf", 0);
    download(t, r.a, da, LD * LD);
    keep_triangle(&r, UPPER, LD);
    multiply(&q, &a, OP_C, &a, OP_N, N, N, M); /* A^H A = R^H R */
    multiply(&r, &r, OP_C, &r, OP_N, N, N, N);
    compare(t, "Xgeqrf", &q, &r, N, N);
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(db));
    CU_OK(cuMemFree(pivots));
}

static void check_generic_values(const type_t *t) {
    static matrix_t a, u, v;
    static number_t w[N];
    data_t da = make(LD * LD), du = make(LD * LD), dv = make(LD * LD), dw = make(N);
    spaces_t s;
    fill_definite(t, &a, N);
    upload(t, da, a.a, LD * LD);
    OK(CALL("cusolverDnXsyevd_bufferSize",
            (handle_t, void *, int, int, int64_t, int, data_t, int64_t, int, data_t, int, size_t *, size_t *), handle,
            params, VECTOR, LOWER, N, t->number, da, LD, t->real, dw, t->number, &s.device, &s.host));
    s = made(s);
    OK(CALL("cusolverDnXsyevd",
            (handle_t, void *, int, int, int64_t, int, data_t, int64_t, int, data_t, int, data_t, size_t, void *,
             size_t, data_t),
            handle, params, VECTOR, LOWER, N, t->number, da, LD, t->real, dw, t->number, work, s.device, host_work,
            s.host, info));
    expect_info("the info of Xsyevd", 0);
    download(t, v.a, da, LD * LD);
    download_real(t, w, dw, N);
    check_eigen(t, "Xsyevd", &a, &v, w, N);

    fill(t, &a, M, N);
    upload(t, da, a.a, LD * LD);
    OK(CALL("cusolverDnXgesvd_bufferSize",
            (handle_t, void *, signed char, signed char, int64_t, int64_t, int, data_t, int64_t, int, data_t, int,
             data_t, int64_t, int, data_t, int64_t, int, size_t *, size_t *),
            handle, params, 'S', 'S', M, N, t->number, da, LD, t->real, dw, t->number, du, LD, t->number, dv, LD,
            t->number, &s.device, &s.host));
    s = made(s);
    OK(CALL("cusolverDnXgesvd",
            (handle_t, void *, signed char, signed char, int64_t, int64_t, int, data_t, int64_t, int, data_t, int,
             data_t, int64_t, int, data_t, int64_t, int, data_t, size_t, void *, size_t, data_t),
            handle, params, 'S', 'S', M, N, t->number, da, LD, t->real, dw, t->number, du, LD, t->number, dv, LD,
            t->number, work, s.device, host_work, s.host, info));
    expect_info("the info of Xgesvd", 0);
    download(t, u.a, du, LD * LD);
    download(t, v.a, dv, LD * LD);
    download_real(t, w, dw, N);
    check_values(t, "Xgesvd", &a, &u, w, &v, OP_N, M, N);
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(du));
    CU_OK(cuMemFree(dv));
    CU_OK(cuMemFree(dw));
}

static void check_generic(const type_t *t) {
    OK(CALL("cusolverDnCreateParams", (void **), &params));
    OK(CALL("cusolverDnSetAdvOptions", (void *, int, int), params, 0, 0)); /* CUSOLVERDN_GETRF, CUSOLVER_ALG_0 */
    check_generic_solvers(t);
    check_generic_values(t);
    OK(CALL("cusolverDnDestroyParams", (void *), params));
}

static void check_errors(void) {
    const type_t *t = &types[1];
    data_t da = make(LD * LD);
    int version = 0, major = 0;
    OK(CALL("cusolverGetVersion", (int *), &version));
    OK(CALL("cusolverGetProperty", (int, int *), 0, &major));
    check_element("the major version", version, version / 1000, major);
    IS(INVALID_VALUE, CALL("cusolverGetProperty", (int, int *), 7, &major));
    IS(INVALID_VALUE,
       CALL_OF(t, "potrf", (handle_t, int, int, data_t, int, data_t, int, data_t), handle, LOWER, -1, da, LD, work, 16,
               info));
    IS(INVALID_VALUE,
       CALL_OF(t, "potrf", (handle_t, int, int, data_t, int, data_t, int, data_t), handle, LOWER, N, da, N - 1, work,
               16, info));
    CU_OK(cuMemFree(da));
    check_cholesky(t, LOWER); /* after wrong calls */
}

/* Many calls in a stream, of which only the first one waits. */
static void check_stream(void) {
    static matrix_t a, factor, product;
    const type_t *t = &types[1];
    CUstream stream, kept = NULL;
    data_t da = make(LD * LD), original = make(LD * LD);
    CU_OK(cuStreamCreate(&stream, 0));
    OK(CALL("cusolverDnSetStream", (handle_t, CUstream), handle, stream));
    OK(CALL("cusolverDnGetStream", (handle_t, CUstream *), handle, &kept));
    check_true("the stream of the handle", kept == stream);
    fill_definite(t, &a, N);
    upload(t, original, a.a, LD * LD);
    int lwork = SIZED(t, "potrf", (handle_t, int, int, data_t, int, int *), handle, LOWER, N, da, LD);
    for (int i = 0; i < REPEATS; i++) {
        CU_OK(cuMemcpyDtoDAsync(da, original, (size_t) LD * LD * 8, stream));
        OK(CALL_OF(t, "potrf", (handle_t, int, int, data_t, int, data_t, int, data_t), handle, LOWER, N, da, LD, work,
                   lwork, info));
    }
    CU_OK(cuStreamSynchronize(stream));
    expect_info("the info of the last call in a stream", 0);
    download(t, factor.a, da, LD * LD);
    keep_triangle(&factor, LOWER, N);
    multiply(&product, &factor, OP_N, &factor, OP_C, N, N, N);
    compare(t, "potrf in a stream", &a, &product, N, N);
    OK(CALL("cusolverDnSetStream", (handle_t, CUstream), handle, NULL));
    CU_OK(cuStreamDestroy(stream));
    CU_OK(cuMemFree(da));
    CU_OK(cuMemFree(original));
}

#endif
