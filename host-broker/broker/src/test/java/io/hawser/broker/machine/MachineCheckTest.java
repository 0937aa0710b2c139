package io.hawser.broker.machine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.machine.Finding.Level;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MachineCheckTest {
    private static final String VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release\n";

    @TempDir
    private Path root;

    @BeforeEach
    void makeMachine() throws IOException {
        Files.createDirectories(root.resolve("dev/shm"));
        write("proc/meminfo", "MemTotal:       16384000 kB\n");
        write("proc/self/limits", "Max open files            1024                 524288               files\n"
            + "Max locked memory         8388608              8388608              bytes\n");
    }

    private void write(String file, String text) throws IOException {
        Path path = root.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
    }

    private void driver(String version) throws IOException {
        write("proc/driver/nvidia/version", VERSION.formatted(version));
        write("dev/nvidiactl", "");
        write("dev/nvidia-uvm", "");
    }

    private Finding find(String glibc, String backend, String part) {
        List<Finding> all =
            MachineCheck.of(root, glibc, backend).stream().filter(f -> f.text().contains(part)).toList();
        assertEquals(1, all.size(), all::toString);
        return all.getFirst();
    }

    @Test
    void shouldFindNothingMissingOnAMachineThatHasAll() throws IOException {
        driver("580.159.03");
        List<Finding> all = MachineCheck.of(root, "2.39", "auto");
        assertTrue(all.stream().noneMatch(f -> f.level() == Level.MISSING), all::toString);
        assertEquals("GPU: NVIDIA driver 580.159.03", find("2.39", "auto", "GPU").text());
        assertEquals("open files: at most 524288", find("2.39", "auto", "open files").text());
    }

    @Test
    void shouldMissTheCLibraryWhereItIsOldOrAnother() {
        assertEquals(Level.MISSING, find("2.31", "auto", "glibc").level());
        assertEquals(Level.MISSING, find("", "auto", "glibc").level());
        assertEquals(Level.FOUND, find("2.34", "auto", "glibc").level());
    }

    @Test
    void shouldDoWithoutADriverUnlessItIsAskedFor() {
        assertEquals(Level.NOTE, find("2.39", "auto", "GPU").level());
        assertEquals(Level.MISSING, find("2.39", "nvidia", "GPU").level());
        assertEquals(Level.FOUND, find("2.39", "software", "GPU").level());
    }

    @Test
    void shouldTellOldDriversFromThoseThatAreTooOld() throws IOException {
        driver("570.86.15");
        assertEquals(Level.NOTE, find("2.39", "auto", "NVIDIA driver").level());
        driver("535.54");
        assertEquals(Level.MISSING, find("2.39", "auto", "NVIDIA driver").level());
        driver("590.10");
        assertEquals(Level.FOUND, find("2.39", "auto", "NVIDIA driver").level());
    }

    @Test
    void shouldMissADeviceFile() throws IOException {
        driver("580.1");
        Files.delete(root.resolve("dev/nvidia-uvm"));
        assertEquals(Level.MISSING, find("2.39", "auto", "nvidia-uvm").level());
    }

    @Test
    void shouldNoteLittleMemoryAndFewDescriptors() throws IOException {
        write("proc/meminfo", "MemTotal:       512000 kB\n");
        write("proc/self/limits", "Max open files            256                 256               files\n");
        assertEquals(Level.NOTE, find("2.39", "auto", "memory: 500").level());
        assertEquals(Level.NOTE, find("2.39", "auto", "open files").level());
    }
}
