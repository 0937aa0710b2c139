package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Uses the images of {@code images/make-images}, which nvcc makes from a kernel with three managed variables. */
class ManagedNamesTest {
    @ParameterizedTest
    @ValueSource(strings = {"none", "default", "speed", "size"})
    void shouldFindManagedVariablesHoweverTheCodeIsPacked(String mode) throws IOException {
        assertEquals(3, names(bytes("managed-" + mode)).size());
        assertTrue(names(bytes("managed-" + mode)).containsAll(Set.of("counter", "sums")));
        assertEquals(Set.of(), names(bytes("variables-" + mode)));
    }

    @Test
    void shouldFindManagedVariablesOfPtxOnly() {
        assertEquals(Set.of("a"), ptx(".visible .global .attribute(.managed) .align 4 .u32 a = 7;"));
        assertEquals(Set.of("a"), ptx(".global .align 4 .attribute(.managed) .b8 a[20] = {0, 1};"));
        assertEquals(Set.of("a", "b_$1"), ptx(".global .attribute(.managed) .u32 a, b_$1[3][4];"));
        assertEquals(Set.of("m"), ptx(".global .attribute(.unified(1, 2), .managed) .f64 m;\n.global .u32 n;"));
        assertEquals(Set.of("c"), ptx(".global .u32 a;\n.global .attribute(.managed) .v4 .f32 c;\n.global .u32 d;"));
        assertEquals(Set.of(), ptx(".extern .global .attribute(.managed) .align 4 .u32 other;"));
        assertEquals(Set.of(), ptx(".global .attribute(.unified(1, 2)) .u32 u;"));
        assertEquals(Set.of(), ptx(".entry k(.param .u64 .ptr .global .align 4 p) { ld.global.u32 %r, [a]; }"));
    }

    @Test
    void shouldReadImagesOfAnyContent() throws IOException {
        Random random = new Random(5);
        byte[] image = bytes("managed-none");
        for (int i = 0; i < 3000; i++) {
            byte[] broken = Arrays.copyOf(image, random.nextInt(image.length + 1));
            for (int change = random.nextInt(20); change > 0 && broken.length > 4; change--) {
                broken[4 + random.nextInt(broken.length - 4)] = (byte) random.nextInt();
            }
            assertTrue(names(broken).size() <= ManagedNames.MAX_NAMES);
        }
    }

    private static Set<String> ptx(String text) {
        return names(text.getBytes(StandardCharsets.US_ASCII));
    }

    private static Set<String> names(byte[] image) {
        ManagedNames names = new ManagedNames();
        CodeParts.visit(MemorySegment.ofArray(image), names);
        return names.names();
    }

    private static byte[] bytes(String name) throws IOException {
        try (InputStream in = ManagedNamesTest.class.getResourceAsStream("/images/" + name + ".fatbin")) {
            return in.readAllBytes();
        }
    }
}
