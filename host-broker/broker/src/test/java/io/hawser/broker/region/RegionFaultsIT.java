package io.hawser.broker.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.Broker;
import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.StartException;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.region.RegionHeader;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Faults of regions. Each test has its own broker with fake workers, each a process of its own. */
class RegionFaultsIT {
    private static final Path FILE = TestRegions.file("faults");
    private static final Path OTHER = TestRegions.file("faults-other");
    private static final Map<String, String> SMALL = Map.of("size", "16M", "slots", "4");
    @TempDir
    Path stateDir;

    @AfterEach
    void tidy() throws IOException {
        Files.deleteIfExists(FILE);
        Files.deleteIfExists(OTHER);
    }

    private TestBroker start(String mode, Map<String, String> settings) {
        TestBroker broker = TestBroker.start(stateDir, mode, settings);
        if (!mode.equals("silent")) {
            TestBroker.await("a worker", () -> broker.broker().pools().state().ready() > 0);
        }
        return broker;
    }

    private static TestRegionGuest claim(Path file, int slot) throws IOException {
        TestRegionGuest guest = new TestRegionGuest(file, slot);
        assertTrue(guest.lock());
        guest.claim();
        return guest;
    }

    private static RegionView view(TestBroker broker, String name) {
        return broker.broker().regions().find(name).orElseThrow();
    }

    /** Makes a region's file, which the broker must not remove since the test has made it. */
    private static void make(Path file, long bytes) throws IOException {
        int descriptor = Descriptors.create(file);
        Descriptors.resize(descriptor, bytes);
        Descriptors.close(descriptor);
    }

    private static void cut(Path file, long bytes) throws IOException {
        int descriptor = Descriptors.open(file);
        Descriptors.resize(descriptor, bytes);
        Descriptors.close(descriptor);
    }

    @Test
    void shouldFreeTheSlotOfAGuestThatLeavesBeforeItHasAWorker() throws Exception {
        try (TestBroker broker = start("silent", TestRegions.settings("r", FILE, SMALL, Map.of()))) {
            for (int state : new int[] {RegionLayout.GUEST_LEFT, RegionLayout.GUEST_ABANDONED}) {
                try (TestRegionGuest guest = claim(FILE, 1)) {
                    guest.awaitHostState(RegionLayout.HOST_STARTING);
                    assertEquals(1, broker.broker().sessions().list().size());
                    guest.say(state);
                    guest.awaitHostState(RegionLayout.HOST_FREE);
                    TestBroker.await("the end of the session", () -> broker.broker().sessions().list().isEmpty());
                }
            }
            try (TestRegionGuest guest = claim(FILE, 1)) {
                guest.awaitHostState(RegionLayout.HOST_STARTING);
                guest.unlock();
                guest.awaitHostState(RegionLayout.HOST_FREE);
                TestBroker.await("the end of the session", () -> broker.broker().sessions().list().isEmpty());
            }
        }
    }

    @Test
    void shouldShowAWorkerAsAssignedBeforeItsGuestIsServed() throws Exception {
        try (TestBroker broker = TestBroker.start(stateDir, "normal", TestRegions.settings("r", FILE, SMALL,
            Map.of("hawser.worker.pool-size", "0")))) {
            TestBroker.await("the report of the GPU", () -> !broker.broker().pools().state().devices().isEmpty());
            CompletableFuture<PoolState> seen = new CompletableFuture<>();
            broker.whenSessionStarts(() -> seen.complete(broker.broker().pools().state()));
            try (TestRegionGuest guest = claim(FILE, 0)) {
                PoolState pool = TestBroker.done(seen);
                assertEquals(1, pool.assigned());
                assertEquals(0, pool.starting());
                guest.awaitHostState(RegionLayout.HOST_SERVING);
            }
        }
    }

