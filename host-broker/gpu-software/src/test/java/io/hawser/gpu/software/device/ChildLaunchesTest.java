package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.backend.FunctionInfo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Launches by kernels. The PTX calls the device runtime as nvcc's code does. */
class ChildLaunchesTest {
    private static final long TIMEOUT_S = 60;
    private static final String HEAD = """
        .version 8.0
        .target sm_75
        .address_size 64
        .extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 a, .param .align 4 .b8 b[12],
            .param .align 4 .b8 c[12], .param .b32 d);
        .extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);
        .extern .func (.param .b32 r) __cudaCDP2GetLastError();
        """;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64);
    private SoftwareBackend backend;
    private long context;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(64 << 20, 2);
        assertEquals(CUDA_SUCCESS, backend.createContext(0, 0, true, out));
        context = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.setCurrent(context));
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    /** A kernel NAME(p, n) with code before and after a launch of a kernel (p, n - 1); %r9 is the launch's result. */
    private static String kernel(String name, String before, String child, int threads, long stream, String after) {
        return ".visible .entry " + name + "(.param .u64 p, .param .u32 n) {\n.reg .b32 %r<12>; .reg .b64 %d<6>;"
            + " .reg .pred %q<2>;\nld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; sub.u32 %r1, %r0, 1;\n" + before
            + "\n{ .param .b64 p0; mov.b64 %d1, " + child + "; st.param.b64 [p0], %d1;\n"
            + ".param .align 4 .b8 p1[12]; st.param.b32 [p1], 1; st.param.b32 [p1+4], 1; st.param.b32 [p1+8], 1;\n"
            + ".param .align 4 .b8 p2[12]; st.param.b32 [p2], " + threads + "; st.param.b32 [p2+4], 1;"
            + " st.param.b32 [p2+8], 1;\n.param .b32 p3; st.param.b32 [p3], 0;\n.param .b64 r;\n"
            + "call (r), __cudaCDP2GetParameterBufferV2, (p0, p1, p2, p3); ld.param.b64 %d2, [r]; }\n"
            + "setp.eq.u64 %q0, %d2, 0; @%q0 bra NONE;\nst.u64 [%d2], %d0; st.u32 [%d2+8], %r1;\n"
            + "NONE: { .param .b64 p0; st.param.b64 [p0], %d2; .param .b64 p1; st.param.b64 [p1], " + stream + ";\n"
            + ".param .b32 r; call (r), __cudaCDP2LaunchDeviceV2, (p0, p1); ld.param.b32 %r9, [r]; }\n" + after
            + "\nEND: ret;\n}\n";
    }

    private int run(String text, String name, long memory, int n) throws Exception {
        StringBuilder log = new StringBuilder();
        assertEquals(CUDA_SUCCESS, backend.loadImage(MemorySegment.ofArray(text.getBytes(StandardCharsets.UTF_8)), out,
            log), log::toString);
        FunctionInfo info = new FunctionInfo();
        assertEquals(CUDA_SUCCESS, backend.function(out.get(ValueLayout.JAVA_LONG, 0), name, info));
        MemorySegment params = arena.allocate(16, 8);
        params.set(ValueLayout.JAVA_LONG, 0, memory);
        params.set(ValueLayout.JAVA_INT, 8, n);
        assertEquals(CUDA_SUCCESS,
            backend.launch(info.handle(), 1, 1, 1, 1, 1, 1, 0, 0, 0, params, MemorySegment.NULL));
        CompletableFuture<Integer> done = new CompletableFuture<>();
        assertEquals(CUDA_SUCCESS, backend.whenContextReached(context, done::complete));
        return done.get(TIMEOUT_S, TimeUnit.SECONDS);
    }

    private long memory() {
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemAlloc_v2(out, 512));
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemsetD32Async(address, 0, 128, 0));
        return address;
    }

    private int word(long address, int index) throws Exception {
        MemorySegment words = arena.allocate(512, 8);
        assertEquals(CUDA_SUCCESS, backend.copyDtoH(words, address, 0));
        CompletableFuture<Integer> done = new CompletableFuture<>();
        assertEquals(CUDA_SUCCESS, backend.whenContextReached(context, done::complete));
        assertEquals(CUDA_SUCCESS, done.get(TIMEOUT_S, TimeUnit.SECONDS));
        return words.get(ValueLayout.JAVA_INT, 4L * index);
    }

    private long freeBytes() {
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemGetInfo_v2(out, out.asSlice(8)));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private static final String COUNT = "ld.global.u32 %r2, [%d0]; add.u32 %r2, %r2, 1; st.global.u32 [%d0], %r2;"
        + " setp.eq.u32 %q1, %r0, 1; @%q1 bra END;";

    @Test
    void shouldLimitTheDepthOfNestingButNotOfTails() throws Exception {
        long memory = memory();
        long free = freeBytes();
        String nested = HEAD + kernel("nest", COUNT, "nest", 1, 0, "st.global.u32 [%d0+4], %r9;");
        assertEquals(CUDA_SUCCESS, run(nested, "nest", memory, 1000));
        assertEquals(25, word(memory, 0), "the grid of the host and 24 levels");
        assertEquals(65, word(memory, 1), "cudaErrorLaunchMaxDepthExceeded");
        memory = memory();
        assertEquals(CUDA_SUCCESS, run(nested.replace("p1; st.param.b64 [p1], 0", "p1; st.param.b64 [p1], 3"), "nest",
            memory, 1000));
        assertEquals(1000, word(memory, 0));
        assertEquals(0, word(memory, 1));
        assertEquals(free - 512, freeBytes(), "no parameters stay allocated");
    }

    @Test
    void shouldReportAnImpossibleLaunchToItsThread() throws Exception {
        long memory = memory();
        assertEquals(CUDA_SUCCESS, run(HEAD + kernel("bad", COUNT, "bad", 1025, 0, """
            st.global.u32 [%d0+4], %r9;
            { .param .b32 r; call (r), __cudaCDP2GetLastError, (); ld.param.b32 %r3, [r]; }
            st.global.u32 [%d0+8], %r3;
            { .param .b32 r; call (r), __cudaCDP2GetLastError, (); ld.param.b32 %r3, [r]; }
            st.global.u32 [%d0+12], %r3;"""), "bad", memory, 5));
        assertEquals(1, word(memory, 0));
        assertEquals(9, word(memory, 1), "cudaErrorInvalidConfiguration");
        assertEquals(9, word(memory, 2));
        assertEquals(0, word(memory, 3), "the error is cleared");
    }

    @Test
    void shouldAnswerForBuffersThatAreNone() throws Exception {
        long memory = memory();
        String twice = "st.global.u32 [%d0+4], %r9; { .param .b64 p0; st.param.b64 [p0], %d2; .param .b64 p1;"
            + " st.param.b64 [p1], 0; .param .b32 r; call (r), __cudaCDP2LaunchDeviceV2, (p0, p1);"
            + " ld.param.b32 %r9, [r]; } st.global.u32 [%d0+8], %r9; { .param .b64 p0; st.param.b64 [p0], %d0;"
            + " .param .b64 p1; st.param.b64 [p1], 0; .param .b32 r; call (r), __cudaCDP2LaunchDeviceV2, (p0, p1);"
            + " ld.param.b32 %r9, [r]; } st.global.u32 [%d0+12], %r9;";
        assertEquals(CUDA_SUCCESS, run(HEAD + kernel("k", COUNT, "k", 1, 0, twice), "k", memory, 2));
        assertEquals(2, word(memory, 0));
        assertEquals(0, word(memory, 1));
        assertEquals(1, word(memory, 2), "the same buffer again");
        assertEquals(1, word(memory, 3), "an address that is no buffer");
        memory = memory();
        String noKernel = kernel("k", COUNT, "k", 1, 0, "st.global.u32 [%d0+4], %r9;"
            + " { .param .b32 r; call (r), __cudaCDP2GetLastError, (); ld.param.b32 %r3, [r]; }"
            + " st.global.u32 [%d0+8], %r3;").replace("mov.b64 %d1, k;", "mov.b64 %d1, 12345;");
        assertEquals(CUDA_SUCCESS, run(HEAD + noKernel, "k", memory, 2));
        assertEquals(1, word(memory, 1));
    }

    // A parent seldom looks at the result of a launch, so its results would be wrong without an error.
    @Test
    void shouldFaultWhenAKernelLaunchesARefusedKernel() throws Exception {
        String refused = ".visible .entry refused(.param .u64 p, .param .u32 n) { wgmma.fence.sync.aligned; ret; }\n";
        assertEquals(CUDA_ERROR_NOT_SUPPORTED,
            run(HEAD + refused + kernel("k", COUNT, "refused", 1, 0, ""), "k", memory(), 2));
    }

    @Test
    void shouldEndTheContextWithTheFaultOfAChild() throws Exception {
        String bad = ".visible .entry bad(.param .u64 p, .param .u32 n) { .reg .b64 %d; mov.b64 %d, 64;"
            + " st.global.u32 [%d], 1; ret; }\n";
        assertEquals(CUDA_ERROR_ILLEGAL_ADDRESS,
            run(HEAD + bad + kernel("k", COUNT, "bad", 1, 0, ""), "k", memory(), 2));
    }
}
