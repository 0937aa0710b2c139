package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HwsDevicePlace;
import io.hawser.cuda.generated.HwsExtent;
import io.hawser.cuda.generated.HwsPosition;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class BoxTest {
    @Test
    void shouldSpanFromFirstToLastByte() {
        Box box = box(1000, 64, 8, 5, 2, 1, 10, 3, 2);
        assertEquals(1000 + 512 + 128 + 5, box.start());
        assertEquals(512 + 128 + 10, box.spanBytes());
        assertEquals(60, box.bytes());
        assertEquals(6, box.operations());
    }

    @Test
    void shouldRefuseWhatBeginsOrEndsBeyondAnyDevice() {
        assertNotNull(box(0, 1, 1, 0, 1L << 47, 0, 1, 1, 1));
        assertNull(box(0, 4, 1, 0, 1L << 47, 0, 1, 1, 1), "its first byte");
        assertNull(box(0, 1, 4, 0, 0, 1L << 47, 1, 1, 1), "its first byte");
        assertNotNull(box(0, 1, 1, 0, 0, 0, 1, 1L << 47, 1));
        assertNull(box(0, 4, 1, 0, 0, 0, 1, 1L << 47, 1), "its last byte");
        assertNull(box(0, 1, 4, 0, 0, 0, 1, 1, 1L << 47), "its last byte");
    }

    @Test
    void shouldRefuseBoxesThatOverflow() {
        long huge = 1L << 48;
        assertNull(box(0, huge, huge, 0, 0, 0, 1, 1, 2));
        assertNull(box(0, 8, huge, 0, huge, huge, 8, 1, 1));
        assertNull(box(0, 8, 8, 0, 0, 0, 8, -1, 1));
        assertNull(box(0, 8, 8, Long.MAX_VALUE, 0, 0, 8, 1, 1));
        assertNull(box(0, huge, 1, 0, 0, 0, huge, huge, huge));
        assertNull(box(0, 8, 8, 0, 0, 0, 9, 2, 1), "rows that overlap");
        assertNull(box(0, 8, 2, 0, 0, 0, 8, 3, 2), "slices that overlap");
    }

    @Test
    void shouldTouchNothingWhenEmpty() {
        Box box = box(1000, 64, 8, 0, 0, 0, 0, 3, 2);
        assertNotNull(box);
        assertTrue(box.isEmpty());
        assertEquals(0, box.spanBytes());
        assertEquals(0, box.copy(0, box.bytes(), (address, offset, bytes) -> 999));
    }

    @Test
    void shouldJoinContiguousRows() {
        Box box = box(1000, 64, 8, 0, 0, 0, 64, 8, 4);
        assertTrue(box.isContiguous());
        assertEquals(1, box.operations());
        assertFalse(box(1000, 64, 8, 0, 0, 0, 64, 7, 4).isContiguous());
    }

    @Test
    void shouldCopyPiecesThatBeginAndEndInsideRows() {
        Box box = box(0, 100, 10, 0, 0, 0, 10, 2, 2);
        List<String> runs = new ArrayList<>();
        box.copy(5, 20, (address, offset, bytes) -> {
            runs.add(address + "/" + offset + "/" + bytes);
            return 0;
        });
        assertEquals(List.of("5/5/5", "100/10/10", "1000/20/5"), runs);
    }

    private static Box box(long base, long pitch, long height, long xBytes, long y, long z, long widthBytes, long rows,
        long slices) {
        return Box.of(new HwsDevicePlace(base, pitch, height, new HwsPosition(xBytes, y, z)),
            new HwsExtent(widthBytes, rows, slices));
    }
}
