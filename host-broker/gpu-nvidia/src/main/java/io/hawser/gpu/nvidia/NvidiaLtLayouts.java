package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.cublaslt.CublasLtNative;
import io.hawser.cuda.generated.cublaslt.HwsLtLayout;
import io.hawser.cuda.generated.cublaslt.cublasLtMatrixLayoutAttribute_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Matrix layouts of NVIDIA's cublasLt with given contents. Session thread. */
final class NvidiaLtLayouts {
    private final CublasLtNative library;
    private final long[] made;
    private int status;

    NvidiaLtLayouts(CublasLtNative library, MemorySegment[] contents) {
        this.library = library;
        made = new long[contents.length];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(Long.BYTES, Long.BYTES);
            for (int i = 0; i < contents.length && status == 0; i++) {
                make(i, contents[i], value);
            }
        }
    }

    private void make(int at, MemorySegment content, MemorySegment value) {
        status = library.cublasLtMatrixLayoutCreate(value, content.get(ValueLayout.JAVA_INT, HwsLtLayout.TYPE_OFFSET),
            content.get(ValueLayout.JAVA_LONG, HwsLtLayout.ROWS_OFFSET),
            content.get(ValueLayout.JAVA_LONG, HwsLtLayout.COLS_OFFSET),
            content.get(ValueLayout.JAVA_LONG, HwsLtLayout.LD_OFFSET));
        made[at] = status != 0 ? 0 : value.get(ValueLayout.JAVA_LONG, 0);
        set(at, cublasLtMatrixLayoutAttribute_t.CUBLASLT_MATRIX_LAYOUT_ORDER, value, Integer.BYTES,
            content.get(ValueLayout.JAVA_INT, HwsLtLayout.ORDER_OFFSET), 0);
        set(at, cublasLtMatrixLayoutAttribute_t.CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, value, Integer.BYTES,
            content.get(ValueLayout.JAVA_INT, HwsLtLayout.BATCH_COUNT_OFFSET), 1);
        set(at, cublasLtMatrixLayoutAttribute_t.CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, value, Long.BYTES,
            content.get(ValueLayout.JAVA_LONG, HwsLtLayout.BATCH_STRIDE_OFFSET), 0);
        set(at, cublasLtMatrixLayoutAttribute_t.CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, value, Long.BYTES,
            content.get(ValueLayout.JAVA_LONG, HwsLtLayout.PLANE_OFFSET_OFFSET), 0);
        set(at, cublasLtMatrixLayoutAttribute_t.CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, value, Integer.BYTES,
            Short.toUnsignedInt(content.get(ValueLayout.JAVA_SHORT, HwsLtLayout.BATCH_MODE_OFFSET)), 0);
    }

    /** Sets an attribute that differs from its default: an older library need not know the others. */
    private void set(int at, int attribute, MemorySegment value, int bytes, long wanted, long byDefault) {
        if (status == 0 && wanted != byDefault) {
            value.set(ValueLayout.JAVA_LONG, 0, wanted); // little-endian: also an int
            status = library.cublasLtMatrixLayoutSetAttribute(made[at], attribute, value, bytes);
        }
    }

    /** Why the layouts could not be made, or 0. */
    int status() {
        return status;
    }

    long get(int at) {
        return made[at];
    }

    void close() {
        for (long layout : made) {
            if (layout != 0) {
                library.cublasLtMatrixLayoutDestroy(layout);
            }
        }
    }
}
