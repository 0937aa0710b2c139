package io.hawser.gpu.software.compile;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.gpu.software.exec.DeviceFault;
import io.hawser.gpu.software.ptx.PtxException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Unsupported code refuses the kernels that need it, and no other kernel. */
class RefusalTest {
    private static final String HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n";
    private static final String GOOD = ".visible .entry good(.param .u64 p) { .reg .b64 %d; ld.param.u64 %d, [p];\n"
        + "st.global.u32 [%d], 7; ret; }\n";
    private static final String BAD_BODY = "{ .reg .b32 %r<9>; { wgmma.u32 {%r1, %r2}, [%r3, {%r4}]; }\n ret; }\n";

    private static String refusal(Device device, String kernel) {
        PtxException refusal = device.image.kernels().get(kernel).refusal();
        return refusal == null ? "" : refusal.getMessage();
    }

    private static void expectGood(Device device) {
        long p = device.put(0);
        device.launch("good", 1, 1, p);
        assertEquals(7, device.ints(p, 1)[0]);
    }

    /** Loads texts whose kernel "bad" is refused for a reason and whose kernel "good" works. */
    private static void expectBad(String reason, String... texts) throws Exception {
        try (Device device = new Device(texts)) {
            String refusal = refusal(device, "bad");
            assertTrue(refusal.startsWith("line ") && refusal.contains(reason) && refusal.endsWith("in kernel bad"),
                refusal);
            DeviceFault fault = assertThrows(DeviceFault.class, () -> device.launch("bad", 1, 1));
            assertEquals(DeviceFault.NOT_SUPPORTED, fault.cuResult());
            expectGood(device);
        }
    }

