package io.hawser.gpu.software.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Fills memory with a value of 1, 2 or 4 bytes. */
final class Fill {
    private Fill() {
    }

    /**
     * @param target length a multiple of {@code unit}.
     * @param unit 1, 2 or 4.
     * @param value only the low {@code unit} bytes are used.
     */
    static void fill(MemorySegment target, int unit, int value) {
        if (target.byteSize() == 0) {
            return;
        }
        byte low = (byte) value;
        if (unit == 1 || unit == 2 && low == (byte) (value >> 8)
            || unit == 4 && value == (low & 0xFF) * 0x01010101) {
            target.fill(low);
            return;
        }
        if (unit == 2) {
            target.set(ValueLayout.JAVA_SHORT_UNALIGNED, 0, (short) value);
        } else {
            target.set(ValueLayout.JAVA_INT_UNALIGNED, 0, value);
        }
        // Doubles the filled part in each step, so that memcpy does the copying.
        for (long filled = unit; filled < target.byteSize(); filled *= 2) {
            long more = Math.min(filled, target.byteSize() - filled);
            MemorySegment.copy(target, 0, target, filled, more);
        }
    }

    /** Fills rows that begin at multiples of a pitch. */
    static void rows(MemorySegment to, long pitch, long rowBytes, long rows, int unit, int value) {
        for (long row = 0; row < rows; row++) {
            fill(to.asSlice(row * pitch, rowBytes), unit, value);
        }
    }
}
