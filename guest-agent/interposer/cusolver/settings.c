/* Objects with settings. They are the guest's; the worker makes an object for Jacobi's method when a call names it. */
#include "hws_cusolver.h"

#include "hws_cusolver_calls.h"

#include <stdlib.h>

#define PARAMS_MARK 0x5041524d53ull /* stops programs that pass a destroyed object, or one of another kind */
#define SYEVJ_MARK 0x535945564aull
#define GESVDJ_MARK 0x475356444aull

/* cusolverDnParams_t. */
typedef struct params {
    uint64_t mark;
    HwsSolverParams content;
} params_t;

/* syevjInfo_t and gesvdjInfo_t. */
typedef struct jacobi {
    uint64_t mark;
    HwsSolverJacobi content;
    _Atomic bool is_named; /* a call has named it, so the worker may have an object */
} jacobi_t;

const HwsSolverParams *hws_solver_params(cusolverDnParams_t object) {
    static const HwsSolverParams none = {.isNull = 1, .algorithms = {-1, -1, -1}};
    const params_t *params = (const params_t *) object;
    return params == NULL ? &none : params->mark == PARAMS_MARK ? &params->content : NULL;
}

HWS_EXPORT cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *params) {
    HWS_REQUIRE(params != NULL);
    params_t *object = calloc(1, sizeof *object);
    if (object == NULL) {
        return CUSOLVER_STATUS_ALLOC_FAILED;
    }
    *object = (params_t) {.mark = PARAMS_MARK, .content = {.algorithms = {-1, -1, -1}}};
    *params = (cusolverDnParams_t) object;
    return CUSOLVER_STATUS_SUCCESS;
}

HWS_EXPORT cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params) {
    params_t *object = (params_t *) params;
    if (object == NULL) {
        return CUSOLVER_STATUS_SUCCESS;
    }
    HWS_REQUIRE(object->mark == PARAMS_MARK);
    object->mark = 0;
    free(object);
    return CUSOLVER_STATUS_SUCCESS;
}

HWS_EXPORT cusolverStatus_t cusolverDnSetAdvOptions(cusolverDnParams_t params, cusolverDnFunction_t function,
                                                    cusolverAlgMode_t algo) {
    params_t *object = (params_t *) params;
    HWS_REQUIRE(object != NULL && object->mark == PARAMS_MARK);
    HWS_REQUIRE((int) function >= CUSOLVERDN_GETRF && function <= CUSOLVERDN_SYEVBATCHED && (int) algo >= CUSOLVER_ALG_0
                && algo <= CUSOLVER_ALG_2);
    object->content.algorithms[function] = (int32_t) algo;
    return CUSOLVER_STATUS_SUCCESS;
}

const HwsSolverJacobi *hws_solver_jacobi(const void *info) {
    static const HwsSolverJacobi none = {0};
    jacobi_t *object = (jacobi_t *) (uintptr_t) info;
    if (object == NULL || (object->mark != SYEVJ_MARK && object->mark != GESVDJ_MARK)) {
        return object == NULL ? &none : NULL;
    }
    atomic_store_explicit(&object->is_named, true, memory_order_relaxed);
    return &object->content;
}

static cusolverStatus_t create(uint64_t mark, jacobi_t **info) {
    static _Atomic uint64_t last;
    jacobi_t *object = calloc(1, sizeof *object);
    if (object == NULL) {
        return CUSOLVER_STATUS_ALLOC_FAILED;
    }
    object->mark = mark;
    object->content.id = atomic_fetch_add(&last, 1) + 1;
    object->content.isGesvdj = mark == GESVDJ_MARK;
    *info = object;
    return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t destroy(uint64_t mark, jacobi_t *object) {
    if (object == NULL) {
        return CUSOLVER_STATUS_SUCCESS;
    }
    HWS_REQUIRE(object->mark == mark);
    object->mark = 0;
    uint64_t id = object->content.id;
    bool is_named = atomic_load_explicit(&object->is_named, memory_order_relaxed);
    free(object);
    return is_named && hws_math_gate() == 0 ? hws_call_hwsSolverForget(id) : CUSOLVER_STATUS_SUCCESS;
}

/* The object of a setter; leaves the calling function without one. */
#define HWS_SET(kind, info, setting)                                                                                   \
    (__extension__({                                                                                                   \
        jacobi_t *hws_object = (jacobi_t *) (info);                                                                    \
        HWS_REQUIRE(hws_object != NULL && hws_object->mark == (kind));                                                 \
        hws_object->content.given |= (setting);                                                                        \
        &hws_object->content;                                                                                          \
    }))

#define HWS_JACOBI(Name, name, type, kind, sort)                                                                       \
    HWS_EXPORT cusolverStatus_t cusolverDnCreate##Name##Info(type *info) {                                             \
        HWS_REQUIRE(info != NULL);                                                                                     \
        jacobi_t *object = NULL;                                                                                       \
        cusolverStatus_t status = create(kind, &object);                                                               \
        if (status == CUSOLVER_STATUS_SUCCESS) {                                                                       \
            *info = (type) object;                                                                                     \
        }                                                                                                              \
        return status;                                                                                                 \
    }                                                                                                                  \
    HWS_EXPORT cusolverStatus_t cusolverDnDestroy##Name##Info(type info) {                                             \
        return destroy(kind, (jacobi_t *) info);                                                                       \
    }                                                                                                                  \
    HWS_EXPORT cusolverStatus_t cusolverDnX##name##SetTolerance(type info, double tolerance) {                         \
        HWS_SET(kind, info, HWS_SOLVER_TOLERANCE)->tolerance = tolerance;                                              \
        return CUSOLVER_STATUS_SUCCESS;                                                                                \
    }                                                                                                                  \
    HWS_EXPORT cusolverStatus_t cusolverDnX##name##SetMaxSweeps(type info, int max_sweeps) {                           \
        HWS_SET(kind, info, HWS_SOLVER_SWEEPS)->maxSweeps = max_sweeps;                                                \
        return CUSOLVER_STATUS_SUCCESS;                                                                                \
    }                                                                                                                  \
    HWS_EXPORT cusolverStatus_t cusolverDnX##name##SetSortEig(type info, int sort) {                                   \
        HWS_SET(kind, info, HWS_SOLVER_SORT)->isSorted = sort;                                                         \
        return CUSOLVER_STATUS_SUCCESS;                                                                                \
    }

HWS_JACOBI(Syevj, syevj, syevjInfo_t, SYEVJ_MARK, sort_eig)
HWS_JACOBI(Gesvdj, gesvdj, gesvdjInfo_t, GESVDJ_MARK, sort_svd)
