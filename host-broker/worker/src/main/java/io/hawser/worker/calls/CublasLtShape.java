package io.hawser.worker.calls;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.generated.cublas.cublasFillMode_t;
import io.hawser.cuda.generated.cublas.cublasOperation_t;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import io.hawser.cuda.generated.cublaslt.HwsLtLayout;
import io.hawser.cuda.generated.cublaslt.HwsLtMatmulDesc;
import io.hawser.cuda.generated.cublaslt.HwsLtTransform;
import io.hawser.cuda.generated.cublaslt.cublasLtBatchMode_t;
import io.hawser.cuda.generated.cublaslt.cublasLtEpilogue_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulMatrixScale_t;
import io.hawser.cuda.generated.cublaslt.cublasLtOrder_t;
import io.hawser.cuda.generated.cublaslt.cublasLtPointerMode_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * How much device memory a product or transform uses at each of its addresses, and whether its enumerations are known.
 * Computed once for a content. Sizes saturate, so that no number of a guest makes them small.
 */
final class CublasLtShape {
    /** Offset of the first address in HwsLtMatmulDesc; all that follow are addresses. */
    static final long ADDRESSES = HwsLtMatmulDesc.BIAS_OFFSET;

    private static final int NOT_USED = -1;
    private static final int SCALE_ROWS = 128; // block scaling factors lie in tiles of 128 x 4 (cuBLAS 3.1.5)
    private static final int SCALE_COLUMNS = 4;
    private static final int BLOCK = 128; // CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F and _BLK128x128_32F
    private static final int AUX = 128; // the bit of epilogues with an auxiliary buffer
    private static final int RELU = 2 | 8; // bits of epilogues whose auxiliary buffer has a bit for an element
    private static final int BIAS = 4 | 16; // bits of epilogues with a bias or its gradient

    private final boolean known;
    private final long[] matrixBytes;
    private final long[] planeOffsets;
    private final long[] addressBytes;
    private final int scalarBytes;
    private final long alphaBytes; // on the device; 0: on the host
    private final long betaBytes;

    /** The shape of a product: HwsLtMatmulDesc, and HwsLtLayout of A, B, C and D. */
    static CublasLtShape ofMatmul(MemorySegment desc, MemorySegment[] layouts) {
        return new CublasLtShape(desc, layouts);
    }

    /** The shape of a transform: HwsLtTransform, and HwsLtLayout of A, B and C. */
    static CublasLtShape ofTransform(MemorySegment desc, boolean hasA, boolean hasB, MemorySegment[] layouts) {
        return new CublasLtShape(desc, new boolean[] {hasA, hasB, true}, layouts);
    }

