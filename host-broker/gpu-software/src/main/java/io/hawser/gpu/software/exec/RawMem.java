package io.hawser.gpu.software.exec;

import static io.hawser.gpu.software.exec.Mem.ALL;
import static io.hawser.gpu.software.exec.Mem.INT;
import static io.hawser.gpu.software.exec.Mem.LONG;
import static io.hawser.gpu.software.exec.Mem.SHORT;

import java.lang.foreign.ValueLayout;

/** Accesses the elements of vectors in global memory, after {@link Mem#vector} has checked the whole vector. */
public final class RawMem {
    private RawMem() {
    }

    static int ldU8(long address) {
        return ALL.get(ValueLayout.JAVA_BYTE, address) & 0xFF;
    }

    static void stU8(long address, int value) {
        ALL.set(ValueLayout.JAVA_BYTE, address, (byte) value);
    }

    static int ldS8(long address) {
        return ALL.get(ValueLayout.JAVA_BYTE, address);
    }

    static int ldU16(long address) {
        return ALL.get(SHORT, address) & 0xFFFF;
    }

    static void stU16(long address, int value) {
        ALL.set(SHORT, address, (short) value);
    }

    static int ldS16(long address) {
        return ALL.get(SHORT, address);
    }

    static int ld32(long address) {
        return ALL.get(INT, address);
    }

    static void st32(long address, int value) {
        ALL.set(INT, address, value);
    }

    static long ld64(long address) {
        return ALL.get(LONG, address);
    }

    static void st64(long address, long value) {
        ALL.set(LONG, address, value);
    }

    static float ldF32(long address) {
        return Float.intBitsToFloat(ALL.get(INT, address));
    }

    static void stF32(long address, float value) {
        ALL.set(INT, address, Float.floatToRawIntBits(value));
    }

    static double ldF64(long address) {
        return Double.longBitsToDouble(ALL.get(LONG, address));
    }

    static void stF64(long address, double value) {
        ALL.set(LONG, address, Double.doubleToRawLongBits(value));
    }
}
