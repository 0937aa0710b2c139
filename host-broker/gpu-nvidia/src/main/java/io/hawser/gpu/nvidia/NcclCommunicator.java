package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSuccess;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclUnhandledCudaError;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CudaMemopsNative;
import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * A communicator of NCCL, with a stream of its own. Before an operation, the stream waits for the guest's streams. The
 * guest's streams wait until it has written the operation's number into a word. Nothing else writes the word, except
 * when the driver refuses that, so the numbers only grow.
 */
final class NcclCommunicator {
    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING
    private static final int NO_TIMING = 2; // CU_EVENT_DISABLE_TIMING
    private static final int PAGE_BYTES = 4096;
    private static final VarHandle VALUE = ValueLayout.JAVA_INT.varHandle();

    private final long comm;
    private final long context;
    private final long stream;
    private final Queue<Held> held = new ConcurrentLinkedQueue<>(); // the oldest first
    private MemorySegment word; // null before the first operation
    private int number;
    private CompletableFuture<Void> last = CompletableFuture.completedFuture(null);
    private volatile int error;

    /** An operation's number, and the events that it waits for. */
    private record Held(List<Long> events, int number) {
    }

    private NcclCommunicator(long comm, long context, long stream) {
        this.comm = comm;
        this.context = context;
        this.stream = stream;
    }

    /** Makes its stream in the current context; null when the driver refuses it. */
    static NcclCommunicator open(long comm, long context) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment made = arena.allocate(ValueLayout.JAVA_LONG);
            return CudaNative.cuStreamCreate(made, NON_BLOCKING) != 0 ? null
                : new NcclCommunicator(comm, context, made.get(ValueLayout.JAVA_LONG, 0));
        }
    }

    long comm() {
        return comm;
    }

    long context() {
        return context;
    }

    long stream() {
        return stream;
    }

    /** The first error of an operation, of ncclResult_t. */
    int error() {
        return error;
    }

    /** The end of the step that issues the last operation so far. Session thread, and the threads of finish and end. */
    synchronized CompletableFuture<Void> last() {
        return last;
    }

    synchronized void setLast(CompletableFuture<Void> step) {
        last = step;
    }

    /** Makes its context current; returns a result of NCCL. */
    int enter() {
        return CudaNative.cuCtxSetCurrent(context) == 0 ? ncclSuccess : ncclUnhandledCudaError;
    }

    /**
     * Lets streams of the guest wait for the next operation, and remembers their work so far. Session thread.
     *
     * @return a result of NCCL.
     */
    int hold(List<Long> streams, GpuBackend gpu) {
        if (gpu.setCurrent(context) != 0) {
            return ncclUnhandledCudaError;
        }
        if (word == null) {
            MemorySegment page = Arena.global().allocate(PAGE_BYTES, PAGE_BYTES);
            if (gpu.signals().open(page) != 0) {
                return ncclUnhandledCudaError;
            }
            word = page.asSlice(0, Integer.BYTES);
        }
        int next = ++number;
        List<Long> events = new ArrayList<>();
        boolean isHeld = true;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment event = arena.allocate(ValueLayout.JAVA_LONG);
            for (long guest : streams) {
                isHeld &= CudaNative.cuEventCreate(event, NO_TIMING) == 0;
                if (isHeld) {
                    events.add(event.get(ValueLayout.JAVA_LONG, 0));
                    isHeld = CudaNative.cuEventRecord(events.getLast(), guest) == 0
                        && gpu.signals().await(guest, word, next) == 0;
                }
            }
        }
        held.add(new Held(events, next));
        return isHeld ? ncclSuccess : ncclUnhandledCudaError;
    }

    /** Makes its stream wait for the work of the guest's streams before the next operation. */
    int awaitGuest() {
        Held next = held.peek();
        for (long event : next == null ? List.<Long>of() : next.events()) {
            if (CudaNative.cuStreamWaitEvent(stream, event, 0) != 0) {
                return ncclUnhandledCudaError;
            }
        }
        return ncclSuccess;
    }

    /** Lets the guest's streams go on after the operation, which has been issued with this result. */
    void release(int result) {
        note(result);
        Held done = held.poll();
        if (done == null) {
            return;
        }
        if (enter() != ncclSuccess
            || CudaMemopsNative.cuStreamWriteValue32_v2(stream, word.address(), done.number(), 0) != 0) {
            VALUE.setRelease(word, 0L, done.number());
        }
        done.events().forEach(event -> CudaNative.cuEventDestroy_v2(event));
    }

    /** As {@link #release} for an operation that no thread issues; leaves the thread's context as it is. */
    void giveUp(int result) {
        note(result);
        Held done = held.poll();
        if (done != null) {
            VALUE.setRelease(word, 0L, done.number());
            done.events().forEach(event -> CudaNative.cuEventDestroy_v2(event));
        }
    }

    private void note(int result) {
        if (result != ncclSuccess && error == ncclSuccess) {
            error = result;
        }
    }

    /** Lets the guest's streams go on, and gives up the stream. */
    void close() {
        if (word != null) {
            VALUE.setRelease(word, 0L, number);
        }
        CudaNative.cuStreamDestroy_v2(stream);
    }
}
