/*
 * The guest's state of cuSPARSE: contents of descriptors, what a call sends, what sends nothing, and which questions
 * are asked once. The session is replaced by a table that keeps the last record.
 */
#include "hws_test.h"
#include "replaced_session.h"

#include "hws_cusparse.h"

#include "hws_cuda_functions.h"
#include "hws_cusparse_functions.h"
#include "hws_cusparse_opcodes.h"

static int probes, dropped;
static int64_t elements = -1; /* of the answer to an analysis */
static uint64_t size = 4096;  /* of the answer to a question */
static int answer;

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t bytes) {
    memcpy((void *) (uintptr_t) target, source, bytes);
    return CUDA_SUCCESS;
}

int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes) {
    (void) flags;
    (void) bulk;
    (void) bulk_bytes;
    HWS_CHECK(opcode == HWS_OPCODE_hwsSparseDrop);
    session_keep(opcode, payload, payload_bytes);
    dropped++;
    return 0;
}

int hws_probe(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const hws_vary_t *ranges,
              uint32_t count) {
    (void) ranges;
    HWS_CHECK(flags == HWS_FLAG_CREDITED && count > 0);
    session_keep(opcode, payload, payload_bytes);
    probes++;
    return 0;
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
    *reply_bytes_p = reply_capacity;
    if (reply_capacity > 0) {
        memset(reply, 0, reply_capacity);
    }
    if (opcode == HWS_OPCODE_hwsSparseAnalyse) {
        HwsSparseResult result = {.bytes = {size, size + 1, size + 2}, .nnz = elements, .value = {1, 2, 3, 4}};
        HWS_CHECK(reply_capacity == sizeof result);
        memcpy(reply, &result, sizeof result);
    } else if (reply_capacity == 8) { /* a size */
        memcpy(reply, &size, sizeof size);
    }
    return 0;
}

static cusparseHandle_t handle;

/* The parts of a record of a generic function. */
static HwsSparseOperation operation(void) {
    HwsSparseOperation sent;
    memcpy(&sent, session.last + sizeof(HwsSparseHandle), sizeof sent);
    return sent;
}

static HwsScalar number(int which) {
    HwsScalar sent;
    memcpy(&sent, session.last + sizeof(HwsSparseHandle) + sizeof(HwsSparseOperation) + (size_t) which * sizeof sent,
           sizeof sent);
    return sent;
}

static HwsSparseContent content(int which) {
    HwsSparseContent sent;
    memcpy(&sent,
           session.last + sizeof(HwsSparseHandle) + sizeof(HwsSparseOperation) + 2 * sizeof(HwsScalar)
               + (size_t) which * sizeof sent,
           sizeof sent);
    return sent;
}

static char memory[8];
static cusparseSpMatDescr_t matrix;
static cusparseDnVecDescr_t x, y;

static void make(void) {
    HWS_CHECK(cusparseCreateCsr(&matrix, 3, 4, 5, memory, memory + 1, memory + 2, CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_64I, CUSPARSE_INDEX_BASE_ONE, CUDA_R_64F)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseCreateDnVec(&x, 4, memory + 3, CUDA_R_64F) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseCreateDnVec(&y, 3, memory + 4, CUDA_R_64F) == CUSPARSE_STATUS_SUCCESS);
}

#define CONST_MAT ((cusparseConstSpMatDescr_t) (void *) matrix)
#define CONST_X ((cusparseConstDnVecDescr_t) (void *) x)
#define CONST_Y ((cusparseConstDnVecDescr_t) (void *) y)

static void end(void) {
    HWS_CHECK(cusparseDestroySpMat(CONST_MAT) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseDestroyDnVec(CONST_X) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseDestroyDnVec(CONST_Y) == CUSPARSE_STATUS_SUCCESS);
}

static cusparseStatus_t product(const double *alpha, const double *beta) {
    return cusparseSpMV(handle, CUSPARSE_OPERATION_TRANSPOSE, alpha, CONST_MAT, CONST_X, beta, y, CUDA_R_64F,
                        CUSPARSE_SPMV_CSR_ALG2, memory + 5);
}

