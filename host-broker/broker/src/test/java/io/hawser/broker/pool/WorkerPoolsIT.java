package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.StartException;
import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.session.SessionView;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A broker of a machine with two GPUs; the workers are fakes, each a real process. */
class WorkerPoolsIT {
    private static final String FIRST = FakeWorker.GPUS[0];
    private static final String SECOND = FakeWorker.GPUS[1];

    @TempDir
    Path stateDir;

    private TestBroker start(Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(settings);
        all.put("hawser.listen.handshake-timeout", "60s"); // starting a worker in between takes as long as it takes
        return TestBroker.start(stateDir, "gpus", all);
    }

    /** A guest of a vGPU, by a token that has the first one's secret. */
    private TestGuest guest(TestBroker broker, String vgpu) throws IOException {
        Path tokens = stateDir.resolve("tokens");
        if (!vgpu.equals("default")) {
            String[] first = Files.readString(tokens).lines().filter(line -> line.startsWith("default:")).findFirst()
                .orElseThrow().split(":");
            Files.writeString(tokens, vgpu + ":" + first[1] + ":" + vgpu + "\n", StandardOpenOption.APPEND);
        }
        TestGuest guest = new TestGuest(broker.broker());
        guest.handshake(vgpu, TestGuest.secret(stateDir));
        return guest;
    }

    private static List<List<String>> gpus(TestBroker broker) {
        return broker.broker().sessions().list().stream().map(SessionView::gpus).toList();
    }

    @Test
    void shouldSpreadSessionsOverTheGpus() throws Exception {
        try (TestBroker broker = start(Map.of("hawser.vgpus.default.memory-bytes", "600"));
            TestGuest first = guest(broker, "default")) {
            first.receive(); // the worker that showed the GPUs sees both, and is not this session's
            try (TestGuest second = guest(broker, "default"); TestGuest third = guest(broker, "default")) {
                second.receive();
                third.receive();
                assertEquals(List.of(List.of(FIRST), List.of(SECOND), List.of(FIRST)), gpus(broker),
                    "the quota of each GPU is the vGPU's, not the session's");
            }
        }
    }

    @Test
    void shouldKeepWorkersForEachSet() throws Exception {
        try (TestBroker broker = start(Map.of("hawser.vgpus.both.gpus", "all", "hawser.vgpus.turned.gpus", "1,0",
                "hawser.vgpus.one.gpus", "GPU-bbbb"))) {
            // all GPUs, in the other order, the first and the second alone
            TestBroker.await("the pools to be full", () -> broker.broker().pool().ready() == 4);
            assertEquals(4, broker.broker().pool().size());
            try (TestGuest both = guest(broker, "both"); TestGuest turned = guest(broker, "turned");
                TestGuest one = guest(broker, "one")) {
                both.receive();
                turned.receive();
                one.receive();
                assertEquals(List.of(List.of(FIRST, SECOND), List.of(SECOND, FIRST), List.of(SECOND)), gpus(broker));
            }
        }
    }

    @Test
    void shouldRefuseAGpuThatDoesNotExist() throws Exception {
        try (TestBroker broker = start(Map.of("hawser.vgpus.gone.gpus", "2"));
            TestGuest guest = guest(broker, "gone")) {
            String reason = guest.receive().refusedMessage();
            assertTrue(reason.contains("must be one that exists, named once: gpu=2"), reason);
            TestBroker.await("no session to be left", () -> broker.broker().sessions().list().isEmpty());
            try (TestGuest other = guest(broker, "default")) {
                other.receive();
                assertEquals(1, gpus(broker).size());
            }
        }
    }

    @Test
    void shouldNotStartWithASettingThatIsNoChoice() {
        StartException wrong = assertThrows(StartException.class, () -> start(Map.of("hawser.vgpus.bad.gpus", "two")));
        assertTrue(wrong.getMessage().contains("hawser.vgpus.bad.gpus: GPUs must be any, all"), wrong.getMessage());
    }
}
