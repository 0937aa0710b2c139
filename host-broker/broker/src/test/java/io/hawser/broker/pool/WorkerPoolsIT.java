package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.StartException;
import io.hawser.broker.vgpu.VgpuDraft;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A broker of a machine with two GPUs. The workers are fakes, each a process of its own. */
class WorkerPoolsIT {
    private static final String FIRST = FakeWorker.GPUS[0];
    private static final String SECOND = FakeWorker.GPUS[1];

    private static final String PIPES = "CUDA_MPS_PIPE_DIRECTORY";
    private static final String PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";

    @TempDir
    Path stateDir;

    private final Set<Long> others = children(); // children of earlier tests in this JVM, not workers

    private TestBroker start(Map<String, String> settings) {
        return TestBroker.start(stateDir, "gpus", settings);
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
            first.receive(); // the worker that reported the GPUs sees both and must not serve this session
            try (TestGuest second = guest(broker, "b"); TestGuest more = guest(broker, "a");
                TestGuest third = guest(broker, "c")) {
                second.receive();
                more.receive();
                List<String> one = broker.broker().vgpus().find("a").orElseThrow().placedGpus();
                List<String> two = broker.broker().vgpus().find("b").orElseThrow().placedGpus();
                assertNotEquals(one, two);
                String reason = third.receive().refusedMessage();
                assertEquals(List.of(one, two, one), gpus(broker), "the refused guest must have no GPU");
                assertTrue(reason.contains("the vGPU has no GPU: vgpu=c: no GPU has a place") && reason.contains(
                    "wantedBytes=600 freeBytes=400 totalBytes=1000 reservedBytes=600"), reason);
            }
        }
    }

    @Test
    void shouldKeepWorkersForEachSet() throws Exception {
        try (TestBroker broker = start(Map.of("hawser.vgpus.both.gpus", "all", "hawser.vgpus.turned.gpus", "1,0",
            "hawser.vgpus.one.gpus", "GPU-bbbb"))) {
            // pools: both GPUs, both in the other order, the second GPU, and the first GPU for the default vGPU
            TestBroker.await("a ready worker in each pool", () -> broker.broker().pools().state().ready() == 4);
            assertEquals(4, broker.broker().pools().state().size());
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
            TestBroker.await("the end of the session", () -> broker.broker().sessions().list().isEmpty());
            try (TestGuest other = guest(broker, "default")) {
                other.receive();
                assertEquals(1, gpus(broker).size());
            }
        }
    }

    private TestBroker startUnderMps(String mode, Path pipes) {
        // Three shares on one GPU. The broker must treat the backend of these workers as possibly NVIDIA's.
        return TestBroker.start(stateDir, mode, Map.of("hawser.vgpus.default.gpus", "0",
            "hawser.vgpus.quarter.gpus", "0", "hawser.vgpus.quarter.compute-share", "25", "hawser.vgpus.half.gpus", "0",
            "hawser.vgpus.half.compute-share", "50"), Map.of(PIPES, pipes.toString()));
    }

    /** The variables of MPS in the environment of the worker of a vGPU's newest session. */
    private static Map<String, String> told(TestBroker broker, String vgpu) throws IOException {
        SessionView session = broker.broker().sessions().list().stream().filter(s -> s.guest().vgpu().equals(vgpu))
            .reduce((first, last) -> last).orElseThrow();
        Map<String, String> told = new TreeMap<>();
        String environment = Files.readString(Path.of("/proc/" + session.workerPid() + "/environ"));
        for (String variable : environment.split("\0")) {
            if (variable.startsWith("CUDA_MPS")) {
                told.put(variable.replaceAll("=.*", ""), variable.replaceAll("^[^=]*=", ""));
            }
        }
        return told;
    }

    @ParameterizedTest
    @ValueSource(strings = {"gpus", "normal"}) // with two GPUs, and with one
    void shouldGiveEachVgpuItsPercentageUnderMps(String mode, @TempDir Path pipes) throws Exception {
        Files.createFile(pipes.resolve("control"));
        try (TestBroker broker = startUnderMps(mode, pipes)) {
            assertEquals("mps", broker.broker().turnMode().label());
            TestBroker.await("a worker of each percentage", () -> broker.broker().pools().state().ready() == 3);
            assertEquals(3, broker.broker().pools().state().size());
            try (TestGuest quarter = guest(broker, "quarter"); TestGuest half = guest(broker, "half");
                TestGuest all = guest(broker, "default")) {
                quarter.receive();
                half.receive();
                all.receive();
                String folder = pipes.toString();
                assertEquals(Map.of(PIPES, folder, PERCENTAGE, "25"), told(broker, "quarter"));
                assertEquals(Map.of(PIPES, folder, PERCENTAGE, "50"), told(broker, "half"));
                assertEquals(Map.of(PIPES, folder), told(broker, "default"), "the daemon's percentage must apply");
            }
        }
    }

    @Test
    void shouldGiveAChangedShareToNewSessionsUnderMps(@TempDir Path pipes) throws Exception {
        Files.createFile(pipes.resolve("control"));
        try (TestBroker broker = startUnderMps("normal", pipes)) {
            TestBroker.await("a worker of each percentage", () -> broker.broker().pools().state().ready() == 3);
            TestBroker.done(broker.broker().vgpuService().create("mine", share(30)));
            TestBroker.await("a worker of the new percentage", () -> broker.broker().pools().state().ready() == 4);
            try (TestGuest before = guest(broker, "mine")) {
                before.receive();
                assertEquals("30", told(broker, "mine").get(PERCENTAGE));
                TestBroker.done(broker.broker().vgpuService().change("mine", share(70)));
                assertEquals("30", told(broker, "mine").get(PERCENTAGE),
                    "the running session must keep its percentage");
                try (TestGuest after = guest(broker, "mine")) {
                    after.receive();
                    assertEquals("70", told(broker, "mine").get(PERCENTAGE));
                }
            }
        }
    }

    private static VgpuDraft share(int share) {
        return new VgpuDraft(null, null, null, share, null, "0", null, null);
    }

    @Test
    void shouldStartAWorkerForAPercentageThatFewHave(@TempDir Path pipes) throws Exception {
        Files.createFile(pipes.resolve("control"));
        try (TestBroker broker = startUnderMps("normal", pipes)) {
            TestBroker.await("a worker of each percentage", () -> broker.broker().pools().state().ready() == 3);
            for (int share : new int[] {10, 11}) {
                TestBroker.done(broker.broker().vgpuService().create("one" + share, share(share)));
            }
            TestBroker.await("a worker of each of four percentages",
                () -> broker.broker().pools().state().ready() == 4);
            try (TestGuest last = guest(broker, "one11")) {
                last.receive();
                assertEquals("11", told(broker, "one11").get(PERCENTAGE));
                PoolState pool = broker.broker().pools().state();
                assertEquals(4, pool.size());
                assertEquals(4, pool.ready() + pool.starting(), "the pool must not start another worker");
            }
        }
    }

    /** Process ids of the workers without a session. */
    private Set<Long> idle(TestBroker broker) {
        Set<Long> pids = children();
        pids.removeAll(others);
        broker.broker().sessions().list().forEach(session -> pids.remove(session.workerPid()));
        return pids;
    }

    private static Set<Long> children() {
        return ProcessHandle.current().children().map(ProcessHandle::pid).collect(Collectors.toSet());
    }

    private static List<Long> running(TestBroker broker) {
        return broker.broker().sessions().list().stream().map(SessionView::id).toList();
    }

    @Test
    void shouldBeginAnewOnTheGpuAfterAFaultUnderMps(@TempDir Path pipes) throws Exception {
        Files.createFile(pipes.resolve("control"));
        try (TestBroker broker = startUnderMps("gpus", pipes); TestGuest faulty = guest(broker, "quarter");
            TestGuest beside = guest(broker, "half")) {
            faulty.receive();
            beside.receive();
            TestBroker.await("the ready workers", () -> broker.broker().pools().state().ready() == 3);
            Set<Long> before = idle(broker);
            TestBroker.done(broker.broker().vgpuService().create("elsewhere", new VgpuDraft(null, null, null, 25, null,
                "1", null, null)));
            try (TestGuest elsewhere = guest(broker, "elsewhere")) {
                elsewhere.receive();
                faulty.send("fault".getBytes(StandardCharsets.US_ASCII));
                TestBroker.await("the end of all sessions on the GPU", () -> running(broker).equals(List.of(3L)));
                assertTrue(beside.closed());
                TestBroker.await("new ready workers", () -> broker.broker().pools().state().ready() == 4
                    && Collections.disjoint(before, idle(broker)));
                try (TestGuest next = guest(broker, "half")) {
                    next.receive();
                    assertEquals("50", told(broker, "half").get(PERCENTAGE));
                }
            }
        }
    }

    @Test
    void shouldLeaveOthersAloneAfterAFaultWithoutMps(@TempDir Path pipes) throws Exception {
        try (TestBroker broker = startUnderMps("normal", pipes); TestGuest faulty = guest(broker, "quarter");
            TestGuest beside = guest(broker, "half")) {
            faulty.receive();
            beside.receive();
            TestBroker.await("a ready worker", () -> broker.broker().pools().state().ready() == 1);
            Set<Long> before = idle(broker);
            faulty.send("fault".getBytes(StandardCharsets.US_ASCII));
            faulty.bytes("fault".length()); // the worker has reported the fault before it echoes these bytes
            beside.send(new byte[1]);
            beside.bytes(1);
            assertEquals(before, idle(broker));
            assertEquals(2, running(broker).size());
        }
    }

    @Test
    void shouldTellNoPercentageWhereMpsDoesNotRun(@TempDir Path pipes) throws Exception {
        try (TestBroker broker = startUnderMps("normal", pipes); TestGuest quarter = guest(broker, "quarter")) {
            assertEquals("turns", broker.broker().turnMode().label());
            quarter.receive();
            assertEquals(Map.of(PIPES, pipes.toString()), told(broker, "quarter"));
            assertEquals(1, broker.broker().pools().state().size());
        }
    }

    @Test
    void shouldKeepWorkersFromNvidiasDefaultFolder() throws Exception {
        try (TestBroker broker = start(Map.of("hawser.worker.environment", "PATH"));
            TestGuest guest = guest(broker, "default")) {
            guest.receive();
            assertEquals(Map.of(PIPES, "/run/nvidia-mps"), told(broker, "default"));
        }
    }

    @Test
    void shouldNotStartWithASettingThatIsNoChoice() {
        StartException wrong = assertThrows(StartException.class, () -> start(Map.of("hawser.vgpus.bad.gpus", "two")));
        assertTrue(wrong.getMessage().contains("hawser.vgpus.bad: GPUs must be any, all"), wrong.getMessage());
    }
}
