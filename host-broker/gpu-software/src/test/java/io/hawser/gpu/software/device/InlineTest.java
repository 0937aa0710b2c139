package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.FunctionInfo;
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
import org.junit.jupiter.api.Timeout;

/** Which work runs on the issuing thread, and which must not. */
@Timeout(300)
class InlineTest {
    private static final String PTX = """
        .version 8.0
        .target sm_75
        .address_size 64
        .visible .entry add(.param .u64 out) {
            .reg .u64 %a;
            .reg .u32 %v;
            ld.param.u64 %a, [out];
            atom.global.add.u32 %v, [%a], 1;
            ret;
        }
        .visible .entry wait(.param .u64 flag) {
            .reg .u64 %a;
            .reg .u32 %v;
            .reg .pred %p;
            ld.param.u64 %a, [flag];
        again:
            ld.volatile.global.u32 %v, [%a];
            setp.eq.u32 %p, %v, 0;
            @%p bra again;
            ret;
        }
        """;
    private static final int NON_BLOCKING = 1;
    private static final long TIMEOUT_S = 60;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64);
    private final SoftwareBackend backend = new SoftwareBackend(16 << 20, 2);
    private long context;
    private long add;
    private long wait;
    private long stream;
    private long data;

    @BeforeEach
    void open() {
        ok(backend.createContext(0, 0, true, out));
        context = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.setCurrent(context));
        StringBuilder log = new StringBuilder();
        MemorySegment text = MemorySegment.ofArray(PTX.getBytes(StandardCharsets.US_ASCII));
        assertEquals(CUDA_SUCCESS, backend.loadImage(text, out, log), log::toString);
        long module = out.get(ValueLayout.JAVA_LONG, 0);
        add = function(module, "add");
        wait = function(module, "wait");
        stream = stream(NON_BLOCKING);
        ok(backend.driver().cuMemAlloc_v2(out, 4));
        data = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.driver().cuMemsetD32Async(data, 0, 1, stream));
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    @Test
    void shouldRunASmallKernelBeforeItsLaunchReturnsWhenItsStreamIsIdle() {
        MemorySegment value = arena.allocate(4);
        for (int i = 1; i <= 3; i++) {
            launch(add, 1, stream);
            assertEquals(CUDA_SUCCESS, backend.driver().cuStreamQuery(stream));
            ok(backend.copyDtoH(value, data, stream));
            assertEquals(i, value.get(ValueLayout.JAVA_INT, 0));
        }
    }

    @Test
    void shouldNotRunASmallKernelBeforeWhatItFollows() throws Exception {
        long blocking = stream(0);
        CountDownLatch gate = new CountDownLatch(1);
        MemorySegment value = arena.allocate(4);
        ok(backend.hostFunction(blocking, () -> await(gate)));
        launch(add, 1, 0);
        assertEquals(CUDA_ERROR_NOT_READY, backend.driver().cuStreamQuery(0));
        ok(backend.copyDtoH(value, data, stream));
        assertEquals(0, value.get(ValueLayout.JAVA_INT, 0), "the default stream waits for the blocking stream");
        launch(add, 1, stream(0));
        ok(backend.copyDtoH(value, data, stream));
        assertEquals(0, value.get(ValueLayout.JAVA_INT, 0), "a blocking stream waits for the default stream");
        gate.countDown();
        assertEquals(CUDA_SUCCESS, reached(0));
        ok(backend.copyDtoH(value, data, stream));
        assertTrue(value.get(ValueLayout.JAVA_INT, 0) >= 1);
    }

    @Test
    void shouldNotRunASmallKernelBeforeAnEventThatItsStreamWaitsFor() throws Exception {
        long other = stream(NON_BLOCKING);
        CountDownLatch gate = new CountDownLatch(1);
        ok(backend.driver().cuEventCreate(out, 0));
        long event = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.hostFunction(other, () -> await(gate)));
        ok(backend.driver().cuEventRecordWithFlags(event, other, 0));
        long waiting = stream(NON_BLOCKING);
        ok(backend.driver().cuStreamWaitEvent(waiting, event, 0));
        launch(add, 1, waiting);
        MemorySegment value = arena.allocate(4);
        ok(backend.copyDtoH(value, data, stream));
        assertEquals(0, value.get(ValueLayout.JAVA_INT, 0));
        gate.countDown();
        assertEquals(CUDA_SUCCESS, reached(waiting));
        ok(backend.copyDtoH(value, data, stream));
        assertEquals(1, value.get(ValueLayout.JAVA_INT, 0));
    }

    @Test
    void shouldNeverRunALoopOnTheIssuingThread() throws Exception {
        // Issues short work twice, so that no history of earlier runs can predict that work is always short.
        ok(backend.driver().cuMemsetD32Async(data, 1, 1, stream));
        for (int i = 0; i < 2; i++) {
            launch(wait, 1, stream);
            assertEquals(CUDA_SUCCESS, reached(stream));
        }
        ok(backend.driver().cuMemsetD32Async(data, 0, 1, stream));
        launch(wait, 1, stream);
        assertEquals(CUDA_ERROR_NOT_READY, backend.driver().cuStreamQuery(stream));
        // If the launch had run on the issuing thread, this line would never be reached.
        ok(backend.driver().cuMemsetD32Async(data, 1, 1, stream(NON_BLOCKING)));
        assertEquals(CUDA_SUCCESS, reached(stream));
    }

    @Test
    void shouldNotRunAHostFunctionOnTheIssuingThreadAndRunEveryBlockOfALargeGrid() throws Exception {
        CompletableFuture<Thread> ran = new CompletableFuture<>();
        ok(backend.hostFunction(stream, () -> ran.complete(Thread.currentThread())));
        assertNotSame(Thread.currentThread(), ran.get(TIMEOUT_S, TimeUnit.SECONDS));
        launch(add, 1 << 20, stream);
        assertEquals(CUDA_SUCCESS, reached(stream));
        MemorySegment value = arena.allocate(4);
        ok(backend.copyDtoH(value, data, stream));
        assertEquals(1 << 20, value.get(ValueLayout.JAVA_INT, 0));
    }

    @Test
    void shouldReportAnIdleStreamAtOnce() {
        Thread[] told = new Thread[3];
        ok(backend.whenStreamReached(context, stream, status -> told[0] = Thread.currentThread()));
        ok(backend.whenContextReached(context, status -> told[1] = Thread.currentThread()));
        ok(backend.driver().cuEventCreate(out, 0));
        long event = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.driver().cuEventRecordWithFlags(event, stream, 0));
        assertEquals(CUDA_SUCCESS, backend.driver().cuEventQuery(event));
        ok(backend.whenEventReached(event, status -> told[2] = Thread.currentThread()));
        for (Thread thread : told) {
            assertSame(Thread.currentThread(), thread);
        }
    }

    @Test
    void shouldTimeEventsAroundASmallKernel() {
        ok(backend.driver().cuEventCreate(out, 0));
        long start = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.driver().cuEventCreate(out, 0));
        long end = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.driver().cuEventRecordWithFlags(start, stream, 0));
        launch(add, 1, stream);
        ok(backend.driver().cuEventRecordWithFlags(end, stream, 0));
        ok(backend.driver().cuEventElapsedTime_v2(out, start, end));
        assertTrue(out.get(ValueLayout.JAVA_FLOAT, 0) > 0);
    }

    @Test
    void shouldReportAFaultOfASmallKernelLikeAnyOther() throws Exception {
        ok(backend.driver().cuMemFree_v2(data));
        launch(add, 1, stream);
        assertEquals(CUDA_ERROR_ILLEGAL_ADDRESS, reached(stream));
        assertEquals(CUDA_ERROR_ILLEGAL_ADDRESS, backend.driver().cuStreamQuery(stream));
        assertNotEquals(CUDA_SUCCESS, backend.driver().cuMemAlloc_v2(out, 4));
    }

    private void launch(long function, int blocks, long to) {
        MemorySegment params = arena.allocate(8);
        params.set(ValueLayout.JAVA_LONG, 0, data);
        ok(backend.launch(function, blocks, 1, 1, 1, 1, 1, 0, to, 0, params, MemorySegment.NULL));
    }

    private static void await(CountDownLatch gate) {
        try {
            assertTrue(gate.await(TIMEOUT_S, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
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

    private int reached(long of) throws Exception {
        CompletableFuture<Integer> done = new CompletableFuture<>();
        ok(backend.whenStreamReached(context, of, done::complete));
        return done.get(TIMEOUT_S, TimeUnit.SECONDS);
    }

    private static void ok(int cuResult) {
        assertEquals(CUDA_SUCCESS, cuResult);
    }
}
