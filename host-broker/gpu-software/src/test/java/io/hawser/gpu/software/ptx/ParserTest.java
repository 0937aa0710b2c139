package io.hawser.gpu.software.ptx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.gpu.software.compile.PtxImage;
import io.hawser.gpu.software.compile.PtxKernel;
import io.hawser.gpu.software.compile.PtxModule;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which texts the parser accepts as PTX, rejects, or refuses. */
class ParserTest {
    private static final String HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n";

    private static ModuleTree parse(String text) throws PtxException {
        return Parser.parse(text, opcode -> true);
    }

    private static String kernel(String body) {
        return HEAD + ".visible .entry k(.param .u64 a) {\n" + body + "\nret;\n}\n";
    }

    @Test
    void shouldSkipDebugDataAndComments() throws Exception {
        ModuleTree module = parse("// c\n/* more\n lines */" + HEAD + "\t.file 1 \"x.cu\"\n"
            + ".visible .entry k()\n{\n.loc 1 2 3, function_name $L__info_string0, inlined_at 1 4 5\n"
            + ".pragma \"nounroll\";\nret;\n}\n.section .debug_abbrev\n{\n.b8 1 // x\n.b8 17\n{ }\n}\n");
        assertTrue(module.functions().get("k").entry());
        assertEquals(80, module.version());
        assertEquals(75, module.target());
    }

    @Test
    void shouldResolveNamesByScope() throws Exception {
        ModuleTree module = parse(kernel(".reg .b32 %r<5>; .reg .b32 x;\n{ .reg .b64 x; mov.b64 x, 1; bra L;\n"
            + "{ bra L; }\nL: }\nmov.b32 x, %r4; bra OUT; { bra OUT; } OUT:"));
        assertEquals(9, module.functions().get("k").body().size());
        assertThrows(PtxException.class, () -> parse(kernel(".reg .b32 %r<5>; mov.b32 %r5, 1;")));
        assertThrows(PtxException.class, () -> parse(kernel("{ L: } bra L;")));
        assertThrows(PtxException.class, () -> parse(kernel("bra NOWHERE;")));
    }

    @ParameterizedTest
    @ValueSource(strings = {".reg .b32 %r; mov.b32 %r, {1, 2, 3};", ".reg .b32 %r; add.s32 %r, %r;",
        ".reg .f64 %d; add.f32 %d, %d, 0;", ".reg .b16 %h; add.s32 %h, %h, 1;", ".reg .b32 %r; mov.u32 %r, nothing;",
        ".reg .b32 %r; ld.param.u32 %r, [a+8];", ".reg .b32 %r; @%r bra L; L:", ".reg .b32 %r; call f, (%r);",
        ".reg .pred %p; cvt.s32.f32 %p, %p;", ".reg .b32 %r; mov.u32 %r, 99999999999999999999;", "no.such.op %r1;",
        ".reg .b32 %r; frobnicate.u32 %r, %r;", "{", "\"", "/*"})
    void shouldCallMalformedTextInvalid(String body) {
        PtxException e = assertThrows(PtxException.class, () -> PtxModule.compile(kernel(body)));
        assertEquals(PtxException.INVALID_PTX, e.cuResult(), e.getMessage());
        assertTrue(e.getMessage().startsWith("line "), e.getMessage());
    }

