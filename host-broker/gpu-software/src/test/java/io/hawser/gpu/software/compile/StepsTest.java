package io.hawser.gpu.software.compile;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The bound that a kernel's code gives for its length. */
class StepsTest {
    private static final String HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n";
    private static final String FUNCTION = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        + ".func leaf(.param .b32 a) { ret; }\n";

    private static PtxKernel kernel(Device device) throws Exception {
        PtxKernel kernel = device.image.kernels().get("k");
        assertFalse(kernel.endsWithin(1, Long.MAX_VALUE), "nothing is known before the kernel is made");
        kernel.prepare();
        return kernel;
    }

    private static Device device(String body) throws Exception {
        return new Device(HEAD + FUNCTION + ".visible .entry k(.param .u32 n) { .reg .b32 %r<9>; .reg .pred %p;\n"
            + ".reg .b64 %d<3>; .param .b32 q; .param .b64 b; .param .b64 c; ld.param.u32 %r1, [n];\n" + body + "\n}");
    }

    @Test
    void shouldCountTheLongestWay() throws Exception {
        String most = "add.u32 %r2, %r1, 1; add.u32 %r2, %r2, %r1; ".repeat(50);
        try (Device device = device("setp.eq.u32 %p, %r1, 0; @%p bra SHORT; " + most + "SHORT: ret;")) {
            PtxKernel kernel = kernel(device);
            assertTrue(kernel.endsWithin(1, 120));
            assertFalse(kernel.endsWithin(1, 99));
            assertTrue(kernel.endsWithin(100, 12_000));
            assertFalse(kernel.endsWithin(100, 9_900));
            assertFalse(kernel.endsWithin(1L << 62, 12_000));
        }
    }

    @Test
    void shouldCountManyDiamondsInOneWalk() throws Exception {
        StringBuilder body = new StringBuilder();
        for (int i = 0; i < 200; i++) {
            body.append("setp.eq.u32 %p, %r1, ").append(i).append("; @%p bra A").append(i)
                .append("; add.u32 %r1, %r1, 1; bra B").append(i).append(";\nA").append(i)
                .append(": add.u32 %r1, %r1, 2; B").append(i).append(":\n");
        }
        try (Device device = device(body + "bar.sync 0; ret;")) {
            assertTrue(kernel(device).endsWithin(1, 2000));
        }
    }

    @Test
    void shouldCountLocalMemory() throws Exception {
        try (Device device = device(".local .align 4 .b8 large[65536]; st.local.u32 [large], %r1; ret;")) {
            assertFalse(kernel(device).endsWithin(1, 4096));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"AGAIN: sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra AGAIN; ret;",
        "AGAIN: bra AGAIN;",
        "AGAIN: bar.sync 0; sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra AGAIN; ret;",
        "AGAIN: sub.u32 %r1, %r1, 1; setp.eq.u32 %p, %r1, 0; @%p bra OUT; bar.sync 0; bra AGAIN; OUT: ret;",
        "st.param.b32 [q], %r1; call leaf, (q); ret;",
        "mov.u64 %d1, 0; st.param.b64 [b], %d1; st.param.b64 [c], %d1; call (q), vprintf, (b, c); ret;"})
    void shouldNotKnowLoopsAndCalls(String body) throws Exception {
        try (Device device = device(body)) {
            assertFalse(kernel(device).endsWithin(1, Long.MAX_VALUE));
        }
    }

    @Test
    void shouldKnowKernelsOfTheCompiler() throws Exception {
        try (Device device = new Device(Device.resource("kernels-sm75.ptx"))) {
            for (String name : new String[] {"vectorAdd", "matrixMul16", "endless", "recursion"}) {
                PtxKernel kernel = device.image.kernels().get(name);
                kernel.prepare();
                assertEquals(name.equals("vectorAdd"), kernel.endsWithin(32, 4096), name);
            }
        }
    }
}
