package io.hawser.broker.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.shm.os.Futex;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.wire.RecordLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Scripted guests in a region of a broker. The workers are fakes, each a process of its own. */
class RegionIT {
    private static final long SIZE = 16L << 20;
    private static final int SLOTS = 4;
    private static final Path FILE = TestRegions.file("region");
    @TempDir
    static Path stateDir;
    private static TestBroker broker;

    @BeforeAll
    static void start() {
        broker = TestBroker.start(stateDir, "normal", TestRegions.settings("r", FILE, Map.of("size", "16M", "slots",
            "4", "guest-timeout", "3s", "vgpu", "two"),
            Map.of("hawser.vgpus.two.max-sessions", "2",
                "hawser.vgpus.two.memory-bytes", "4096")));
        TestBroker.await("a worker", () -> broker.broker().pools().state().ready() > 0);
    }

    @AfterAll
    static void stop() {
        broker.close();
        assertFalse(Files.exists(FILE), "the broker must remove the file that it made");
    }

    private static TestRegionGuest guest(int slot) throws Exception {
        TestRegionGuest guest = new TestRegionGuest(FILE, slot);
        TestBroker.await("a free slot", () -> guest.hostState() == RegionLayout.HOST_FREE
            && guest.guestState() == RegionLayout.GUEST_FREE);
        return guest;
    }

    private static List<SessionView> sessions() {
        return broker.broker().sessions().list();
    }

    private static void awaitFree(TestRegionGuest guest) {
        guest.awaitHostState(RegionLayout.HOST_FREE);
        assertTrue(guest.isClear(), "the slot must be as after a format");
        TestBroker.await("the end of the session", () -> sessions().isEmpty());
    }

    private static String output(TestRegionGuest guest) throws Exception {
        MemorySegment record = guest.receive();
        assertEquals(RecordLayout.CONTROL_OUTPUT, opcode(record));
        int bytes = record.get(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.HEADER_BYTES);
        byte[] text = record.asSlice(RecordLayout.HEADER_BYTES + RecordLayout.OUTPUT_FIXED_BYTES, bytes)
            .toArray(ValueLayout.JAVA_BYTE);
        return new String(text, StandardCharsets.UTF_8);
    }

    private static int opcode(MemorySegment record) {
        return record.get(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.OPCODE_OFFSET);
    }

    @Test
    void shouldFormatTheRegionForItsGuests() throws Exception {
        try (TestRegionGuest guest = new TestRegionGuest(FILE, 0)) {
            assertEquals(RegionGeometry.of(SIZE, SLOTS), guest.header().geometry());
            assertEquals(TestBroker.DESCRIPTION_HASH, guest.header().descriptionHash());
            assertEquals("two", guest.header().vgpu());
            assertEquals(0, guest.header().doorbellVectors());
            assertTrue(guest.header().epoch() > 0);
            long before = guest.hostBeat();
            TestBroker.await("the host's beat", () -> guest.hostBeat() > before + 1);
        }
        assertEquals("rw-------", java.nio.file.attribute.PosixFilePermissions
            .toString(Files.getPosixFilePermissions(FILE)));
    }

    @Test
    void shouldGiveAClaimAWorkerAndFreeTheSlotWhenTheGuestLeaves() throws Exception {
        long worker;
        try (TestRegionGuest guest = guest(3)) {
            assertTrue(guest.lock());
            guest.claim();
            MemorySegment welcome = guest.receive();
            assertEquals(RecordLayout.CONTROL_WELCOME, opcode(welcome));
            assertEquals(RegionLayout.HOST_SERVING, guest.hostState(),
                "the state must change before the guest gets WELCOME");
            assertEquals(guest.sessionId(), welcome.get(ValueLayout.JAVA_LONG_UNALIGNED,
                RecordLayout.HEADER_BYTES + RecordLayout.WELCOME_SESSION_ID_OFFSET));
            assertEquals(RegionLayout.LIVENESS_LOCK, guest.liveness());
            String assigned = output(guest);
            for (String field : new String[] {"\"carrier\":\"shm\"", "\"regionBytes\":" + SIZE, "\"slotCount\":4",
                "\"slot\":3", "\"kind\":1", "\"mapAddress\":" + guest.region().address(),
                "\"epoch\":" + guest.header().epoch(), "\"vgpu\":\"two\"", "\"memoryBytes\":4096",
                "\"peer\":\"region r slot 3\"", "\"program\":\"vector?add\""}) {
                assertTrue(assigned.contains(field), field + " in " + assigned);
            }
            SessionView session = sessions().getFirst();
            assertEquals(SessionState.RUNNING, session.state());
            assertEquals(Carrier.SHM, session.guest().carrier());
            assertEquals("region r slot 3", session.guest().peer());
            assertEquals("guest-1", session.guest().host());
            assertEquals(4711, session.guest().pid());
            worker = session.workerPid();
            TestBroker.await("the number of slots in use", () -> broker.broker().regions().find("r").orElseThrow()
                .slotsInUse() == 1);
            guest.say(RegionLayout.GUEST_LEFT);
            awaitFree(guest);
        }
        assertFalse(ProcessHandle.of(worker).map(ProcessHandle::isAlive).orElse(false),
            "the worker must end before the slot is free");
        TestBroker.await("the number of slots in use", () -> broker.broker().regions().find("r").orElseThrow()
            .slotsInUse() == 0);
    }