static void should_keep_contents_in_the_guest(void) {
    int before = session.records;
    make();
    int64_t rows, cols, nnz;
    void *offsets, *indices, *values;
    cusparseIndexType_t offset_type, index_type;
    cusparseIndexBase_t base;
    cudaDataType type;
    HWS_CHECK(
        cusparseCsrGet(matrix, &rows, &cols, &nnz, &offsets, &indices, &values, &offset_type, &index_type, &base, &type)
        == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(rows == 3 && cols == 4 && nnz == 5 && offsets == memory && indices == memory + 1 && values == memory + 2);
    HWS_CHECK(offset_type == CUSPARSE_INDEX_32I && index_type == CUSPARSE_INDEX_64I && type == CUDA_R_64F);
    HWS_CHECK(cusparseCscSetPointers(matrix, memory, memory, memory) == CUSPARSE_STATUS_INVALID_VALUE);
    int fill = 7;
    HWS_CHECK(cusparseSpMatSetAttribute(matrix, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill)
              == CUSPARSE_STATUS_INVALID_VALUE);
    fill = CUSPARSE_FILL_MODE_UPPER;
    HWS_CHECK(cusparseSpMatSetAttribute(matrix, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill)
              == CUSPARSE_STATUS_SUCCESS);
    fill = 0;
    HWS_CHECK(cusparseSpMatGetAttribute(CONST_MAT, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(fill == CUSPARSE_FILL_MODE_UPPER);
    HWS_CHECK(cusparseDestroySpMat((cusparseConstSpMatDescr_t) (void *) x) == CUSPARSE_STATUS_INVALID_VALUE);
    cusparseDnMatDescr_t dense;
    HWS_CHECK(cusparseCreateDnMat(&dense, 3, 4, 2, memory, CUDA_R_32F, CUSPARSE_ORDER_COL)
              == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseCreateDnMat(&dense, -1, 4, 9, memory, CUDA_R_32F, CUSPARSE_ORDER_COL)
              == CUSPARSE_STATUS_INVALID_VALUE);
    end();
    HWS_CHECK(session.records == before);
}

static void should_send_contents_and_numbers_with_a_call(void) {
    make();
    double alpha = 2.5, beta = -1;
    HWS_CHECK(cusparseSetStream(handle, (CUstream) (uintptr_t) 5) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(product(&alpha, &beta) == CUSPARSE_STATUS_SUCCESS && session.last_opcode == HWS_OPCODE_hwsSparseRun);
    HwsSparseOperation sent = operation();
    HWS_CHECK(sent.function == HWS_SPARSE_SPMV && sent.opA == CUSPARSE_OPERATION_TRANSPOSE && sent.state == 0);
    HWS_CHECK(sent.computeType == CUDA_R_64F && sent.alg == CUSPARSE_SPMV_CSR_ALG2 && hws_math_stream == 5);
    HWS_CHECK(number(0).valueBytes == 8 && memcmp(number(0).value, &alpha, 8) == 0 && number(0).onDevice == 0);
    HWS_CHECK(memcmp(number(1).value, &beta, 8) == 0);
    HWS_CHECK(content(0).kind == HWS_SPARSE_SP_MAT && content(0).id == 0 && content(0).batches == 1);
    HWS_CHECK(content(0).values == (uintptr_t) memory + 2 && content(1).values == (uintptr_t) memory + 3);
    HWS_CHECK(content(2).kind == HWS_SPARSE_DN_VEC && content(2).rows == 3);
    HWS_CHECK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(product(&alpha, &beta) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(number(0).onDevice == 1 && number(0).address == (uintptr_t) &alpha && number(0).value[0] == 0);
    HWS_CHECK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST) == CUSPARSE_STATUS_SUCCESS);
    int before = session.records;
    HWS_CHECK(product(NULL, &beta) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseSpMV(handle, CUSPARSE_OPERATION_TRANSPOSE, &alpha, CONST_MAT, NULL, &beta, y, CUDA_R_64F,
                           CUSPARSE_SPMV_CSR_ALG2, memory)
              == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseSpMV(NULL, CUSPARSE_OPERATION_TRANSPOSE, &alpha, CONST_MAT, CONST_X, &beta, y, CUDA_R_64F,
                           CUSPARSE_SPMV_CSR_ALG2, memory)
              == CUSPARSE_STATUS_NOT_INITIALIZED);
    HWS_CHECK(cusparseSetStream(handle, (CUstream) (uintptr_t) 13) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(product(&alpha, &beta) == CUSPARSE_STATUS_EXECUTION_FAILED); /* its capture has become invalid */
    HWS_CHECK(cusparseSetStream(handle, NULL) == CUSPARSE_STATUS_SUCCESS && session.records == before);
    end();
}

static size_t asked(double alpha) {
    size_t bytes = 0;
    HWS_CHECK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, CONST_MAT, CONST_X, &alpha, y,
                                      CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes)
              == CUSPARSE_STATUS_SUCCESS);
    return bytes;
}

static void should_ask_for_a_size_once(void) {
    make();
    size_t first = asked(1);
    int before = session.records;
    size++;
    HWS_CHECK(asked(2) == first && session.records == before); /* the number does not count */
    HWS_CHECK(cusparseCsrSetPointers(matrix, memory, memory + 1, memory + 3) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(asked(2) == size && session.records == before + 1); /* another alignment */
    session.context = 8;
    HWS_CHECK(asked(2) == size && session.records == before + 2); /* another GPU, perhaps */
    session.context = 7;
    HWS_CHECK(cusparseDestroyDnVec(CONST_Y) == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseCreateDnVec(&y, 9, memory + 4, CUDA_R_64F) == CUSPARSE_STATUS_SUCCESS);
    size++;
    HWS_CHECK(asked(2) == size && session.records == before + 3);
    answer = CUSPARSE_STATUS_INVALID_VALUE; /* not remembered */
    size_t bytes = 1;
    for (int i = 0; i < 2; i++) {
        HWS_CHECK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_TRANSPOSE, memory, CONST_MAT, CONST_X, memory, y,
                                          CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes)
                  == CUSPARSE_STATUS_INVALID_VALUE);
    }
    HWS_CHECK(session.records == before + 5 && bytes == 1);
    answer = 0;
    size_t sort = 0;
    HWS_CHECK(cusparseXcsrsort_bufferSizeExt(handle, 3, 4, 5, (const int *) (void *) memory,
                                             (const int *) (void *) memory, &sort)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(cusparseXcsrsort_bufferSizeExt(handle, 3, 4, 5, (const int *) (void *) memory,
                                             (const int *) (void *) memory, &sort)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(session.records == before + 6 && sort == size);
    end();
}

static void should_keep_state_in_the_worker(void) {
    make();
    double one = 1;
    cusparseSpGEMMDescr_t descriptor;
    int before = dropped;
    HWS_CHECK(cusparseSpGEMM_createDescr(&descriptor) == CUSPARSE_STATUS_SUCCESS);
    size_t bytes = 99;
    HWS_CHECK(cusparseSpGEMM_compute(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                     CONST_MAT, CONST_MAT, &one, matrix, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT,
                                     descriptor, &bytes, NULL)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(bytes == size && content(2).id != 0 && operation().state != 0 && content(2).nnz == 5);
    elements = 77;
    HWS_CHECK(cusparseSpGEMM_compute(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                     CONST_MAT, CONST_MAT, &one, matrix, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT,
                                     descriptor, &bytes, memory)
              == CUSPARSE_STATUS_SUCCESS);
    elements = -1;
    int64_t rows, cols, nnz;
    HWS_CHECK(cusparseSpMatGetSize(CONST_MAT, &rows, &cols, &nnz) == CUSPARSE_STATUS_SUCCESS && nnz == 77);
    uint64_t id = content(0).id;
    HWS_CHECK(product(&one, &one) == CUSPARSE_STATUS_SUCCESS && content(0).id == id && content(0).nnz == 77);
    cusparseSpSVDescr_t wrong = (cusparseSpSVDescr_t) (void *) descriptor;
    HWS_CHECK(cusparseSpSV_destroyDescr(wrong) == CUSPARSE_STATUS_INVALID_VALUE);
    HWS_CHECK(cusparseSpGEMM_destroyDescr(descriptor) == CUSPARSE_STATUS_SUCCESS && dropped == before + 1);
    end();
    HWS_CHECK(dropped == before + 2 && memcmp(session.last, &id, sizeof id) == 0);
}

/* A structure by value: the last argument, which ends the record. */
static void should_send_complex_thresholds(void) {
    cusparseMatDescr_t descriptor;
    HWS_CHECK(cusparseCreateMatDescr(&descriptor) == CUSPARSE_STATUS_SUCCESS);
    int *array = (int *) (void *) memory, count = 0;
    cuDoubleComplex wide = {1.5, -2.5}, values[1] = {{0, 0}};
    cuComplex narrow = {0.25F, -4}, numbers[1] = {{0, 0}};
    HWS_CHECK(cusparseZnnz_compress(handle, 3, descriptor, values, array, array, &count, wide)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_cusparseZnnz_compress);
    HWS_CHECK(memcmp(session.last + session.last_bytes - sizeof wide, &wide, sizeof wide) == 0);
    HWS_CHECK(cusparseCcsr2csr_compress(handle, 3, 4, descriptor, numbers, array, array, 5, array, numbers, array,
                                        array, narrow)
              == CUSPARSE_STATUS_SUCCESS);
    HWS_CHECK(session.last_opcode == HWS_OPCODE_cusparseCcsr2csr_compress);
    HWS_CHECK(memcmp(session.last + session.last_bytes - sizeof narrow, &narrow, sizeof narrow) == 0);
    HWS_CHECK(cusparseDestroyMatDescr(descriptor) == CUSPARSE_STATUS_SUCCESS);
}

int main(void) {
    session.kind = HWS_KIND_CUSPARSE;
    HWS_CHECK(cusparseCreate(&handle) == CUSPARSE_STATUS_SUCCESS);
    should_keep_contents_in_the_guest();
    should_send_contents_and_numbers_with_a_call();
    should_ask_for_a_size_once();
    should_keep_state_in_the_worker();
    should_send_complex_thresholds();
    session_close();
    return 0;
}
