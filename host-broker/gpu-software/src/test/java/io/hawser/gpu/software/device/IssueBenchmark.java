package io.hawser.gpu.software.device;

import io.hawser.cuda.backend.FunctionInfo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Times how long issuing occupies the decoder's thread, and how long small work takes until its report: {@code
 * IssueBenchmark [rounds]}. Each line is the median of the rounds, in nanoseconds for each call. Compare only lines
 * from one quiet machine.
 */
final class IssueBenchmark {
    private static final int WARM_UP_ROUNDS = 5;
    private static final String PTX = """
        .version 8.0
        .target sm_75
        .address_size 64
        .visible .entry once(.param .u64 data, .param .u32 n) {
            .reg .u64 %a, %o;
            .reg .u32 %t, %v;
            ld.param.u64 %a, [data];
            mov.u32 %t, %tid.x;
            mul.wide.u32 %o, %t, 4;
            add.u64 %a, %a, %o;
            ld.global.u32 %v, [%a];
            add.u32 %v, %v, 1;
            st.global.u32 [%a], %v;
            ret;
        }
        .visible .entry loop(.param .u64 data, .param .u32 n) {
            .reg .u64 %a, %o;
            .reg .u32 %t, %v, %n;
            .reg .pred %p;
            ld.param.u64 %a, [data];
            ld.param.u32 %n, [n];
            mov.u32 %t, %tid.x;
            mul.wide.u32 %o, %t, 4;
            add.u64 %a, %a, %o;
        again:
            ld.global.u32 %v, [%a];
            add.u32 %v, %v, 1;
            st.global.u32 [%a], %v;
            sub.u32 %n, %n, 1;
            setp.ne.u32 %p, %n, 0;
            @%p bra again;
            ret;
        }
        """;

    /** One call to be timed. */
    private interface Call {
        int issue();
    }

    private final Arena arena = Arena.global();
    private final SoftwareBackend backend = new SoftwareBackend(64 << 20, Runtime.getRuntime().availableProcessors());
    private final MemorySegment out = arena.allocate(64, 8);
    private final MemorySegment params = arena.allocate(16, 8);
    private final AtomicInteger reports = new AtomicInteger();
    private final int rounds;
    private final long context;

    private IssueBenchmark(int rounds) {
        this.rounds = rounds;
        ok(backend.createContext(0, 0, true, out));
        context = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.setCurrent(context));
    }

    public static void main(String[] args) {
        new IssueBenchmark(args.length > 0 ? Integer.parseInt(args[0]) : 15).run();
    }

    private void run() {
        ok(backend.driver().cuStreamCreateWithPriority(out, 1, 0));
        long stream = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.driver().cuEventCreate(out, 0));
        long event = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.driver().cuMemAlloc_v2(out, 1 << 20));
        long data = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.loadImage(MemorySegment.ofArray(PTX.getBytes(StandardCharsets.US_ASCII)), out,
            new StringBuilder()));
        long module = out.get(ValueLayout.JAVA_LONG, 0);
        params.set(ValueLayout.JAVA_LONG, 0, data);
        params.set(ValueLayout.JAVA_INT, 8, 1);
        long once = function(module, "once");
        long loop = function(module, "loop");
        MemorySegment small = arena.allocate(64, 8);
        MemorySegment large = arena.allocate(1 << 20, 8);

        burst("event record", 20_000, stream, () -> backend.driver().cuEventRecordWithFlags(event, stream, 0));
        burst("wait for an event", 20_000, stream, () -> backend.driver().cuStreamWaitEvent(stream, event, 0));
        burst("report of an idle stream", 20_000, stream, () -> backend.whenStreamReached(context, stream, s -> {}));
        burst("memset, 64 bytes", 20_000, stream, () -> backend.driver().cuMemsetD32Async(data, 1, 16, stream));
        burst("copy to the device, 64 bytes", 20_000, stream, () -> backend.copyHtoD(data, small, stream));
        roundTrip("copy to the device and report, 64 bytes", 20_000, stream,
            () -> backend.copyHtoD(data, small, stream));
        roundTrip("copy to the host and report, 64 bytes", 20_000, stream,
            () -> backend.copyDtoH(small, data, stream));
        roundTrip("copy to the device and report, 1 MiB", 500, stream, () -> backend.copyHtoD(data, large, stream));
        for (int threads : new int[] {1, 32, 256, 1024}) {
            burst("launch without loop, threads " + threads, 5000, stream, () -> launch(once, threads, stream));
            roundTrip("launch without loop and report, threads " + threads, 5000, stream,
                () -> launch(once, threads, stream));
        }
        burst("launch with loop, threads 32", 5000, stream, () -> launch(loop, 32, stream));
        roundTrip("launch with loop and report, threads 32", 5000, stream, () -> launch(loop, 32, stream));
        backend.close();
    }

    private int launch(long function, int threads, long stream) {
        return backend.launch(function, 1, 1, 1, threads, 1, 1, 0, stream, 0, params, MemorySegment.NULL);
    }

    private long function(long module, String name) {
        FunctionInfo info = new FunctionInfo();
        ok(backend.function(module, name, info));
        return info.handle();
    }

    /** Times many calls followed by one wait. */
    private void burst(String name, int calls, long stream, Call call) {
        time(name, calls, () -> {
            for (int i = 0; i < calls; i++) {
                ok(call.issue());
            }
            await(stream);
        });
    }

    /** Times calls that each wait for their end. */
    private void roundTrip(String name, int calls, long stream, Call call) {
        time(name, calls, () -> {
            for (int i = 0; i < calls; i++) {
                ok(call.issue());
                await(stream);
            }
        });
    }

    private void await(long stream) {
        int before = reports.get();
        ok(backend.whenStreamReached(context, stream, status -> reports.incrementAndGet()));
        while (reports.get() == before) {
            Thread.onSpinWait();
        }
    }

    private void time(String name, int calls, Runnable round) {
        double[] nanoseconds = new double[rounds];
        for (int r = -WARM_UP_ROUNDS; r < rounds; r++) {
            long start = System.nanoTime();
            round.run();
            if (r >= 0) {
                nanoseconds[r] = (double) (System.nanoTime() - start) / calls;
            }
        }
        Arrays.sort(nanoseconds);
        System.out.printf("%-44s %10.0f ns, fastest %.0f%n", name, nanoseconds[rounds / 2], nanoseconds[0]);
    }

    private static void ok(int cuResult) {
        if (cuResult != 0) {
            throw new AssertionError("a call must succeed: CUresult=" + cuResult);
        }
    }
}