    @Test
    void shouldEndTheSessionOfAGuestWhoseLockIsFree() throws Exception {
        try (TestRegionGuest guest = guest(0)) {
            assertTrue(guest.lock());
            guest.claim();
            guest.awaitHostState(RegionLayout.HOST_SERVING);
            guest.unlock();
            awaitFree(guest);
        }
    }

    @Test
    void shouldEndTheSessionOfAGuestWhoseBeatStandsStill() throws Exception {
        try (TestRegionGuest guest = guest(1)) {
            guest.claim(RegionLayout.KIND_MACHINE);
            AtomicBoolean stands = new AtomicBoolean();
            // The beat begins with the claim, because the wait for a worker can be longer than the guest's timeout.
            Thread counting = Thread.ofPlatform().start(() -> {
                for (long beat = 1; !stands.get(); beat++) {
                    guest.beat(beat);
                    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
                }
            });
            try {
                guest.awaitHostState(RegionLayout.HOST_SERVING);
                assertEquals(RegionLayout.LIVENESS_BEAT, guest.liveness());
                long aliveUntilNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(4500);
                while (System.nanoTime() < aliveUntilNs) {
                    assertEquals(RegionLayout.HOST_SERVING, guest.hostState(),
                        "the session must live while the beat counts");
                    TimeUnit.MILLISECONDS.sleep(RegionLayout.BEAT_MS);
                }
            } finally {
                stands.set(true);
                counting.join();
            }
            awaitFree(guest);
        }
    }

    @Test
    void shouldEndTheSessionOfAnAbandonedSlotAndOfAStateThatIsNone() throws Exception {
        for (int state : new int[] {RegionLayout.GUEST_ABANDONED, 77, RegionLayout.GUEST_FREE}) {
            try (TestRegionGuest guest = guest(2)) {
                assertTrue(guest.lock());
                guest.claim();
                guest.awaitHostState(RegionLayout.HOST_SERVING);
                guest.say(state);
                awaitFree(guest);
            }
        }
    }

    @Test
    void shouldClearASlotThatWasNeverClaimed() throws Exception {
        for (int state : new int[] {RegionLayout.GUEST_LEFT, RegionLayout.GUEST_ABANDONED, -1}) {
            try (TestRegionGuest guest = guest(2)) {
                guest.say(state);
                TestBroker.await("a clear slot", guest::isClear);
            }
        }
    }

    private static void assertRefused(TestRegionGuest guest, Refusal refusal, String reason) {
        guest.awaitHostState(RegionLayout.HOST_REFUSED);
        assertEquals(refusal.code(), guest.refusalCode());
        assertTrue(guest.reason().contains(reason), guest.reason());
        guest.say(RegionLayout.GUEST_LEFT);
        guest.awaitHostState(RegionLayout.HOST_FREE);
        assertTrue(guest.isClear());
    }

