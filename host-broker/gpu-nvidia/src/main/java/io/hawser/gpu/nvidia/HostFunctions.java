package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CudaNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Runs functions in stream order, on a thread of the driver. */
final class HostFunctions {
    private static final Logger LOG = System.getLogger(HostFunctions.class.getName());

    private final Map<Long, Runnable> waiting = new ConcurrentHashMap<>();
    private final AtomicLong next = new AtomicLong(1);
    private final MemorySegment entry;
    private final Markers markers;

    /**
     * @param markers catch up before a function runs, because the guest may learn from it that earlier work is done.
     */
    HostFunctions(Markers markers) {
        this.markers = markers;
        try {
            entry = Linker.nativeLinker().upcallStub(
                MethodHandles.lookup().bind(this, "run", MethodType.methodType(void.class, long.class)),
                FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), Arena.global());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("run(long) must be in this class", e);
        }
    }

    int issue(long stream, Runnable function) {
        long id = next.getAndIncrement();
        waiting.put(id, function);
        int result = CudaNative.cuLaunchHostFunc(stream, entry, MemorySegment.ofAddress(id));
        if (result != 0) {
            waiting.remove(id);
        }
        return result;
    }

    /** Called by the driver. Must not throw: an exception in an upcall ends the JVM. */
    void run(long id) {
        try {
            markers.catchUp();
            waiting.remove(id).run();
        } catch (RuntimeException e) {
            LOG.log(Level.ERROR, "a host function failed inside the worker", e);
        }
    }
}
