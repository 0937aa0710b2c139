package io.hawser.shm.os;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

class PrivateMemoryTest {
    private static final long BYTES = 16 * PrivateMemory.HUGE_PAGE_BYTES;

    @Test
    void shouldMapZerosAtAHugePage() throws IOException {
        MemorySegment memory = PrivateMemory.map(BYTES);
        assertEquals(BYTES, memory.byteSize());
        assertEquals(0, memory.address() % PrivateMemory.HUGE_PAGE_BYTES);
        assertEquals(-1, memory.mismatch(MemorySegment.ofArray(new byte[(int) BYTES])));
        memory.set(ValueLayout.JAVA_BYTE, BYTES - 1, (byte) 7);
        assertEquals(7, memory.get(ValueLayout.JAVA_BYTE, BYTES - 1));
    }

    @Test
    void shouldHaveAllocatedAllPages() throws IOException {
        MemorySegment memory = PrivateMemory.map(BYTES);
        assertTrue(residentBytes(memory) >= BYTES, () -> "resident=" + residentBytes(memory));
    }

    /** The resident bytes of the mapping that contains this memory; the kernel may have merged it with others. */
    private static long residentBytes(MemorySegment memory) {
        List<String> lines;
        try {
            lines = Files.readAllLines(Path.of("/proc/self/smaps"));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        boolean isHere = false;
        for (String line : lines) {
            if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
                String[] range = line.substring(0, line.indexOf(' ')).split("-");
                isHere = Long.parseLong(range[0], 16) <= memory.address()
                    && memory.address() < Long.parseLong(range[1], 16);
            } else if (isHere && line.startsWith("Rss:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
            }
        }
        return 0;
    }

    @Test
    void shouldRefusePartsOfHugePages() {
        for (long bytes : new long[] {-1, 0, 4096, PrivateMemory.HUGE_PAGE_BYTES + 1}) {
            assertThrows(IllegalArgumentException.class, () -> PrivateMemory.map(bytes));
        }
    }

    @Test
    void shouldReportMemoryBeyondTheAddressSpace() {
        assertThrows(IOException.class, () -> PrivateMemory.map(1L << 48));
    }
}