    @Test
    void shouldRefuseByKernelInAProgramOfTheCompiler() throws Exception {
        Map<String, String> refused = Map.of("tensorCores", "wmma.load.a.sync.aligned.row.m16n16k16.global.f16",
            "clusters", ".reqnctapercluster", "bulkCopies",
            "mbarrier.init.shared.b64",
            "callsRefused", "mapa.u64, in function _Z5inneri", "callsByTable", "mapa.u64, in function _Z5inneri");
        try (Device device = new Device(Device.resource("refused-sm90.ptx"))) {
            assertEquals(refused.size() + 5, device.image.kernels().size());
            for (String kernel : List.of("plain", "callsByOtherTable", "texture", "surface", "launches")) {
                assertEquals("", refusal(device, kernel));
            }
            refused.forEach((kernel, instruction) -> {
                String line = refusal(device, kernel);
                assertTrue(line.matches("line \\d+: .*"), line);
                assertTrue(line.endsWith("software GPU: " + instruction + ", in kernel " + kernel), line);
                assertEquals(16, device.image.kernels().get(kernel).registers());
            });
            assertEquals(16, device.image.kernels().get("bulkCopies").params().getFirst().bytes() * 2);
            long p = device.put(1, 2, 3, 4);
            device.launch("plain", 1, 4, p);
            assertArrayEquals(new int[] {3, 5, 7, 9}, device.ints(p, 4));
            device.launch("callsByOtherTable", 1, 1, p, 0);
            assertEquals(5, device.ints(p, 1)[0]);
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        ".visible .entry bad() BODY | wgmma.u32",
        ".visible .entry bad() .wgmmad 1, 2 { ret; } | function directive .wgmmad",
        ".visible .entry bad() .blocksareclusters .reqntid 32 { ret; } | function directive .blocksareclusters",
        ".visible .entry bad() .reqnctapercluster 2, 1, 1 { ret; } | .reqnctapercluster",
        ".visible .entry bad(.param .texref t, .param .u32 u) { ret; } | type .texref",
        ".visible .entry bad(.frob .u32 u) { ret; } | variables in .frob",
        ".visible .entry bad() { .reg .frob %x; ret; } | type .frob",
        ".visible .entry bad() { .reg .v2 .f32 %x; ret; } | vector registers",
        ".visible .entry bad() { .reg .b32 %r; mov.u32 %r, %pm0; ret; } | special register %pm0",
        ".func f() BODY .visible .entry bad() { call f, (); ret; } | wgmma.u32, in function f",
        ".func f() BODY .func g() { call f, (); ret; } .visible .entry bad() { call g, (); ret; }"
            + " | wgmma.u32, in function f",
        ".visible .entry bad() { call f, (); ret; } .func f() BODY | wgmma.u32, in function f",
        ".func f(.param .frob x) { ret; } .visible .entry bad() { .param .b32 p; call f, (p); ret; } | call f",
        ".func (.param .frob x) f() { ret; } .visible .entry bad() { .param .b32 p; call (p), f, (); ret; } | call f",
        ".func f() BODY .visible .entry bad() { .reg .b64 %d; mov.u64 %d, f; p: .callprototype _ ();"
            + " call %d, (), p; ret; } | wgmma.u32, in function f",
        ".func f() BODY .global .u64 t[1] = {f}; .visible .entry bad() { .reg .b64 %d; ld.global.u64 %d, [t];"
            + " p: .callprototype _ (); call %d, (), p; ret; } | wgmma.u32, in function f",
        ".func f(.param .frob x) BODY .global .u64 t = f; .visible .entry bad() { .reg .b64 %d; ld.global.u64 %d,"
            + " [t]; p: .callprototype _ (.param .b32 _); .param .b32 q; call %d, (q), p; ret; } | type .frob",
        ".global .texref t; .visible .entry bad() { .reg .b64 %d; mov.u64 %d, t; ret; } | use of t",
        ".global .samplerref s = { filter_mode = linear, addr_mode_0 = wrap }, t; .visible .entry bad()"
            + " { .reg .b64 %d; mov.u64 %d, t; ret; } | use of t",
        ".global .texref t; .global .u64 p[2] = {0, t}; .visible .entry bad() { .reg .b64 %d; ld.global.u64 %d, [p];"
            + " ret; } | use of p",
        ".global .attribute(.frob) .u32 x; .visible .entry bad() { .reg .b32 %r; ld.global.u32 %r, [x]; ret; }"
            + " | attribute .frob",
        ".tex .u32 t; .visible .entry bad() { .reg .b64 %d; mov.u64 %d, t; ret; } | textures",
        ".extern .func f(); .visible .entry bad() { call f, (); ret; } | OTHER .visible .func f() BODY",
        ".extern .global .u64 p; .visible .entry bad() { .reg .b64 %d; ld.global.u64 %d, [p]; ret; }"
            + " | OTHER .global .texref t; .visible .global .u64 p = t;",
        ".extern .func cudaFrob(); .visible .entry bad() { call cudaFrob, (); ret; } | call cudaFrob",
        ".extern .func cudaFrob(); .func g() { call cudaFrob, (); ret; } .visible .entry bad() { call g, (); ret; }"
            + " | call cudaFrob, in function g",
        ".extern .func cudaFrob(); .global .u64 t = cudaFrob; .visible .entry bad() { .reg .b64 %d;"
            + " ld.global.u64 %d, [t]; p: .callprototype _ (); call %d, (), p; ret; } | the address of cudaFrob"})
    void shouldRefuseByKernel(String text, String reason) throws Exception {
        String bad = HEAD + GOOD + text.replace("BODY", BAD_BODY);
        String second = HEAD + text.replace("BODY", BAD_BODY);
        if (reason.startsWith("OTHER")) {
            String other = HEAD + reason.substring(5).replace("BODY", BAD_BODY);
            String expected = reason.contains("f()") ? "wgmma.u32, in function f" : "use of p";
            expectBad(expected, bad, other);
            expectBad(expected, other, bad);
        } else {
            expectBad(reason, bad);
            expectBad(reason, HEAD + GOOD, second);
            expectBad(reason, second + GOOD);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {".func f() BODY .global .u64 t[1] = {f}; .visible .entry free(.param .u64 p)"
        + " { .reg .b64 %d<3>; ld.param.u64 %d0, [p]; ld.global.u64 %d1, [t]; st.global.u64 [%d0], %d1; ret; }",
        ".extern .func cudaFrob(); .visible .entry free(.param .u64 p) { ret; }",
        ".global .texref t; .visible .entry free(.param .u64 p) .maxclusterrank 8 { ret; }",
        ".func g(.param .frob x); .visible .entry free(.param .u64 p) { ret; }",
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a); .global .u64 t = vprintf;"
            + " .visible .entry free(.param .u64 p) { .reg .b64 %d; mov.b64 %d, 0; .param .b32 r; .param .b64 a;"
            + " .param .b64 b; .reg .pred %q; setp.ne.u64 %q, %d, 0; st.param.b64 [a], %d; st.param.b64 [b], %d;"
            + " @%q call (r), vprintf, (a, b); ret; }"})
    void shouldRunKernelsThatOnlyResembleRefusedOnes(String text) throws Exception {
        try (Device device = new Device(HEAD + GOOD + text.replace("BODY", BAD_BODY))) {
            assertEquals("", refusal(device, "free"));
            device.launch("free", 1, 1, device.allocate(8));
            expectGood(device);
        }
    }

    // The parser skips refused text by its braces. If they do not match, the whole module is invalid.
    @ParameterizedTest
    @ValueSource(strings = {"{ wgmma; ret;", "{ wgmma; } ret; }", "{ { wgmma; ret; }",
        "{ .reg .b32 %r; wgmma; } }", ".frob { wgmma; ", ".frob ret; }", "{ .reg .b32 %r; mov.b32 %q, 1; }"})
    void shouldCallTextInvalidWhoseBlocksDoNotFit(String text) {
        for (String order : List.of(HEAD + GOOD + ".visible .entry bad() " + text, HEAD + ".visible .entry bad() "
            + text + "\n" + GOOD)) {
            PtxException e = assertThrows(PtxException.class, () -> new Device(order).close(), order);
            assertEquals(PtxException.INVALID_PTX, e.cuResult(), e.getMessage());
        }
    }

