package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertFalse;
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

/** Uses the images of {@code images/make-images}, which nvcc makes from a kernel that prints and one that does not. */
class PrintSearchTest {
    @ParameterizedTest
    @ValueSource(strings = {"none", "default", "speed", "size"})
    void shouldFindPrintfHoweverTheCodeIsPacked(String mode) throws IOException {
        assertTrue(PrintSearch.mayPrint(image("prints-" + mode)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "default", "speed", "size"})
    void shouldReturnFalseForCodeThatDoesNotPrint(String mode) throws IOException {
        assertFalse(PrintSearch.mayPrint(image("silent-" + mode)));
    }

    @Test
    void shouldSearchEachOfSeveralFatBinaries() throws IOException {
        byte[] silent = bytes("silent-size");
        assertTrue(PrintSearch.mayPrint(MemorySegment.ofArray(joined(silent, bytes("prints-size")))));
        assertFalse(PrintSearch.mayPrint(MemorySegment.ofArray(joined(silent, silent))));
    }

    private static byte[] joined(byte[] first, byte[] second) {
        int at = first.length + 7 & -8;
        byte[] both = Arrays.copyOf(first, at + second.length);
        System.arraycopy(second, 0, both, at, second.length);
        return both;
    }

    @Test
    void shouldReadPtx() {
        assertTrue(PrintSearch.mayPrint(ptx(".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);")));
        assertFalse(PrintSearch.mayPrint(ptx(".visible .entry k() { ret; }")));
    }

    @Test
    void shouldNeverThrowForMutatedImage() throws IOException {
        byte[] whole = bytes("silent-size");
        for (int length = 0; length < whole.length; length++) {
            PrintSearch.mayPrint(MemorySegment.ofArray(Arrays.copyOf(whole, length)));
            byte[] changed = whole.clone();
            changed[length] ^= (byte) 0xff;
            PrintSearch.mayPrint(MemorySegment.ofArray(changed));
        }
    }

    @Test
    void shouldCountEntryTooLongToUnpackAsPrinting() throws IOException {
        byte[] image = bytes("silent-size");
        MemorySegment memory = MemorySegment.ofArray(image);
        // The first entry follows the header of 16 bytes; its unpacked length is at offset 56.
        memory.set(ValueLayout.JAVA_LONG_UNALIGNED, 16 + 56, PrintSearch.MAX_BYTES + 1);
        assertTrue(PrintSearch.mayPrint(memory));
    }

    private static MemorySegment ptx(String text) {
        return MemorySegment.ofArray((".version 8.0\n" + text + "\0").getBytes(StandardCharsets.US_ASCII));
    }

    private static MemorySegment image(String name) throws IOException {
        return MemorySegment.ofArray(bytes(name));
    }

    private static byte[] bytes(String name) throws IOException {
        try (InputStream in = PrintSearchTest.class.getResourceAsStream("/images/" + name + ".fatbin")) {
            return in.readAllBytes();
        }
    }
}
