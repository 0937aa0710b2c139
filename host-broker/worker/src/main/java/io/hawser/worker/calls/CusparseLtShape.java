package io.hawser.worker.calls;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.backend.CusparseLtBackend.Content;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cusparse.cusparseOperation_t;
import io.hawser.cuda.generated.cusparse.cusparseOrder_t;
import io.hawser.cuda.generated.cusparselt.HwsSltAlgorithm;
import io.hawser.cuda.generated.cusparselt.HwsSltMatmul;
import io.hawser.cuda.generated.cusparselt.HwsSltMatrix;
import io.hawser.cuda.generated.cusparselt.HwsSltStage;
import io.hawser.cuda.generated.cusparselt.cusparseComputeType;
import io.hawser.cuda.generated.cusparselt.cusparseLtMatmulAlgAttribute_t;
import io.hawser.cuda.generated.cusparselt.cusparseLtMatmulAlg_t;
import io.hawser.cuda.generated.cusparselt.cusparseLtMatmulMatrixScale_t;
import io.hawser.cuda.generated.cusparselt.cusparseLtSparsity_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Facts that follow from a content of cuSPARSELt: whether its enumerations are known, and sizes at addresses. */
final class CusparseLtShape {
    /** The matrices of a product. */
    static final int MATRICES = 4;
    /** Addresses in the struct HwsSltMatmul, from its bias to its end. */
    static final int ADDRESSES = (HwsSltMatmul.BYTES - HwsSltMatmul.BIAS_OFFSET) / Long.BYTES;

    private static final int D = 3;
    private static final int SCALES = 5; // addresses of scaling factors, after those of bias and matrix
    private static final int LONGEST_SCALE_BLOCK = 64; // elements with one factor of a byte
    private static final int ATTRIBUTES = cusparseLtMatmulAlgAttribute_t.CUSPARSELT_MATMUL_SPLIT_K_BUFFERS + 1;
    private static final long HALF_BYTE = 4;

    private final boolean known;
    private final int structured; // the matrix with structure: 0 or 1
    private final long[] matrixBytes = new long[MATRICES];
    private final long[] addressBytes = new long[ADDRESSES];
    private final long rows; // of D
    private final boolean alphaVector;
    private final boolean betaVector;

    CusparseLtShape(Content content) {
        boolean isWhole = content.stage() != HwsSltStage.HWS_SLT_MATRIX;
        MemorySegment matmul = content.matmul();
        MemorySegment[] matrices = content.matrices();
        structured = isWhole && !isStructured(matrices[0]) ? 1 : 0;
        boolean all = content.stage() >= HwsSltStage.HWS_SLT_MATRIX && content.stage() < HwsSltStage.HWS_SLT_STAGES
            && (!isWhole || isMatmulKnown(matmul) && hasOneStructure(matrices))
            && isAlgorithmKnown(content.algorithm());
        for (int i = 0; i < (isWhole ? MATRICES : 1); i++) {
            all &= isMatrixKnown(matrices[i]);
            matrixBytes[i] = bytes(matrices[i]);
        }
        known = all;
        rows = number(matrices[D], HwsSltMatrix.ROWS_OFFSET);
        alphaVector = integer(matmul, HwsSltMatmul.ALPHA_VECTOR_OFFSET) != 0;
        betaVector = integer(matmul, HwsSltMatmul.BETA_VECTOR_OFFSET) != 0;
        // A bias has the type of D or a longer one, and the library lays factors out in tiles. So these are the fewest
        // bytes; a kernel of the guest could read the others as well.
        addressBytes[0] = inBytes(rows, bits(integer(matrices[D], HwsSltMatrix.TYPE_OFFSET)));
        addressBytes[1] = 1;
        for (int i = 0; i < SCALES; i++) {
            addressBytes[ADDRESSES - SCALES + i] =
                scaleBytes(integer(matmul, HwsSltMatmul.SCALE_MODES_OFFSET + (long) Integer.BYTES * i),
                    matrices[Math.min(i, D)]);
        }
    }

    private static int integer(MemorySegment content, long at) {
        return content.get(ValueLayout.JAVA_INT_UNALIGNED, at);
    }

    private static long number(MemorySegment content, long at) {
        return content.get(ValueLayout.JAVA_LONG_UNALIGNED, at);
    }

    private static boolean isStructured(MemorySegment matrix) {
        return integer(matrix, HwsSltMatrix.IS_STRUCTURED_OFFSET) != 0;
    }

    private static boolean hasOneStructure(MemorySegment[] matrices) {
        return isStructured(matrices[0]) != isStructured(matrices[1]) && !isStructured(matrices[2])
            && !isStructured(matrices[D]);
    }

    private static boolean isUpTo(MemorySegment content, long at, int most) {
        int value = integer(content, at);
        return value >= 0 && value <= most;
    }

