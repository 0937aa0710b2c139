package io.hawser.gpu.nvidia;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.LongConsumer;

/** A function of the worker that the driver calls with a number (CUhostFn), on a thread of its own. */
final class HostEntry {
    private static final Logger LOG = System.getLogger(HostEntry.class.getName());

    private final Markers markers;
    private final String name;
    private final LongConsumer function;
    private final MemorySegment address;

    /**
     * @param markers catch up before the function runs, because the guest may learn from it that earlier work is done.
     * @param name for the log.
     */
    HostEntry(Markers markers, String name, LongConsumer function) {
        this.markers = markers;
        this.name = name;
        this.function = function;
        try {
            address = Linker.nativeLinker().upcallStub(
                MethodHandles.lookup().bind(this, "run", MethodType.methodType(void.class, long.class)),
                FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), Arena.global());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("run(long) must be in this class", e);
        }
    }

    /** The CUhostFn, which is valid until the process ends. Its argument is the number. */
    MemorySegment address() {
        return address;
    }

    /** Called by the driver. Must not throw: an exception in an upcall ends the JVM. */
    void run(long number) {
        try {
            markers.catchUp();
            function.accept(number);
        } catch (RuntimeException e) {
            LOG.log(Level.ERROR, name + " failed inside the worker", e);
        }
    }
}
