package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_SUCCESS;

import io.hawser.cuda.generated.cublaslt.cublasLtEpilogue_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulAlgoCapAttributes_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulAlgoConfigAttributes_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulAlgo_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulHeuristicResult_t;
import io.hawser.cuda.generated.cublaslt.cublasLtPointerModeMask_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The only algorithm of the software GPU, number 0, which has nothing to configure. */
final class SoftwareLtAlgorithm {
    /** Its number. */
    static final int ID = 0;

    private static final long MARK = 0x676c6154_4c737768L; // "hwsLTalg": no algorithm of NVIDIA's begins so
    // CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA, _ACCUMULATOR_32F and _64F, _INPUT_32F and _64F
    private static final long FLAGS = 0x01 | 0x0200 | 0x0400 | 0x080000 | 0x100000;

    private SoftwareLtAlgorithm() {
    }

    /** Writes the algorithm. */
    static void write(MemorySegment algo) {
        algo.asSlice(0, cublasLtMatmulAlgo_t.BYTES).fill((byte) 0);
        algo.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, MARK);
    }

    /** Whether these bytes are the algorithm. */
    static boolean is(MemorySegment algo) {
        long rest = 0;
        for (long at = Long.BYTES; at < cublasLtMatmulAlgo_t.BYTES; at += Long.BYTES) {
            rest |= algo.get(ValueLayout.JAVA_LONG_UNALIGNED, at);
        }
        return algo.get(ValueLayout.JAVA_LONG_UNALIGNED, 0) == MARK && rest == 0;
    }

    /** Writes a result of a heuristic: no workspace, one wave. */
    static void result(MemorySegment result) {
        result.fill((byte) 0);
        write(result);
        result.set(ValueLayout.JAVA_FLOAT, cublasLtMatmulHeuristicResult_t.WAVES_COUNT_OFFSET, 1);
    }

    private static int answer(long value, int size, MemorySegment out, long bytes, MemorySegment written) {
        written.set(ValueLayout.JAVA_LONG, 0, size);
        if (bytes == 0) {
            return CUBLAS_STATUS_SUCCESS;
        }
        if (bytes != size) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        for (int i = 0; i < size; i++) {
            out.set(ValueLayout.JAVA_BYTE, i, (byte) (value >>> Byte.SIZE * i));
        }
        return CUBLAS_STATUS_SUCCESS;
    }

    /** cublasLtMatmulAlgoCapGetAttribute. */
    static int capability(int attribute, MemorySegment out, long bytes, MemorySegment written) {
        return switch (attribute) {
            case cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES ->
                answer(1, Integer.BYTES, out, bytes, written);
            case cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_POINTER_MODE_MASK ->
                answer(cublasLtPointerModeMask_t.CUBLASLT_POINTER_MODE_MASK_HOST
                    | cublasLtPointerModeMask_t.CUBLASLT_POINTER_MODE_MASK_DEVICE, Integer.BYTES, out, bytes, written);
            case cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_EPILOGUE_MASK ->
                answer(cublasLtEpilogue_t.CUBLASLT_EPILOGUE_DEFAULT | cublasLtEpilogue_t.CUBLASLT_EPILOGUE_RELU_BIAS
                    | cublasLtEpilogue_t.CUBLASLT_EPILOGUE_GELU_BIAS, Integer.BYTES, out, bytes, written);
            case cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS ->
                answer(FLAGS, Long.BYTES, out, bytes, written);
            case cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_SPLITK_SUPPORT,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_UPLO_SUPPORT,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_TILE_IDS, // one: CUBLASLT_MATMUL_TILE_UNDEFINED
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_STAGES_IDS, // one: ..._STAGES_UNDEFINED
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_LD_NEGATIVE,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_FLOATING_POINT_EMULATION_SUPPORT,
                cublasLtMatmulAlgoCapAttributes_t.CUBLASLT_ALGO_CAP_POINTER_ARRAY_GROUPED_SUPPORT ->
                answer(0, Integer.BYTES, out, bytes, written);
            default -> CUBLAS_STATUS_INVALID_VALUE;
        };
    }

    /** cublasLtMatmulAlgoConfigGetAttribute. */
    static int configuration(int attribute, MemorySegment out, long bytes, MemorySegment written) {
        int size = size(attribute);
        return size == 0 ? CUBLAS_STATUS_INVALID_VALUE : answer(value(attribute), size, out, bytes, written);
    }

    private static int size(int attribute) {
        return switch (attribute) {
            case cublasLtMatmulAlgoConfigAttributes_t.CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID,
                cublasLtMatmulAlgoConfigAttributes_t.CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID -> Short.BYTES;
            default -> attribute >= 0
                && attribute <= cublasLtMatmulAlgoConfigAttributes_t.CUBLASLT_ALGO_CONFIG_STAGES_ID ? Integer.BYTES : 0;
        };
    }

    private static int value(int attribute) {
        return attribute == cublasLtMatmulAlgoConfigAttributes_t.CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? 1 : 0;
    }

    /** cublasLtMatmulAlgoConfigSetAttribute: accepts the only value of each attribute. */
    static int configure(int attribute, MemorySegment in, long bytes) {
        if (attribute == cublasLtMatmulAlgoConfigAttributes_t.CUBLASLT_ALGO_CONFIG_ID || size(attribute) == 0
            || bytes != size(attribute)) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        int wanted = bytes == Short.BYTES ? in.get(ValueLayout.JAVA_SHORT_UNALIGNED, 0)
            : in.get(ValueLayout.JAVA_INT_UNALIGNED, 0);
        return wanted == value(attribute) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    }
}
