package io.hawser.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.FileLocks;
import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionHeader;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The ring between a C process, under sanitizers, and this Java process, over a file in /dev/shm. */
class RingInteropTest {
    private static final Path ROOT = Path.of(System.getProperty("hawser.root"));
    private static final Path FILE = Path.of("/dev/shm/hawser-ring-" + ProcessHandle.current().pid());
    private static final long SEED = 20261;

    @TempDir
    private static Path folder;
    private static Path program;

    private final RegionGeometry geometry = RegionGeometry.of(16 << 20, 2);
    private final List<Process> started = new ArrayList<>();
    private int fd = -1;
    private SharedMemory shared;

    @BeforeAll
    static void build() throws Exception {
        io.hawser.shm.layout.Main.main(new String[] {"--language", "c", "--out", folder.toString()});
        program = folder.resolve("hws_ring_peer");
        Path c = ROOT.resolve("shm-transport/c");
        Process gcc = new ProcessBuilder("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra",
            "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I" + folder, "-I" + c, "-o",
            program.toString(), Path.of("src/test/c/hws_ring_peer.c").toString(), c.resolve("shm/hws_ring.c")
                .toString(),
            c.resolve("shm/hws_wait.c").toString()).redirectErrorStream(true).start();
        String output = new String(gcc.getInputStream().readAllBytes());
        assertTrue(gcc.waitFor(120, TimeUnit.SECONDS) && gcc.exitValue() == 0, output);
    }

    @AfterAll
    static void deleteFile() throws IOException {
        Files.deleteIfExists(FILE);
    }

    @BeforeEach
    void format() throws IOException {
        Files.deleteIfExists(FILE);
        fd = Descriptors.create(FILE);
        Descriptors.reserve(fd, geometry.regionBytes());
        shared = SharedMemory.map(fd, geometry.regionBytes(), 0);
        new RegionHeader(1, 2, 1, 0, "test", geometry).format(shared.memory());
    }

    @AfterEach
    void unmap() {
        started.forEach(Process::destroyForcibly);
        shared.close();
        Descriptors.close(fd);
    }

    @Test
    void shouldReceiveInJavaWhatCSends() throws Exception {
        Process c = start("send", SEED, 4000, RecordStream.LARGEST_WORDS);
        try (RecordStream java = new RecordStream(shared.memory(), geometry)) {
            java.receiveAll(SEED, 4000, RecordStream.LARGEST_WORDS);
        }
        end(c);
    }

    @Test
    void shouldReceiveInCWhatJavaSends() throws Exception {
        Process c = start("receive", SEED, 4000, RecordStream.LARGEST_WORDS);
        try (RecordStream java = new RecordStream(shared.memory(), geometry)) {
            java.sendAll(SEED, 4000, RecordStream.LARGEST_WORDS);
        }
        end(c);
    }

    @Test
    void shouldPassSmallRecordsBothWays() throws Exception {
        Process receiver = start("receive", SEED, 60000, 16);
        Process sender = start("send", SEED, 60000, 16);
        try (RecordStream java = new RecordStream(shared.memory(), geometry)) {
            java.sendAll(SEED, 60000, 16);
            java.receiveAll(SEED, 60000, 16);
        }
        end(receiver);
        end(sender);
    }

    @Test
    void shouldAnswerEachRecordWhetherCSpinsOrSleeps() throws Exception {
        for (int spinNs : new int[] {0, 20_000}) {
            RegionHeader.free(shared.memory(), geometry, 0);
            Process c = start("ping", spinNs, 3000, 0);
            try (RecordStream java = new RecordStream(shared.memory(), geometry)) {
                java.echo(3000);
            }
            end(c);
        }
    }

    @Test
    void shouldSeeTheLockOfAProcessUntilItDies() throws Exception {
        Process holder = new ProcessBuilder(program.toString(), FILE.toString(), "lock", "5").redirectError(
            ProcessBuilder.Redirect.INHERIT).start();
        started.add(holder);
        BufferedReader out = holder.inputReader();
        assertEquals("locked", out.readLine());
        assertTrue(FileLocks.isLocked(fd, 5));
        assertFalse(FileLocks.isLocked(fd, 4));
        assertFalse(FileLocks.tryLock(fd, 5));
        holder.destroyForcibly();
        assertTrue(holder.waitFor(60, TimeUnit.SECONDS));
        assertFalse(FileLocks.isLocked(fd, 5));
    }

    private Process start(String mode, long first, long second, long third) throws IOException {
        Process process = new ProcessBuilder(program.toString(), FILE.toString(), mode, Long.toString(first),
            Long.toString(second), Long.toString(third)).redirectErrorStream(true).start();
        started.add(process);
        return process;
    }

    private static void end(Process process) throws Exception {
        String output = new String(process.getInputStream().readAllBytes());
        assertTrue(process.waitFor(60, TimeUnit.SECONDS), output);
        assertEquals(0, process.exitValue(), output);
    }
}
