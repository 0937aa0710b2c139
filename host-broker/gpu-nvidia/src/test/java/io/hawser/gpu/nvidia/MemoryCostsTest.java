package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Figures of cuMemGetInfo on an H200 with driver 580, in MiB. */
class MemoryCostsTest {
    private static final long MIB = 1L << 20;
    private static final int SYNC_DEPTH = 3;
    private static final int PENDING_LAUNCHES = 4;

    @Test
    void shouldCountLaunchesOfKernelsThatMayWait() {
        assertEquals(0, MemoryCosts.ofLimit(0, PENDING_LAUNCHES, 1));
        assertEquals(0, MemoryCosts.ofLimit(0, PENDING_LAUNCHES, 2048), "every context has as many");
        assertNear(668 - 100, MemoryCosts.ofLimit(0, PENDING_LAUNCHES, 65_536));
        assertNear(5442 - 100, MemoryCosts.ofLimit(0, PENDING_LAUNCHES, 599_186));
        assertEquals(Long.MAX_VALUE, MemoryCosts.ofLimit(0, PENDING_LAUNCHES, Long.MAX_VALUE));
    }

    @Test
    void shouldCountLevelsOfKernelsThatWaitForOthers() {
        assertEquals(0, MemoryCosts.ofLimit(0, SYNC_DEPTH, 2));
        assertEquals(22 * 150 * MIB, MemoryCosts.ofLimit(0, SYNC_DEPTH, 24));
    }

    private static void assertNear(long expectedMib, long bytes) {
        assertTrue(Math.abs(bytes / MIB - expectedMib) <= 2, () -> "expected MiB=" + expectedMib + " bytes=" + bytes);
    }
}
