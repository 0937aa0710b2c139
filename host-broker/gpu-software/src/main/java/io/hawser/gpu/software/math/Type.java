package io.hawser.gpu.software.math;

import io.hawser.cuda.generated.cublas.CublasForm;
import io.hawser.cuda.generated.cublas.cudaDataType_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

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

    /** Whether an element has two parts. */
    boolean isComplex() {
        return this == COMPLEX || this == DOUBLE_COMPLEX;
    }

    /** Whether the parts of an element have 64 bits. */
    boolean isDouble() {
        return this == DOUBLE || this == DOUBLE_COMPLEX;
    }

    /** The letter of this type in names of functions; that of float for short types. */
    String letter() {
        return switch (this) {
            case FLOAT, HALF, BFLOAT -> "s";
            case DOUBLE -> "d";
            case COMPLEX -> "c";
            case DOUBLE_COMPLEX -> "z";
        };
    }

    /** The real number in memory that has the type of the parts of an element: Float or Double. */
    Object real(MemorySegment number) {
        return isDouble() ? (Object) number.reinterpret(Double.BYTES).get(ValueLayout.JAVA_DOUBLE_UNALIGNED, 0)
            : number.reinterpret(Float.BYTES).get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
    }

    /** The type of the elements of vectors and matrices in a form of a function; null for any other. */
    static Type of(CublasForm form) {
        return switch (form) {
            case S -> FLOAT;
            case D -> DOUBLE;
            case C, SC, CS -> COMPLEX;
            case Z, DZ, ZD -> DOUBLE_COMPLEX;
            default -> null;
        };
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