    @Test
    void shouldRefuseWithAReason() throws Exception {
        int before = broker.refusals(Refusal.VERSION);
        try (TestRegionGuest guest = guest(0)) {
            assertTrue(guest.lock());
            long epoch = guest.header().epoch();
            guest.claim(RegionLayout.KIND_PROCESS, epoch, TestBroker.DESCRIPTION_HASH, 2);
            assertRefused(guest, Refusal.VERSION, "guest=2 broker=1");
            guest.claim(RegionLayout.KIND_PROCESS, epoch, 1, RecordLayout.PROTOCOL_VERSION);
            assertRefused(guest, Refusal.VERSION, "guest=0000000000000001 broker=123456789abcdef0");
            guest.claim(RegionLayout.KIND_PROCESS, epoch + 1, TestBroker.DESCRIPTION_HASH,
                RecordLayout.PROTOCOL_VERSION);
            assertRefused(guest, Refusal.PROTOCOL, "formatted after the guest read its header");
            guest.claim(3);
            assertRefused(guest, Refusal.PROTOCOL, "kind=3");
        }
        assertEquals(before + 2, broker.refusals(Refusal.VERSION));
        assertTrue(sessions().isEmpty());
    }

    @Test
    void shouldAdmitAsManyAsTheVgpuAllows() throws Exception {
        try (TestRegionGuest first = guest(0); TestRegionGuest second = guest(1); TestRegionGuest third = guest(2)) {
            for (TestRegionGuest guest : new TestRegionGuest[] {first, second, third}) {
                assertTrue(guest.lock());
            }
            first.claim();
            second.claim();
            first.awaitHostState(RegionLayout.HOST_SERVING);
            second.awaitHostState(RegionLayout.HOST_SERVING);
            assertNotEquals(first.sessionId(), second.sessionId());
            third.claim();
            assertRefused(third, Refusal.CAPACITY, "the vGPU's sessions are all in use: vgpu=two max=2");
            first.say(RegionLayout.GUEST_LEFT);
            first.awaitHostState(RegionLayout.HOST_FREE);
            third.claim();
            third.awaitHostState(RegionLayout.HOST_SERVING);
            second.say(RegionLayout.GUEST_LEFT);
            third.say(RegionLayout.GUEST_LEFT);
            awaitFree(second);
            awaitFree(third);
        }
    }

    @Test
    void shouldTellTheGuestWhyItsSessionIsOverAndWakeIt() throws Exception {
        try (TestRegionGuest guest = guest(0)) {
            assertTrue(guest.lock());
            guest.claim();
            guest.awaitHostState(RegionLayout.HOST_SERVING);
            output(skipWelcome(guest));
            int signal = guest.replySignal();
            CountDownLatch woken = new CountDownLatch(1);
            Thread sleeper = Thread.ofPlatform().daemon().start(() -> {
                while (guest.hostState() == RegionLayout.HOST_SERVING) {
                    Futex.await(guest.region(), guest.signalOffset(), signal, TimeUnit.SECONDS.toNanos(60));
                }
                woken.countDown();
            });
            long id = sessions().getFirst().id();
            assertTrue(broker.broker().sessions().end(id, "the test ends it").get(60, TimeUnit.SECONDS));
            assertEquals(RegionLayout.HOST_ENDED, guest.hostState());
            assertEquals("the test ends it", guest.reason());
            assertTrue(woken.await(30, TimeUnit.SECONDS), "the broker must wake the guest before its timeout");
            sleeper.join();
            assertEquals(RegionLayout.GUEST_CLAIMED, guest.guestState(),
                "the slot must belong to the guest until it leaves");
            guest.say(RegionLayout.GUEST_LEFT);
            awaitFree(guest);
        }
    }

    private static TestRegionGuest skipWelcome(TestRegionGuest guest) throws Exception {
        guest.receive();
        return guest;
    }

    @Test
    void shouldEndTheSessionOfAWorkerThatDies() throws Exception {
        try (TestRegionGuest guest = guest(0)) {
            assertTrue(guest.lock());
            guest.claim();
            guest.awaitHostState(RegionLayout.HOST_SERVING);
            guest.send("die, now".getBytes(StandardCharsets.US_ASCII));
            guest.awaitHostState(RegionLayout.HOST_ENDED);
            assertTrue(guest.reason().startsWith("its worker has ended: exit code 9"), guest.reason());
            guest.unlock();
            awaitFree(guest);
        }
        assertEquals(0, broker.broker().pools().state().failures(),
            "the death of a worker in a session must not count as a failed start");
    }
}
