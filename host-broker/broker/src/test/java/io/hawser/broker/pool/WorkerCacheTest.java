package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WorkerCacheTest {
    private static final List<String> COMMAND = List.of("java", "-cp", "jars/*", "Main");

    @TempDir
    private Path jars;
    @TempDir
    private Path javaHome;

    @BeforeEach
    void makeRuntime() throws IOException {
        Files.writeString(javaHome.resolve("release"), "JAVA_VERSION=\"25\"\nMODULES=\"java.base\"\n");
    }

    private void makeCache(String release) throws IOException {
        Files.writeString(jars.resolve("worker.aot"), "cache");
        Files.writeString(jars.resolve("worker.aot.release"), release);
    }

    @Test
    void shouldUseTheCacheUntilAWorkerFails() throws IOException {
        assertEquals(COMMAND, new WorkerCache(jars, javaHome).use(COMMAND));
        makeCache(Files.readString(javaHome.resolve("release")));
        WorkerCache cache = new WorkerCache(jars, javaHome);
        assertEquals(List.of("java", "-XX:AOTCache=" + jars.resolve("worker.aot"), "-cp", "jars/*", "Main"),
            cache.use(COMMAND));
        cache.disable();
        assertEquals(COMMAND, cache.use(COMMAND));
    }

    @Test
    void shouldLeaveOutTheCacheOfAnotherJava() throws IOException {
        makeCache("JAVA_VERSION=\"25.0.1\"\nMODULES=\"java.base\"\n");
        assertEquals(COMMAND, new WorkerCache(jars, javaHome).use(COMMAND));
        Files.delete(jars.resolve("worker.aot.release"));
        assertEquals(COMMAND, new WorkerCache(jars, javaHome).use(COMMAND));
    }
}
