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
    private static final String OTHER_RELEASE = "JAVA_VERSION=\"25.0.1\"\nMODULES=\"java.base\"\n";

    @TempDir
    private Path jars;
    @TempDir
    private Path javaHome;

    @BeforeEach
    void makeRuntime() throws IOException {
        Files.writeString(javaHome.resolve("release"), "JAVA_VERSION=\"25\"\nMODULES=\"java.base\"\n");
    }

    private void makeCache(String name, String release) throws IOException {
        Files.writeString(jars.resolve(name), "cache");
        Files.writeString(jars.resolve(name + ".release"), release);
    }

    private String release() throws IOException {
        return Files.readString(javaHome.resolve("release"));
    }

    private WorkerCache cache(boolean isNvidia) throws IOException {
        return new WorkerCache(jars, javaHome, isNvidia);
    }

    private List<String> commandWith(String name) {
        return List.of("java", "-XX:AOTCache=" + jars.resolve(name), "-cp", "jars/*", "Main");
    }

    @Test
    void shouldUseTheCacheUntilAWorkerFails() throws IOException {
        assertEquals(COMMAND, cache(false).use(COMMAND));
        makeCache("worker.aot", release());
        WorkerCache cache = cache(false);
        assertEquals(commandWith("worker.aot"), cache.use(COMMAND));
        cache.disable();
        assertEquals(COMMAND, cache.use(COMMAND));
    }

    @Test
    void shouldLeaveOutTheCacheOfAnotherJava() throws IOException {
        makeCache("worker.aot", OTHER_RELEASE);
        assertEquals(COMMAND, cache(false).use(COMMAND));
        Files.delete(jars.resolve("worker.aot.release"));
        assertEquals(COMMAND, cache(false).use(COMMAND));
    }

    @Test
    void shouldUseTheCacheForTheKindOfGpu() throws IOException {
        makeCache("worker.aot", release());
        makeCache("worker-nvidia.aot", release());
        assertEquals(commandWith("worker.aot"), cache(false).use(COMMAND));
        assertEquals(commandWith("worker-nvidia.aot"), cache(true).use(COMMAND));
    }

    @Test
    void shouldStartNvidiaWorkersFromTheOtherCacheWhereTheyLackOne() throws IOException {
        makeCache("worker.aot", release());
        assertEquals(commandWith("worker.aot"), cache(true).use(COMMAND));
        makeCache("worker-nvidia.aot", OTHER_RELEASE);
        assertEquals(commandWith("worker.aot"), cache(true).use(COMMAND));
    }

    @Test
    void shouldNotUseTheNvidiaCacheForTheSoftwareGpu() throws IOException {
        makeCache("worker-nvidia.aot", release());
        assertEquals(COMMAND, cache(false).use(COMMAND));
    }
}
