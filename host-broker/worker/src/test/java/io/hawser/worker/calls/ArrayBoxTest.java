package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ArrayBoxTest {
    /** The bytes of the part: for each, its offset in an array of 100 x 100 x n, as the smaller boxes give it. */
    private static List<Long> bytes(ArrayBox box, long offset, long length) {
        List<Long> all = new ArrayList<>();
        int[] count = new int[1];
        assertEquals(0, box.copy(offset, length, (part, at) -> {
            assertEquals(offset + all.size(), at);
            for (long z = 0; z < part.slices(); z++) {
                for (long y = 0; y < part.rows(); y++) {
                    for (long x = 0; x < part.widthBytes(); x++) {
                        all.add(((part.z() + z) * 100 + part.y() + y) * 100 + part.xBytes() + x);
                    }
                }
            }
            count[0]++;
            return 0;
        }));
        assertTrue(count[0] <= 5, () -> "boxes of one part: " + count[0]);
        return all;
    }

    @Test
    void shouldCoverEachByteOfEachPartOnce() {
        ArrayBox box = new ArrayBox(3, 5, 2, 4, 3, 5);
        List<Long> all = bytes(box, 0, box.bytes());
        assertEquals(box.bytes(), all.size());
        for (int offset = 0; offset < all.size(); offset++) {
            for (int length = 1; length <= all.size() - offset; length++) {
                assertEquals(all.subList(offset, offset + length), bytes(box, offset, length));
            }
        }
    }

    @Test
    void shouldStopAtTheFirstError() {
        int[] count = new int[1];
        assertEquals(7, new ArrayBox(0, 0, 0, 4, 3, 5).copy(1, 30, (part, at) -> ++count[0] == 2 ? 7 : 0));
        assertEquals(2, count[0]);
    }
}