    private CublasLtShape(MemorySegment desc, MemorySegment[] layouts) {
        Layout[] matrices = new Layout[layouts.length];
        for (int i = 0; i < layouts.length; i++) {
            matrices[i] = new Layout(layouts[i]);
        }
        Layout d = matrices[3];
        int mode = desc.get(ValueLayout.JAVA_BYTE, HwsLtMatmulDesc.POINTER_MODE_OFFSET);
        int scale = desc.get(ValueLayout.JAVA_SHORT_UNALIGNED, HwsLtMatmulDesc.SCALE_TYPE_OFFSET);
        int epilogue = desc.get(ValueLayout.JAVA_SHORT_UNALIGNED, HwsLtMatmulDesc.EPILOGUE_OFFSET);
        matrixBytes = new long[matrices.length];
        planeOffsets = new long[matrices.length];
        boolean all = isEpilogue(epilogue) && mode >= 0
            && mode <= cublasLtPointerMode_t.CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST;
        for (int i = 0; i < matrices.length; i++) {
            all &= matrices[i].isKnown();
            matrixBytes[i] = matrices[i].bytes();
            planeOffsets[i] = matrices[i].planeOffset;
        }
        for (long at = HwsLtMatmulDesc.TRANS_A_OFFSET; at <= HwsLtMatmulDesc.TRANS_C_OFFSET; at++) {
            all &= isUpTo(desc, at, cublasOperation_t.CUBLAS_OP_CONJG);
        }
        for (long at = HwsLtMatmulDesc.A_SCALE_MODE_OFFSET; at <= HwsLtMatmulDesc.D_OUT_SCALE_MODE_OFFSET; at++) {
            all &= isUpTo(desc, at, cublasLtMatmulMatrixScale_t.CUBLASLT_MATMUL_MATRIX_SCALE_END - 1);
        }
        // Batches of numbers are for grouped products, which have no shape that can be checked.
        all &= isUpTo(desc, HwsLtMatmulDesc.FILL_MODE_OFFSET, cublasFillMode_t.CUBLAS_FILL_MODE_FULL)
            && isUpTo(desc, HwsLtMatmulDesc.ALPHA_BATCH_STRIDE_OFFSET, 0)
            && isUpTo(desc, HwsLtMatmulDesc.BETA_BATCH_STRIDE_OFFSET, 0);
        scalarBytes = (int) Sizes.element(scale);
        known = all && scalarBytes > 0;
        boolean isVector = mode >= cublasLtPointerMode_t.CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
        long vector = Sizes.box(Sizes.multiply(number(desc, HwsLtMatmulDesc.ALPHA_VECTOR_STRIDE_OFFSET), scalarBytes),
            d.batchCount, Sizes.multiply(d.rows, scalarBytes));
        alphaBytes = isVector ? vector : mode == cublasLtPointerMode_t.CUBLASLT_POINTER_MODE_HOST ? 0 : scalarBytes;
        betaBytes = mode == cublasLtPointerMode_t.CUBLASLT_POINTER_MODE_DEVICE_VECTOR ? vector
            : mode == cublasLtPointerMode_t.CUBLASLT_POINTER_MODE_DEVICE ? scalarBytes : 0;
        addressBytes = new long[] {
            biasBytes(desc, epilogue, matrices),
            auxBytes(desc, epilogue, d),
            scaleBytes(desc, HwsLtMatmulDesc.A_SCALE_MODE_OFFSET, matrices[0], d.rows),
            scaleBytes(desc, HwsLtMatmulDesc.B_SCALE_MODE_OFFSET, matrices[1], d.cols),
            scaleBytes(desc, HwsLtMatmulDesc.C_SCALE_MODE_OFFSET, matrices[2], d.rows),
            scaleBytes(desc, HwsLtMatmulDesc.D_SCALE_MODE_OFFSET, d, d.rows),
            Float.BYTES,
            scaleBytes(desc, HwsLtMatmulDesc.AUX_SCALE_MODE_OFFSET, d, d.rows),
            Float.BYTES,
            scaleBytes(desc, HwsLtMatmulDesc.D_OUT_SCALE_MODE_OFFSET, d, d.rows),
        };
    }

    private CublasLtShape(MemorySegment desc, boolean[] present, MemorySegment[] layouts) {
        matrixBytes = new long[layouts.length];
        planeOffsets = new long[layouts.length];
        int mode = desc.get(ValueLayout.JAVA_INT_UNALIGNED, HwsLtTransform.POINTER_MODE_OFFSET);
        int transA = desc.get(ValueLayout.JAVA_INT_UNALIGNED, HwsLtTransform.TRANS_A_OFFSET);
        int transB = desc.get(ValueLayout.JAVA_INT_UNALIGNED, HwsLtTransform.TRANS_B_OFFSET);
        boolean all = mode >= 0 && mode <= cublasLtPointerMode_t.CUBLASLT_POINTER_MODE_DEVICE
            && isOperation(transA) && isOperation(transB);
        for (int i = 0; i < layouts.length; i++) {
            if (present[i]) {
                Layout matrix = new Layout(layouts[i]);
                all &= matrix.isKnown() && matrix.batchMode == cublasLtBatchMode_t.CUBLASLT_BATCH_MODE_STRIDED;
                matrixBytes[i] = matrix.bytes();
                planeOffsets[i] = matrix.planeOffset;
            }
        }
        scalarBytes = (int) Sizes.element(desc.get(ValueLayout.JAVA_INT_UNALIGNED, HwsLtTransform.SCALE_TYPE_OFFSET));
        known = all && scalarBytes > 0;
        alphaBytes = mode == cublasLtPointerMode_t.CUBLASLT_POINTER_MODE_DEVICE ? scalarBytes : 0;
        betaBytes = alphaBytes;
        addressBytes = new long[0];
    }

