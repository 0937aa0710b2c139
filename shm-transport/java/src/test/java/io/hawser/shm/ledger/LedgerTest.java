package io.hawser.shm.ledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SharedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class LedgerTest {
    private static final int SLOTS = 4;

    private final MemorySegment memory = Arena.ofAuto().allocate(LedgerLayout.bytes(SLOTS), Long.BYTES);
    private final Ledger ledger = new Ledger(memory, SLOTS);
    private final LedgerAccount first = new LedgerAccount(ledger, 0);
    private final LedgerAccount second = new LedgerAccount(ledger, 3);

    @Test
    void shouldRefuseAClaimBeyondTheLimitOfAllSessions() {
        ledger.limit(0, 1000, 1000);
        assertTrue(first.claim(0, 600));
        assertFalse(second.claim(0, 401));
        assertEquals(600, ledger.usedBytes(0), "a refused claim changes nothing");
        assertTrue(second.claim(0, 400));
        assertFalse(first.claim(0, 1));
        assertTrue(first.claim(0, 0));
        first.giveBack(0, 600);
        assertTrue(second.claim(0, 600));
        assertEquals(1000, second.heldBytes(0));
        assertEquals(0, first.freeBytes(0));
    }

    @Test
    void shouldCountEachGpuByItself() {
        ledger.limit(0, 100, 100);
        ledger.limit(63, 200, 50);
        assertTrue(first.claim(0, 100));
        assertFalse(first.claim(63, 51));
        assertTrue(first.claim(63, 50));
        assertFalse(first.claim(1, 1), "a GPU that the broker has not named has nothing");
        assertEquals(200, ledger.totalBytes(63));
        assertEquals(50, ledger.heldBytes(63, 0));
    }

    @Test
    void shouldRefuseHugeClaimsWithoutOverflow() {
        ledger.limit(0, Long.MAX_VALUE, Long.MAX_VALUE);
        assertTrue(first.claim(0, Long.MAX_VALUE - 5));
        assertFalse(second.claim(0, 6));
        assertFalse(first.claim(0, Long.MAX_VALUE));
        assertTrue(second.claim(0, 5));
        assertThrows(IllegalArgumentException.class, () -> first.claim(0, -1));
        assertThrows(IllegalArgumentException.class, () -> second.giveBack(0, 6));
    }

    @Test
    void shouldKeepHeldMemoryWhenTheLimitIsLowered() {
        ledger.limit(0, 1000, 1000);
        assertTrue(first.claim(0, 800));
        ledger.limit(0, 500, 500);
        assertFalse(first.claim(0, 0));
        assertFalse(second.claim(0, 1));
        assertTrue(second.isOver(0));
        assertEquals(0, second.freeBytes(0));
        first.giveBack(0, 400);
        assertTrue(second.claim(0, 100));
        assertFalse(second.isOver(0));
    }

    @Test
    void shouldClaimBesideALockThatIsNeverFreed() {
        ledger.limit(0, 1000, 1000);
        assertTrue(ledger.tryLock(1L << 16 | 2));
        assertTrue(first.claim(0, 999));
        assertFalse(second.claim(0, 2));
        assertTrue(second.claim(0, 1));
        assertEquals(1L << 16 | 2, ledger.lockWord(), "no slot takes another's lock away");
        ledger.clear(1);
        assertEquals(0, ledger.lockWord(), "the broker does, once that worker is gone");
    }

    @Test
    void shouldFreeOnlyTheLockThatStoodStill() {
        assertTrue(ledger.tryLock(7L << 16 | 1));
        ledger.freeLock(6L << 16 | 1);
        assertEquals(7L << 16 | 1, ledger.lockWord());
        ledger.clear(2);
        assertEquals(7L << 16 | 1, ledger.lockWord(), "of another slot");
        ledger.freeLock(7L << 16 | 1);
        assertEquals(0, ledger.lockWord());
        assertTrue(ledger.tryLock(9L << 16 | 1));
        ledger.unlock(7L << 16 | 1); // a slot that has lost the lock must not free another slot's
        assertEquals(9L << 16 | 1, ledger.lockWord());
    }

    @Test
    void shouldIgnoreWritesOfOthersToItsSlot() {
        ledger.limit(0, 1000, 1000);
        assertTrue(first.claim(0, 300));
        ledger.setHeldBytes(0, 0, 0); // a hostile worker of the same vGPU
        assertTrue(first.claim(0, 100));
        assertEquals(400, ledger.heldBytes(0, 0));
        first.giveBack(0, 400);
        ledger.setHeldBytes(0, 1, Long.MAX_VALUE);
        ledger.setHeldBytes(0, 2, Long.MAX_VALUE);
        assertEquals(Long.MAX_VALUE, ledger.usedBytes(0));
        assertFalse(first.claim(0, 1));
        ledger.setHeldBytes(0, 1, -5);
        ledger.setHeldBytes(0, 2, Long.MIN_VALUE);
        assertEquals(0, ledger.usedBytes(0));
        assertTrue(first.claim(0, 1000));
    }

    @Test
    void shouldHoldNothingForASlotThatWasCleared() {
        ledger.limit(0, 1000, 1000);
        ledger.limit(5, 1000, 1000);
        assertTrue(first.claim(0, 10));
        assertTrue(first.claim(5, 20));
        assertTrue(second.claim(5, 30));
        ledger.clear(0);
        assertEquals(0, ledger.usedBytes(0));
        assertEquals(30, ledger.usedBytes(5));
    }

    @Test
    void shouldCountHeldMemoryBeyondTheLimit() {
        ledger.limit(0, 1000, 1000);
        assertTrue(first.claim(0, 600));
        second.force(0, 300);
        assertEquals(100, first.freeBytes(0));
        assertEquals(100, second.freeBytes(0));
        assertEquals(300, ledger.heldBytes(0, 3));
        second.force(0, 100);
        assertEquals(0, first.freeBytes(0));
        assertFalse(first.isOver(0));
        second.force(0, 1);
        assertTrue(first.isOver(0));
        assertEquals(0, first.freeBytes(0));
        assertEquals(0, second.freeBytes(0));
        second.giveBack(0, 401);
        assertEquals(400, second.freeBytes(0));
    }

    @Test
    void shouldTakeNoNegativeAmounts() {
        ledger.limit(0, 1000, 1000);
        assertTrue(first.claim(0, 600));
        assertThrows(IllegalArgumentException.class, () -> first.force(0, -1));
        assertThrows(IllegalArgumentException.class, () -> first.giveBack(0, -1));
        assertThrows(IllegalArgumentException.class, () -> first.claim(0, Long.MIN_VALUE));
        assertEquals(600, first.heldBytes(0));
        assertEquals(600, ledger.usedBytes(0));
        first.giveBack(0, 0);
        first.force(0, 0);
        assertEquals(600, ledger.usedBytes(0));
    }

    @Test
    void shouldShareOneLedgerAmongItsMappings() throws Exception {
        int descriptor = Descriptors.memory("ledger-test", LedgerLayout.bytes(SLOTS));
        try {
            Ledger broker = new Ledger(SharedMemory.mapWhileReachable(descriptor, LedgerLayout.bytes(SLOTS)), SLOTS);
            Ledger worker = new Ledger(SharedMemory.mapWhileReachable(descriptor, LedgerLayout.bytes(SLOTS)), SLOTS);
            broker.limit(2, 5000, 4000);
            assertEquals(5000, worker.totalBytes(2));
            assertTrue(new LedgerAccount(worker, 1).claim(2, 4000));
            assertEquals(4000, broker.heldBytes(2, 1));
            assertEquals(4000, broker.usedBytes(2));
        } finally {
            Descriptors.close(descriptor);
        }
    }

    @Test
    void shouldRefuseMissingSlotsAndColumns() {
        assertThrows(IllegalArgumentException.class, () -> new LedgerAccount(ledger, SLOTS));
        assertThrows(IllegalArgumentException.class, () -> new LedgerAccount(ledger, -1));
        assertThrows(IllegalArgumentException.class, () -> ledger.clear(-1));
        assertThrows(IllegalArgumentException.class, () -> ledger.usedBytes(LedgerLayout.MAX_COLUMNS));
        assertThrows(IllegalArgumentException.class, () -> new Ledger(memory, SLOTS + 1));
        assertThrows(IllegalArgumentException.class, () -> LedgerLayout.bytes(0));
        assertThrows(IllegalArgumentException.class, () -> LedgerLayout.bytes(LedgerLayout.MAX_SLOTS + 1));
    }
}
