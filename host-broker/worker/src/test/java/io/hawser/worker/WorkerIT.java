package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.rdma.RdmaOptions;
import io.hawser.shm.region.RegionLayout;
import io.hawser.worker.control.ControlSocket;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.MirrorPipe;
import io.hawser.worker.fixture.RegionPipe;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.fixture.TestVerbs;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import jnr.constants.platform.AddressFamily;
import jnr.constants.platform.Fcntl;
import jnr.constants.platform.Sock;
import jnr.posix.POSIX;
import jnr.posix.POSIXFactory;
import jnr.posix.SpawnFileAction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The real process, spawned as a broker spawns it: its control socket is descriptor 3 and carries the guest's socket.
 */
@Timeout(300)
class WorkerIT {
    private static final int CONTROL_FD = 3;
    private static final int FD_CLOEXEC = 1;

    private final POSIX posix = POSIXFactory.getNativePOSIX();
    private ControlSocket broker;
    private ProcessHandle process;

    private void spawn(String... options) throws IOException {
        spawn(List.of(), List.of(), options);
    }

    private void spawn(List<String> flags, List<String> variables, String... options) throws IOException {
        int[] pair = new int[2];
        assertEquals(0, posix.socketpair(AddressFamily.AF_UNIX.intValue(), Sock.SOCK_STREAM.intValue(), 0, pair));
        assertEquals(0, posix.fcntlInt(pair[0], Fcntl.F_SETFD, FD_CLOEXEC));
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        List<String> command = new ArrayList<>(List.of(java));
        command.addAll(List.of(WorkerMain.JVM_FLAGS.split(" ")));
        command.addAll(flags);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), WorkerMain.class.getName()));
        command.addAll(List.of(options));
        List<String> environment = new ArrayList<>(variables);
        environment.add("PATH=/usr/bin:/bin");
        long pid = posix.posix_spawnp(java, List.of(SpawnFileAction.dup(pair[1], CONTROL_FD)), command,
            environment);
        assertTrue(pid > 0, () -> "errno=" + posix.errno());
        if (pair[1] != CONTROL_FD) {
            posix.close(pair[1]);
        }
        broker = new ControlSocket(pair[0]);
        process = ProcessHandle.of(pid).orElseThrow();
    }

    private String message() throws IOException {
        ControlSocket.Frame frame = broker.read();
        return frame == null ? null : new String(frame.json(), StandardCharsets.UTF_8);
    }

    private String messageAfterStats() throws IOException {
        String message = message();
        while (message != null && message.contains("\"stats\"")) {
            message = message();
        }
        return message;
    }

    private int exitStatus() {
        int[] status = new int[1];
        assertEquals(process.pid(), posix.waitpid(process.pid(), status, 0));
        assertEquals(0, status[0] & 0x7f, "the worker exits by itself");
        return status[0] >> 8 & 0xff;
    }

    @AfterEach
    void end() {
        if (process != null) {
            process.destroyForcibly();
        }
        if (broker != null) {
            broker.close();
        }
    }

    @Test
    void shouldServeOneSessionAndExit() throws IOException {
        spawn("--backend", "heap");
        assertTrue(message().startsWith("{\"type\":\"ready\",\"pid\":" + process.pid() + ",\"backend\":\"heap\""));
        try (Rig.Connection connection = Rig.Connection.open()) {
            broker.write(Rig.assignment(0), connection.accepted());
            try (Guest guest = new Guest(connection.client())) {
                guest.next(); // WELCOME
                guest.createContext();
                long memory = guest.allocate(3);
                guest.write(memory, 0, new byte[] {1, 2, 3});
                assertArrayEquals(new byte[] {1, 2, 3}, guest.read(memory, 3, 0));
            }
        }
        assertEquals("{\"type\":\"ended\",\"reason\":\"the guest has closed the connection\",\"error\":false}",
            messageAfterStats());
        assertNull(message());
        assertEquals(0, exitStatus());
    }

    @Test
    void shouldServeSessionOverRegion() throws IOException {
        spawn("--backend", "heap");
        assertTrue(message().contains("ready"));
        RegionPipe region = new RegionPipe(RegionLayout.KIND_PROCESS, () -> {}, () -> !process.isAlive());
        broker.write(Rig.assignment(0, Rig.place(region)), region.descriptor());
        try (Guest guest = new Guest(region)) {
            guest.next(); // WELCOME
            guest.createContext();
            long memory = guest.allocate(8);
            long heap = region.geometry().heapOffset();
            region.memory().set(ValueLayout.JAVA_LONG, heap, 42);
            guest.send(CudaOpcodes.hwsCopyHtoDShared, Guest.CREDITED, memory, heap, 8, 0, 0);
            guest.send(CudaOpcodes.hwsCopyDtoHShared, Guest.CREDITED, memory, heap + 8, 8, 0, 0);
            assertEquals(0, guest.synchronize(0));
            assertEquals(42, region.memory().get(ValueLayout.JAVA_LONG, heap + 8));
            // The region's address is free in the other process too, so pointers have the same value there.
            assertEquals(region.memory().address() + heap, guest.call(CudaOpcodes.hwsHostMap, heap, 4096).i64(0));
        }
        assertEquals("{\"type\":\"ended\",\"reason\":\"the guest has left the region\",\"error\":false}",
            messageAfterStats());
        assertEquals(0, exitStatus());
        region.free();
    }

    @Test
    void shouldServeSessionOverRdma() throws IOException {
        assumeTrue(TestVerbs.isAvailable(), "needs the library of verbs for tests");
        spawn(List.of(TestVerbs.flag()), TestVerbs.environment(), "--backend", "heap", "--rdma",
            RdmaOptions.DEFAULT.text());
        assertTrue(message().contains("ready"));
        try (Rig.Connection connection = Rig.Connection.open()) {
            MirrorPipe mirror = new MirrorPipe(connection.client(), () -> !process.isAlive());
            broker.write(Rig.assignment(0, mirror.fields()), connection.accepted());
            try (Guest guest = new Guest(mirror)) {
                guest.next(); // WELCOME
                assertEquals("", mirror.refusal());
                guest.createContext();
                long memory = guest.allocate(3);
                guest.write(memory, 0, new byte[] {1, 2, 3});
                assertArrayEquals(new byte[] {1, 2, 3}, guest.read(memory, 3, 0));
            }
            assertEquals("{\"type\":\"carried\",\"carrier\":\"rdma\"}", messageAfterStats());
            assertTrue(messageAfterStats().contains("\"error\":false"));
            mirror.free();
        }
        assertEquals(0, exitStatus());
    }

    @Test
    void shouldExitWhenBrokerIsGone() throws IOException {
        spawn("--backend", "heap");
        assertTrue(message().contains("ready"));
        broker.close();
        assertEquals(0, exitStatus());
        broker = null;
    }

    @Test
    void shouldExitWhileKernelStillRuns() throws IOException {
        spawn("--backend", "heap");
        assertTrue(message().contains("ready"));
        try (Rig.Connection connection = Rig.Connection.open()) {
            broker.write(Rig.assignment(0), connection.accepted());
            Guest guest = new Guest(connection.client());
            guest.next(); // WELCOME
            guest.createContext();
            guest.launch(guest.function(guest.loadImage("hold"), "hold"), 0, new byte[0]);
            guest.send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, 0);
            guest.kill();
        }
        assertTrue(messageAfterStats().contains("ended"));
        assertFalse(exitStatus() > 1);
    }

    @Test
    void shouldNameMissingBackend() throws IOException {
        spawn("--backend", "none");
        assertNull(message());
        assertEquals(1, exitStatus());
    }

    @Test
    void shouldRefuseUnknownOption() throws IOException {
        spawn("--colour", "blue");
        assertNull(message());
        assertEquals(2, exitStatus());
    }
}
