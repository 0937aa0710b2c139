package io.hawser.broker.ledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.SessionView;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Workers as processes, fake ones, that hold 400 bytes each where there is room. */
class LedgersIT {
    @TempDir
    private Path stateDir;

    private static long held(TestBroker broker) {
        return broker.broker().sessions().list().stream().mapToLong(s -> s.statistics().deviceBytes()).sum();
    }

    @Test
    void shouldShowWhatWorkersHoldAndNothingOnceTheyAreKilled() throws Exception {
        Map<String, String> settings = Map.of("hawser.vgpus.default.memory-bytes", "1000");
        try (TestBroker broker = TestBroker.start(stateDir, "normal", settings);
            TestGuest first = new TestGuest(broker.broker()); TestGuest second = new TestGuest(broker.broker());
            TestGuest third = new TestGuest(broker.broker())) {
            for (TestGuest guest : List.of(first, second, third)) {
                guest.handshake("default", TestGuest.secret(stateDir));
                guest.receive();
            }
            List<SessionView> sessions = broker.broker().sessions().list();
            assertEquals(3, sessions.size());
            assertEquals(800, broker.broker().ledgers().usedBytes("default"), "the third has found no room");
            assertEquals(800, broker.broker().ledgers().usedBytes("default", "u-1"));
            assertEquals(800, held(broker));
            assertEquals(800, broker.broker().sessions().totals().deviceBytes());
            for (SessionView session : sessions) {
                assertTrue(ProcessHandle.of(session.workerPid()).orElseThrow().destroyForcibly());
            }
            TestBroker.await("the end of the sessions", () -> broker.broker().sessions().list().isEmpty());
            assertEquals(0, broker.broker().ledgers().usedBytes("default"));
            assertEquals(0, broker.broker().sessions().totals().deviceBytes());
            assertTrue(broker.broker().ledgers().isClear());
        }
    }
}
