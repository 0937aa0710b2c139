package io.hawser.gpu.software.math;

import io.hawser.cuda.generated.cublas.cudaDataType_t;

/** Types of the elements of matrices. */
enum Type {
    /** CUDA_R_32F. */
    FLOAT(4),
    /** CUDA_R_64F. */
    DOUBLE(8),
    /** CUDA_C_32F. */
    COMPLEX(8),
    /** CUDA_C_64F. */
    DOUBLE_COMPLEX(16),
    /** CUDA_R_16F: computed in float. */
    HALF(2),
    /** CUDA_R_16BF: computed in float. */
    BFLOAT(2);

    /** Bytes of the longest number. */
    static final int MAX_BYTES = 16;

    private final int bytes;

    Type(int bytes) {
        this.bytes = bytes;
    }

    /** Bytes of an element. */
    int bytes() {
        return bytes;
    }

    /** Whether products are computed in float, on converted matrices. */
    boolean isShort() {
        return bytes == Short.BYTES;
    }

    /** The type with a number of cudaDataType; null for any other. */
    static Type of(int cudaDataType) {
        return switch (cudaDataType) {
            case cudaDataType_t.CUDA_R_32F -> FLOAT;
            case cudaDataType_t.CUDA_R_64F -> DOUBLE;
            case cudaDataType_t.CUDA_C_32F -> COMPLEX;
            case cudaDataType_t.CUDA_C_64F -> DOUBLE_COMPLEX;
            case cudaDataType_t.CUDA_R_16F -> HALF;
            case cudaDataType_t.CUDA_R_16BF -> BFLOAT;
            default -> null;
        };
    }

    /** The bits of a float, rounded to the nearest number of this short type. */
    short narrow(float value) {
        if (this == HALF) {
            return Float.floatToFloat16(value);
        }
        int bits = Float.floatToRawIntBits(value);
        if (Float.isNaN(value)) {
            return (short) (bits >>> 16 | 0x40); // stays NaN when the low bits go
        }
        return (short) (bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
    }

    /** The float with the bits of this short type. */
    float widen(short bits) {
        return this == HALF ? Float.float16ToFloat(bits) : Float.intBitsToFloat(bits << 16);
    }
}
