/*
 * The guest's state of cuSOLVER: what a call sends of handles and settings, which questions are asked once, and what
 * sends nothing. The session is replaced by a table that keeps the last record.
 */
#include "hws_test.h"
#include "replaced_session.h"

#include "hws_cusolver.h"
#include "hws_cusolver_functions.h"
#include "hws_cusolver_opcodes.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int forgotten, questions; /* counted */
static int answer;               /* to the next call */
static int device = 3;

CUresult cuCtxGetDevice(CUdevice *result) {
    *result = device;
    return CUDA_SUCCESS;
}

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    session_keep(opcode, payload, payload_bytes);
    forgotten += opcode == HWS_OPCODE_hwsSolverForget;
    return 0;
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count) {
    HWS_CHECK((flags & HWS_FLAG_CREDITED) != 0 && count >= 2);
    for (uint32_t i = 0; i < count; i++) { /* modes of the handle belong to the kind */
        HWS_CHECK(ranges[i].offset < offsetof(HwsSolverHandle, device) || ranges[i].offset >= sizeof(HwsSolverHandle));
    }
    session_keep(opcode, payload, payload_bytes);
    return answer;
}

int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    session_keep(opcode, payload, payload_bytes);
    if (answer != 0) {
        return answer;
    }
    if (reply_capacity > 0) {
        memset(reply, 0, reply_capacity);
    }
    questions++;
    for (uint32_t i = 0; i + 4 <= reply_capacity; i += 8) {
        memcpy((char *) reply + i, &questions, sizeof questions);
    }
    *reply_bytes_p = reply_capacity;
    return 0;
}

static HwsSolverHandle last_handle(void) {
    HwsSolverHandle state;
    memcpy(&state, session.last, sizeof state);
    return state;
}

static cusolverDnHandle_t create(void) {
    cusolverDnHandle_t handle = NULL;
    HWS_CHECK(cusolverDnCreate(&handle) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_cusolverDnCreate);
    return handle;
}

static float memory[64];

static cusolverStatus_t potrf(cusolverDnHandle_t handle) {
    return cusolverDnSpotrf(handle, CUBLAS_FILL_MODE_UPPER, 4, memory, 4, memory, 8, (int *) memory);
}

static void should_refuse_calls_without_a_handle(void) {
    int before = session.records, size = 77;
    cusolverDnHandle_t wrong[] = {NULL, (cusolverDnHandle_t) (uintptr_t) session_handle(7),
                                  (cusolverDnHandle_t) memory};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        HWS_CHECK(potrf(wrong[i]) == CUSOLVER_STATUS_NOT_INITIALIZED);
        HWS_CHECK(cusolverDnSetStream(wrong[i], NULL) == CUSOLVER_STATUS_NOT_INITIALIZED);
        HWS_CHECK(cusolverDnDestroy(wrong[i]) == CUSOLVER_STATUS_NOT_INITIALIZED);
        HWS_CHECK(cusolverDnSpotrf_bufferSize(wrong[i], CUBLAS_FILL_MODE_LOWER, 4, NULL, 4, &size)
                  == CUSOLVER_STATUS_NOT_INITIALIZED);
    }
    HWS_CHECK(cusolverDnCreate(NULL) == CUSOLVER_STATUS_INVALID_VALUE);
    session.has_context = false;
    HWS_CHECK(cusolverDnCreate(&wrong[0]) == CUSOLVER_STATUS_NOT_INITIALIZED);
    session.has_context = true;
    HWS_CHECK(session.records == before && size == 77);
    answer = CUSOLVER_STATUS_NOT_SUPPORTED; /* the machine has no such library */
    before = session.dropped;
    HWS_CHECK(cusolverDnCreate(&wrong[0]) == CUSOLVER_STATUS_NOT_SUPPORTED && wrong[0] == NULL);
    HWS_CHECK(session.dropped == before + 1);
    answer = 0;
}