    @Test
    void shouldSayWhyNoWorkerCanBeHad() throws Exception {
        try (TestBroker broker = TestBroker.start(stateDir, "crash", TestRegions.settings("r", FILE, SMALL,
            Map.of("hawser.worker.min-back-off", "60s")))) {
            TestBroker.await("a failure", () -> broker.broker().pools().state().failures() >= 1);
            try (TestRegionGuest guest = claim(FILE, 1)) {
                guest.awaitHostState(RegionLayout.HOST_REFUSED);
                assertEquals(Refusal.CAPACITY.code(), guest.refusalCode());
                assertTrue(guest.reason().contains("no worker can be started"), guest.reason());
            }
        }
    }

    @Test
    void shouldRefuseAGuestThatThreeWorkersCannotReceive() throws Exception {
        Map<String, String> settings = new HashMap<>(TestRegions.settings("r", FILE, SMALL, Map.of()));
        settings.put("hawser.sessions.end-timeout", "200ms");
        try (TestBroker broker = start("unreachable", settings); TestRegionGuest guest = claim(FILE, 2)) {
            guest.awaitHostState(RegionLayout.HOST_REFUSED);
            assertEquals(Refusal.INTERNAL.code(), guest.refusalCode());
            assertEquals("no worker took the session: tried=3", guest.reason());
            TestBroker.await("the end of the session", () -> broker.broker().sessions().list().isEmpty());
        }
    }

    @Test
    void shouldEndTheSessionOfAWorkerThatDoesNotSeeItsGuestLeave() throws Exception {
        try (TestBroker broker = start("deaf", TestRegions.settings("r", FILE, SMALL, Map.of()));
            TestRegionGuest guest = claim(FILE, 0)) {
            guest.awaitHostState(RegionLayout.HOST_SERVING);
            guest.say(RegionLayout.GUEST_LEFT);
            guest.awaitHostState(RegionLayout.HOST_FREE);
            TestBroker.await("the end of the session", () -> broker.broker().sessions().list().isEmpty());
        }
    }

    @Test
    void shouldEndTheRegionWhoseFileIsCutAndNothingElse() throws Exception {
        Map<String, String> settings = new HashMap<>(TestRegions.settings("r", FILE, SMALL, Map.of()));
        settings.putAll(TestRegions.settings("other", OTHER, SMALL, Map.of("hawser.worker.pool-size", "2")));
        try (TestBroker broker = start("normal", settings)) {
            try (TestRegionGuest guest = claim(FILE, 0); TestRegionGuest beside = claim(OTHER, 0)) {
                guest.awaitHostState(RegionLayout.HOST_SERVING);
                beside.awaitHostState(RegionLayout.HOST_SERVING);
                cut(FILE, RegionLayout.PAGE_BYTES);
                TestBroker.await("the end of the region", () -> view(broker, "r").state() == RegionView.State.FAILED);
                assertTrue(view(broker, "r").problem().contains("its file was truncated"), view(broker, "r").problem());
                TestBroker.await("the end of its session", () -> broker.broker().sessions().list().size() == 1);
                assertEquals(RegionLayout.HOST_SERVING, beside.hostState());
                long beat = beside.hostBeat();
                TestBroker.await("the other region's beat", () -> beside.hostBeat() > beat + 1);
                try (TestGuest tcp = new TestGuest(broker.broker())) {
                    tcp.handshake("default", TestGuest.secret(stateDir));
                    assertEquals(RecordLayout.CONTROL_WELCOME, tcp.receive().opcode());
                }
            }
            broker.broker().regions().remove("r", "test").get(60, TimeUnit.SECONDS);
            assertTrue(broker.broker().regions().find("r").isEmpty());
            broker.broker().regions().create(RegionSettings.ofRest("r", Optional.of(FILE), 16 << 20, "default", 4,
                Duration.ofSeconds(30), Optional.empty(), Optional.empty())).get(60, TimeUnit.SECONDS);
            try (TestRegionGuest guest = claim(FILE, 0)) {
                guest.awaitHostState(RegionLayout.HOST_SERVING);
            }
        }
    }

