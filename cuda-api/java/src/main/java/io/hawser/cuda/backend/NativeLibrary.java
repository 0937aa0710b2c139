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
 * A library of the machine, called through {@code java.lang.foreign}. An older library may lack a described function. A
 * function that returns "not supported" then takes its place, so that nothing ends the JVM. Any thread.
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
     * @param name file name, for example {@code libcuda.so.1}, which the machine's loader finds.
     * @throws IllegalStateException if it cannot be loaded; the message names the file.
     */
    public static NativeLibrary open(String name) {
        try {
            return new NativeLibrary(name, SymbolLookup.libraryLookup(name, Arena.global()));
        } catch (IllegalArgumentException e) {
            throw new IllegalStateException("a library is missing or cannot be loaded: " + name, e);
        }
    }

    /** Whether the machine has the library. */
    public static boolean isPresent(String name) {
        try (Arena arena = Arena.ofConfined()) {
            SymbolLookup.libraryLookup(name, arena);
            return true;
        } catch (IllegalArgumentException e) {
            return false; // the loader found no such library
        }
    }

    /** Whether the library has a function. */
    public boolean has(String symbol) {
        return lookup.find(symbol).isPresent();
    }

    /**
     * Finds a function that returns an int.
     *
     * @param symbol its exported name.
     * @param missing result of the function that replaces a missing one.
     * @param parameters C's parameters.
     * @return a handle of that type.
     */
    public MethodHandle find(String symbol, int missing, MemoryLayout... parameters) {
        FunctionDescriptor descriptor = FunctionDescriptor.of(ValueLayout.JAVA_INT, parameters);
        Optional<MethodHandle> found = lookup.find(symbol).map(address -> LINKER.downcallHandle(address, descriptor));
        return found.orElseGet(() -> MethodHandles.dropArguments(MethodHandles.constant(int.class, missing), 0,
            descriptor.toMethodType().parameterList()));
    }

    /**
     * A function that the library has.
     *
     * @throws java.util.NoSuchElementException if the library lacks it.
     */
    public MethodHandle function(String symbol, MemoryLayout result, MemoryLayout... parameters) {
        return LINKER.downcallHandle(lookup.find(symbol).orElseThrow(), FunctionDescriptor.of(result, parameters));
    }

    /** Converts an exception from a call of a handle: native functions throw nothing, so the JVM threw it. */
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
