package io.hawser.worker.calls;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.generated.cudnn.cudnnDataType_t;

/**
 * Memory of a tensor.
 *
 * @param uid its number in a graph; 0 outside of one.
 * @param isByValue its number comes with each execution, in host memory.
 * @param isPacked its sequences lie one behind another, so that the sizes are limits only.
 */
record CudnnTensor(long uid, int type, long[] sizes, long[] strides, long vectorCount, boolean isByValue,
    boolean isPacked) {

    /** Bits of an element; 0 for an unknown type. */
    static int elementBits(int type) {
        return switch (type) {
            case cudnnDataType_t.CUDNN_DATA_FP4_E2M1, cudnnDataType_t.CUDNN_DATA_INT4,
                cudnnDataType_t.CUDNN_DATA_UINT4 -> 4;
            case cudnnDataType_t.CUDNN_DATA_INT8, cudnnDataType_t.CUDNN_DATA_UINT8,
                cudnnDataType_t.CUDNN_DATA_BOOLEAN, cudnnDataType_t.CUDNN_DATA_FP8_E4M3,
                cudnnDataType_t.CUDNN_DATA_FP8_E5M2, cudnnDataType_t.CUDNN_DATA_FP8_E8M0 -> 8;
            case cudnnDataType_t.CUDNN_DATA_HALF, cudnnDataType_t.CUDNN_DATA_BFLOAT16 -> 16;
            case cudnnDataType_t.CUDNN_DATA_FLOAT, cudnnDataType_t.CUDNN_DATA_INT32,
                cudnnDataType_t.CUDNN_DATA_UINT32, cudnnDataType_t.CUDNN_DATA_INT8x4,
                cudnnDataType_t.CUDNN_DATA_UINT8x4, cudnnDataType_t.CUDNN_DATA_FAST_FLOAT_FOR_FP8 -> 32;
            case cudnnDataType_t.CUDNN_DATA_DOUBLE, cudnnDataType_t.CUDNN_DATA_INT64,
                cudnnDataType_t.CUDNN_DATA_COMPLEX_FP32 -> 64;
            case cudnnDataType_t.CUDNN_DATA_COMPLEX_FP64 -> 128;
            case cudnnDataType_t.CUDNN_DATA_INT8x32 -> 256;
            default -> 0;
        };
    }

    /** Bytes from the first element to the end of the last one; {@link Sizes#MOST} for sizes that none has. */
    long bytes() {
        int bits = elementBits(type);
        if (bits == 0 || strides.length != 0 && strides.length != sizes.length) {
            return Sizes.MOST;
        }
        long elements = 1;
        for (int i = 0; i < sizes.length; i++) {
            long stride = strides.length == 0 ? 0 : strides[i];
            if (sizes[i] <= 0 || stride < 0) {
                return Sizes.MOST;
            }
            elements = strides.length == 0 ? Sizes.multiply(elements, sizes[i])
                : Sizes.add(elements, Sizes.multiply(sizes[i] - 1, stride));
        }
        elements = Sizes.multiply(elements, Math.max(1, vectorCount));
        return bits == 4 ? Sizes.add(elements, 1) / 2 : Sizes.multiply(elements, bits / Byte.SIZE);
    }

    /** Bytes of the number of a tensor by value. */
    int valueBytes() {
        int bytes = elementBits(type) / Byte.SIZE;
        return bytes == 0 || bytes > 16 ? Float.BYTES : bytes;
    }
}