    // ptxas rejects such text as invalid, but a PTX version after the newest known one may have such an opcode.
    @Test
    void shouldTellOpcodesOfNewerVersionsFromTextThatIsNoPtx() throws Exception {
        String body = ".visible .entry bad() { frobnicate.u32 {1, [2, {3}]}; ret; }\n" + GOOD;
        PtxException e = assertThrows(PtxException.class, () -> new Device(HEAD.replace("8.0", "9.0") + body).close());
        assertEquals(PtxException.INVALID_PTX, e.cuResult(), e.getMessage());
        assertTrue(e.getMessage().startsWith("line 4: ") && e.getMessage().contains("frobnicate"), e.getMessage());
        expectBad("frobnicate.u32", HEAD.replace("8.0", "9.1") + body);
    }

    @Test
    void shouldStillFailTheLoadForAnUnresolvedFunctionOfTheProgram() {
        PtxException e = assertThrows(PtxException.class, () -> new Device(HEAD + GOOD + ".extern .func f();\n"
            + ".visible .entry k() { call f, (); ret; }").close());
        assertEquals(PtxException.NOT_FOUND, e.cuResult(), e.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm_10, map_f64_to_f32", "sm_20, map_f64_to_f32", "sm_75, texmode_independent",
        "sm_75, texmode_unified, debug"})
    void shouldIgnoreOptionsOfTheTarget(String target) throws Exception {
        // ptxas 13.0 keeps f64 instructions as f64, even with map_f64_to_f32.
        String text = ".version 1.4\n.target " + target + "\n.entry k(.param .u64 p) { .reg .u64 %d; .reg .f64 %f;\n"
            + "ld.param.u64 %d, [p]; ld.global.f64 %f, [%d]; add.f64 %f, %f, 0d3FF0000000000001;\n"
            + "st.global.f64 [%d], %f; exit; }\n";
        try (Device device = new Device(text)) {
            long p = device.allocate(8);
            device.launch("k", 1, 1, p);
            assertEquals(0x3FF0000000000001L, device.at(p, 8).get(java.lang.foreign.ValueLayout.JAVA_LONG, 0));
        }
    }

    private static String form(String instruction) {
        return ".version 9.0\n.target sm_90\n.address_size 64\n.global .b32 glv[4];\n"
            + ".func (.param .b32 r) fn(.param .b32 x) { ret; }\n.visible .entry k(.param .u64 a) {\n"
            + ".reg .b8 %b<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b128 %q<4>; .reg .f32 %f<9>;\n"
            + ".reg .f64 %g<9>; .reg .pred %p<4>; .shared .b32 shv;\nT: .branchtargets L, L;\n"
            + "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
            + (instruction.endsWith(" C") ? "C: .calltargets fn;\n" : "") + instruction + ";\nL: ret;\n}\n" + GOOD;
    }

    @Test
    void shouldLoadEveryFormOfAnInstruction() throws Exception {
        int refused = 0;
        int forms = 0;
        for (String line : Device.resource("valid-forms.txt").split("\n")) {
            if (line.startsWith("#")) {
                continue;
            }
            try (Device device = new Device(form(line))) {
                forms++;
                refused += refusal(device, "k").isEmpty() ? 0 : 1;
                assertEquals("", refusal(device, "good"), line);
            } catch (PtxException e) {
                throw new AssertionError(line + ": " + e.getMessage(), e);
            }
        }
        assertTrue(refused > 50 && forms - refused > 150, "refused=" + refused + " of " + forms);
    }

    // Instructions without their modifiers or operands, because the guest controls the text.
    @Test
    void shouldThrowNothingButPtxExceptionForPartsOfForms() throws Exception {
        for (String line : Device.resource("valid-forms.txt").split("\n")) {
            if (line.startsWith("#")) {
                continue;
            }
            String opcode = line.split("[ .]")[0];
            String operands = line.contains(" ") ? line.substring(line.indexOf(' ')) : "";
            String first = operands.split(",")[0];
            for (String part : List.of(opcode, opcode + operands, line.split(" ")[0], line.split(" ")[0] + first,
                opcode + ".b32", opcode + ".f32 %f0", opcode + ".global" + operands, opcode + ".sync")) {
                try (Device device = new Device(form(part))) {
                    refusal(device, "k");
                } catch (PtxException e) {
                    assertEquals(PtxException.INVALID_PTX, e.cuResult(), part);
                } catch (RuntimeException e) {
                    throw new AssertionError(part, e);
                }
            }
        }
    }

    @Test
    void shouldCutLongWordsOfAGuest() throws Exception {
        String word = ".frob".repeat(5000);
        String name = "k".repeat(20_000);
        try (Device device = new Device(HEAD + GOOD + ".visible .entry " + name + "() { wgmma" + word + "; }")) {
            String line = refusal(device, name);
            assertTrue(line.length() < 900 && line.contains("wgmma.frob") && line.contains("in kernel kkk"), line);
            assertNotNull(device.image.kernels().get(name));
            assertNull(device.image.kernels().get("good").refusal());
        }
    }
}
