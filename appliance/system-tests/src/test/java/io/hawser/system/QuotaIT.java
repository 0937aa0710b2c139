package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** One quota for all sessions of a vGPU, for all kinds of allocation and all ends of sessions. */
class QuotaIT {
    private static final long MEBIBYTE = 1L << 20;
    private static final long QUOTA_MEBIBYTES = 128;
    private static final int ROUNDS = 3;

    @TempDir
    private static Path stateDir;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    @BeforeAll
    static void startBroker() throws Exception {
        broker = OWN.keep(BrokerProcess.start("quota", stateDir.resolve("broker"), BrokerProcess.withQuickWorkers(
            Map.of("hawser.vgpus.default.memory-bytes", Long.toString(QUOTA_MEBIBYTES * MEBIBYTE)))));
    }

    private static long heldBytes() throws IOException, InterruptedException {
        long sum = 0;
        for (JsonNode session : broker.sessions()) {
            sum += session.path("statistics").path("deviceBytes").asLong();
        }
        return sum;
    }

    private static JsonNode session(GuestProgram program) throws IOException, InterruptedException {
        for (JsonNode session : broker.sessions()) {
            if (session.path("guestPid").asLong() == program.pid()) {
                return session;
            }
        }
        throw new AssertionError("no session of process " + program.pid());
    }

    /** A guest that finds the whole quota free proves that the ledger is zero to the byte. */
    private static void assertNothingIsHeld(Carrier carrier) throws Exception {
        broker.awaitIdle();
        assertEquals(0, broker.vgpu("default").path("usedBytes").asLong(-1), "as REST shows the ledger");
        try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_fill_memory", "--total",
            Long.toString(QUOTA_MEBIBYTES), "--empty", "1")) {
            program.await().assertPassed().assertOver(carrier);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldShowAGpuOfTheQuotasSizeAndHoldToItInEveryWay(Carrier carrier) throws Exception {
        assertNothingIsHeld(carrier);
    }

    private static GuestProgram hold(Carrier carrier, int mebibytes) throws IOException {
        return GuestProgram.start(broker, carrier, "hold", "--idle", "1", "--memory", Integer.toString(mebibytes));
    }

    @Test
    void shouldShareTheQuotaAmongSessions() throws Exception {
        try (GuestProgram first = hold(Carrier.TCP, 50); GuestProgram second = hold(Carrier.SHM, 50)) {
            first.awaitLine("READY");
            second.awaitLine("READY");
            long held = heldBytes();
            assertTrue(held >= 100 * MEBIBYTE && held <= QUOTA_MEBIBYTES * MEBIBYTE, "held=" + held);
            assertEquals(held, broker.vgpu("default").path("usedBytes").asLong());
            assertTrue(broker.gpus().get(0).path("usedBytes").asLong() == held, broker.gpus()::toString);
            try (GuestProgram third = hold(Carrier.TCP, 50)) {
                GuestProgram.Result result = third.await();
                assertEquals(1, result.exit(), result::toString);
                assertTrue(result.out().contains("got 2 CUDA_ERROR_OUT_OF_MEMORY"), result::toString);
            }
            first.kill();
            Await.until("the first session's memory to be back",
                () -> heldBytes() < 60 * MEBIBYTE ? "" : "held=" + heldBytes());
            try (GuestProgram third = hold(Carrier.TCP, 50)) {
                third.awaitLine("READY");
            }
        }
        assertNothingIsHeld(Carrier.TCP);
    }

    @Test
    void shouldGiveBackExactlyWhatSessionsHeldHoweverTheyEnd() throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            List<GuestProgram> guests = new ArrayList<>();
            try {
                for (int i = 0; i < 5; i++) {
                    List<String> arguments = new ArrayList<>(List.of("--seed", Integer.toString(round * 10 + i)));
                    if (i == 2) {
                        arguments.addAll(List.of("--fault", "60"));
                    }
                    guests.add(GuestProgram.start(broker, Carrier.values()[(round + i) % 2], "churn",
                        arguments.toArray(String[]::new)));
                }
                for (GuestProgram guest : guests) {
                    guest.awaitLine("READY");
                }
                // At the moment of a poll each session may have freed all its memory.
                Await.until("allocated memory", () -> heldBytes() > 0 ? "" : "none");
                guests.get(0).kill();
                long worker = session(guests.get(1)).path("workerPid").asLong();
                assertTrue(ProcessHandle.of(worker).orElseThrow().destroyForcibly(), "the worker is killed");
                assertLost(guests.get(1));
                assertLost(guests.get(2)); // its own kernel ended it
                broker.end(session(guests.get(3)).path("id").asText());
                assertLost(guests.get(3));
                guests.get(4).release();
                guests.get(4).await().assertPassed();
            } finally {
                guests.forEach(GuestProgram::close);
            }
            assertNothingIsHeld(Carrier.values()[round % 2]);
        }
    }

    private static void assertLost(GuestProgram guest) throws Exception {
        GuestProgram.Result result = guest.await();
        assertEquals(3, result.exit(), result::toString);
        assertTrue(result.out().lines().anyMatch(line -> line.startsWith("ERROR ")), result::toString);
    }
}