    /** Whether all enumerations have known values; a library might not check them. */
    boolean isKnown() {
        return known;
    }

    /** Bytes of a number. */
    int scalarBytes() {
        return scalarBytes;
    }

    /** Bytes at the address of alpha; 0 when it is a number. */
    long alphaBytes() {
        return alphaBytes;
    }

    /** Bytes at the address of beta; 0 when it is a number. */
    long betaBytes() {
        return betaBytes;
    }

    /** Bytes of a matrix, or of one plane of it. */
    long matrixBytes(int matrix) {
        return matrixBytes[matrix];
    }

    /** Distance of the imaginary plane; 0 for none. */
    long planeOffset(int matrix) {
        return planeOffsets[matrix];
    }

    /** Number of addresses of the descriptor. */
    int addresses() {
        return addressBytes.length;
    }

    /** Whether the product uses an address of the descriptor. */
    boolean uses(int address) {
        return addressBytes[address] != NOT_USED;
    }

    /** Bytes at an address of the descriptor. */
    long addressBytes(int address) {
        return addressBytes[address];
    }

    private static boolean isUpTo(MemorySegment desc, long at, int most) {
        return Byte.toUnsignedInt(desc.get(ValueLayout.JAVA_BYTE, at)) <= most;
    }

    private static boolean isOperation(int operation) {
        return operation >= cublasOperation_t.CUBLAS_OP_N && operation <= cublasOperation_t.CUBLAS_OP_CONJG;
    }

    private static long number(MemorySegment desc, long at) {
        return desc.get(ValueLayout.JAVA_LONG_UNALIGNED, at);
    }

    private static boolean isEpilogue(int epilogue) {
        return switch (epilogue) {
            case cublasLtEpilogue_t.CUBLASLT_EPILOGUE_DEFAULT, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_RELU,
                cublasLtEpilogue_t.CUBLASLT_EPILOGUE_RELU_AUX, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_BIAS,
                cublasLtEpilogue_t.CUBLASLT_EPILOGUE_RELU_BIAS, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
                cublasLtEpilogue_t.CUBLASLT_EPILOGUE_DRELU, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_DRELU_BGRAD,
                cublasLtEpilogue_t.CUBLASLT_EPILOGUE_GELU, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_GELU_AUX,
                cublasLtEpilogue_t.CUBLASLT_EPILOGUE_GELU_BIAS, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                cublasLtEpilogue_t.CUBLASLT_EPILOGUE_DGELU, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_DGELU_BGRAD,
                cublasLtEpilogue_t.CUBLASLT_EPILOGUE_BGRADA, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_BGRADB -> true;
            default -> false;
        };
    }

    private static boolean isFloat8(int type) {
        return type == cudaDataType_t.CUDA_R_8F_E4M3 || type == cudaDataType_t.CUDA_R_8F_E5M2;
    }

    /** Bytes of an element of a bias without a type of its own: that of D, with the exceptions of cublasLtMatmul. */
    private static long biasElement(Layout[] matrices) {
        int type = matrices[3].type;
        if (isFloat8(matrices[0].type) || isFloat8(type)) {
            return Short.BYTES;
        }
        return type == cudaDataType_t.CUDA_R_8I ? Float.BYTES : Sizes.element(type);
    }

