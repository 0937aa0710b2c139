package io.hawser.cuda.backend;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.util.Optional;

/**
 * A library of the machine, called by {@code java.lang.foreign}. A function that it lacks, because it is older than the
 * description, is an ordinary function that answers "not supported": nothing ends the JVM. Any thread.
 */
public final class NativeLibrary {
    private static final Linker LINKER = Linker.nativeLinker();

    private final String name;
    private final SymbolLookup lookup;

    private NativeLibrary(String name, SymbolLookup lookup) {
        this.name = name;
        this.lookup = lookup;
    }

    /**
     * Loads a library for the rest of the process.
     *
     * @param name file name, as {@code libcuda.so.1}, which the machine's loader finds.
     * @throws IllegalStateException if it cannot be loaded; the message names it.
     */
    public static NativeLibrary open(String name) {
        try {
            return new NativeLibrary(name, SymbolLookup.libraryLookup(name, Arena.global()));
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException("a library is missing or cannot be loaded: " + name, e);
        }
    }

    /** Whether the machine has it. */
    public static boolean isPresent(String name) {
        try (Arena arena = Arena.ofConfined()) {
            SymbolLookup.libraryLookup(name, arena);
            return true;
        } catch (IllegalArgumentException e) {
            return false; // the loader's way of saying no
        }
    }

    /** Whether the library has a function. */
    public boolean has(String symbol) {
        return lookup.find(symbol).isPresent();
    }

    /**
     * Finds a function that answers an int.
     *
     * @param symbol its exported name.
     * @param missing what is answered in its stead when the library lacks it.
     * @param parameters C's parameters.
     * @return a handle of that type.
     */
    public MethodHandle find(String symbol, int missing, MemoryLayout... parameters) {
        FunctionDescriptor descriptor = FunctionDescriptor.of(ValueLayout.JAVA_INT, parameters);
        Optional<MethodHandle> found = lookup.find(symbol).map(address -> LINKER.downcallHandle(address, descriptor));
        return found.orElseGet(() -> MethodHandles.dropArguments(MethodHandles.constant(int.class, missing), 0,
                descriptor.toMethodType().parameterList()));
    }

    /** What to throw when a call of a handle has thrown: a native function throws nothing, so it was the JVM. */
    public static RuntimeException unexpected(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException runtime ? runtime : new IllegalStateException(thrown);
    }

    @Override
    public String toString() {
        return name;
    }
}