static void should_send_the_state_with_a_call(void) {
    cusolverDnHandle_t handle = create();
    int before = session.records;
    CUstream stream = NULL;
    cusolverDeterministicMode_t mode;
    cusolverMathMode_t math;
    cudaEmulationStrategy_t strategy;
    HWS_CHECK(cusolverDnGetDeterministicMode(handle, &mode) == CUSOLVER_STATUS_SUCCESS
              && mode == CUSOLVER_DETERMINISTIC_RESULTS);
    HWS_CHECK(cusolverDnGetMathMode(handle, &math) == CUSOLVER_STATUS_SUCCESS && math == CUSOLVER_DEFAULT_MATH);
    HWS_CHECK(cusolverDnGetEmulationStrategy(handle, &strategy) == CUSOLVER_STATUS_SUCCESS
              && strategy == CUDA_EMULATION_STRATEGY_DEFAULT);
    HWS_CHECK(cusolverDnSetStream(handle, (CUstream) (uintptr_t) 5) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnSetDeterministicMode(handle, CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS)
              == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnSetDeterministicMode(handle, (cusolverDeterministicMode_t) 3) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(cusolverDnSetMathMode(handle, (cusolverMathMode_t) 0) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(cusolverDnGetStream(handle, &stream) == CUSOLVER_STATUS_SUCCESS && stream == (CUstream) (uintptr_t) 5);
    HWS_CHECK(session.records == before); /* setters and getters send nothing */
    HWS_CHECK(potrf(handle) == CUSOLVER_STATUS_SUCCESS && session.last_opcode == HWS_OPCODE_cusolverDnSpotrf);
    HwsSolverHandle sent = last_handle();
    HWS_CHECK(sent.id == (uintptr_t) handle && sent.stream == 5 && sent.device == device);
    HWS_CHECK(sent.deterministicMode == CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS && sent.mathMode == 0);
    HWS_CHECK(cusolverDnSetStream(handle, (CUstream) (uintptr_t) 13) == CUSOLVER_STATUS_SUCCESS);
    before = session.records;
    HWS_CHECK(potrf(handle) == CUSOLVER_STATUS_EXECUTION_FAILED && session.records == before);
    HWS_CHECK(cusolverDnDestroy(handle) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(potrf(handle) == CUSOLVER_STATUS_NOT_INITIALIZED);
}

static int size_of(cusolverDnHandle_t handle, int n, float *matrix) {
    int size = -1;
    HWS_CHECK(cusolverDnSpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, n, matrix, n, &size)
              == CUSOLVER_STATUS_SUCCESS);
    return size;
}

static void should_ask_for_a_size_once(void) {
    cusolverDnHandle_t handle = create(), other = create();
    int first = size_of(handle, 8, memory), asked = questions;
    HWS_CHECK(size_of(handle, 8, memory) == first);
    HWS_CHECK(size_of(handle, 8, memory + 64) == first); /* another address with the same alignment */
    HWS_CHECK(cusolverDnSetStream(handle, (CUstream) (uintptr_t) 9) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(size_of(handle, 8, memory) == first);
    HWS_CHECK(size_of(other, 8, memory) == first); /* of the same device */
    HWS_CHECK(questions == asked);
    HWS_CHECK(size_of(handle, 9, memory) != first);
    HWS_CHECK(size_of(handle, 8, NULL) != first);
    HWS_CHECK(cusolverDnSetDeterministicMode(handle, CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS)
              == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(size_of(handle, 8, memory) != first);
    HWS_CHECK(questions == asked + 3);
    int size = 77;
    answer = CUSOLVER_STATUS_INVALID_VALUE; /* a failure is asked again */
    HWS_CHECK(cusolverDnSpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, -1, NULL, 1, &size)
              == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(size == 77);
    answer = 0;
    HWS_CHECK(cusolverDnSpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, -1, NULL, 1, &size)
              == CUSOLVER_STATUS_SUCCESS);
    for (int n = 1; n < 2000; n++) { /* answers take the places of others */
        asked = size_of(handle, n, memory);
        HWS_CHECK(size_of(handle, n, memory) == asked);
    }
    HWS_CHECK(cusolverDnDestroy(handle) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnDestroy(other) == CUSOLVER_STATUS_SUCCESS);
}

static cusolverStatus_t generic(cusolverDnHandle_t handle, cusolverDnParams_t params, void *host, size_t host_bytes) {
    return cusolverDnXpotrf(handle, params, CUBLAS_FILL_MODE_LOWER, 4, CUDA_R_32F, memory, 4, CUDA_R_32F, memory, 16,
                            host, host_bytes, (int *) memory);
}

static void should_send_algorithms_as_content(void) {
    cusolverDnHandle_t handle = create();
    cusolverDnParams_t params = NULL;
    int before = session.records;
    HWS_CHECK(cusolverDnCreateParams(NULL) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(cusolverDnCreateParams(&params) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnSetAdvOptions(params, CUSOLVERDN_POTRF, CUSOLVER_ALG_1) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnSetAdvOptions(params, (cusolverDnFunction_t) 3, CUSOLVER_ALG_1)
              == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(cusolverDnSetAdvOptions(params, CUSOLVERDN_GETRF, (cusolverAlgMode_t) -1)
              == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(cusolverDnSetAdvOptions(NULL, CUSOLVERDN_GETRF, CUSOLVER_ALG_0) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(generic(handle, params, NULL, 1) == CUSOLVER_STATUS_INVALID_VALUE); /* a workspace without an address */
    syevjInfo_t info = NULL;
    HWS_CHECK(cusolverDnCreateSyevjInfo(&info) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(generic(handle, (cusolverDnParams_t) info, NULL, 0) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(cusolverDnDestroySyevjInfo(info) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(session.records == before);
    HWS_CHECK(generic(handle, params, memory, sizeof memory) == CUSOLVER_STATUS_SUCCESS);
    HwsSolverParams sent;
    memcpy(&sent, session.last + sizeof(HwsSolverHandle), sizeof sent);
    HWS_CHECK(sent.isNull == 0 && sent.algorithms[0] == -1 && sent.algorithms[1] == CUSOLVER_ALG_1);
    HWS_CHECK(sent.algorithms[2] == -1);
    HWS_CHECK(generic(handle, NULL, NULL, 0) == CUSOLVER_STATUS_SUCCESS);
    memcpy(&sent, session.last + sizeof(HwsSolverHandle), sizeof sent);
    HWS_CHECK(sent.isNull == 1);
    HWS_CHECK(cusolverDnDestroyParams(params) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnDestroy(handle) == CUSOLVER_STATUS_SUCCESS);
}

static cusolverStatus_t syevj(cusolverDnHandle_t handle, syevjInfo_t info) {
    return cusolverDnSsyevj(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, 4, memory, 4, memory, memory, 8,
                            (int *) memory, info);
}

static HwsSolverJacobi last_settings(void) {
    HwsSolverJacobi settings;
    memcpy(&settings, session.last + 96, sizeof settings);
    return settings;
}

static void should_send_settings_as_content(void) {
    cusolverDnHandle_t handle = create();
    syevjInfo_t info = NULL, unused = NULL;
    gesvdjInfo_t other = NULL;
    int before = session.records;
    HWS_CHECK(cusolverDnCreateSyevjInfo(&info) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnCreateSyevjInfo(&unused) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnCreateGesvdjInfo(&other) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnXsyevjSetTolerance(info, 1e-7) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnXsyevjSetMaxSweeps(info, 15) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnXsyevjSetMaxSweeps((syevjInfo_t) other, 15) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(cusolverDnXgesvdjSetSortEig(NULL, 1) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(cusolverDnDestroyGesvdjInfo((gesvdjInfo_t) info) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(session.records == before);
    HWS_CHECK(syevj(handle, info) == CUSOLVER_STATUS_SUCCESS);
    HwsSolverJacobi sent = last_settings();
    HWS_CHECK(sent.id != 0 && sent.isGesvdj == 0 && sent.given == (HWS_SOLVER_TOLERANCE | HWS_SOLVER_SWEEPS));
    HWS_CHECK(sent.tolerance == 1e-7 && sent.maxSweeps == 15);
    HWS_CHECK(syevj(handle, NULL) == CUSOLVER_STATUS_SUCCESS && last_settings().id == 0);
    int sweeps = 0;
    HWS_CHECK(cusolverDnXsyevjGetSweeps(handle, info, &sweeps) == CUSOLVER_STATUS_SUCCESS && sweeps == questions);
    HWS_CHECK(cusolverDnXsyevjGetSweeps(handle, info, &sweeps) == CUSOLVER_STATUS_SUCCESS && sweeps == questions);
    HWS_CHECK(forgotten == 0);
    HWS_CHECK(cusolverDnDestroySyevjInfo(unused) == CUSOLVER_STATUS_SUCCESS && forgotten == 0); /* no call named it */
    HWS_CHECK(cusolverDnDestroySyevjInfo(info) == CUSOLVER_STATUS_SUCCESS && forgotten == 1);
    uint64_t id;
    memcpy(&id, session.last, sizeof id);
    HWS_CHECK(id == sent.id);
    HWS_CHECK(cusolverDnDestroyGesvdjInfo(other) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnDestroyGesvdjInfo(NULL) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverDnDestroy(handle) == CUSOLVER_STATUS_SUCCESS);
}

static void should_send_numbers_of_a_range(void) {
    cusolverDnHandle_t handle = create();
    double low = 2.5;
    int64_t found = 0;
    HWS_CHECK(cusolverDnXsyevdx(handle, NULL, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_V, CUBLAS_FILL_MODE_LOWER, 4,
                                CUDA_R_64F, memory, 4, &low, NULL, 0, 0, &found, CUDA_R_64F, memory, CUDA_R_64F, memory,
                                8, NULL, 0, (int *) memory)
              == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_cusolverDnXsyevdx && found == questions);
    bool has_number = false;
    for (size_t i = 0; i + sizeof low <= sizeof session.last; i += 8) {
        has_number |= memcmp(session.last + i, &low, sizeof low) == 0;
    }
    HWS_CHECK(has_number);
    int before = session.records;
    HWS_CHECK(cusolverDnXsyevdx(handle, NULL, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_V, CUBLAS_FILL_MODE_LOWER, 4,
                                CUDA_R_64F, memory, 4, &low, NULL, 0, 0, NULL, CUDA_R_64F, memory, CUDA_R_64F, memory,
                                8, NULL, 0, (int *) memory)
              == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(session.records == before);
    HWS_CHECK(cusolverDnDestroy(handle) == CUSOLVER_STATUS_SUCCESS);
}

static cusolverStatus_t solve(cusolverSpHandle_t handle, cusparseMatDescr_t descr, int *singularity) {
    return cusolverSpScsrlsvqr(handle, 4, 8, descr, memory, (int *) memory, (int *) memory, memory, 0.5F, 1, memory,
                               singularity);
}

#define FIND(name) __typeof__(name) *name##_p = (__typeof__(name) *) dlsym(library, #name)

/* Makes a description by the real libcusparse.so.12, which stays loaded. */
static cusparseMatDescr_t describe(const HwsSparseMatDescr *content) {
    void *library = dlopen("libcusparse.so.12", RTLD_NOW);
    HWS_CHECK(library != NULL);
    FIND(cusparseCreateMatDescr);
    FIND(cusparseSetMatType);
    FIND(cusparseSetMatFillMode);
    FIND(cusparseSetMatDiagType);
    FIND(cusparseSetMatIndexBase);
    cusparseMatDescr_t made = NULL;
    HWS_CHECK(cusparseCreateMatDescr_p(&made) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseSetMatType_p(made, (cusparseMatrixType_t) content->type) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseSetMatFillMode_p(made, (cusparseFillMode_t) content->fillMode) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseSetMatDiagType_p(made, (cusparseDiagType_t) content->diagType) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseSetMatIndexBase_p(made, (cusparseIndexBase_t) content->indexBase) == CUSPARSE_STATUS_SUCCESS);
    return made;
}

/* A structure by value. */
static void complex_shift(cusolverSpHandle_t handle, cusparseMatDescr_t descr) {
    cuDoubleComplex shift = {1.5, -2.5}, numbers[1] = {{0, 0}};
    HWS_CHECK(cusolverSpZcsreigvsi(handle, 4, 8, descr, numbers, (int *) memory, (int *) memory, shift, numbers, 9,
                                   0.125, numbers, numbers)
              == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_cusolverSpZcsreigvsi);
    HWS_CHECK(memcmp(session.last + 64, &shift, sizeof shift) == 0);
}

static void should_send_descriptions_of_sparse_matrices(void) {
    session.kind = HWS_KIND_CUSOLVER_SP;
    cusparseMatDescr_t descr = (cusparseMatDescr_t) (void *) memory;
    cusolverSpHandle_t handle = NULL;
    CUstream stream = NULL;
    int singularity = 77;
    const HwsSparseMatDescr description = {.type = 3, .fillMode = 1, .diagType = 1, .indexBase = 1};
    HWS_CHECK(cusolverSpCreate(NULL) == CUSOLVER_STATUS_INVALID_VALUE);
    answer = CUSOLVER_STATUS_NOT_SUPPORTED; /* the machine has no such library */
    int before = session.dropped;
    HWS_CHECK(cusolverSpCreate(&handle) == CUSOLVER_STATUS_NOT_SUPPORTED && handle == NULL);
    HWS_CHECK(session.dropped == before + 1);
    answer = 0;
    HWS_CHECK(solve(handle, descr, &singularity) == CUSOLVER_STATUS_NOT_INITIALIZED);
    HWS_CHECK(cusolverSpCreate(&handle) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_cusolverSpCreate);
    before = session.records;
    HWS_CHECK(cusolverSpSetStream(handle, (CUstream) (uintptr_t) 5) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(cusolverSpGetStream(handle, &stream) == CUSOLVER_STATUS_SUCCESS && stream == (CUstream) (uintptr_t) 5);
    HWS_CHECK(solve(handle, descr, &singularity) == CUSOLVER_STATUS_INVALID_VALUE); /* cuSPARSE is not loaded */
    descr = describe(&description);
    HWS_CHECK(solve(handle, NULL, &singularity) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(solve(handle, descr, NULL) == CUSOLVER_STATUS_INVALID_VALUE);
    HWS_CHECK(potrf((cusolverDnHandle_t) handle) == CUSOLVER_STATUS_NOT_INITIALIZED); /* another kind */
    HWS_CHECK(session.records == before && singularity == 77);
    HWS_CHECK(solve(handle, descr, &singularity) == CUSOLVER_STATUS_SUCCESS && singularity == questions);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_cusolverSpScsrlsvqr && session.records == before + 1);
    HwsSolverSparse sent;
    memcpy(&sent, session.last, sizeof sent);
    HWS_CHECK(sent.id == (uintptr_t) handle && sent.stream == 5 && hws_math_stream == 5);
    HWS_CHECK(memcmp(session.last + sizeof sent + 8, &description, sizeof description) == 0);
    complex_shift(handle, descr);
    HWS_CHECK(cusolverSpSetStream(handle, (CUstream) (uintptr_t) SESSION_INVALIDATED) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(solve(handle, descr, &singularity) == CUSOLVER_STATUS_EXECUTION_FAILED);
    HWS_CHECK(cusolverSpDestroy(handle) == CUSOLVER_STATUS_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_cusolverSpDestroy);
    HWS_CHECK(solve(handle, descr, &singularity) == CUSOLVER_STATUS_NOT_INITIALIZED);
    free(descr);
}

int main(void) {
    session.kind = HWS_KIND_CUSOLVER;
    should_refuse_calls_without_a_handle();
    should_send_the_state_with_a_call();
    should_ask_for_a_size_once();
    should_send_algorithms_as_content();
    should_send_settings_as_content();
    should_send_numbers_of_a_range();
    HWS_CHECK(session.dropped == 7);
    should_send_descriptions_of_sparse_matrices();
    HWS_CHECK(session.dropped == 9);
    return 0;
}