    private static long biasBytes(MemorySegment desc, int epilogue, Layout[] matrices) {
        boolean isColumns = epilogue == cublasLtEpilogue_t.CUBLASLT_EPILOGUE_BGRADB;
        if ((epilogue & BIAS) == 0 && !isColumns && epilogue != cublasLtEpilogue_t.CUBLASLT_EPILOGUE_BGRADA) {
            return NOT_USED;
        }
        int type = desc.get(ValueLayout.JAVA_SHORT_UNALIGNED, HwsLtMatmulDesc.BIAS_TYPE_OFFSET);
        long element = type < 0 ? biasElement(matrices) : Sizes.element(type);
        Layout d = matrices[3];
        return Sizes.box(Sizes.multiply(number(desc, HwsLtMatmulDesc.BIAS_STRIDE_OFFSET), element), d.batchCount,
            Sizes.multiply(isColumns ? d.cols : d.rows, element));
    }

    private static long auxBytes(MemorySegment desc, int epilogue, Layout d) {
        if ((epilogue & AUX) == 0) {
            return NOT_USED;
        }
        int type = desc.get(ValueLayout.JAVA_SHORT_UNALIGNED, HwsLtMatmulDesc.AUX_TYPE_OFFSET);
        long bits = (epilogue & RELU) != 0 ? 1 : type < 0 ? Layout.bits(d.type) : Layout.bits(type);
        long elements = Sizes.box(number(desc, HwsLtMatmulDesc.AUX_STRIDE_OFFSET), d.batchCount,
            Sizes.box(number(desc, HwsLtMatmulDesc.AUX_LD_OFFSET), d.cols, d.rows));
        return Layout.bytes(elements, bits);
    }

    /** Bytes of the scaling factors of a matrix, whose rows are the dimension of the sum. */
    private static long scaleBytes(MemorySegment desc, long modeOffset, Layout matrix, long outer) {
        long factors = switch (desc.get(ValueLayout.JAVA_BYTE, modeOffset)) {
            case cublasLtMatmulMatrixScale_t.CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3 -> tiles(matrix, 16);
            case cublasLtMatmulMatrixScale_t.CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 -> tiles(matrix, 32);
            case cublasLtMatmulMatrixScale_t.CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F -> Sizes.multiply(outer, 4);
            case cublasLtMatmulMatrixScale_t.CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F ->
                Sizes.multiply(4, Sizes.multiply(parts(matrix.rows, BLOCK), matrix.cols));
            case cublasLtMatmulMatrixScale_t.CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F ->
                Sizes.multiply(4, Sizes.multiply(parts(matrix.rows, BLOCK), parts(matrix.cols, BLOCK)));
            default -> Float.BYTES;
        };
        return desc.get(ValueLayout.JAVA_BYTE, modeOffset)
            == cublasLtMatmulMatrixScale_t.CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F ? factors
                : Sizes.multiply(factors, matrix.batchCount);
    }

    private static long tiles(Layout matrix, int block) {
        return Sizes.multiply(Sizes.multiply(parts(matrix.cols, SCALE_ROWS), SCALE_ROWS),
            Sizes.multiply(parts(parts(matrix.rows, block), SCALE_COLUMNS), SCALE_COLUMNS));
    }

    /** Number of parts that hold {@code count}. */
    static long parts(long count, long part) {
        return count < 0 ? Sizes.MOST : count / part + (count % part == 0 ? 0 : 1);
    }

    /** A matrix layout. */
    private static final class Layout {
        private static final int TILE = 32; // columns of a tile of CUBLASLT_ORDER_COL32 and the orders after it
        private static final int INTERLEAVED_ROWS = 8; // CUBLASLT_ORDER_COL4_4R2_8C
        private static final long HALF_BYTE = 4;

        private final int type;
        private final int order;
        private final long rows;
        private final long cols;
        private final long ld;
        private final int batchCount;
        private final int batchMode;
        private final long batchStride;
        private final long planeOffset;

