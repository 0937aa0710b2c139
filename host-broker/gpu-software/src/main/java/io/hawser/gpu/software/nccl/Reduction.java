package io.hawser.gpu.software.nccl;

import io.hawser.cuda.backend.NcclOperation;
import io.hawser.cuda.generated.nccl.ncclDataType_t;
import io.hawser.cuda.generated.nccl.ncclRedOp_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Reduces numbers of all ranks, in the order of ranks, so that each rank has the same result. Any thread. */
final class Reduction {
    private final int datatype;
    private final int reduction;

    /**
     * @param datatype {@link #isSupported}.
     * @param reduction of ncclRedOp_t; any other is a sum.
     */
    Reduction(int datatype, int reduction) {
        this.datatype = datatype;
        this.reduction = reduction;
    }

    /** Whether this GPU computes with a type: all but those of 8 bits with a fraction. */
    static boolean isSupported(int datatype) {
        return datatype != ncclDataType_t.ncclFloat8e4m3 && datatype != ncclDataType_t.ncclFloat8e5m2;
    }

    private boolean isReal() {
        return switch (datatype) {
            case ncclDataType_t.ncclFloat16, ncclDataType_t.ncclBfloat16, ncclDataType_t.ncclFloat32,
                ncclDataType_t.ncclFloat64 -> true;
            default -> false;
        };
    }

    /** Reduces the ranks' numbers to {@code out}, which is as long as each of them. */
    void reduce(MemorySegment[] ranks, MemorySegment out) {
        long count = out.byteSize() / NcclOperation.bytesOf(datatype);
        for (long i = 0; i < count; i++) {
            if (isReal()) {
                double sum = real(ranks[0], i);
                for (int rank = 1; rank < ranks.length; rank++) {
                    sum = join(sum, real(ranks[rank], i));
                }
                setReal(out, i, reduction == ncclRedOp_t.ncclAvg ? sum / ranks.length : sum);
            } else {
                long sum = integer(ranks[0], i);
                for (int rank = 1; rank < ranks.length; rank++) {
                    sum = join(sum, integer(ranks[rank], i));
                }
                setInteger(out, i, reduction == ncclRedOp_t.ncclAvg ? average(sum, ranks.length) : sum);
            }
        }
    }

    /** Multiplies numbers by a factor. */
    void scale(MemorySegment in, MemorySegment factor, MemorySegment out) {
        long count = out.byteSize() / NcclOperation.bytesOf(datatype);
        for (long i = 0; i < count; i++) {
            if (isReal()) {
                setReal(out, i, real(in, i) * real(factor, 0));
            } else {
                setInteger(out, i, integer(in, i) * integer(factor, 0));
            }
        }
    }

    private double join(double a, double b) {
        return switch (reduction) {
            case ncclRedOp_t.ncclProd -> a * b;
            case ncclRedOp_t.ncclMax -> Math.max(a, b);
            case ncclRedOp_t.ncclMin -> Math.min(a, b);
            default -> a + b;
        };
    }

    private long join(long a, long b) {
        int order = datatype == ncclDataType_t.ncclUint64 ? Long.compareUnsigned(a, b) : Long.compare(a, b);
        return switch (reduction) {
            case ncclRedOp_t.ncclProd -> a * b;
            case ncclRedOp_t.ncclMax -> order >= 0 ? a : b;
            case ncclRedOp_t.ncclMin -> order <= 0 ? a : b;
            default -> a + b;
        };
    }

    /** The sum has the type's range, as on an NVIDIA GPU. */
    private long average(long sum, int ranks) {
        return switch (datatype) {
            case ncclDataType_t.ncclInt8 -> (byte) sum / ranks;
            case ncclDataType_t.ncclUint8 -> (sum & 0xff) / ranks;
            case ncclDataType_t.ncclInt32 -> (int) sum / ranks;
            case ncclDataType_t.ncclUint32 -> (sum & 0xffff_ffffL) / ranks;
            case ncclDataType_t.ncclUint64 -> Long.divideUnsigned(sum, ranks);
            default -> sum / ranks;
        };
    }

    private double real(MemorySegment at, long i) {
        return switch (datatype) {
            case ncclDataType_t.ncclFloat16 ->
                Float.float16ToFloat(at.get(ValueLayout.JAVA_SHORT_UNALIGNED, i * Short.BYTES));
            case ncclDataType_t.ncclBfloat16 ->
                Float.intBitsToFloat(at.get(ValueLayout.JAVA_SHORT_UNALIGNED, i * Short.BYTES) << 16);
            case ncclDataType_t.ncclFloat32 -> at.get(ValueLayout.JAVA_FLOAT_UNALIGNED, i * Float.BYTES);
            default -> at.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, i * Double.BYTES);
        };
    }

    private void setReal(MemorySegment at, long i, double value) {
        switch (datatype) {
            case ncclDataType_t.ncclFloat16 ->
                at.set(ValueLayout.JAVA_SHORT_UNALIGNED, i * Short.BYTES, Float.floatToFloat16((float) value));
            case ncclDataType_t.ncclBfloat16 ->
                at.set(ValueLayout.JAVA_SHORT_UNALIGNED, i * Short.BYTES, bfloat16((float) value));
            case ncclDataType_t.ncclFloat32 ->
                at.set(ValueLayout.JAVA_FLOAT_UNALIGNED, i * Float.BYTES, (float) value);
            default -> at.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, i * Double.BYTES, value);
        }
    }

    /** Rounds to the nearest number, to an even one between two. */
    private static short bfloat16(float value) {
        int bits = Float.floatToRawIntBits(value);
        return (short) (Float.isNaN(value) ? bits >>> 16 | 0x40 : bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
    }

    private long integer(MemorySegment at, long i) {
        return switch (datatype) {
            case ncclDataType_t.ncclInt8 -> at.get(ValueLayout.JAVA_BYTE, i);
            case ncclDataType_t.ncclUint8 -> Byte.toUnsignedLong(at.get(ValueLayout.JAVA_BYTE, i));
            case ncclDataType_t.ncclInt32 -> at.get(ValueLayout.JAVA_INT_UNALIGNED, i * Integer.BYTES);
            case ncclDataType_t.ncclUint32 ->
                Integer.toUnsignedLong(at.get(ValueLayout.JAVA_INT_UNALIGNED, i * Integer.BYTES));
            default -> at.get(ValueLayout.JAVA_LONG_UNALIGNED, i * Long.BYTES);
        };
    }

    private void setInteger(MemorySegment at, long i, long value) {
        switch (datatype) {
            case ncclDataType_t.ncclInt8, ncclDataType_t.ncclUint8 -> at.set(ValueLayout.JAVA_BYTE, i, (byte) value);
            case ncclDataType_t.ncclInt32, ncclDataType_t.ncclUint32 ->
                at.set(ValueLayout.JAVA_INT_UNALIGNED, i * Integer.BYTES, (int) value);
            default -> at.set(ValueLayout.JAVA_LONG_UNALIGNED, i * Long.BYTES, value);
        }
    }
}
