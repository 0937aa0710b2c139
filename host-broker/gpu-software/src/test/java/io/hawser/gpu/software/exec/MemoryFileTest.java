package io.hawser.gpu.software.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class MemoryFileTest {
    private static final long BYTES = 2 << 20;
    private static final int LENGTH_SEALS = 7;

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

    private static int call(String name, int... arguments) {
        MemoryLayout[] types = new MemoryLayout[arguments.length];
        Arrays.fill(types, ValueLayout.JAVA_INT);
        Linker linker = Linker.nativeLinker();
        try {
            return (int) linker.downcallHandle(linker.defaultLookup().findOrThrow(name),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, types))
                .invokeWithArguments(Arrays.stream(arguments).boxed().toList());
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** A worker that a guest controls passes what it likes, and the importer must not fault there. */
    @Test
    void shouldOpenOnlyFilesWhoseLengthCannotChange() {
        for (int seals = 0; seals <= 0x1f; seals++) { // F_SEAL_SEAL, _SHRINK, _GROW, _WRITE and _FUTURE_WRITE
            int descriptor = memory(seals, BYTES);
            try (MemoryFile opened = MemoryFile.open(descriptor, BYTES)) {
                assertEquals(seals == LENGTH_SEALS, opened != null, "seals=" + seals);
            }
            assertEquals(0, call("close", descriptor));
        }
        for (long bytes : new long[] {0, 1, BYTES - 1, BYTES + 1, 2 * BYTES, 1L << 62, Long.MAX_VALUE}) {
            int descriptor = memory(LENGTH_SEALS, bytes);
            assertNull(MemoryFile.open(descriptor, BYTES), "bytes=" + bytes);
            assertEquals(0, call("close", descriptor));
        }
        for (int descriptor : new int[] {call("eventfd", 5, 0), call("socket", 1, 1, 0), call("epoll_create1", 0),
            call("inotify_init1", 0), call("timerfd_create", 1, 0)}) {
            assertTrue(descriptor >= 0);
            for (long bytes : new long[] {0, BYTES, -1, Long.MIN_VALUE}) {
                assertNull(MemoryFile.open(descriptor, bytes));
            }
            assertEquals(0, call("close", descriptor));
        }
    }

    /** Anonymous memory with these seals. */
    private static int memory(int seals, long bytes) {
        Linker linker = Linker.nativeLinker();
        try (Arena arena = Arena.ofConfined()) {
            int descriptor = (int) linker.downcallHandle(linker.defaultLookup().findOrThrow("memfd_create"),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT))
                .invoke(arena.allocateFrom("hostile"), 2); // MFD_ALLOW_SEALING
            assertEquals(0, (int) linker.downcallHandle(linker.defaultLookup().findOrThrow("ftruncate"),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG))
                .invoke(descriptor, bytes));
            assertEquals(0, call("fcntl", descriptor, 1033, seals)); // F_ADD_SEALS
            return descriptor;
        } catch (Throwable e) {
            throw new AssertionError(e);
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
