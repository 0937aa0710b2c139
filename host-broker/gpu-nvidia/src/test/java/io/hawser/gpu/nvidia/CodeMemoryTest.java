package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Uses the images of {@code images/make-images}, which nvcc makes from a kernel with 3 MiB of variables. */
class CodeMemoryTest {
    private static final long VARIABLES = 3L << 20;

    @ParameterizedTest
    @ValueSource(strings = {"none", "default", "speed", "size"})
    void shouldFindVariablesHoweverTheCodeIsPacked(String mode) throws IOException {
        long bytes = CodeMemory.bytes(MemorySegment.ofArray(bytes("variables-" + mode)));
        assertTrue(bytes >= VARIABLES && bytes < VARIABLES + 8192, "with some code: " + bytes);
    }

    @Test
    void shouldAddUpSeveralFatBinaries() throws IOException {
        byte[] one = bytes("variables-size");
        int at = one.length + 7 & -8;
        byte[] both = Arrays.copyOf(one, at + one.length);
        System.arraycopy(one, 0, both, at, one.length);
        assertEquals(2 * CodeMemory.bytes(MemorySegment.ofArray(one)), CodeMemory.bytes(MemorySegment.ofArray(both)));
    }

    @Test
    void shouldCountVariablesOfPtxOnly() {
        assertEquals(400, ptx(".visible .global .align 4 .b8 a[400];"));
        assertEquals(4 * 3 * 5, ptx(".global .u32 a[3][5];"));
        assertEquals(16 + 8 + 1, ptx(".global .align 16 .v4 .f32 v; .global .f64 d;\n.weak .global .pred p;") - 7);
        assertEquals(4 * 1_000_001L, ptx(".global .f32 a, b [ 1000000 ];"));
        assertEquals(8, ptx(".global .align 4 .u32 i[2] = {1, 2};"));
        assertEquals(8, ptx(".global .texref t;"));
        assertEquals(0, ptx(".extern .global .align 4 .b8 other[400];"));
        assertEquals(0, ptx(".visible .entry k(.param .u64 .ptr .global .align 4 p) { ld.global.u32 %r1, [%rd1]; }"));
        assertEquals(0, ptx(".shared .align 4 .b8 s[400]; .const .b8 c[400];"));
    }

    @Test
    void shouldCountWithoutOverflow() {
        assertEquals(Long.MAX_VALUE, ptx(".global .b64 a[9999999999999999999999];"));
        assertEquals(Long.MAX_VALUE, ptx(".global .b64 a[4611686018427387904][4];"));
        assertEquals(Long.MAX_VALUE, ptx(".global .b8 a[9000000000000000000], b[9000000000000000000];"));
    }

    @Test
    void shouldUseStatedLengthOfEntryTooLongToUnpack() throws IOException {
        byte[] image = bytes("variables-size");
        // The first entry follows the header of 16 bytes; its unpacked length is at offset 56.
        MemorySegment.ofArray(image).set(ValueLayout.JAVA_LONG_UNALIGNED, 16 + 56, 1L << 40);
        assertEquals(1L << 40, CodeMemory.bytes(MemorySegment.ofArray(image)));
    }

    @Test
    void shouldNeverThrowNorBeNegativeForMutatedImage() throws IOException {
        for (String mode : new String[] {"none", "size"}) {
            byte[] whole = bytes("variables-" + mode);
            for (int length = 0; length < whole.length; length++) {
                assertTrue(CodeMemory.bytes(MemorySegment.ofArray(Arrays.copyOf(whole, length))) >= 0);
                byte[] changed = whole.clone();
                changed[length] ^= (byte) 0xff;
                assertTrue(CodeMemory.bytes(MemorySegment.ofArray(changed)) >= 0);
            }
        }
    }

    @Test
    void shouldRoundAllocationsAsTheDriverDoes() {
        assertEquals(512, MemoryCosts.ofAllocation(1));
        assertEquals(1_000_448, MemoryCosts.ofAllocation(1_000_000));
        assertEquals(1 << 20, MemoryCosts.ofAllocation(1 << 20));
        assertEquals(2 << 20, MemoryCosts.ofAllocation((1 << 20) + 1));
        assertEquals(4 << 20, MemoryCosts.ofAllocation((2 << 20) + 1));
        assertEquals(Long.MAX_VALUE, MemoryCosts.ofAllocation(Long.MAX_VALUE - 1));
        assertEquals(31_744L * 270_336, MemoryCosts.stacks(31_744, 270_336));
        assertEquals(Long.MAX_VALUE, MemoryCosts.stacks(Long.MAX_VALUE / 2, 270_336));
    }

    private static long ptx(String text) {
        return CodeMemory.bytes(MemorySegment.ofArray((".version 8.0\n" + text + "\n\0")
            .getBytes(StandardCharsets.US_ASCII)));
    }

    private static byte[] bytes(String name) throws IOException {
        try (InputStream in = CodeMemoryTest.class.getResourceAsStream("/images/" + name + ".fatbin")) {
            return in.readAllBytes();
        }
    }
}
