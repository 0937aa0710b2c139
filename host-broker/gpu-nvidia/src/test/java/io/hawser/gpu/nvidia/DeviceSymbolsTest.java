package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Uses the images of {@code images/make-images}, which nvcc makes from a kernel with three managed variables. */
class DeviceSymbolsTest {
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

    @ParameterizedTest
    @ValueSource(strings = {"none", "default", "speed", "size"})
    void shouldFindAllOtherVariablesAndNoSharedMemory(String mode) throws IOException {
        DeviceSymbols managed = symbols(bytes("managed-" + mode));
        assertEquals(Set.of("plain", "constant"), managed.variables());
        DeviceSymbols symbols = symbols(bytes("symbols-" + mode));
        // The name of a variable in an unnamed namespace contains a number that nvcc makes from the file.
        assertEquals(Set.of("hidden", "counted", "table", "_Z6memberILi9EE", "_ZZ3useE5local"), symbols.variables()
            .stream().filter(name -> !name.contains("_GLOBAL__N_")).collect(Collectors.toSet()));
        assertEquals(6, symbols.variables().size());
        assertTrue(symbols.isComplete());
        assertFalse(symbols.mayAllocate());
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "default", "speed", "size"})
    void shouldFindKernelsThatAllocateMemory(String mode) throws IOException {
        assertTrue(symbols(bytes("allocates-" + mode)).mayAllocate());
        assertFalse(symbols(bytes("managed-" + mode)).mayAllocate());
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "default", "speed", "size"})
    void shouldFindKernelsThatPrint(String mode) throws IOException {
        assertTrue(symbols(bytes("prints-" + mode)).mayPrint());
        assertFalse(symbols(bytes("silent-" + mode)).mayPrint());
        byte[] silent = bytes("silent-" + mode);
        byte[] prints = bytes("prints-" + mode);
        byte[] both = Arrays.copyOf(silent, (silent.length + 7 & -8) + prints.length);
        System.arraycopy(prints, 0, both, silent.length + 7 & -8, prints.length);
        assertTrue(symbols(both).mayPrint());
        assertTrue(symbols(".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);").mayPrint());
        assertFalse(symbols(".visible .entry k() { ret; }").mayPrint());
    }

    @Test
    void shouldCountEntryTooLongToUnpackAsPrinting() throws IOException {
        byte[] image = bytes("silent-size");
        // The first entry follows the header of 16 bytes; its unpacked length is at offset 56.
        MemorySegment.ofArray(image).set(ValueLayout.JAVA_LONG_UNALIGNED, 16 + 56, CodeParts.MAX_UNPACKED_BYTES + 1);
        assertTrue(symbols(image).mayPrint());
        assertFalse(symbols(image).isComplete());
    }

    /** The image has machine code for sm_80 and sm_90, and PTX of compute_90. */
    @Test
    void shouldReadTheVersionsThatTheDriverMayChoose() throws IOException {
        assertEquals(Set.of("hopper"), versions(Set.of(90)));
        assertEquals(Set.of("ampere"), versions(Set.of(80)));
        assertEquals(Set.of("ampere"), versions(Set.of(86)));
        assertEquals(Set.of("ampere", "hopper"), versions(Set.of(80, 90)));
        assertEquals(Set.of("ampere", "hopper"), versions(Set.of(120)), "the driver compiles PTX for it");
        assertEquals(Set.of("ampere", "hopper"), versions(Set.of(90, 120)));
        assertEquals(Set.of("ampere", "hopper"), versions(Set.of()));
    }

    private static Set<String> versions(Set<Integer> architectures) throws IOException {
        DeviceSymbols symbols = new DeviceSymbols();
        CodeParts.visit(MemorySegment.ofArray(bytes("versions")), architectures, symbols);
        return symbols.variables();
    }

    @Test
    void shouldFindVariablesOfPtx() {
        assertEquals(Set.of("a", "b", "c"), symbols(".visible .global .align 4 .b8 a[40];\n.const .align 8 .f64 b = "
            + "{1, 2};\n.global .v4 .f32 c;\n.extern .global .u32 d;\n.shared .u32 e;").variables());
        assertEquals(Set.of("$str"), symbols(".global .align 1 .b8 $str[2] = {120};").variables());
        assertEquals(Set.of(), symbols(".entry k(.param .u64 .ptr .global .align 4 p) { ld.global.u32 %r, [a];\n"
            + "st.global.v2.u32 [b], {%r, %r}; }").variables());
        assertTrue(symbols(".global .u64 a[2] = {generic(b), generic(c)};").isComplete());
        assertTrue(symbols(".global .attribute(.unified(1, 2)) .u32 u = 1;").isComplete());
        assertEquals(Set.of("u"), symbols(".global .attribute(.unified(1, 2)) .u32 u;").variables());
        assertFalse(symbols(".global .u32 a = 1, b = 2;").isComplete());
        assertTrue(symbols("call.uni (r), malloc, (p);").mayAllocate());
        assertFalse(symbols("call.uni (r), my_malloc, (p);").mayAllocate());
    }

    @Test
    void shouldCallCodeIncompleteThatItCannotRead() {
        byte[] elf = new byte[64];
        elf[0] = 0x7F;
        elf[1] = 'E';
        elf[2] = 'L';
        elf[3] = 'F';
        assertFalse(symbols(elf).isComplete());
        assertTrue(symbols(elf).mayAllocate());
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
            assertTrue(names(broken).size() <= DeviceSymbols.MAX_NAMES);
            assertTrue(symbols(broken).variables().size() <= DeviceSymbols.MAX_NAMES);
        }
    }

    private static Set<String> ptx(String text) {
        return names(text.getBytes(StandardCharsets.US_ASCII));
    }

    private static Set<String> names(byte[] image) {
        return symbols(image).managed();
    }

    private static DeviceSymbols symbols(byte[] image) {
        DeviceSymbols symbols = new DeviceSymbols();
        CodeParts.visit(MemorySegment.ofArray(image), Set.of(), symbols);
        return symbols;
    }

    private static DeviceSymbols symbols(String ptx) {
        return symbols(ptx.getBytes(StandardCharsets.US_ASCII));
    }

    private static byte[] bytes(String name) throws IOException {
        try (InputStream in = DeviceSymbolsTest.class.getResourceAsStream("/images/" + name + ".fatbin")) {
            return in.readAllBytes();
        }
    }
}
