package io.hawser.worker;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Ends the process with {@code _exit(2)}. {@link Runtime#halt} calls {@code exit(3)}, which runs the exit handlers of
 * libraries. The handler of NVIDIA's driver may wait there for a kernel that never ends.
 */
final class ProcessEnd {
    private static final MethodHandle EXIT;

    static {
        Linker linker = Linker.nativeLinker();
        MemorySegment symbol = linker.defaultLookup().find("_exit").orElseThrow();
        EXIT = linker.downcallHandle(symbol, FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT));
    }

    private ProcessEnd() {}

    /** Does not return. The kernel frees all resources of the process, including its GPU memory. */
    static void now(int status) {
        try {
            EXIT.invokeExact(status);
        } catch (Throwable e) {
            Runtime.getRuntime().halt(status);
        }
    }
}
