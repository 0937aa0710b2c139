package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.StartException;
import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.session.SessionView;
import io.hawser.broker.token.TokenService;
import java.io.IOException;
import java.nio.file.Path;
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

    private TestGuest guest(TestBroker broker, String vgpu) throws IOException {
        TokenService.Made token = broker.token(vgpu);
        TestGuest guest = new TestGuest(broker.broker());
        guest.handshake(token.token().keyId(), token.secret());
        return guest;
    }

    private static List<List<String>> gpus(TestBroker broker) {
        return broker.broker().sessions().list().stream().map(SessionView::gpus).toList();
    }

    @Test
    void shouldServeEachVgpuOnItsOwnGpu() throws Exception {
        try (TestBroker broker = start(Map.of("hawser.vgpus.a.memory-bytes", "600", "hawser.vgpus.b.memory-bytes",
                "600", "hawser.vgpus.c.memory-bytes", "600"));
            TestGuest first = guest(broker, "a")) {
            first.receive(); // the worker that showed the GPUs sees both, and is not this session's
            try (TestGuest second = guest(broker, "b"); TestGuest more = guest(broker, "a");
                TestGuest third = guest(broker, "c")) {
                second.receive();
                more.receive();
                List<String> one = broker.broker().vgpus().find("a").orElseThrow().placedGpus();
                List<String> two = broker.broker().vgpus().find("b").orElseThrow().placedGpus();
                assertNotEquals(one, two);
                assertEquals(List.of(one, two, one), gpus(broker));
                String reason = third.receive().refusedMessage();
                assertTrue(reason.contains("the vGPU has no GPU: vgpu=c: no GPU has a place") && reason.contains(
                    "wantedBytes=600 freeBytes=400 totalBytes=1000 reservedBytes=600"), reason);
            }
        }
    }

    @Test
    void shouldKeepWorkersForEachSet() throws Exception {
        try (TestBroker broker = start(Map.of("hawser.vgpus.both.gpus", "all", "hawser.vgpus.turned.gpus", "1,0",
                "hawser.vgpus.one.gpus", "GPU-bbbb"))) {
            // all GPUs, in the other order, the second alone, and the first alone for the default
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
        assertTrue(wrong.getMessage().contains("hawser.vgpus.bad: GPUs must be any, all"), wrong.getMessage());
    }
}
