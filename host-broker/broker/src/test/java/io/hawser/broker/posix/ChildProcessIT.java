package io.hawser.broker.posix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import jnr.posix.POSIX;
import jnr.posix.POSIXFactory;
import org.junit.jupiter.api.Test;

class ChildProcessIT {
    private static final POSIX POSIX = POSIXFactory.getNativePOSIX();

    private final CompletableFuture<ExitStatus> exited = new CompletableFuture<>();

    private String run(String... command) throws Exception {
        int[] log = Posix.socketPair();
        int[] control = Posix.socketPair();
        try {
            ChildProcess.start(Spawner.PLAIN, List.of(command), List.of("PATH=/usr/bin:/bin", "GREETING=hello"),
                log[1], control[1],
                exited::complete);
        } finally {
            Posix.close(log[1]);
            Posix.close(control[1]);
        }
        exited.get(60, TimeUnit.SECONDS);
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        byte[] bytes = new byte[4096];
        int count;
        while ((count = POSIX.read(log[0], bytes, bytes.length)) > 0) {
            output.write(bytes, 0, count);
        }
        Posix.close(log[0]);
        Posix.close(control[0]);
        return output.toString(StandardCharsets.UTF_8);
    }

    @Test
    void shouldInheritOnlyItsFourDescriptors() throws Exception {
        // Java may open both with or without close-on-exec. The child must inherit neither.
        try (ServerSocket listening = new ServerSocket(0);
            FileInputStream open = new FileInputStream("/proc/self/status")) {
            assertTrue(listening.isBound() && open.available() >= 0);
            // Descriptor 4 is the folder that ls reads.
            assertEquals("0\n1\n2\n3\n4\n", run("ls", "/proc/self/fd"));
        }
    }

    @Test
    void shouldPassOnlyTheGivenEnvironment() throws Exception {
        assertEquals("PATH=/usr/bin:/bin\nGREETING=hello\n", run("env"));
    }

    @Test
    void shouldTellExitCodeAndSignal() throws Exception {
        run("sh", "-c", "exit 7");
        assertEquals(new ExitStatus(7, 0), exited.get());
        assertEquals(new ExitStatus(-1, 15), ExitStatus.of(15));
    }

    @Test
    void shouldKillWhatTheChildStarted() throws Exception {
        int[] log = Posix.socketPair();
        int[] control = Posix.socketPair();
        ChildProcess child = ChildProcess.start(Spawner.PLAIN, List.of("sh", "-c", "sleep 600 & echo $!; wait"),
            List.of("PATH=/usr/bin:/bin"), log[1], control[1], exited::complete);
        byte[] bytes = new byte[32];
        int count;
        while ((count = POSIX.read(log[0], bytes, bytes.length)) <= 0) {
            TimeUnit.MILLISECONDS.sleep(5);
        }
        long sleeper = Long.parseLong(new String(bytes, 0, count, StandardCharsets.US_ASCII).strip());
        child.kill(Posix.SIGKILL);
        assertEquals(new ExitStatus(-1, 9), exited.get(60, TimeUnit.SECONDS));
        io.hawser.broker.TestBroker.await("the end of the grandchild", () -> ended(sleeper));
        // The child is reaped and its id is free, so this call must signal no process.
        child.kill(Posix.SIGKILL);
        List.of(log[0], log[1], control[0], control[1]).forEach(Posix::close);
    }

    /** Whether the process is gone, or a zombie that no process of this container reaps. */
    private static boolean ended(long pid) {
        Path status = Path.of("/proc/" + pid + "/stat");
        try {
            return !Files.exists(status) || Files.readString(status).contains(") Z ");
        } catch (java.io.IOException e) {
            return true;
        }
    }

    @Test
    void shouldSayWhichProgramIsMissing() throws Exception {
        int[] pair = Posix.socketPair();
        PosixException failure = assertThrows(PosixException.class,
            () -> ChildProcess.start(Spawner.PLAIN, List.of("/no/such/program"), List.of(), pair[0], pair[1],
                exited::complete));
        assertTrue(failure.getMessage().contains("/no/such/program: No such file"), failure.getMessage());
        Posix.close(pair[0]);
        Posix.close(pair[1]);
    }
}
