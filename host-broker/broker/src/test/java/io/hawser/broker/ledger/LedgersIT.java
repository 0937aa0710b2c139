package io.hawser.broker.ledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.SessionView;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Fake workers, each a process that holds 400 bytes of device memory where the quota has room. */
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
            assertEquals(800, broker.broker().ledgers().usedBytes("default"), "the third worker must find no room");
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

    private static String named(String type, int name, String more) {
        return String.format("{\"type\":\"%s\",\"name\":\"%032x\"%s}", type, name, more);
    }

    /** Has the guest's worker send a message, and returns the broker's answer. */
    private static String ask(TestGuest guest, String message) throws IOException {
        guest.send(message.getBytes(StandardCharsets.US_ASCII));
        StringBuilder answer = new StringBuilder();
        for (char next = (char) guest.bytes(1)[0]; next != '\n'; next = (char) guest.bytes(1)[0]) {
            answer.append(next);
        }
        return answer.toString();
    }

    @Test
    void shouldCountMemoryOfASessionThatHasEndedWhileAnotherHasIt() throws Exception {
        String memory =
            ",\"handle\":\"" + "ab".repeat(64) + "\",\"bytes\":200,\"column\":0,\"chargedBytes\":250,\"passed\":false";
        Map<String, String> settings = Map.of("hawser.vgpus.default.memory-bytes", "2000");
        try (TestBroker broker = TestBroker.start(stateDir, "normal", settings);
            TestGuest importer = new TestGuest(broker.broker())) {
            Ledgers ledgers = broker.broker().ledgers();
            importer.handshake("default", TestGuest.secret(stateDir));
            importer.receive();
            try (TestGuest owner = new TestGuest(broker.broker())) {
                owner.handshake("default", TestGuest.secret(stateDir));
                owner.receive();
                for (int name = 1; name <= 3; name++) {
                    assertTrue(ask(owner, named("share", name, memory)).contains("\"kept\":true"));
                    if (name < 3) {
                        assertTrue(ask(importer, named("find", name, "")).contains("\"found\""));
                    }
                }
                assertEquals(800, ledgers.usedBytes("default"),
                    "the owner must pay for the shared memory out of its 400 bytes");
                assertEquals(named("unshared", 1, ""), ask(owner, named("unshare", 1, "")));
                assertEquals(1050, ledgers.usedBytes("default"));
                owner.send("die".getBytes(StandardCharsets.US_ASCII));
                TestBroker.await("the end of the owner's session", () -> broker.broker().sessions().list().size() == 1);
            }
            assertEquals(900, ledgers.usedBytes("default"), "the importer must pay for the two open memories");
            importer.send(named("release", 1, "").getBytes(StandardCharsets.US_ASCII));
            TestBroker.await("the release of one memory", () -> ledgers.usedBytes("default") == 650);
            importer.send("die".getBytes(StandardCharsets.US_ASCII));
            TestBroker.await("the end of the importer's session", () -> broker.broker().sessions().list().isEmpty());
            assertTrue(ledgers.isClear());
        }
    }

    @Test
    void shouldPassOnDescriptorsAndEndAWorkerThatPassesNone() throws Exception {
        String memory = ",\"handle\":\"00\",\"bytes\":200,\"column\":0,\"chargedBytes\":250,\"passed\":true";
        Map<String, String> settings = Map.of("hawser.vgpus.default.memory-bytes", "2000");
        try (TestBroker broker = TestBroker.start(stateDir, "normal", settings);
            TestGuest importer = new TestGuest(broker.broker()); TestGuest owner = new TestGuest(broker.broker())) {
            for (TestGuest guest : List.of(importer, owner)) {
                guest.handshake("default", TestGuest.secret(stateDir));
                guest.receive();
            }
            assertTrue(ask(owner, "pass " + named("share", 1, memory)).contains("\"kept\":true"));
            assertFalse(ask(owner, "pass " + named("share", 1, memory)).contains("\"kept\":true"), "the same name");
            assertTrue(ask(importer, named("find", 1, "")).endsWith("+"), "the importer must get a descriptor");
            assertTrue(ask(importer, named("find", 2, "")).contains("notfound"));
            owner.send(named("share", 3, memory).getBytes(StandardCharsets.US_ASCII));
            TestBroker.await("the end of the worker that passes nothing",
                () -> broker.broker().sessions().list().size() == 1);
            assertEquals(650, broker.broker().ledgers().usedBytes("default"), "the importer must pay for the memory");
            importer.send("die".getBytes(StandardCharsets.US_ASCII));
            TestBroker.await("the end of the importer's session", () -> broker.broker().sessions().list().isEmpty());
            assertTrue(broker.broker().ledgers().isClear());
        }
    }
}
