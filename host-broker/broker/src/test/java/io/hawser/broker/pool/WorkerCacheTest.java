package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WorkerCacheTest {
    private static final List<String> COMMAND = List.of("java", "-cp", "jars/*", "Main");

    @TempDir
    private Path folder;

    private WorkerCache cache(List<String> command) throws IOException {
        return new WorkerCache(folder, command, List.of("PATH=/bin"), folder);
    }

    @Test
    void shouldBeUsedOnceItIsThereAndNeverAgainAfterAFailure() throws IOException {
        Files.writeString(folder.resolve("a.jar"), "jar");
        assertEquals(COMMAND, cache(COMMAND).use());
        Files.writeString(cache(COMMAND).file(), "cache");
        WorkerCache made = cache(COMMAND);
        assertEquals(List.of("java", "-XX:AOTCache=" + made.file(), "-cp", "jars/*", "Main"), made.use());
        made.distrust();
        assertEquals(COMMAND, made.use());
        assertFalse(Files.exists(made.file()));
    }

    @Test
    void shouldBeAnotherForOtherJarsOrFlags() throws IOException {
        Files.writeString(folder.resolve("a.jar"), "jar");
        Path first = cache(COMMAND).file();
        assertNotEquals(first, cache(List.of("java", "-Xss1m", "-cp", "jars/*", "Main")).file());
        Files.writeString(folder.resolve("a.jar"), "longer");
        assertNotEquals(first, cache(COMMAND).file());
    }

    @Test
    void shouldComeToNothingWhereTheCommandFails() throws IOException, InterruptedException {
        Files.writeString(folder.resolve("a.jar"), "jar");
        WorkerCache failing = cache(List.of("/bin/false"));
        failing.make();
        TestEnd.await(failing);
        assertEquals(List.of("/bin/false"), failing.use());
    }

    /** Waits for the thread that makes a cache. */
    private static final class TestEnd {
        static void await(WorkerCache cache) throws InterruptedException {
            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                if (thread.getName().equals("hawser-worker-cache")) {
                    thread.join();
                }
            }
            assertFalse(Files.exists(cache.file()));
        }
    }
}