        Layout(MemorySegment content) {
            type = content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsLtLayout.TYPE_OFFSET);
            order = content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsLtLayout.ORDER_OFFSET);
            rows = number(content, HwsLtLayout.ROWS_OFFSET);
            cols = number(content, HwsLtLayout.COLS_OFFSET);
            ld = number(content, HwsLtLayout.LD_OFFSET);
            batchCount = content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsLtLayout.BATCH_COUNT_OFFSET);
            batchMode = content.get(ValueLayout.JAVA_SHORT_UNALIGNED, HwsLtLayout.BATCH_MODE_OFFSET);
            batchStride = number(content, HwsLtLayout.BATCH_STRIDE_OFFSET);
            planeOffset = number(content, HwsLtLayout.PLANE_OFFSET_OFFSET);
        }

        /** Bits of an element; 0 for a type that no matrix has. */
        static long bits(int type) {
            return switch (type) {
                case cudaDataType_t.CUDA_R_4I, cudaDataType_t.CUDA_R_4U, cudaDataType_t.CUDA_R_4F_E2M1 -> HALF_BYTE;
                default -> Sizes.multiply(Sizes.element(type), Byte.SIZE);
            };
        }

        static long bytes(long elements, long bits) {
            return parts(Sizes.multiply(elements, bits), Byte.SIZE);
        }

        private boolean isComplex() {
            return switch (type) {
                case cudaDataType_t.CUDA_C_16F, cudaDataType_t.CUDA_C_16BF, cudaDataType_t.CUDA_C_32F,
                    cudaDataType_t.CUDA_C_64F, cudaDataType_t.CUDA_C_8I, cudaDataType_t.CUDA_C_32I -> true;
                default -> false;
            };
        }

        /** Whether the enumerations have known values, and only complex numbers have a plane of their own. */
        boolean isKnown() {
            return bits(type) > 0 && (planeOffset == 0 || isComplex())
                && rows >= 0 && cols >= 0 && ld >= 0 && batchCount >= 0
                && order >= cublasLtOrder_t.CUBLASLT_ORDER_COL
                && order <= cublasLtOrder_t.CUBLASLT_ORDER_COL32_2R_4R4
                && batchMode >= cublasLtBatchMode_t.CUBLASLT_BATCH_MODE_STRIDED
                && batchMode <= cublasLtBatchMode_t.CUBLASLT_BATCH_MODE_POINTER_ARRAY;
        }

        /** Bytes at the matrix's address; of one plane of a matrix with two. */
        long bytes() {
            if (batchMode == cublasLtBatchMode_t.CUBLASLT_BATCH_MODE_POINTER_ARRAY) {
                // The array's matrices are checked nowhere: their addresses lie in device memory, as for cuBLAS.
                return Sizes.multiply(batchCount, Long.BYTES);
            }
            long bits = planeOffset == 0 ? bits(type) : bits(type) / 2;
            return bytes(Sizes.box(batchCount <= 1 ? 0 : batchStride, batchCount, elements()), bits);
        }

        private long elements() {
            return switch (order) {
                case cublasLtOrder_t.CUBLASLT_ORDER_COL -> Sizes.box(ld, cols, rows);
                case cublasLtOrder_t.CUBLASLT_ORDER_ROW -> Sizes.box(ld, rows, cols);
                case cublasLtOrder_t.CUBLASLT_ORDER_COL32 -> tiled(1);
                case cublasLtOrder_t.CUBLASLT_ORDER_COL4_4R2_8C -> tiled(INTERLEAVED_ROWS);
                default -> tiled(TILE);
            };
        }

        /** Elements of groups of 32 columns, whose tiles have a number of rows. */
        private long tiled(int tileRows) {
            return Sizes.box(ld, parts(cols, TILE), Sizes.multiply(Sizes.multiply(parts(rows, tileRows), tileRows),
                TILE));
        }
    }
}
