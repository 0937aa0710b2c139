/*
 * Descriptors: initialisation, and attributes by tables. Values are not checked when a program sets them: the calls
 * that use a descriptor do. A value that does not fit into its field is none that any version of the library knows.
 */
#include "hws_cublaslt.h"

#include <stdlib.h>
#include <string.h>

/* An attribute: where its value is stored, in how many bytes, and how many bytes programs pass. */
typedef struct attribute {
    uint16_t offset;
    uint8_t stored, bytes; /* bytes: 0 for a number that is no attribute */
    bool is_signed;
} attribute_t;

typedef struct attributes {
    const attribute_t *table;
    uint32_t count;
} attributes_t;

#define FIELD_OF(type, field, size, sign) {offsetof(type, field), sizeof(((type *) NULL)->field), (size), (sign)}
#define SIGNED(type, field, size) FIELD_OF(type, field, size, true)
#define UNSIGNED(type, field, size) FIELD_OF(type, field, size, false)

typedef struct hws_lt_layout layout_t;
typedef struct hws_lt_matmul matmul_t;
typedef struct hws_lt_transform transform_t;
typedef struct hws_lt_preference preference_t;
typedef struct hws_lt_emulation emulation_t;

static const attribute_t layout_table[] = {
    [CUBLASLT_MATRIX_LAYOUT_TYPE] = UNSIGNED(layout_t, content.type, 4),
    [CUBLASLT_MATRIX_LAYOUT_ORDER] = SIGNED(layout_t, content.order, 4),
    [CUBLASLT_MATRIX_LAYOUT_ROWS] = UNSIGNED(layout_t, content.rows, 8),
    [CUBLASLT_MATRIX_LAYOUT_COLS] = UNSIGNED(layout_t, content.cols, 8),
    [CUBLASLT_MATRIX_LAYOUT_LD] = SIGNED(layout_t, content.ld, 8),
    [CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT] = SIGNED(layout_t, content.batchCount, 4),
    [CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET] = SIGNED(layout_t, content.batchStride, 8),
    [CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET] = SIGNED(layout_t, content.planeOffset, 8),
    [CUBLASLT_MATRIX_LAYOUT_BATCH_MODE] = UNSIGNED(layout_t, content.batchMode, 4),
    /* A grouped layout has arrays of numbers in the place of numbers. */
    [CUBLASLT_GROUPED_MATRIX_LAYOUT_ROWS_ARRAY] = UNSIGNED(layout_t, content.rows, 8),
    [CUBLASLT_GROUPED_MATRIX_LAYOUT_COLS_ARRAY] = UNSIGNED(layout_t, content.cols, 8),
    [CUBLASLT_GROUPED_MATRIX_LAYOUT_LD_ARRAY] = SIGNED(layout_t, content.ld, 8),
    [CUBLASLT_GROUPED_MATRIX_LAYOUT_ROWS_COLS_ARRAY_INTEGER_WIDTH] = UNSIGNED(layout_t, content.rowsColsWidth, 4),
    [CUBLASLT_GROUPED_MATRIX_LAYOUT_LD_ARRAY_INTEGER_WIDTH] = UNSIGNED(layout_t, content.ldWidth, 4),
};
static const attribute_t matmul_table[] = {
    [CUBLASLT_MATMUL_DESC_COMPUTE_TYPE] = SIGNED(matmul_t, content.computeType, 4),
    [CUBLASLT_MATMUL_DESC_SCALE_TYPE] = SIGNED(matmul_t, content.scaleType, 4),
    [CUBLASLT_MATMUL_DESC_POINTER_MODE] = UNSIGNED(matmul_t, content.pointerMode, 4),
    [CUBLASLT_MATMUL_DESC_TRANSA] = UNSIGNED(matmul_t, content.transA, 4),
    [CUBLASLT_MATMUL_DESC_TRANSB] = UNSIGNED(matmul_t, content.transB, 4),
    [CUBLASLT_MATMUL_DESC_TRANSC] = UNSIGNED(matmul_t, content.transC, 4),
    [CUBLASLT_MATMUL_DESC_FILL_MODE] = UNSIGNED(matmul_t, content.fillMode, 4),
    [CUBLASLT_MATMUL_DESC_EPILOGUE] = UNSIGNED(matmul_t, content.epilogue, 4),
    [CUBLASLT_MATMUL_DESC_BIAS_POINTER] = UNSIGNED(matmul_t, content.bias, 8),
    [CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE] = SIGNED(matmul_t, content.biasStride, 8),
    [CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER] = UNSIGNED(matmul_t, content.aux, 8),
    [CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD] = SIGNED(matmul_t, content.auxLd, 8),
    [CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE] = SIGNED(matmul_t, content.auxStride, 8),
    [CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE] = SIGNED(matmul_t, content.alphaVectorStride, 8),
    [CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET] = SIGNED(matmul_t, content.smCountTarget, 4),
    [CUBLASLT_MATMUL_DESC_A_SCALE_POINTER] = UNSIGNED(matmul_t, content.aScale, 8),
    [CUBLASLT_MATMUL_DESC_B_SCALE_POINTER] = UNSIGNED(matmul_t, content.bScale, 8),
    [CUBLASLT_MATMUL_DESC_C_SCALE_POINTER] = UNSIGNED(matmul_t, content.cScale, 8),
    [CUBLASLT_MATMUL_DESC_D_SCALE_POINTER] = UNSIGNED(matmul_t, content.dScale, 8),
    [CUBLASLT_MATMUL_DESC_AMAX_D_POINTER] = UNSIGNED(matmul_t, content.amaxD, 8),
    [CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE] = SIGNED(matmul_t, content.auxType, 4),
    [CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER] = UNSIGNED(matmul_t, content.auxScale, 8),
    [CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER] = UNSIGNED(matmul_t, content.auxAmax, 8),
    [CUBLASLT_MATMUL_DESC_FAST_ACCUM] = UNSIGNED(matmul_t, content.fastAccum, 1),
    [CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = SIGNED(matmul_t, content.biasType, 4),
    [CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_ROWS] = SIGNED(matmul_t, sync_rows, 4),
    [CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_COLS] = SIGNED(matmul_t, sync_cols, 4),
    [CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_IN_COUNTERS_POINTER] = UNSIGNED(matmul_t, sync_in, 8),
    [CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_OUT_COUNTERS_POINTER] = UNSIGNED(matmul_t, sync_out, 8),
    [CUBLASLT_MATMUL_DESC_A_SCALE_MODE] = UNSIGNED(matmul_t, content.aScaleMode, 4),
    [CUBLASLT_MATMUL_DESC_B_SCALE_MODE] = UNSIGNED(matmul_t, content.bScaleMode, 4),
    [CUBLASLT_MATMUL_DESC_C_SCALE_MODE] = UNSIGNED(matmul_t, content.cScaleMode, 4),
    [CUBLASLT_MATMUL_DESC_D_SCALE_MODE] = UNSIGNED(matmul_t, content.dScaleMode, 4),
    [CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE] = UNSIGNED(matmul_t, content.auxScaleMode, 4),
    [CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER] = UNSIGNED(matmul_t, content.dOutScale, 8),
    [CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE] = UNSIGNED(matmul_t, content.dOutScaleMode, 4),
    [CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR] = UNSIGNED(matmul_t, emulation, 8),
    [CUBLASLT_MATMUL_DESC_ALPHA_BATCH_STRIDE] = UNSIGNED(matmul_t, content.alphaBatchStride, 8),
    [CUBLASLT_MATMUL_DESC_BETA_BATCH_STRIDE] = UNSIGNED(matmul_t, content.betaBatchStride, 8),
};
static const attribute_t transform_table[] = {
    [CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE] = SIGNED(transform_t, content.scaleType, 4),
    [CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE] = SIGNED(transform_t, content.pointerMode, 4),
    [CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA] = SIGNED(transform_t, content.transA, 4),
    [CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB] = SIGNED(transform_t, content.transB, 4),
};
static const attribute_t preference_table[] = {
    [CUBLASLT_MATMUL_PREF_SEARCH_MODE] = UNSIGNED(preference_t, content.searchMode, 4),
    [CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES] = UNSIGNED(preference_t, content.maxWorkspaceBytes, 8),
    [CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK] = UNSIGNED(preference_t, content.reductionMask, 4),
    [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = UNSIGNED(preference_t, content.alignA, 4),
    [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES] = UNSIGNED(preference_t, content.alignB, 4),
    [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES] = UNSIGNED(preference_t, content.alignC, 4),
    [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES] = UNSIGNED(preference_t, content.alignD, 4),
    [CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT] = UNSIGNED(preference_t, content.maxWaves, 4),
    [CUBLASLT_MATMUL_PREF_IMPL_MASK] = UNSIGNED(preference_t, content.implMask, 8),
    [CUBLASLT_MATMUL_PREF_GROUPED_AVERAGE_REDUCTION_DIM] = SIGNED(preference_t, content.groupedReduction, 8),
    [CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_ROWS] = SIGNED(preference_t, content.groupedRows, 8),
    [CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_COLS] = SIGNED(preference_t, content.groupedCols, 8),
};
static const attribute_t emulation_table[] = {
    [CUBLASLT_EMULATION_DESC_STRATEGY] = SIGNED(emulation_t, content.strategy, 4),
    [CUBLASLT_EMULATION_DESC_SPECIAL_VALUES_SUPPORT] = SIGNED(emulation_t, content.specialValues, 4),
    [CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_CONTROL] = SIGNED(emulation_t, content.mantissaControl, 4),
    [CUBLASLT_EMULATION_DESC_FIXEDPOINT_MAX_MANTISSA_BIT_COUNT] = SIGNED(emulation_t, content.maxMantissaBits, 4),
    [CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_OFFSET] = SIGNED(emulation_t, content.mantissaBitOffset, 4),
    [CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER] =
        UNSIGNED(emulation_t, content.mantissaBitCount, 8),
};

#define TABLE(name) static const attributes_t name = {name##_table, sizeof name##_table / sizeof *name##_table}
TABLE(layout);
TABLE(matmul);
TABLE(transform);
TABLE(preference);
TABLE(emulation);

static const attribute_t *find(const attributes_t *attributes, uint32_t number) {
    const attribute_t *found = number < attributes->count ? &attributes->table[number] : NULL;
    return found == NULL || found->bytes == 0 ? NULL : found;
}

/* A number of 1 to 8 bytes, extended. */
static uint64_t load(const void *at, uint32_t bytes, bool is_signed) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    uint32_t unused = 64 - 8 * bytes;
    return is_signed ? (uint64_t) ((int64_t) (value << unused) >> unused) : value;
}

static cublasStatus_t set(void *desc, const attributes_t *attributes, uint32_t number, const void *buf, size_t bytes) {
    const attribute_t *attribute = find(attributes, number);
    HWS_REQUIRE(desc != NULL && attribute != NULL && buf != NULL && bytes == attribute->bytes);
    uint64_t value = load(buf, attribute->bytes, attribute->is_signed);
    HWS_REQUIRE(load(&value, attribute->stored, attribute->is_signed) == value);
    memcpy((char *) desc + attribute->offset, &value, attribute->stored);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(const void *desc, const attributes_t *attributes, uint32_t number, void *buf, size_t bytes,
                          size_t *written) {
    const attribute_t *attribute = find(attributes, number);
    HWS_REQUIRE(desc != NULL && attribute != NULL);
    if (bytes == 0) {
        HWS_REQUIRE(written != NULL);
    } else {
        HWS_REQUIRE(buf != NULL && bytes == attribute->bytes);
        uint64_t value = load((const char *) desc + attribute->offset, attribute->stored, attribute->is_signed);
        memcpy(buf, &value, bytes);
    }
    if (written != NULL) {
        *written = attribute->bytes;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* Clears memory for a descriptor of `needed` bytes. The program's header may give it more, which stays unused. */
static cublasStatus_t clear(void *desc, size_t size, size_t needed) {
    HWS_REQUIRE(desc != NULL);
    if (size < needed) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    memset(desc, 0, needed);
    return CUBLAS_STATUS_SUCCESS;
}

/* Allocates a descriptor as large as NVIDIA's, since a program may copy it; passes it to the initialisation. */
#define CREATE(result, bytes, init, ...)                                                                               \
    do {                                                                                                               \
        HWS_REQUIRE((result) != NULL);                                                                                 \
        void *hws_made = calloc(1, (bytes));                                                                           \
        if (hws_made == NULL) {                                                                                        \
            return CUBLAS_STATUS_ALLOC_FAILED;                                                                         \
        }                                                                                                              \
        cublasStatus_t hws_status = init(hws_made, (bytes), ##__VA_ARGS__);                                            \
        if (hws_status != CUBLAS_STATUS_SUCCESS) {                                                                     \
            free(hws_made);                                                                                            \
            return hws_status;                                                                                         \
        }                                                                                                              \
        *(result) = hws_made;                                                                                          \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    } while (0)

/* Destroy, SetAttribute and GetAttribute of a descriptor. */
#define ACCESS(name, handle, attributes_type, object)                                                                  \
    HWS_EXPORT cublasStatus_t cublasLt##name##Destroy(handle desc) {                                                   \
        free(desc);                                                                                                    \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }                                                                                                                  \
    HWS_EXPORT cublasStatus_t cublasLt##name##SetAttribute(handle desc, attributes_type attr, const void *buf,         \
                                                           size_t sizeInBytes) {                                       \
        return set(desc, &object, (uint32_t) attr, buf, sizeInBytes);                                                  \
    }                                                                                                                  \
    HWS_EXPORT cublasStatus_t cublasLt##name##GetAttribute(handle desc, attributes_type attr, void *buf,               \
                                                           size_t sizeInBytes, size_t *sizeWritten) {                  \
        return get(desc, &object, (uint32_t) attr, buf, sizeInBytes, sizeWritten);                                     \
    }

ACCESS(MatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, layout)
ACCESS(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, matmul)
ACCESS(MatrixTransformDesc, cublasLtMatrixTransformDesc_t, cublasLtMatrixTransformDescAttributes_t, transform)
ACCESS(MatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, preference)
ACCESS(EmulationDesc, cublasLtEmulationDesc_t, cublasLtEmulationDescAttributes_t, emulation)

HWS_EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout, size_t size,
                                                            cudaDataType type, uint64_t rows, uint64_t cols,
                                                            int64_t ld) {
    cublasStatus_t status = clear(matLayout, size, sizeof *matLayout);
    if (status == CUBLAS_STATUS_SUCCESS) {
        matLayout->content.type = (uint32_t) type;
        matLayout->content.rows = rows;
        matLayout->content.cols = cols;
        matLayout->content.ld = ld;
        matLayout->content.batchCount = 1;
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout, cudaDataType type,
                                                     uint64_t rows, uint64_t cols, int64_t ld) {
    CREATE(matLayout, HWS_LT_OPAQUE_BYTES, cublasLtMatrixLayoutInit_internal, type, rows, cols, ld);
}

HWS_EXPORT cublasStatus_t cublasLtGroupedMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout, size_t size,
                                                                   cudaDataType type, int groupCount,
                                                                   const void *rows_array, const void *cols_array,
                                                                   const void *ld_array) {
    cublasStatus_t status = cublasLtMatrixLayoutInit_internal(matLayout, size, type, (uintptr_t) rows_array,
                                                              (uintptr_t) cols_array, (int64_t) (uintptr_t) ld_array);
    if (status == CUBLAS_STATUS_SUCCESS) {
        matLayout->content.batchCount = groupCount;
        matLayout->content.batchMode = CUBLASLT_BATCH_MODE_GROUPED;
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout, cudaDataType type,
                                                            int groupCount, const void *rows_array,
                                                            const void *cols_array, const void *ld_array) {
    CREATE(matLayout, HWS_LT_OPAQUE_BYTES, cublasLtGroupedMatrixLayoutInit_internal, type, groupCount, rows_array,
           cols_array, ld_array);
}

HWS_EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t matmulDesc, size_t size,
                                                          cublasComputeType_t computeType, cudaDataType_t scaleType) {
    cublasStatus_t status = clear(matmulDesc, size, sizeof *matmulDesc);
    if (status == CUBLAS_STATUS_SUCCESS) {
        int32_t compute = (int32_t) computeType, scale = (int32_t) scaleType;
        matmulDesc->content.auxType = -1;
        matmulDesc->content.biasType = -1;
        matmulDesc->content.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
        matmulDesc->content.fillMode = CUBLAS_FILL_MODE_FULL;
        status = set(matmulDesc, &matmul, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &compute, sizeof compute);
        status = status != CUBLAS_STATUS_SUCCESS
            ? status
            : set(matmulDesc, &matmul, CUBLASLT_MATMUL_DESC_SCALE_TYPE, &scale, sizeof scale);
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmulDesc, cublasComputeType_t computeType,
                                                   cudaDataType_t scaleType) {
    CREATE(matmulDesc, HWS_LT_MATMUL_OPAQUE_BYTES, cublasLtMatmulDescInit_internal, computeType, scaleType);
}

HWS_EXPORT cublasStatus_t cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t transformDesc,
                                                                   size_t size, cudaDataType scaleType) {
    cublasStatus_t status = clear(transformDesc, size, sizeof *transformDesc);
    if (status == CUBLAS_STATUS_SUCCESS) {
        transformDesc->content.scaleType = (int32_t) scaleType;
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *transformDesc,
                                                            cudaDataType scaleType) {
    CREATE(transformDesc, HWS_LT_OPAQUE_BYTES, cublasLtMatrixTransformDescInit_internal, scaleType);
}

HWS_EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t pref, size_t size) {
    cublasStatus_t status = clear(pref, size, sizeof *pref);
    if (status == CUBLAS_STATUS_SUCCESS) {
        pref->content.reductionMask = CUBLASLT_REDUCTION_SCHEME_MASK;
        pref->content.implMask = UINT64_MAX;
        pref->content.alignA = pref->content.alignB = pref->content.alignC = pref->content.alignD = 256;
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref) {
    CREATE(pref, HWS_LT_OPAQUE_BYTES, cublasLtMatmulPreferenceInit_internal);
}

HWS_EXPORT cublasStatus_t cublasLtEmulationDescInit_internal(cublasLtEmulationDesc_t emulationDesc, size_t size) {
    cublasStatus_t status = clear(emulationDesc, size, sizeof *emulationDesc);
    if (status == CUBLAS_STATUS_SUCCESS) {
        emulationDesc->content.isSet = 1;
        emulationDesc->content.specialValues = 0xffff; /* CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_DEFAULT */
    }
    return status;
}

HWS_EXPORT cublasStatus_t cublasLtEmulationDescCreate(cublasLtEmulationDesc_t *emulationDesc) {
    CREATE(emulationDesc, HWS_LT_OPAQUE_BYTES, cublasLtEmulationDescInit_internal);
}

const HwsLtEmulation *hws_lt_emulation(cublasLtMatmulDesc_t desc) {
    static const HwsLtEmulation none;
    return desc->emulation == NULL ? &none : &desc->emulation->content;
}

cublasStatus_t hws_lt_check(const char *function, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
    HWS_REQUIRE(desc != NULL && a != NULL && b != NULL && c != NULL && d != NULL);
    /* The shapes of a grouped product lie in device memory, where nothing can check them. */
    bool grouped = a->content.batchMode >= CUBLASLT_BATCH_MODE_GROUPED
        || b->content.batchMode >= CUBLASLT_BATCH_MODE_GROUPED || c->content.batchMode >= CUBLASLT_BATCH_MODE_GROUPED
        || d->content.batchMode >= CUBLASLT_BATCH_MODE_GROUPED || desc->content.alphaBatchStride != 0
        || desc->content.betaBatchStride != 0;
    return grouped || desc->sync_rows != 0 || desc->sync_cols != 0 ? hws_unsupported(function) : CUBLAS_STATUS_SUCCESS;
}
