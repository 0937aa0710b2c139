package io.hawser.broker.jail;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.broker.posix.ChildProcess;
import io.hawser.broker.posix.ExitStatus;
import io.hawser.broker.posix.IsolatedSpawner;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The namespaces in which the spawner starts children. */
@Timeout(300)
class IsolatedSpawnerIT {
    private static final Path NETWORK = Path.of("ns/net");

    @Test
    void shouldStartChildrenInAnEmptyNetworkAndStayInItsOwn() throws Exception {
        Path own = Files.readSymbolicLink(Path.of("/proc/self").resolve(NETWORK));
        try (IsolatedSpawner spawner = spawner()) {
            int[] log = Posix.socketPair();
            int[] control = Posix.socketPair();
            CompletableFuture<ExitStatus> exited = new CompletableFuture<>();
            ChildProcess child = ChildProcess.start(spawner, List.of("sleep", "600"), List.of("PATH=/usr/bin:/bin"),
                log[1], control[1], exited::complete);
            Path folder = Path.of("/proc/" + child.pid());
            assertNotEquals(own, Files.readSymbolicLink(folder.resolve(NETWORK)));
            List<String> interfaces = Files.readAllLines(folder.resolve("net/dev"));
            assertEquals(3, interfaces.size(), interfaces::toString); // two lines of headings, and lo
            assertTrue(interfaces.getLast().strip().startsWith("lo:"), interfaces::toString);
            assertEquals(own, Files.readSymbolicLink(Path.of("/proc/self").resolve(NETWORK)));
            assertEquals(own, Files.readSymbolicLink(Path.of("/proc/thread-self").resolve(NETWORK)));
            child.kill(Posix.SIGKILL);
            assertEquals(Posix.SIGKILL, exited.get(60, TimeUnit.SECONDS).signal());
            for (int descriptor : new int[] {log[0], log[1], control[0], control[1]}) {
                Posix.close(descriptor);
            }
        }
    }

    private static IsolatedSpawner spawner() throws IOException {
        IsolatedSpawner spawner = null;
        try {
            spawner = new IsolatedSpawner();
        } catch (PosixException e) {
            assumeTrue(false, "SKIPPED: a network of its own needs root: " + e.getMessage());
        }
        return spawner;
    }
}
