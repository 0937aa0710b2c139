package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUfunction_attribute;
import io.hawser.cuda.generated.CUlimit;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SoftwareBackendTest {
    // out[0] = out[0] * 3 + add: two such kernels do not commute, so that a wrong order changes the value.
    private static final String STEP = """
        .version 8.0
        .target sm_75
        .address_size 64
        .visible .entry step(.param .u64 out, .param .u32 add) {
            .reg .u64 %a;
            .reg .u32 %v, %x;
            ld.param.u64 %a, [out];
            ld.param.u32 %x, [add];
            ld.global.u32 %v, [%a];
            mad.lo.u32 %v, %v, 3, %x;
            st.global.u32 [%a], %v;
            ret;
        }
        .visible .entry endless(.param .u64 out) {
            .reg .u64 %a;
            .reg .u32 %v;
            .reg .pred %p;
            ld.param.u64 %a, [out];
        again:
            ld.volatile.global.u32 %v, [%a];
            setp.eq.u32 %p, %v, 0;
            @%p bra again;
            ret;
        }
        """;
    private static final long TIMEOUT_S = 60;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64);
    private SoftwareBackend backend;
    private long context;
    private long step;
    private long endless;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(64 << 20, 2);
        ok(backend.createContext(0, 0, true, out));
        context = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.setCurrent(context));
        StringBuilder log = new StringBuilder();
        assertEquals(CUDA_SUCCESS, backend.loadImage(text(STEP), out, log), log::toString);
        long module = out.get(ValueLayout.JAVA_LONG, 0);
        step = function(module, "step");
        endless = function(module, "endless");
    }

    @Test
    void shouldFreeTheMemoryOfADestroyedContext() {
        long half = 32 << 20;
        for (int round = 0; round < 4; round++) {
            ok(backend.driver().cuMemAlloc_v2(out, half));
            ok(backend.destroyContext(context));
            ok(backend.createContext(0, 0, true, out));
            context = out.get(ValueLayout.JAVA_LONG, 0);
            ok(backend.setCurrent(context));
        }
        assertEquals(CUDA_ERROR_INVALID_HANDLE, backend.launch(step, 1, 1, 1, 1, 1, 1, 0, 0, 0, out, out),
            "a kernel goes with its context");
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    @Test
    void shouldAnswerLimitsThatNoProgramCanSet() {
        ok(backend.driver().cuCtxGetLimit(out, CUlimit.CU_LIMIT_SHMEM_SIZE));
        assertEquals(Properties.SHARED_BYTES_OPT_IN, out.get(ValueLayout.JAVA_LONG, 0));
        ok(backend.driver().cuCtxGetLimit(out, CUlimit.CU_LIMIT_CIG_ENABLED));
        assertEquals(0, out.get(ValueLayout.JAVA_LONG, 0));
        assertEquals(CUDA_ERROR_NOT_PERMITTED, backend.driver().cuCtxSetLimit(CUlimit.CU_LIMIT_SHMEM_SIZE, 4096));
        assertEquals(CUDA_ERROR_UNSUPPORTED_LIMIT,
            backend.driver().cuCtxGetLimit(out, CUlimit.CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED));
        assertEquals(CUDA_ERROR_UNSUPPORTED_LIMIT,
            backend.driver().cuCtxSetLimit(CUlimit.CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 4));
    }

    @Test
    void shouldRunAStreamsWorkInOrder() throws Exception {
        long stream = stream(1);
        long data = allocate(4);
        int expected = 0;
        ok(backend.driver().cuMemsetD32Async(data, 0, 1, stream));
        for (int i = 0; i < 200; i++) {
            launchStep(data, i, stream);
            expected = expected * 3 + i;
        }
        assertEquals(expected, read(data, stream));
    }

    @Test
    void shouldMakeBlockingStreamsAndTheLegacyStreamWaitForEachOther() throws Exception {
        long first = stream(0);
        long second = stream(0);
        long data = allocate(4);
        CountDownLatch gate = new CountDownLatch(1);
        ok(backend.driver().cuMemsetD32Async(data, 0, 1, first));
        ok(backend.hostFunction(first, () -> await(gate)));
        launchStep(data, 1, first);
        launchStep(data, 2, 0);
        launchStep(data, 3, second);
        assertEquals(CUDA_ERROR_NOT_READY, backend.driver().cuStreamQuery(second));
        gate.countDown();
        assertEquals((1 * 3 + 2) * 3 + 3, read(data, second));
    }

    @Test
    void shouldLetANonBlockingStreamPassTheLegacyStream() throws Exception {
        long free = stream(1);
        long data = allocate(4);
        CountDownLatch gate = new CountDownLatch(1);
        ok(backend.hostFunction(0, () -> await(gate)));
        ok(backend.driver().cuMemsetD32Async(data, 5, 1, free));
        assertEquals(5, read(data, free));
        assertEquals(CUDA_ERROR_NOT_READY, backend.driver().cuStreamQuery(0));
        gate.countDown();
        assertEquals(CUDA_SUCCESS, reached(0));
    }

    @Test
    void shouldMakeAStreamWaitForAnEventOfAnother() throws Exception {
        long producer = stream(1);
        long consumer = stream(1);
        long data = allocate(4);
        ok(backend.driver().cuEventCreate(out, 0));
        long event = out.get(ValueLayout.JAVA_LONG, 0);
        CountDownLatch gate = new CountDownLatch(1);
        ok(backend.driver().cuMemsetD32Async(data, 0, 1, producer));
        ok(backend.hostFunction(producer, () -> await(gate)));
        launchStep(data, 7, producer);
        ok(backend.driver().cuEventRecordWithFlags(event, producer, 0));
        ok(backend.driver().cuStreamWaitEvent(consumer, event, 0));
        launchStep(data, 1, consumer);
        assertEquals(CUDA_ERROR_NOT_READY, backend.driver().cuEventQuery(event));
        gate.countDown();
        assertEquals(7 * 3 + 1, read(data, consumer));
        assertEquals(CUDA_SUCCESS, backend.driver().cuEventQuery(event));
        CompletableFuture<Integer> done = new CompletableFuture<>();
        ok(backend.whenEventReached(event, done::complete));
        assertEquals(CUDA_SUCCESS, done.get(TIMEOUT_S, TimeUnit.SECONDS));
    }

    @Test
    void shouldPoisonOnlyTheContextWhoseKernelFaults() throws Exception {
        long data = allocate(4);
        try (SoftwareBackend other = new SoftwareBackend(1 << 20, 1)) {
            ok(other.createContext(0, 0, true, out));
            ok(other.setCurrent(out.get(ValueLayout.JAVA_LONG, 0)));
            launchStep(data + (32 << 20), 1, 0);
            assertEquals(CUDA_ERROR_ILLEGAL_ADDRESS, reached(0));
            assertTrue(backend.isPoisoned(CUDA_ERROR_ILLEGAL_ADDRESS));
            assertEquals(CUDA_ERROR_ILLEGAL_ADDRESS, backend.driver().cuMemAlloc_v2(out, 4));
            assertEquals(CUDA_ERROR_ILLEGAL_ADDRESS, backend.driver().cuStreamQuery(0));
            assertEquals(CUDA_SUCCESS, other.driver().cuMemAlloc_v2(out, 4));
        }
    }

    @Test
    void shouldFreeMemoryOnlyWhenWorkBeforeItIsDone() throws Exception {
        long data = allocate(4);
        CountDownLatch gate = new CountDownLatch(1);
        ok(backend.driver().cuMemsetD32Async(data, 1, 1, 0));
        ok(backend.hostFunction(0, () -> await(gate)));
        launchStep(data, 1, 0);
        ok(backend.driver().cuMemFree_v2(data));
        gate.countDown();
        assertEquals(CUDA_SUCCESS, reached(0));
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.driver().cuMemFree_v2(data));
    }

    @Test
    void shouldCancelAnEndlessKernelWhenClosed() throws Exception {
        long data = allocate(4);
        ok(backend.driver().cuMemsetD32Async(data, 0, 1, 0));
        MemorySegment params = arena.allocate(8);
        params.set(ValueLayout.JAVA_LONG, 0, data);
        ok(backend.launch(endless, 1, 1, 1, 1, 1, 1, 0, 0, 0, params, MemorySegment.NULL));
        CompletableFuture<Integer> done = new CompletableFuture<>();
        ok(backend.whenStreamReached(context, 0, done::complete));
        backend.close();
        assertTrue(done.get(TIMEOUT_S, TimeUnit.SECONDS) != CUDA_SUCCESS);
    }

    @Test
    void shouldRefuseLaunchesBeyondTheLimits() {
        MemorySegment params = arena.allocate(16);
        assertEquals(CUDA_ERROR_INVALID_VALUE,
            backend.launch(step, 1, 1, 1, 1025, 1, 1, 0, 0, 0, params, MemorySegment.NULL));
        assertEquals(CUDA_ERROR_INVALID_VALUE,
            backend.launch(step, 0, 1, 1, 1, 1, 1, 0, 0, 0, params, MemorySegment.NULL));
        assertEquals(CUDA_ERROR_INVALID_VALUE,
            backend.launch(step, 1, 1, 1, 1, 1, 1, 49 << 10, 0, 0, params, MemorySegment.NULL));
        assertEquals(CUDA_ERROR_INVALID_HANDLE,
            backend.launch(12345, 1, 1, 1, 1, 1, 1, 0, 0, 0, params, MemorySegment.NULL));
        assertEquals(CUDA_ERROR_INVALID_VALUE,
            backend.launch(step, 1, 1, 1, 1, 1, 1, 0, 0, 0, arena.allocate(8), MemorySegment.NULL));
    }

    @Test
    void shouldRefuseLaunchesByKernelAndNameTheInstruction() {
        StringBuilder log = new StringBuilder();
        String ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n.reg .f32 %f<9>;\n"
            + ".reg .b32 %r<9>;\nmma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, "
            + "{%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};\nret;\n}\n";
        ok(backend.loadImage(text(ptx + STEP.substring(STEP.indexOf(".visible"))), out, log));
        long module = out.get(ValueLayout.JAVA_LONG, 0);
        FunctionInfo info = new FunctionInfo();
        ok(backend.function(module, "k", info));
        assertEquals("line 7: not supported by the software GPU: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32, "
            + "in kernel k", info.refusal());
        assertEquals(1024, info.attribute(CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
        MemorySegment nothing = MemorySegment.ofArray(new byte[0]);
        for (int cooperative = 0; cooperative < 2; cooperative++) {
            assertEquals(CUDA_ERROR_NOT_SUPPORTED,
                backend.launch(info.handle(), 1, 1, 1, 32, 1, 1, 0, 0, cooperative, nothing, nothing));
        }
        GraphBackend graphs = backend.graphs();
        ok(graphs.create(out));
        assertEquals(CUDA_ERROR_NOT_SUPPORTED, graphs.add(out.get(ValueLayout.JAVA_LONG, 0), new long[0],
            new GraphNode.Kernel(info.handle(), 1, 1, 1, 32, 1, 1, 0, 0, nothing, nothing), out));
        FunctionInfo other = new FunctionInfo();
        ok(backend.function(module, "step", other));
        assertEquals("", other.refusal());
        CompletableFuture<Integer> status = new CompletableFuture<>();
        ok(backend.whenContextReached(context, status::complete));
        assertEquals(CUDA_SUCCESS, status.orTimeout(TIMEOUT_S, TimeUnit.SECONDS).join(), "the context goes on");
    }

    private static void await(CountDownLatch gate) {
        try {
            assertTrue(gate.await(TIMEOUT_S, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private MemorySegment text(String ptx) {
        return MemorySegment.ofArray(ptx.getBytes(StandardCharsets.US_ASCII));
    }

    private long function(long module, String name) {
        FunctionInfo info = new FunctionInfo();
        ok(backend.function(module, name, info));
        return info.handle();
    }

    private long stream(int flags) {
        ok(backend.driver().cuStreamCreateWithPriority(out, flags, 0));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private long allocate(long bytes) {
        ok(backend.driver().cuMemAlloc_v2(out, bytes));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private void launchStep(long data, int add, long stream) {
        MemorySegment params = arena.allocate(16);
        params.set(ValueLayout.JAVA_LONG, 0, data);
        params.set(ValueLayout.JAVA_INT, 8, add);
        ok(backend.launch(step, 1, 1, 1, 1, 1, 1, 0, stream, 0, params, MemorySegment.NULL));
    }

    private int reached(long stream) throws Exception {
        CompletableFuture<Integer> done = new CompletableFuture<>();
        ok(backend.whenStreamReached(context, stream, done::complete));
        return done.get(TIMEOUT_S, TimeUnit.SECONDS);
    }

    private int read(long data, long stream) throws Exception {
        MemorySegment value = arena.allocate(4);
        ok(backend.copyDtoH(value, data, stream));
        assertEquals(CUDA_SUCCESS, reached(stream));
        return value.get(ValueLayout.JAVA_INT, 0);
    }

    private static void ok(int cuResult) {
        assertEquals(CUDA_SUCCESS, cuResult);
    }
}
