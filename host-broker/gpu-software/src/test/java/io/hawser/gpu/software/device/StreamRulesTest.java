package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.FunctionInfo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Rules between streams that hold for every order of the threads. */
class StreamRulesTest {
    // Both kernels walk a grid; wait ends when flag[0] is set, add counts its blocks.
    private static final String PTX = """
        .version 8.0
        .target sm_75
        .address_size 64
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
        .visible .entry add(.param .u64 out) {
            .reg .u64 %a;
            .reg .u32 %v;
            ld.param.u64 %a, [out];
            atom.global.add.u32 %v, [%a], 1;
            ret;
        }
        """;
    private static final int NON_BLOCKING = 1;
    private static final long TIMEOUT_S = 60;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64);
    private SoftwareBackend backend;
    private long context;
    private long module;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(16 << 20, 2);
        ok(backend.createContext(0, 0, true, out));
        context = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.setCurrent(context));
        StringBuilder log = new StringBuilder();
        MemorySegment text = MemorySegment.ofArray(PTX.getBytes(StandardCharsets.US_ASCII));
        assertEquals(CUDA_SUCCESS, backend.loadImage(text, out, log), log::toString);
        module = out.get(ValueLayout.JAVA_LONG, 0);
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    @Test
    void shouldEndAKernelWhileWaitingKernelsHoldAllProcessors() throws Exception {
        long flag = zeroed();
        long count = zeroed();
        List<Long> waiting = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            long stream = stream(NON_BLOCKING);
            launch("wait", 8, flag, stream);
            waiting.add(stream);
        }
        long other = stream(NON_BLOCKING);
        launch("add", 1000, count, other);
        // If the device's kernels waited for all of their helpers before they end, the flag would never be set.
        ok(backend.driver().cuMemsetD32Async(flag, 1, 1, other));
        assertEquals(1000, read(count, other));
        for (long stream : waiting) {
            assertEquals(CUDA_SUCCESS, reached(stream));
        }
    }

    @Test
    void shouldMakeTheLegacyStreamWaitForADestroyedBlockingStream() throws Exception {
        long data = zeroed();
        long stream = stream(0);
        CountDownLatch gate = new CountDownLatch(1);
        ok(backend.hostFunction(stream, () -> await(gate)));
        launch("add", 5, data, stream);
        ok(backend.driver().cuStreamDestroy_v2(stream));
        MemorySegment value = arena.allocate(4);
        ok(backend.copyDtoH(value, data, 0));
        assertEquals(CUDA_ERROR_NOT_READY, backend.driver().cuStreamQuery(0));
        gate.countDown();
        assertEquals(CUDA_SUCCESS, reached(0));
        assertEquals(5, value.get(ValueLayout.JAVA_INT, 0));
    }

    @Test
    void shouldMakeAContextWaitForAnEvent() throws Exception {
        long data = zeroed();
        long producer = stream(NON_BLOCKING);
        long consumer = stream(NON_BLOCKING);
        CountDownLatch gate = new CountDownLatch(1);
        ok(backend.hostFunction(producer, () -> await(gate)));
        launch("add", 3, data, producer);
        ok(backend.driver().cuEventCreate(out, 0));
        long event = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.driver().cuEventRecordWithFlags(event, producer, 0));
        ok(backend.driver().cuCtxWaitEvent(context, event));
        MemorySegment value = arena.allocate(4);
        ok(backend.copyDtoH(value, data, consumer));
        gate.countDown();
        assertEquals(CUDA_SUCCESS, reached(consumer));
        assertEquals(3, value.get(ValueLayout.JAVA_INT, 0));
    }

    @Test
    void shouldWaitForTheLatestRecordOfAnEvent() throws Exception {
        long stream = stream(NON_BLOCKING);
        ok(backend.driver().cuEventCreate(out, 0));
        long event = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.driver().cuEventQuery(event));
        ok(backend.driver().cuEventRecordWithFlags(event, stream, 0));
        CountDownLatch gate = new CountDownLatch(1);
        ok(backend.hostFunction(stream, () -> await(gate)));
        ok(backend.driver().cuEventRecordWithFlags(event, stream, 0));
        assertEquals(CUDA_ERROR_NOT_READY, backend.driver().cuEventQuery(event));
        gate.countDown();
        CompletableFuture<Integer> done = new CompletableFuture<>();
        ok(backend.whenEventReached(event, done::complete));
        assertEquals(CUDA_SUCCESS, done.get(TIMEOUT_S, TimeUnit.SECONDS));
        assertEquals(CUDA_SUCCESS, backend.driver().cuEventQuery(event));
    }

    @Test
    void shouldKeepEachStreamsOrderUnderRandomWaits() throws Exception {
        Random random = new Random(20261120);
        int streams = 6;
        List<Long> handles = new ArrayList<>();
        List<List<Integer>> seen = new ArrayList<>();
        for (int i = 0; i < streams; i++) {
            handles.add(stream(i % 2 == 0 ? NON_BLOCKING : 0));
            seen.add(Collections.synchronizedList(new ArrayList<>()));
        }
        ok(backend.driver().cuEventCreate(out, 0));
        long event = out.get(ValueLayout.JAVA_LONG, 0);
        List<List<Integer>> issued = new ArrayList<>();
        seen.forEach(s -> issued.add(new ArrayList<>()));
        for (int i = 0; i < 2000; i++) {
            int number = i;
            int which = random.nextInt(streams);
            switch (random.nextInt(4)) {
                case 0 -> ok(backend.driver().cuEventRecordWithFlags(event, handles.get(which), 0));
                case 1 -> ok(backend.driver().cuStreamWaitEvent(handles.get(which), event, 0));
                default -> {
                    issued.get(which).add(number);
                    ok(backend.hostFunction(handles.get(which), () -> seen.get(which).add(number)));
                }
            }
        }
        CompletableFuture<Integer> done = new CompletableFuture<>();
        ok(backend.whenContextReached(context, done::complete));
        assertEquals(CUDA_SUCCESS, done.get(TIMEOUT_S, TimeUnit.SECONDS));
        assertEquals(issued, seen);
    }

    @Test
    void shouldEndAContextWhoseHostWorkFailsInsteadOfHanging() throws Exception {
        ok(backend.hostFunction(0, () -> {
            throw new IllegalStateException("made by the test");
        }));
        assertEquals(CUDA_ERROR_LAUNCH_FAILED, reached(0));
    }

    @Test
    void shouldNameTheKernelsOfAModule() {
        assertEquals(List.of("add", "wait"), backend.functionNames(module));
    }

    @Test
    void shouldRefuseFlagsThatNoEventHas() {
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.driver().cuEventCreate(out, 8));
        assertEquals(CUDA_ERROR_NOT_SUPPORTED, backend.driver().cuEventCreate(out, 4 | Event.DISABLE_TIMING));
    }

    private static void await(CountDownLatch gate) {
        try {
            assertTrue(gate.await(TIMEOUT_S, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private long stream(int flags) {
        ok(backend.driver().cuStreamCreateWithPriority(out, flags, 0));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private long zeroed() throws Exception {
        ok(backend.driver().cuMemAlloc_v2(out, 4));
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.driver().cuMemsetD32Async(address, 0, 1, 0));
        assertEquals(CUDA_SUCCESS, reached(0));
        return address;
    }

    private void launch(String name, int blocks, long address, long stream) {
        FunctionInfo info = new FunctionInfo();
        ok(backend.function(module, name, info));
        MemorySegment params = arena.allocate(8);
        params.set(ValueLayout.JAVA_LONG, 0, address);
        ok(backend.launch(info.handle(), blocks, 1, 1, 1, 1, 1, 0, stream, 0, params, MemorySegment.NULL));
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
