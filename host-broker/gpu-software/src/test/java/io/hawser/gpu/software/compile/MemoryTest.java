package io.hawser.gpu.software.compile;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.gpu.software.exec.CtaSlot;
import io.hawser.gpu.software.exec.KernelLaunch;
import io.hawser.gpu.software.ptx.PtxException;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Atomics, vectors, windows, variables and linking. */
class MemoryTest {
    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "fast", "debug"})
    void shouldDoAtomicsFromSeveralHostThreads(String build) throws Exception {
        try (Device d = new Device(Device.resource("kernels-" + build + ".ptx"))) {
            long i = d.put(0, 0, 0, 0, 0, -1);
            long u = d.put(0, 0, 0);
            long f = d.put(0f);
            long dd = d.allocate(8);
            long w = d.allocate(24);
            PtxKernel kernel = d.image.kernels().get("atomics");
            KernelLaunch launch = new KernelLaunch(16, 1, 1, 64, 1, 1, 0, Device.pack(kernel, i, u, f, dd, w),
                bytes -> {});
            List<Thread> threads = new ArrayList<>();
            for (int part = 0; part < 2; part++) {
                int first = part;
                Thread thread = new Thread(() -> {
                    CtaSlot slot = new CtaSlot(d.memory);
                    for (int x = first; x < 16; x += 2) {
                        kernel.runCta(launch, x, 0, 0, slot);
                    }
                });
                thread.start();
                threads.add(thread);
            }
            for (Thread thread : threads) {
                thread.join();
            }
            int n = 1024;
            int[] got = d.ints(i, 6);
            assertArrayEquals(new int[] {n * (n - 1) / 2, 1 - n, n - 1, 0, n - 1, ~(n - 1)}, got);
            int inc = 0;
            int dec = 0;
            for (int k = 0; k < n; k++) {
                inc = inc >= 17 ? 0 : inc + 1;
                dec = dec == 0 || dec > 29 ? 29 : dec - 1;
            }
            assertArrayEquals(new int[] {inc, dec, 0x80000000 + n - 1}, d.ints(u, 3));
            assertEquals(n, d.at(f, 4).get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0));
            assertEquals(n * 0.5, d.at(dd, 8).get(ValueLayout.JAVA_DOUBLE_UNALIGNED, 0));
            assertEquals((long) n << 33, d.at(w, 24).get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
            assertEquals((long) (n - 1) << 40, d.at(w, 24).get(ValueLayout.JAVA_LONG_UNALIGNED, 8));
            long chain = 0;
            for (int k = 0; k < n; k++) {
                chain = chain * 3 + 1;
            }
            assertEquals(chain, d.at(w, 24).get(ValueLayout.JAVA_LONG_UNALIGNED, 16));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "debug"})
    void shouldMoveVectors(String build) throws Exception {
        try (Device d = new Device(Device.resource("kernels-" + build + ".ptx"))) {
            int size = 48;
            long in = d.allocate(64L * size);
            long out = d.allocate(64L * size);
            for (int t = 0; t < 64; t++) {
                var one = d.at(in + (long) t * size, size);
                for (int b = 0; b < size; b++) {
                    one.set(ValueLayout.JAVA_BYTE, b, (byte) (t * 3 + b));
                }
            }
            d.launch("vectors", 1, 64, out, in);
            for (int t = 0; t < 64; t++) {
                byte[] a = d.at(in + (long) t * size, size).toArray(ValueLayout.JAVA_BYTE);
                byte[] far = d.at(in + (63L - t) * size, size).toArray(ValueLayout.JAVA_BYTE);
                byte[] expected = a.clone();
                for (int k = 0; k < 4; k++) {
                    System.arraycopy(far, 4 * (3 - k), expected, 4 * k, 4);
                    expected[24 + k] = a[27 - k];
                }
                System.arraycopy(a, 20, expected, 16, 4);
                System.arraycopy(a, 16, expected, 20, 4);
                System.arraycopy(a, 30, expected, 28, 2);
                System.arraycopy(a, 28, expected, 30, 2);
                System.arraycopy(a, 40, expected, 32, 8);
                System.arraycopy(a, 32, expected, 40, 8);
                assertArrayEquals(expected, d.at(out + (long) t * size, size).toArray(ValueLayout.JAVA_BYTE), "t=" + t);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "debug"})
    void shouldMatchAmongLanes(String build) throws Exception {
        try (Device d = new Device(Device.resource("kernels-" + build + ".ptx"))) {
            int[] in = new int[64];
            int[] same = new int[64];
            for (int t = 0; t < 64; t++) {
                in[t] = t < 32 ? t % 5 : 6;
            }
            for (int t = 0; t < 64; t++) {
                for (int o = t / 32 * 32; o < t / 32 * 32 + 32; o++) {
                    same[t] |= in[o] == in[t] ? 1 << o % 32 : 0;
                }
            }
            int odd = 0;
            for (int t = 0; t < 32; t++) {
                odd |= in[t] % 2 == 1 ? 1 << t : 0;
            }
            long out = d.allocate(1024);
            d.launch("warpMatch", 1, 64, out, d.put(in));
            int[] got = d.ints(out, 256);
            for (int t = 0; t < 64; t++) {
                assertEquals(same[t], got[4 * t], "any " + t);
                assertEquals(0, got[4 * t + 1], "all " + t);
                assertEquals(in[t] % 2 == 1 ? odd : 0, got[4 * t + 2], "active " + t);
                assertEquals(same[t], got[4 * t + 3], "any64 " + t);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"sm75", "sm90", "debug"})
    void shouldSynchroniseAGridWhoseCtasTakeTurns(String build) throws Exception {
        try (Device d = new Device(Device.resource("kernels-" + build + ".ptx"))) {
            PtxKernel kernel = d.image.kernels().get("gridSync");
            long a = d.allocate(1024);
            KernelLaunch launch = new KernelLaunch(4, 1, 1, 64, 1, 1, 0, Device.pack(kernel, a, 3), bytes -> {})
                .gridWorkspace(d.allocate(512));
            CtaSlot[] slots = new CtaSlot[4];
            for (int x = 0; x < 4; x++) {
                slots[x] = new CtaSlot(d.memory);
                kernel.begin(launch, x, 0, 0, slots[x]);
            }
            List<CtaSlot> running = new ArrayList<>(List.of(slots));
            for (int turn = 0; turn < 1000 && !running.isEmpty(); turn++) {
                running.removeIf(kernel::resume);
            }
            assertEquals(List.of(), running);
            int[] got = d.ints(a, 256);
            for (int i = 0; i < 256; i++) {
                assertEquals((i + 3 * 64) % 256 + 3, got[i]);
            }
        }
    }

    private static final String HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n";

    @Test
    void shouldLinkModulesOfOneImage() throws Exception {
        String first = HEAD + ".extern .func (.param .b32 r) add7(.param .b32 a);\n.extern .global .u32 shared_word;\n"
            + ".global .u32 hidden = 1;\n"
            + ".visible .entry k(.param .u64 out) { .reg .b32 %r<4>; .reg .b64 %rd<2>; .param .b32 p; .param .b32 q;\n"
            + "ld.param.u64 %rd1, [out]; ld.global.u32 %r1, [shared_word]; st.param.b32 [p], %r1;\n"
            + "call (q), add7, (p); ld.param.b32 %r2, [q]; ld.global.u32 %r3, [hidden]; add.u32 %r2, %r2, %r3;\n"
            + "st.global.u32 [%rd1], %r2; ret; }\n";
        String second = HEAD + ".visible .global .u32 shared_word = 30;\n.global .u32 hidden = 500;\n"
            + ".visible .func (.param .b32 r) add7(.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a];\n"
            + "ld.global.u32 %r2, [hidden]; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, 7;\n"
            + "st.param.b32 [r], %r1; ret; }\n";
        try (Device d = new Device(first, second)) {
            long out = d.put(0);
            d.launch("k", 1, 1, out);
            assertEquals(538, d.ints(out, 1)[0]);
        }
        PtxException missing = assertThrows(PtxException.class, () -> new Device(first));
        assertEquals(PtxException.NOT_FOUND, missing.cuResult());
        PtxException twice = assertThrows(PtxException.class, () -> new Device(second, second));
        assertEquals(PtxException.INVALID_PTX, twice.cuResult());
    }

    @Test
    void shouldInitialiseVariablesWithAddresses() throws Exception {
        String ptx = HEAD + ".global .align 4 .b8 text[6] = {104, 101, 108, 108, 111};\n"
            + ".global .align 8 .u64 pointers[3] = {generic(text)+1, text, 7};\n"
            + ".global .align 8 .b8 bytes[8] = {0xFF(text), 0xFF00(text), 0xFF0000(text), 0xFF000000(text),\n"
            + "0xFF00000000(text), 0xFF0000000000(text), 0, 0};\n"
            + ".const .align 4 .f32 numbers[2] = {0f3FC00000, -2.5};\n.global .s16 small[2][2] = {{-1, 2}, {3}};\n";
        try (Device d = new Device(ptx)) {
            long text = d.address("text");
            assertEquals("hello", new String(d.at(text, 5).toArray(ValueLayout.JAVA_BYTE), StandardCharsets.US_ASCII));
            var pointers = d.at(d.address("pointers"), 24);
            assertEquals(text + 1, pointers.get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
            assertEquals(text, pointers.get(ValueLayout.JAVA_LONG_UNALIGNED, 8));
            assertEquals(7, pointers.get(ValueLayout.JAVA_LONG_UNALIGNED, 16));
            assertEquals(text, d.at(d.address("bytes"), 8).get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
            assertEquals(-2.5f, d.at(d.address("numbers"), 8).get(ValueLayout.JAVA_FLOAT_UNALIGNED, 4));
            assertArrayEquals(new short[] {-1, 2, 3, 0},
                d.at(d.address("small"), 8).toArray(ValueLayout.JAVA_SHORT_UNALIGNED));
        }
    }

    @Test
    void shouldTellKernelsAttributes() throws Exception {
        try (Device d = new Device(Device.resource("kernels-sm75.ptx"))) {
            PtxKernel kernel = d.image.kernels().get("matrixMul16");
            assertEquals(2048, kernel.staticSharedBytes());
            assertEquals(28, kernel.paramBytes());
            assertEquals(List.of(new PtxKernel.Param(0, 8), new PtxKernel.Param(8, 8), new PtxKernel.Param(16, 8),
                new PtxKernel.Param(24, 4)), kernel.params());
            assertEquals(75, kernel.targetSm());
            assertEquals(90, kernel.ptxVersion());
            assertEquals(128, d.image.kernels().get("localArrays").localBytesPerThread());
            assertEquals(44, kernel.constBytes());
        }
    }

    @Test
    void shouldBranchThroughTables() throws Exception {
        String ptx = HEAD + ".visible .entry k(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
            + "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
            + "targets: .branchtargets A, B, C;\nbrx.idx %r1, targets;\n"
            + "A: mov.u32 %r2, 10; bra.uni E;\nB: mov.u32 %r2, 20; bra.uni E;\nC: mov.u32 %r2, 30;\n"
            + "E: st.global.u32 [%rd1], %r2; ret; }\n";
        try (Device d = new Device(ptx)) {
            long out = d.allocate(12);
            d.launch("k", 1, 3, out);
            assertArrayEquals(new int[] {10, 20, 30}, d.ints(out, 3));
        }
    }

    @Test
    void shouldCutLargeKernelsIntoMethods() throws Exception {
        StringBuilder ptx = new StringBuilder(HEAD + ".visible .entry k(.param .u64 out, .param .u32 n) {\n"
            + ".reg .b32 %r<40>; .reg .pred %p; .reg .b64 %rd;\nld.param.u64 %rd, [out]; ld.param.u32 %r39, [n];\n"
            + "mov.u32 %r0, 1;\n");
        for (int i = 1; i < 38; i++) {
            ptx.append("add.u32 %r").append(i).append(", %r").append(i - 1).append(", ").append(i).append(";\n");
        }
        ptx.append("L:\n");
        for (int i = 0; i < 20_000; i++) {
            ptx.append("mad.lo.u32 %r").append(i % 38).append(", %r").append((i + 7) % 38).append(", 3, %r")
                .append((i + 1) % 38).append(";\n");
        }
        ptx.append("sub.u32 %r39, %r39, 1; setp.ne.u32 %p, %r39, 0; @%p bra L;\nst.global.u32 [%rd], %r5; ret; }\n");
        int[] r = new int[38];
        r[0] = 1;
        for (int i = 1; i < 38; i++) {
            r[i] = r[i - 1] + i;
        }
        for (int i = 0; i < 60_000; i++) {
            int k = i % 20_000;
            r[k % 38] = r[(k + 7) % 38] * 3 + r[(k + 1) % 38];
        }
        try (Device d = new Device(ptx.toString())) {
            long out = d.put(0);
            d.launch("k", 1, 2, out, 3);
            assertEquals(r[5], d.ints(out, 1)[0]);
        }
    }
}
