package io.hawser.broker.ledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Device;
import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.shm.ledger.Ledger;
import io.hawser.shm.ledger.LedgerAccount;
import io.hawser.shm.ledger.LedgerLayout;
import io.hawser.shm.os.SharedMemory;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class LedgersTest {
    private static final long LOCK_OFFSET = 0; // the lock's offset in LedgerLayout

    private final List<Device> devices = new ArrayList<>(List.of(device("a", 1000)));
    private final Map<String, Amount> amounts = new HashMap<>(Map.of("one a", Amount.quota(600, 1000)));
    private final Ledgers ledgers = new Ledgers(8, () -> devices,
        (vgpu, device) -> amounts.getOrDefault(vgpu + " " + device.uuid(), Amount.NONE), gpu -> 7);

    private static Device device(String uuid, long bytes) {
        return new Device("GPU", uuid, bytes, "", "");
    }

    @AfterEach
    void close() {
        ledgers.close();
    }

    /** Maps the ledger as the slot's worker does. */
    private static MemorySegment map(LedgerSlot slot) throws IOException {
        return SharedMemory.mapWhileReachable(slot.descriptor(), LedgerLayout.bytes(slot.slots()));
    }

    private static LedgerAccount account(LedgerSlot slot) throws IOException {
        return new LedgerAccount(new Ledger(map(slot), slot.slots()), slot.number());
    }

    @Test
    void shouldHaveOneQuotaForAllWorkersOfAVgpu() throws IOException {
        LedgerSlot first = ledgers.take("one");
        LedgerSlot second = ledgers.take("one");
        assertNotEquals(first.number(), second.number());
        LedgerAccount held = account(first);
        assertTrue(held.claim(0, 500));
        LedgerAccount other = account(second);
        assertFalse(other.claim(0, 101));
        assertTrue(other.claim(0, 100));
        assertEquals(600, ledgers.usedBytes("one"));
        assertEquals(600, ledgers.usedBytes("one", "a"));
        assertEquals(500, first.heldBytes());
        ledgers.release(first);
        assertEquals(100, ledgers.usedBytes("one"), "a worker's bytes must go with the worker");
        assertEquals(0, ledgers.usedBytes("two"));
        ledgers.release(second);
        assertTrue(ledgers.isClear());
    }

    @Test
    void shouldAllowAWorkerTheMemoryOfAStoppedOneBesideTheQuota() throws IOException {
        LedgerSlot stopped = ledgers.take("one");
        account(stopped).claim(0, 500);
        LedgerSlot next = ledgers.take("one");
        LedgerAccount target = account(next);
        assertFalse(target.claim(0, 500));
        ledgers.allowCopy(stopped);
        assertTrue(target.claim(0, 500));
        assertFalse(target.claim(0, 101), "the rest of the quota counts once");
        ledgers.endCopy(stopped);
        assertFalse(target.claim(0, 1));
        target.giveBack(0, 500);
        ledgers.allowCopy(stopped);
        account(stopped).ledger().setHeldBytes(0, stopped.number(), 1L << 50);
        ledgers.refresh();
        assertEquals(1200, account(next).ledger().limitBytes(0), "a hostile worker doubles the quota at most");
        ledgers.release(stopped);
        assertEquals(600, target.ledger().limitBytes(0), "the end of the worker ends the copy");
        ledgers.release(next);
        assertTrue(ledgers.isClear());
    }

    @Test
    void shouldCountMemoryWhoseOwnerHasGivenItUp() throws IOException {
        WorkerMessage.Share share = new WorkerMessage.Share("n", "h", 1, 0, 500, false);
        LedgerSlot slot = ledgers.take("one");
        LedgerAccount importer = account(slot);
        ledgers.keep("one", share);
        assertEquals(500, ledgers.usedBytes("one", "a"));
        assertFalse(importer.claim(0, 101));
        assertTrue(importer.claim(0, 100));
        assertEquals(0, ledgers.usedBytes("two"));
        importer.ledger().setHeldBytes(0, slot.slots() - 1, 0); // a hostile worker writes over the broker's slot
        ledgers.sweep();
        assertEquals(600, ledgers.usedBytes("one"));
        ledgers.release("one", share);
        ledgers.release(slot);
        assertTrue(ledgers.isClear());
    }

    @Test
    void shouldBoundWhatHostileWorkersName() throws IOException {
        ledgers.take("one");
        WorkerMessage.Share share = new WorkerMessage.Share("n", "h", 1, 0, Long.MAX_VALUE, false);
        ledgers.keep("one", share);
        ledgers.keep("one", share);
        assertEquals(2L << 40, ledgers.usedBytes("one"));
        ledgers.keep("one",
            new WorkerMessage.Share("n", "h", 1, LedgerLayout.MAX_COLUMNS - 1, 5, false)); // without a GPU
        ledgers.keep("two", share); // without a session
        ledgers.release("one", share);
        ledgers.release("one", share);
        assertEquals(0, ledgers.usedBytes("one"));
    }

    @Test
    void shouldShowAChangedQuotaToWorkersThatRun() throws IOException {
        LedgerAccount worker = account(ledgers.take("one"));
        assertEquals(600, worker.ledger().totalBytes(0));
        amounts.put("one a", Amount.bestEffort(1000, 300));
        ledgers.refresh();
        assertEquals(1000, worker.ledger().totalBytes(0));
        assertTrue(worker.claim(0, 700));
        assertFalse(worker.claim(0, 1));
    }

    @Test
    void shouldAddAColumnForAGpuThatComesLater() throws IOException {
        LedgerSlot before = ledgers.take("one");
        devices.addFirst(device("b", 2000));
        amounts.put("one b", Amount.quota(2500, 2000));
        LedgerSlot after = ledgers.take("one");
        assertEquals(List.of("a"), before.gpus());
        assertEquals(List.of("a", "b"), after.gpus(), "the columns must keep their places");
        assertEquals(List.of(7L, 7L), after.contextBytes());
        LedgerAccount worker = account(after);
        assertEquals(2000, worker.ledger().totalBytes(1), "the quota must not exceed the GPU's memory");
        assertTrue(worker.claim(1, 2000));
        assertEquals(2000, ledgers.usedBytes("one", "b"));
        assertEquals(0, ledgers.usedBytes("one", "a"));
    }

    @Test
    void shouldGiveNothingOfAGpuThatTheVgpuDoesNotHave() throws IOException {
        LedgerAccount worker = account(ledgers.take("two"));
        assertEquals(0, worker.ledger().totalBytes(0));
        assertFalse(worker.claim(0, 1));
    }

    @Test
    void shouldFreeALockOfAWorkerThatIsGoneAtOnceAndOneThatStandsStillLater() throws IOException {
        LedgerSlot dead = ledgers.take("one");
        LedgerSlot live = ledgers.take("one");
        MemorySegment memory = map(live);
        long token = 5L << 16 | dead.number() + 1;
        memory.set(ValueLayout.JAVA_LONG, LOCK_OFFSET, token);
        ledgers.release(dead);
        assertEquals(0, memory.get(ValueLayout.JAVA_LONG, LOCK_OFFSET));
        memory.set(ValueLayout.JAVA_LONG, LOCK_OFFSET, 0x1234_5678_9abcL); // a hostile worker's, of no slot
        ledgers.sweep();
        assertEquals(0x1234_5678_9abcL, memory.get(ValueLayout.JAVA_LONG, LOCK_OFFSET),
            "the first sweep must keep a lock that may be in use");
        ledgers.sweep();
        assertEquals(0, memory.get(ValueLayout.JAVA_LONG, LOCK_OFFSET));
    }

    @Test
    void shouldTakeBackWhatAHostileWorkerHasWrittenOver() throws IOException {
        LedgerSlot hostile = ledgers.take("one");
        MemorySegment memory = map(hostile);
        for (long at = 0; at < memory.byteSize(); at += Long.BYTES) {
            memory.set(ValueLayout.JAVA_LONG, at, Long.MAX_VALUE);
        }
        assertEquals(LedgerSlot.MAX_BYTES, ledgers.usedBytes("one"), "the broker must bound a hostile worker's figure");
        assertEquals(LedgerSlot.MAX_BYTES, hostile.heldBytes());
        ledgers.release(hostile);
        ledgers.sweep();
        ledgers.sweep();
        LedgerSlot next = ledgers.take("one");
        assertEquals(0, next.heldBytes());
        LedgerAccount honest = account(next);
        assertEquals(600, honest.ledger().totalBytes(0));
        assertFalse(honest.claim(0, 601));
    }

    @Test
    void shouldStartFromZeroWhenASlotIsUsedAgain() throws IOException {
        LedgerSlot first = ledgers.take("one");
        LedgerAccount left = account(first);
        ledgers.release(first);
        assertTrue(left.claim(0, 300)); // a process that has outlived its worker
        LedgerSlot second = ledgers.take("one");
        assertEquals(first.number(), second.number());
        assertEquals(0, second.heldBytes());
    }

    @Test
    void shouldRefuseMoreWorkersThanSlots() throws IOException {
        Ledgers small = new Ledgers(0, () -> devices, (vgpu, device) -> Amount.NONE, gpu -> 0);
        List<LedgerSlot> taken = new ArrayList<>();
        for (int i = 0; i < 64; i++) {
            taken.add(small.take("one"));
        }
        assertTrue(assertThrows(IOException.class, () -> small.take("one")).getMessage().contains("max=64"));
        small.release(taken.get(7));
        assertEquals(taken.get(7).number(), small.take("one").number());
        small.close();
    }

    @Test
    void shouldKeepTheLedgerOfADeletedVgpuForItsOtherWorkers() throws IOException {
        LedgerSlot first = ledgers.take("one");
        LedgerSlot second = ledgers.take("one");
        assertTrue(account(second).claim(0, 10));
        ledgers.forget("one");
        ledgers.release(first);
        assertEquals(10, ledgers.usedBytes("one"), "the second worker's bytes must count until its end");
        ledgers.release(second);
        assertEquals(0, ledgers.usedBytes("one"));
    }

    @Test
    void shouldCloseTheLedgerOfADeletedVgpuWithItsLastWorker() throws IOException {
        LedgerSlot slot = ledgers.take("one");
        assertTrue(account(slot).claim(0, 10));
        ledgers.forget("one");
        assertEquals(10, ledgers.usedBytes("one"), "the worker's bytes must count until its end");
        ledgers.release(slot);
        assertEquals(0, ledgers.usedBytes("one"));
        assertEquals(0, ledgers.usedBytes("one", "a"));
        LedgerSlot again = ledgers.take("one"); // a new vGPU of the same name
        assertEquals(0, again.heldBytes());
    }
}
