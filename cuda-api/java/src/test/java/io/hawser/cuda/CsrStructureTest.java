package io.hawser.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.CsrStructure;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class CsrStructureTest {
    private static CsrStructure structure(int base, int[] offsets, int... columns) {
        return new CsrStructure(MemorySegment.ofArray(offsets), MemorySegment.ofArray(columns), base);
    }

    @Test
    void shouldAcceptWholeStructuresOfBothBases() {
        CsrStructure zero = structure(0, new int[] {0, 2, 2, 3}, 0, 2, 1);
        assertTrue(zero.isWhole());
        assertEquals(3, zero.rows());
        assertEquals(3, zero.elements());
        assertTrue(structure(1, new int[] {1, 3, 3, 4}, 1, 3, 2).isWhole());
        assertTrue(structure(0, new int[] {0, 0}).isWhole());
    }

    @Test
    void shouldRejectRowsThatDoNotFollowEachOther() {
        for (int[] offsets : new int[][] {{1, 2, 2, 3}, {0, 2, 1, 3}, {0, 2, 2, 2}, {0, 2, 2, 4}, {0, -1, 2, 3},
            {0, 9, 2, 3}, {0, Integer.MIN_VALUE, 2, 3}, {0, Integer.MAX_VALUE, 2, 3}, {0, 2, 2, -3}}) {
            assertFalse(structure(0, offsets, 0, 2, 1).isWhole());
        }
        assertFalse(structure(1, new int[] {Integer.MIN_VALUE, 3, 3, 4}, 1, 3, 2).isWhole());
        assertFalse(structure(1, new int[] {1, Integer.MIN_VALUE, 3, 4}, 1, 3, 2).isWhole());
    }

    @Test
    void shouldRejectColumnsOutsideOfTheMatrix() {
        for (int column : new int[] {3, -1, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            assertFalse(structure(0, new int[] {0, 2, 2, 3}, 0, 2, column).isWhole(), "column=" + column);
        }
        for (int column : new int[] {0, 4, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            assertFalse(structure(1, new int[] {1, 3, 3, 4}, column, 2, 1).isWhole(), "column=" + column);
        }
    }
}
