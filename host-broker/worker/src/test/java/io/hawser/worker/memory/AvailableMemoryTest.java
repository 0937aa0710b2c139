package io.hawser.worker.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AvailableMemoryTest {
    @TempDir
    private Path folder;

    private AvailableMemory with(String content) throws IOException {
        return AvailableMemory.open(Files.writeString(folder.resolve("meminfo"), content));
    }

    @Test
    void shouldReadTheFigureAgainForEachQuestion() throws IOException {
        try (AvailableMemory memory = with("MemTotal:       16384 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n")) {
            assertEquals(2 << 20, memory.bytes());
            Files.writeString(folder.resolve("meminfo"), "MemAvailable: 1 kB\n");
            assertEquals(1024, memory.bytes());
        }
    }

    @Test
    void shouldKnowThisMachine() throws IOException {
        try (AvailableMemory memory = AvailableMemory.open()) {
            assertTrue(memory.bytes() > 1 << 20);
        }
    }

    @Test
    void shouldReportASystemWithoutTheFigure() throws IOException {
        try (AvailableMemory memory = with("MemTotal: 16384 kB\n")) {
            assertThrows(IOException.class, memory::bytes);
        }
    }
}
