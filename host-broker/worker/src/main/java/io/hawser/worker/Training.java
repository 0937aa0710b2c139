package io.hawser.worker;

import static io.hawser.worker.RehearsedGuest.THREAD;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsLaunchShape;
import io.hawser.cuda.generated.client.CopyRequests;
import io.hawser.cuda.generated.client.DeviceRequests;
import io.hawser.cuda.generated.client.EventRequests;
import io.hawser.cuda.generated.client.LaunchRequests;
import io.hawser.cuda.generated.client.MemoryRequests;
import io.hawser.cuda.generated.client.MemsetRequests;
import io.hawser.cuda.generated.client.ModuleRequests;
import io.hawser.cuda.generated.client.StreamRequests;
import io.hawser.shm.wire.RecordWriter;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/**
 * Makes the calls of programs that keep a GPU busy, until the JVM has compiled all code on their way. The JVM records
 * the profiles of this code in the worker's cache (JEP 515). A later worker compiles the code within its first
 * milliseconds instead of its first seconds.
 *
 * <p>A profile names the classes that the compiled code relied on. A later JVM waits with the best compilation until it
 * has initialised them all. A worker never initialises the classes of another backend than its own, and the method
 * then stays slow. So each backend needs a cache from a training run of its own.
 */
final class Training {
    /** Long enough for the JVM's second compiler to compile all code on the way of the calls, on two processors. */
    static final Duration SESSION = Duration.ofSeconds(6);

    private static final int BURST_ROUNDS = 50; // 80 KiB of requests, which fit into a region's ring
    private static final int WAITS = 20;
    private static final int MEMORY_BYTES = 1 << 20;
    private static final int COPY_BYTES = 1024;
    private static final long MODULE = RehearsedGuest.idOf(HandleKind.MODULE, 1);
    private static final long FUNCTION = RehearsedGuest.idOf(HandleKind.FUNCTION, 1);
    private static final long STREAM = RehearsedGuest.idOf(HandleKind.STREAM, 1);
    private static final long EVENT = RehearsedGuest.idOf(HandleKind.EVENT, 1);
    private static final int PARAMETER_BYTES = Long.BYTES + Integer.BYTES;
    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING
    private static final String KERNEL = """
        .version 7.0
        .target sm_70
        .address_size 64
        .visible .entry k(.param .u64 pointer, .param .u32 count) { ret; }
        """;

    private final RehearsedGuest guest;
    private final RecordWriter writer;
    private final MemorySegment content = MemorySegment.ofArray(new byte[COPY_BYTES]);
    private final MemorySegment parameters = MemorySegment.ofArray(new byte[PARAMETER_BYTES]);
    private final MemorySegment noAttributes = MemorySegment.ofArray(new byte[0]);
    private final HwsLaunchShape shape = new HwsLaunchShape(1, 1, 1, 32, 1, 1, 0);
    private final long durationNs;

    private Training(RehearsedGuest guest, Duration duration) {
        this.guest = guest;
        durationNs = duration.toNanos();
        writer = guest.writer();
    }

    /**
     * Runs a session over each carrier. The caller's thread plays the guest.
     *
     * @param backend the GPU; stays open.
     * @param duration how long each session makes calls; it makes each call at least once.
     * @throws IOException if a session or one of its calls fails.
     * @throws ExecutionException if the end of a session fails.
     * @throws TimeoutException if a session does not end in time.
     */
    static void run(GpuBackend backend, Duration duration) throws IOException, InterruptedException,
        ExecutionException, TimeoutException {
        Rehearsal.overLoopback(backend, guest -> new Training(guest, duration).play());
        Rehearsal.overRegion(backend, guest -> new Training(guest, duration).play());
    }

    private void play() throws IOException {
        guest.createContext();
        load();
        guest.call(MemoryRequests.cuMemAlloc_v2(writer, guest.sequence(), THREAD, guest.context(), MEMORY_BYTES));
        long memory = guest.reply().i64(0);
        parameters.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, memory);
        long end = System.nanoTime() + durationNs;
        do {
            for (int i = 0; i < BURST_ROUNDS; i++) {
                issue(memory);
            }
            synchronise();
            for (int i = 0; i < WAITS; i++) {
                launch();
                synchronise();
                guest.call(CopyRequests.hwsCopyDtoH(writer, guest.sequence(), THREAD, guest.context(), memory,
                    Long.BYTES, STREAM));
            }
        } while (System.nanoTime() - end < 0);
        guest.send(MemoryRequests.cuMemFree_v2(writer, guest.sequence(), THREAD, guest.context(), memory));
        guest.call(DeviceRequests.hwsDeviceInfo(writer, guest.sequence(), THREAD, 0, 0));
    }

    private void load() throws IOException {
        int context = guest.context();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment image = arena.allocateFrom(KERNEL);
            guest.call(ModuleRequests.hwsImageLoad(writer, guest.sequence(), THREAD, context, MODULE, 0, 0, 0,
                (int) image.byteSize(), image));
        }
        guest.call(ModuleRequests.hwsFunctionGet(writer, guest.sequence(), THREAD, context, MODULE, "k", FUNCTION));
        guest.send(StreamRequests.cuStreamCreateWithPriority(writer, guest.sequence(), THREAD, context, STREAM,
            NON_BLOCKING, 0));
        guest.send(EventRequests.cuEventCreate(writer, guest.sequence(), THREAD, context, EVENT, 0));
    }

    /** Sends one of each kind of call that a guest does not wait for. A failure shows in the next call that waits. */
    private void issue(long memory) throws IOException {
        int context = guest.context();
        launch();
        guest.send(EventRequests.hwsEventRecord(writer, guest.sequence(), THREAD, context, EVENT, STREAM));
        guest.send(StreamRequests.cuStreamWaitEvent(writer, guest.sequence(), THREAD, context, STREAM, EVENT, 0));
        guest.send(CopyRequests.hwsCopyHtoD(writer, guest.sequence(), THREAD, context, memory, STREAM, COPY_BYTES,
            content));
        guest.send(CopyRequests.cuMemcpyDtoDAsync_v2(writer, guest.sequence(), THREAD, context,
            memory + MEMORY_BYTES / 2, memory, COPY_BYTES, STREAM));
        guest.send(MemsetRequests.cuMemsetD8Async(writer, guest.sequence(), THREAD, context, memory, (byte) 0,
            COPY_BYTES, STREAM));
    }

    private void launch() throws IOException {
        guest.send(LaunchRequests.hwsLaunch(writer, guest.sequence(), THREAD, guest.context(), FUNCTION, STREAM, shape,
            0, PARAMETER_BYTES, parameters, 0, noAttributes));
    }

    private void synchronise() throws IOException {
        guest.call(StreamRequests.cuStreamSynchronize(writer, guest.sequence(), THREAD, guest.context(), STREAM));
    }
}
