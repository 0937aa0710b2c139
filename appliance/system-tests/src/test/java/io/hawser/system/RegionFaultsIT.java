package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Faults that only a region can have: all slots in use, a guest that writes to wrong places, dying processes. */
class RegionFaultsIT {
    private static final int SLOTS = 3;
    /** Offset in the guest's page of a slot, from region.yaml. */
    private static final long COMMAND_TAIL = 512;
    /** Longer than any ring. */
    private static final long BEYOND = 1L << 40;

    @TempDir
    private static Path folder;
    private static BrokerProcess broker;

    @BeforeAll
    static void startBroker() throws IOException {
        broker = BrokerProcess.start("region-faults", folder.resolve("region-faults"), RegionFile.unused(32, SLOTS),
            BrokerProcess.AWAITED_WORKERS);
    }

    @AfterAll
    static void stopBroker() {
        if (broker != null) {
            broker.close();
        }
    }

    @AfterEach
    void nothingIsLeft() {
        broker.awaitIdle();
        // A slot becomes free after its worker has ended.
        Await.until("all slots to be free", () -> {
            for (int slot = 0; slot < SLOTS; slot++) {
                if (!broker.region().isFree(slot)) {
                    return "slot " + slot + " is not free";
                }
            }
            return "";
        });
    }

    private static GuestProgram hold(String... arguments) throws IOException {
        GuestProgram program = GuestProgram.start(broker, Carrier.SHM, "hold", arguments);
        program.awaitLine("READY");
        return program;
    }

    private static void assertWell() throws Exception {
        try (GuestProgram program = GuestProgram.start(broker, Carrier.SHM, "drv_vector_add")) {
            program.await().assertPassed().assertOver(Carrier.SHM);
        }
    }

    @Test
    void shouldRefuseWhenAllSlotsAreTakenAndReuseTheSlotOfADeadProcess() throws Exception {
        try (GuestProgram first = hold("--idle", "1"); GuestProgram second = hold("--idle", "1");
            GuestProgram third = hold("--idle", "1")) {
            try (GuestProgram fourth = GuestProgram.start(Map.of("HAWSER_CARRIER", "shm", "HAWSER_REGION",
                broker.region().path().toString(), "HAWSER_CONNECT_TIMEOUT_MS", "1000"), "drv_vector_add")) {
                GuestProgram.Result result = fourth.await();
                assertEquals(1, result.exit(), result::toString);
                assertTrue(result.out().contains("got 100 CUDA_ERROR_NO_DEVICE"), result::toString);
                assertEquals(1, result.hawserLines().size(), result::toString);
            }
            first.kill();
            assertWell();
            second.kill();
            third.kill();
            assertWell();
        }
    }

    @Test
    void shouldGiveThePinnedMemoryOfADeadProcessToOthers() throws Exception {
        // More than half of the heap, so that two processes cannot hold it at the same time.
        for (int i = 0; i < 3; i++) {
            try (GuestProgram program = hold("--idle", "1", "--pinned", "6")) {
                program.kill();
            }
            broker.awaitIdle();
        }
        try (GuestProgram program = hold("--pinned", "6")) {
            program.release();
            GuestProgram.Result result = program.await().assertPassed();
            assertEquals(List.of(), result.hawserLines(), "the guest library reported no full heap");
        }
    }

    @Test
    void shouldEndOnlyTheSessionWhosePositionIsCorrupt() throws Exception {
        try (GuestProgram other = hold(); GuestProgram corrupt = hold("--idle", "1")) {
            long page = broker.region().guestPage(broker.region().slotOf(corrupt.pid()));
            broker.region().put(page + COMMAND_TAIL,
                ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(0, BEYOND).array());
            Await.until("the end of the corrupt session", () -> {
                int sessions = broker.sessions().size();
                return sessions == 1 ? "" : sessions + " sessions";
            });
            corrupt.release();
            GuestProgram.Result lost = corrupt.await();
            assertEquals(3, lost.exit(), lost::toString);
            assertEquals(1, lost.hawserLines().size(), lost::toString);
            other.release();
            other.await().assertPassed();
        }
        assertWell();
    }

    @Test
    void shouldServeOthersWhileAGuestWritesNoiseIntoItsSlot() throws Exception {
        Random random = new Random(4711);
        try (GuestProgram other = hold(); GuestProgram overTcp = GuestProgram.start(broker, Carrier.TCP, "hold");
            GuestProgram noisy = hold("--idle", "1")) {
            overTcp.awaitLine("READY");
            RegionFile region = broker.region();
            long page = region.guestPage(region.slotOf(noisy.pid()));
            // The guest's page, the host's page, which the guest can also write, and both rings.
            byte[] noise = new byte[4096];
            for (int i = 0; i < 200; i++) {
                random.nextBytes(noise);
                region.put(page, noise);
                region.put(page + 4096, noise);
                region.put(page + 3 * 4096 + random.nextInt(256 << 10), noise);
            }
            noisy.kill();
            for (GuestProgram program : List.of(other, overTcp)) {
                program.release();
                program.await().assertPassed();
            }
        }
        broker.awaitIdle();
        assertWell();
    }
}