    @ParameterizedTest
    @CsvSource(delimiter = ';', value = {
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f0,%f0,%f0}, {%r0,%r0}, {%r0}, {%f0,%f0,%f0,%f0}",
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0,%r0,%r0,%r0}, [%rd0], %r0",
        "suq.width.b32 %r0, [%rd0]",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r0]", "barrier.cluster.arrive",
        "cp.async.bulk.commit_group", "mbarrier.init.shared.b64 [%r0], 1", "cvt.rna.tf32.f32 %r0, %f0",
        "ld.shared::cluster.u32 %r0, [%r0]", "shfl.down.b32 %r0, %r0, 1, 31", "atom.global.v4.f32.add %f0, [%rd0], %f0",
        "vadd4.u32.u32.u32 %r0, %r0, %r0, %r0", "add.rn.e4m3 %r0, %r0, %r0"})
    void shouldNameTheUnsupportedInstruction(String instruction) throws Exception {
        String body = ".reg .b32 %r<2>; .reg .f32 %f<2>; .reg .b64 %rd<2>;\n" + instruction.strip() + ";";
        PtxException e = PtxImage.link(List.of(PtxModule.compile(kernel(body)))).kernels().get("k").refusal();
        assertEquals(PtxException.NOT_SUPPORTED, e.cuResult(), e.getMessage());
        String opcode = instruction.strip().split("[. ]")[0];
        assertTrue(e.getMessage().contains(opcode), e.getMessage());
        assertTrue(e.getMessage().startsWith("line 6:") && e.getMessage().endsWith("in kernel k"), e.getMessage());
    }

    @Test
    void shouldBoundSizesThatAGuestChooses() throws Exception {
        for (String text : new String[] {HEAD + ".global .b8 x[99999999999999];", HEAD + ".global .b32 y[-1];",
            HEAD + ".global .b8 z[4] = {" + "{".repeat(5000), kernel("{".repeat(5000))}) {
            assertThrows(PtxException.class, () -> PtxModule.compile(text), text);
        }
        for (String text : new String[] {HEAD + ".visible .entry k(.param .b8 p[40000]) { ret; }",
            HEAD + ".shared .b8 s[600000000];\n.visible .entry k() { .reg .b32 r; mov.u32 r, s; ret; }"}) {
            PtxKernel refused = PtxImage.link(List.of(PtxModule.compile(text))).kernels().get("k");
            assertEquals(PtxException.NOT_SUPPORTED, refused.refusal().cuResult(), text);
            assertEquals(0, refused.staticSharedBytes(), text);
            assertTrue(refused.paramBytes() <= 32_764, text);
        }
    }

    @Test
    void shouldThrowNothingButPtxExceptionForMutatedText() throws Exception {
        String text;
        try (InputStream in = ParserTest.class.getResourceAsStream("/kernels/kernels-sm75.ptx")) {
            text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
        // Mutates whole functions, so that a run is short but covers each kind of statement.
        String[] functions = text.split("(?=\\.visible \\.entry)");
        String[] words = {"{", "}", ";", ",", "[", "]", "(", ")", "%r1", "%p1", "%f1", "%rd1", ".f32", ".u64", ".param",
            ".reg", ".shared", "bra", "call", "ret", "-1", "0f3F800000", "99999999999", "@", "!", "|", "_", "+",
            "%tid.x",
            "", "\"", "/*", "0x", ".v4", ".b128", ".pred", "mov.b64", "ld", "%"};
        Random random = new Random(2026);
        int accepted = 0;
        for (int round = 0; round < 3000; round++) {
            String one = HEAD + functions[1 + random.nextInt(functions.length - 1)];
            StringBuilder mutated = new StringBuilder(one);
            int edits = 1 + random.nextInt(3);
            for (int e = 0; e < edits; e++) {
                int at = random.nextInt(mutated.length());
                switch (random.nextInt(4)) {
                    case 0 -> mutated.deleteCharAt(at);
                    case 1 -> mutated.insert(at, words[random.nextInt(words.length)]);
                    case 2 -> mutated.setCharAt(at, (char) (32 + random.nextInt(95)));
                    default -> mutated.setLength(Math.max(1, at));
                }
            }
            try {
                PtxModule.compile(mutated.toString());
                accepted++;
            } catch (PtxException e) {
                assertTrue(e.cuResult() == PtxException.INVALID_PTX || e.cuResult() == PtxException.NOT_SUPPORTED,
                    e.getMessage());
            } catch (RuntimeException e) {
                throw new AssertionError("round " + round + ":\n" + mutated, e);
            }
        }
        assertTrue(accepted > 0, "some mutations, such as in a comment, change nothing");
    }
}