    private static boolean isMatmulKnown(MemorySegment matmul) {
        boolean all =
            isUpTo(matmul, HwsSltMatmul.OP_A_OFFSET, cusparseOperation_t.CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE)
                && isUpTo(matmul, HwsSltMatmul.OP_B_OFFSET, cusparseOperation_t.CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE)
                && isUpTo(matmul, HwsSltMatmul.COMPUTE_TYPE_OFFSET, cusparseComputeType.CUSPARSE_COMPUTE_32F);
        for (long i = 0; i < SCALES; i++) {
            all &= isUpTo(matmul, HwsSltMatmul.SCALE_MODES_OFFSET + Integer.BYTES * i,
                cusparseLtMatmulMatrixScale_t.CUSPARSELT_MATMUL_MATRIX_SCALE_VEC64_UE8M0);
        }
        return all;
    }

    private static boolean isAlgorithmKnown(MemorySegment algorithm) {
        return integer(algorithm, HwsSltAlgorithm.ALG_OFFSET) == cusparseLtMatmulAlg_t.CUSPARSELT_MATMUL_ALG_DEFAULT
            && integer(algorithm, HwsSltAlgorithm.IS_SET_OFFSET) >>> ATTRIBUTES == 0;
    }

    /** Whether the enumerations have known values and no number is negative; the library knows what it supports. */
    private static boolean isMatrixKnown(MemorySegment matrix) {
        int order = integer(matrix, HwsSltMatrix.ORDER_OFFSET);
        return bits(integer(matrix, HwsSltMatrix.TYPE_OFFSET)) > 0
            && (order == cusparseOrder_t.CUSPARSE_ORDER_COL || order == cusparseOrder_t.CUSPARSE_ORDER_ROW)
            && integer(matrix, HwsSltMatrix.SPARSITY_OFFSET) == cusparseLtSparsity_t.CUSPARSELT_SPARSITY_50_PERCENT
            && isUpTo(matrix, HwsSltMatrix.IS_STRUCTURED_OFFSET, 1)
            && integer(matrix, HwsSltMatrix.NUM_BATCHES_OFFSET) > 0
            && number(matrix, HwsSltMatrix.ROWS_OFFSET) >= 0 && number(matrix, HwsSltMatrix.COLS_OFFSET) >= 0
            && number(matrix, HwsSltMatrix.LD_OFFSET) >= 0 && number(matrix, HwsSltMatrix.BATCH_STRIDE_OFFSET) >= 0;
    }

    /** Bits of an element; 0 for a type that no matrix has. */
    private static long bits(int type) {
        return type == cudaDataType_t.CUDA_R_4F_E2M1 ? HALF_BYTE : Sizes.multiply(Sizes.element(type), Byte.SIZE);
    }

    private static long inBytes(long elements, long bits) {
        return CublasLtShape.parts(Sizes.multiply(elements, bits), Byte.SIZE);
    }

    /** Bytes of a matrix without compression. */
    private static long bytes(MemorySegment matrix) {
        long height = number(matrix, HwsSltMatrix.ROWS_OFFSET);
        long width = number(matrix, HwsSltMatrix.COLS_OFFSET);
        long ld = number(matrix, HwsSltMatrix.LD_OFFSET);
        long elements = integer(matrix, HwsSltMatrix.ORDER_OFFSET) == cusparseOrder_t.CUSPARSE_ORDER_COL
            ? Sizes.box(ld, width, height) : Sizes.box(ld, height, width);
        return inBytes(Sizes.box(number(matrix, HwsSltMatrix.BATCH_STRIDE_OFFSET),
            integer(matrix, HwsSltMatrix.NUM_BATCHES_OFFSET), elements),
            bits(integer(matrix, HwsSltMatrix.TYPE_OFFSET)));
    }

    /** The fewest bytes of the scaling factors of a matrix. */
    private static long scaleBytes(int mode, MemorySegment matrix) {
        return switch (mode) {
            case cusparseLtMatmulMatrixScale_t.CUSPARSELT_MATMUL_SCALE_NONE -> 1;
            case cusparseLtMatmulMatrixScale_t.CUSPARSELT_MATMUL_MATRIX_SCALE_SCALAR_32F -> Float.BYTES;
            default -> CublasLtShape.parts(Sizes.multiply(number(matrix, HwsSltMatrix.ROWS_OFFSET),
                number(matrix, HwsSltMatrix.COLS_OFFSET)), LONGEST_SCALE_BLOCK);
        };
    }

    /** Whether the library may get the content: a library might not check its enumerations. */
    boolean isKnown() {
        return known;
    }

    /** The matrix with structure, 0 or 1. */
    int structured() {
        return structured;
    }

    /** Bytes of a matrix without compression. */
    long matrixBytes(int matrix) {
        return matrixBytes[matrix];
    }

    /** The fewest bytes at an address of the matmul descriptor. */
    long addressBytes(int address) {
        return addressBytes[address];
    }

    /** Bytes of a vector in the place of a number; a factor for each row of D. */
    long vectorBytes() {
        return Sizes.multiply(rows, Float.BYTES);
    }

    /** Whether alpha is a vector on the device. */
    boolean isAlphaVector() {
        return alphaVector;
    }

    /** Whether beta is a vector on the device. */
    boolean isBetaVector() {
        return betaVector;
    }
}
