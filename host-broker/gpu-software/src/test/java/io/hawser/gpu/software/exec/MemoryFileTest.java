package io.hawser.gpu.software.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class MemoryFileTest {
    private static final long BYTES = 2 << 20;

    @Test
    void shouldOpenAFileOfAnotherProcessOfTheRightLength() {
        try (MemoryFile made = MemoryFile.create(BYTES)) {
            int descriptor = made.duplicate();
            try (MemoryFile opened = MemoryFile.open(descriptor, BYTES)) {
                assertNotNull(opened);
                assertEquals(BYTES, opened.bytes());
                assertTrue(opened.isOpened());
            }
            assertNull(MemoryFile.open(descriptor, BYTES / 2));
            assertNull(MemoryFile.open(descriptor, 2 * BYTES), "a mapping beyond the file would fault");
        }
    }

    @Test
    void shouldOpenNoOtherFile() {
        for (int descriptor : new int[] {0, 1, -1, 1 << 20}) {
            assertNull(MemoryFile.open(descriptor, BYTES));
            assertNull(MemoryFile.open(descriptor, 0));
        }
    }
}
