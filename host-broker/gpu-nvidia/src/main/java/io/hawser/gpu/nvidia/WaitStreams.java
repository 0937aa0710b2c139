package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CudaNative;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;

/** The streams in which the worker waits for the guest's events, by context. Any thread. */
final class WaitStreams {
    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING

    private final Map<Long, ArrayDeque<Long>> idle = new HashMap<>(); // guarded by itself

    /** A stream of the current context; a negated CUresult on failure. */
    long take(long context) {
        synchronized (idle) {
            ArrayDeque<Long> streams = idle.get(context);
            if (streams != null && !streams.isEmpty()) {
                return streams.pop();
            }
        }
        return Natives.created(out -> CudaNative.cuStreamCreate(out, NON_BLOCKING));
    }

    void give(long context, long stream) {
        synchronized (idle) {
            idle.computeIfAbsent(context, key -> new ArrayDeque<>()).push(stream);
        }
    }

    /** Takes all idle streams of a context that is about to end. */
    Queue<Long> forget(long context) {
        synchronized (idle) {
            ArrayDeque<Long> streams = idle.remove(context);
            return streams == null ? new ArrayDeque<>() : streams;
        }
    }
}
