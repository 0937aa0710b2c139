package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Runs functions in stream order, on a thread of the driver. */
final class HostFunctions {
    private final Map<Long, Runnable> waiting = new ConcurrentHashMap<>();
    private final AtomicLong next = new AtomicLong(1);
    private final HostEntry entry;

    HostFunctions(Markers markers) {
        entry = new HostEntry(markers, "a host function", id -> waiting.remove(id).run());
    }

    int issue(long stream, Runnable function) {
        long id = next.getAndIncrement();
        waiting.put(id, function);
        int result = CudaNative.cuLaunchHostFunc(stream, entry.address(), MemorySegment.ofAddress(id));
        if (result != 0) {
            waiting.remove(id);
        }
        return result;
    }
}