    @Test
    void shouldEndTheRegionWhoseFileIsCutToNothingWhileNobodyUsesIt() throws Exception {
        try (TestBroker broker = start("normal", TestRegions.settings("r", FILE, SMALL, Map.of()))) {
            cut(FILE, 0);
            TestBroker.await("the end of the region", () -> view(broker, "r").state() == RegionView.State.FAILED);
            assertTrue(broker.answers());
        }
    }

    @Test
    void shouldLiveWithAGuestThatWritesAnythingAnywhere() throws Exception {
        Map<String, String> settings = new HashMap<>(TestRegions.settings("r", FILE, SMALL, Map.of()));
        settings.putAll(TestRegions.settings("other", OTHER, SMALL, Map.of("hawser.worker.pool-size", "2",
            "hawser.vgpus.default.max-sessions", "3", "hawser.sessions.end-timeout", "500ms")));
        try (TestBroker broker = start("normal", settings); TestRegionGuest beside = claim(OTHER, 0)) {
            beside.awaitHostState(RegionLayout.HOST_SERVING);
            long session = beside.sessionId();
            AtomicBoolean stop = new AtomicBoolean();
            Thread[] hostile = new Thread[2];
            try (TestRegionGuest guest = new TestRegionGuest(FILE, 0)) {
                for (int i = 0; i < hostile.length; i++) {
                    int seed = i;
                    hostile[i] = Thread.ofPlatform().start(() -> scribble(guest, new SplittableRandom(seed), stop));
                }
                long sessionsBefore = broker.broker().sessions().startedCount();
                TestBroker.await("sessions and refusals among the random bytes",
                    () -> broker.broker().sessions().startedCount()
                        > sessionsBefore + 2 && broker.refusals(Refusal.VERSION) > 10);
                stop.set(true);
                for (Thread thread : hostile) {
                    thread.join();
                }
                assertTrue(broker.answers());
                assertEquals(RegionView.State.SERVING, view(broker, "r").state());
                for (int slot = 0; slot < 4; slot++) {
                    try (TestRegionGuest each = new TestRegionGuest(FILE, slot, guest.header())) {
                        each.say(RegionLayout.GUEST_LEFT);
                        TestBroker.await("a free slot", () -> each.isClear());
                    }
                }
                TestBroker.await("the end of the region's sessions",
                    () -> broker.broker().sessions().list().size() == 1);
            }
            assertEquals(RegionLayout.HOST_SERVING, beside.hostState(), "the other region must not notice the attack");
            assertEquals(session, beside.sessionId());
        }
    }

    /** Writes random bytes over whole pages, and from time to time an honest claim. */
    private static void scribble(TestRegionGuest guest, SplittableRandom random, AtomicBoolean stop) {
        byte[] rubbish = new byte[RegionLayout.PAGE_BYTES];
        MemorySegment region = guest.region();
        while (!stop.get()) {
            random.nextBytes(rubbish);
            int slot = random.nextInt(4);
            long page = guest.header().geometry().slot(slot) + random.nextInt(3) * (long) RegionLayout.PAGE_BYTES;
            MemorySegment.copy(rubbish, 0, region, ValueLayout.JAVA_BYTE, page, rubbish.length);
            region.set(ValueLayout.JAVA_INT, guest.header().geometry().guestPage(slot), random.nextInt(-1, 5));
            if (random.nextInt(4) == 0) {
                guest.fill(slot);
                region.set(ValueLayout.JAVA_INT, guest.header().geometry().guestPage(slot),
                    RegionLayout.GUEST_CLAIMED);
            }
            Thread.yield();
        }
    }

