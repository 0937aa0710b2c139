package io.hawser.gpu.software.exec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GlobalMemoryTest {
    private static final long ARENA_BYTES = 1 << 20;
    private static final long WHOLE = 1L << 48;
    // More address space than any machine has: the system refuses it, as it does where it limits address space.
    private static final long REFUSED = 1L << 62;

    @ParameterizedTest
    @ValueSource(longs = {WHOLE, REFUSED})
    void shouldCheckTheArenaWhicheverShadowItHas(long span) {
        try (GlobalMemory memory = GlobalMemory.reserve(ARENA_BYTES, span)) {
            assertEquals(span == WHOLE, memory.canMapHost());
            Globals g = Globals.of(memory);
            long at = memory.base() + 1024;
            memory.markAllocated(at, 9 * 512);
            assertTrue(memory.isAllocated(at, 9 * 512));
            assertFalse(memory.isAllocated(at, 9 * 512 + 1));
            assertFalse(memory.isAllocated(at - 1, 2));
            assertFalse(memory.isAllocated(at, -1));
            assertFalse(memory.isAllocated(at, Long.MAX_VALUE));
            memory.markFree(at + 8 * 512, 512);
            assertFalse(memory.isAllocated(at, 9 * 512));
            memory.markFree(at + 3 * 512, 512);
            assertFalse(memory.isAllocated(at, 8 * 512));
            memory.markAllocated(at + 3 * 512, 512);
            assertTrue(memory.isAllocated(at, 8 * 512));
            Mem.st32(g, at, 5);
            assertEquals(5, Mem.ld32(g, at));
            long[] outside = {0, 511, at - 4, at + 8 * 512, memory.base() - 4, memory.base() + ARENA_BYTES,
                (1L << 47) - 4, WHOLE - 4, WHOLE, REFUSED, Long.MAX_VALUE - 3, Long.MIN_VALUE, -4};
            for (long address : outside) {
                assertThrows(DeviceFault.class, () -> Mem.ld32(g, address), () -> Long.toHexString(address));
            }
        }
    }

    @Test
    void shouldNotMapHostMemoryWithoutAShadowOfIt() {
        try (Arena arena = Arena.ofConfined(); GlobalMemory memory = GlobalMemory.reserve(ARENA_BYTES, REFUSED)) {
            assertThrows(IllegalArgumentException.class, () -> memory.attachHost(arena.allocate(4096, 4096)));
        }
    }

    @Test
    void shouldGiveOnlyTheArenaAndTheRegion() {
        try (Arena arena = Arena.ofConfined(); GlobalMemory memory = GlobalMemory.reserve(ARENA_BYTES)) {
            var region = arena.allocate(16384, 4096);
            memory.attachHost(region);
            assertEquals(region.address() + 4096, memory.slice(region.address() + 4096, 12288).address());
            assertThrows(IndexOutOfBoundsException.class, () -> memory.slice(region.address() + 4096, 12289));
            assertThrows(IndexOutOfBoundsException.class, () -> memory.slice(region.address() - 1, 1));
            assertThrows(IllegalArgumentException.class, () -> memory.markHostMapped(region.address(), 16896));
            assertThrows(IllegalArgumentException.class, () -> memory.markHostMapped(region.address() + 256, 512));
            memory.markHostMapped(region.address(), 16384);
            assertTrue(memory.isAllocated(region.address(), 16384));
            assertFalse(memory.isAllocated(region.address(), 16385));
            memory.markHostUnmapped(region.address() + 512, 512);
            assertFalse(memory.isAllocated(region.address(), 16384));
        }
    }

    /** Resident memory of this process. */
    private static long residentBytes() throws IOException {
        return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]) * 4096;
    }

    @Test
    void shouldZeroWithoutTakingMemory() throws IOException {
        long bytes = 1L << 30;
        try (GlobalMemory memory = GlobalMemory.reserve(bytes)) {
            long before = residentBytes();
            memory.zero(memory.base(), bytes);
            long taken = residentBytes() - before;
            assertTrue(taken < bytes / 2, "bytes=" + taken);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4096, 4097, 1 << 20, (1 << 20) + 1, (3 << 20) - 600})
    void shouldZeroARangeAndNothingBesideIt(int bytes) {
        try (GlobalMemory memory = GlobalMemory.reserve(4 << 20)) {
            for (long offset : new long[] {0, 1, 512, 4095, 4096}) {
                var all = memory.slice(memory.base(), memory.size());
                all.fill((byte) 7);
                memory.zero(memory.base() + offset, bytes);
                for (long at = 0; at < memory.size(); at++) {
                    int expected = at >= offset && at < offset + bytes ? 0 : 7;
                    if (all.get(ValueLayout.JAVA_BYTE, at) != expected) {
                        fail("offset=" + offset + " at=" + at);
                    }
                }
            }
            assertThrows(IndexOutOfBoundsException.class, () -> memory.zero(memory.base() - 1, bytes));
            assertThrows(IndexOutOfBoundsException.class, () -> memory.zero(memory.base() + 1, memory.size()));
        }
    }
}
