package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/** The glibc functions that this package calls, and errno; Linux on a 64-bit machine. */
final class Libc {
    static final AddressLayout ADDRESS = ValueLayout.ADDRESS;
    static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    // Linux asm-generic/errno-base.h
    static final int EINTR = 4;
    static final int EAGAIN = 11;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final StructLayout CALL_STATE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = CALL_STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));
    private static final MethodHandle STRERROR = LINKER.downcallHandle(symbol("strerror"),
        FunctionDescriptor.of(ADDRESS, INT));

    /** A thread's preallocated memory for calls, so that calls allocate nothing. */
    static final class Scratch {
        /** Receives errno. */
        final MemorySegment state;
        /** Memory for one small struct. */
        final MemorySegment struct;

        private Scratch() {
            Arena arena = Arena.ofAuto();
            state = arena.allocate(CALL_STATE);
            struct = arena.allocate(64, 8);
        }

        int errno() {
            return (int) ERRNO.get(state, 0L);
        }
    }

    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

    private Libc() {
    }

    /** Finds a function that sets errno; the handle's first argument, {@link Scratch#state}, receives errno. */
    static MethodHandle find(String name, MemoryLayout result, MemoryLayout... arguments) {
        return LINKER.downcallHandle(symbol(name), FunctionDescriptor.of(result, arguments),
            Linker.Option.captureCallState("errno"));
    }

    /** As {@link #find} for a variadic C function with {@code fixed} declared arguments. */
    static MethodHandle findVariadic(int fixed, String name, MemoryLayout result, MemoryLayout... arguments) {
        return LINKER.downcallHandle(symbol(name), FunctionDescriptor.of(result, arguments),
            Linker.Option.captureCallState("errno"), Linker.Option.firstVariadicArg(fixed));
    }

    static Scratch scratch() {
        return SCRATCH.get();
    }

    /** The exception for a failed call: rule, then values. */
    static IOException failure(String rule, int errno) {
        return new IOException(rule + ", errno=" + errno + " (" + text(errno) + ")");
    }

    /** Handles the {@code Throwable} that a method handle declares; these functions never throw. */
    static RuntimeException unexpected(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException runtime ? runtime : new IllegalStateException(thrown);
    }

    private static String text(int errno) {
        try {
            MemorySegment text = (MemorySegment) STRERROR.invokeExact(errno);
            return text.reinterpret(256).getString(0);
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    private static MemorySegment symbol(String name) {
        return LINKER.defaultLookup().find(name).orElseThrow(() -> new UnsupportedOperationException(
            "shared memory needs Linux with glibc: missing symbol=" + name));
    }
}
