package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.CUDA_SUCCESS;

import io.hawser.cuda.backend.Signals;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/** Signals as work of streams. A wait keeps its thread, which reads the word at intervals. Session thread only. */
final class SoftwareSignals implements Signals {
    private static final long PAUSE_NS = 50_000;
    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

    private final Device device;
    private volatile boolean closed;

    SoftwareSignals(Device device) {
        this.device = device;
    }

    @Override
    public int open(MemorySegment page) {
        return CUDA_SUCCESS;
    }

    @Override
    public int close(MemorySegment page) {
        return CUDA_SUCCESS;
    }

    @Override
    public int write(long stream, MemorySegment word, int number) {
        return issue(stream, () -> WORD.setVolatile(word, 0L, number));
    }

    @Override
    public int await(long stream, MemorySegment word, int number) {
        return issue(stream, () -> {
            while ((int) WORD.getVolatile(word, 0L) - number < 0 && !closed) {
                LockSupport.parkNanos(PAUSE_NS);
            }
        });
    }

    private int issue(long handle, Work.Body body) {
        Stream stream = device.stream(handle);
        int check = device.check(stream);
        if (check == CUDA_SUCCESS) {
            stream.context.issue(stream, body, false);
        }
        return check;
    }

    /** Ends all waits: the device is about to close. */
    void end() {
        closed = true;
    }
}