    @Test
    void shouldFormatTheRegionAnewWhenTheBrokerStartsAgain() throws Exception {
        make(FILE, 16 << 20);
        Map<String, String> settings = TestRegions.settings("r", FILE, Map.of("slots", "4"), Map.of());
        long epoch;
        long table;
        TestRegionGuest guest;
        try (TestBroker broker = start("normal", settings)) {
            guest = claim(FILE, 2);
            epoch = guest.header().epoch();
            table = guest.header().geometry().heapTableOffset();
            guest.region().set(ValueLayout.JAVA_BYTE, table, (byte) 3);
            guest.awaitHostState(RegionLayout.HOST_SERVING);
        }
        assertEquals(RegionLayout.HOST_ENDED, guest.hostState());
        assertEquals("the test is over", guest.reason());
        assertNull(RegionHeader.read(guest.region()), "the header must be gone");
        assertTrue(Files.exists(FILE), "the broker must keep a file that it has not made");
        try (TestBroker broker = start("normal", settings)) {
            assertEquals(RegionLayout.HOST_FREE, guest.hostState());
            assertNotEquals(epoch, RegionHeader.read(guest.region()).epoch());
            assertEquals(3, guest.region().get(ValueLayout.JAVA_BYTE, table), "the guest must keep its pinned memory");
            // The broker refuses a claim by the old header and writes the reason.
            guest.claim();
            guest.awaitHostState(RegionLayout.HOST_REFUSED);
            assertEquals(Refusal.PROTOCOL.code(), guest.refusalCode());
            guest.say(RegionLayout.GUEST_LEFT);
            guest.awaitHostState(RegionLayout.HOST_FREE);
            guest.close();
            try (TestRegionGuest again = claim(FILE, 2)) {
                again.awaitHostState(RegionLayout.HOST_SERVING);
            }
        }
    }

    @Test
    void shouldEndSessionsAndRefuseClaimsOfARegionThatIsRemoved() throws Exception {
        try (TestBroker broker = start("normal", TestRegions.settings("r", FILE, SMALL, Map.of()));
            TestRegionGuest guest = claim(FILE, 0)) {
            guest.awaitHostState(RegionLayout.HOST_SERVING);
            broker.broker().regions().remove("r", "the administrator has removed the region")
                .get(60, TimeUnit.SECONDS);
            assertEquals(RegionLayout.HOST_ENDED, guest.hostState());
            assertEquals("the administrator has removed the region", guest.reason());
            assertFalse(Files.exists(FILE));
            assertTrue(broker.broker().sessions().list().isEmpty());
        }
    }

    @Test
    void shouldNotStartWithARegionThatCannotBeServed() throws Exception {
        assertStartFails("a region must be a multiple", Map.of("size", "4097", "slots", "1"), "a region of 1 slots");
        assertStartFails("no size", Map.of(), "must have a size");
        assertStartFails("too many slots", Map.of("size", "64M", "slots", "65"), "1..64 slots: slots=65");
        assertStartFails("no such vGPU", Map.of("size", "64M", "vgpu", "none"), "vgpu=none");
        assertStartFails("both", Map.of("size", "64M", "doorbell-socket", "/tmp/x"), "either a path or a doorbell");
        assertStartFails("short timeout", Map.of("size", "64M", "guest-timeout", "1s"), "at least 2000 ms");
        assertFalse(Files.exists(FILE));
        make(FILE, 1 << 20);
        assertStartFails("a short file", Map.of("size", "64M"), "fileBytes=1048576");
        assertTrue(Files.exists(FILE));
        Files.delete(FILE);
        try (TestBroker broker = start("silent", TestRegions.settings("r", FILE, SMALL, Map.of()))) {
            assertStartFails("two brokers", SMALL, "another broker already serves it");
            assertEquals(RegionView.State.SERVING, view(broker, "r").state());
        }
    }

    private void assertStartFails(String what, Map<String, String> region, String reason) {
        StartException failure = assertThrows(StartException.class, () -> Broker.start(TestBroker.config(
            stateDir.resolve("failing"), "silent", TestRegions.settings("r", FILE, region, Map.of())), System.getenv(),
            TestBroker.NO_LISTENER, 0), what);
        assertTrue(failure.getMessage().contains(reason), failure.getMessage());
    }
}
