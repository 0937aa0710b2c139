package io.hawser.gpu.software.math;

import io.hawser.cuda.backend.NativeLibrary;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The functions of OpenBLAS (cblas.h, lapacke.h), found by name at their first call. Any thread. */
final class OpenBlas {
    private final NativeLibrary library;
    private final Map<String, MethodHandle> functions = new ConcurrentHashMap<>();

    OpenBlas(NativeLibrary library) {
        this.library = library;
        if (!has("cblas_sgemm")) {
            throw new IllegalStateException(library + " must have a function: function=cblas_sgemm");
        }
    }

    boolean has(String function) {
        return library.has(function);
    }

    /**
     * Calls a function that the library has.
     *
     * @param result its result, null for none: the caller then gets an undefined value.
     * @param arguments Integer, Long (an address), Float or Double, as the function has them; each call of one function
     *     has the same types.
     */
    Object call(String function, MemoryLayout result, Object... arguments) {
        MethodHandle handle = functions.computeIfAbsent(function, name -> {
            MemoryLayout[] layouts = new MemoryLayout[arguments.length];
            for (int i = 0; i < layouts.length; i++) {
                layouts[i] = layout(arguments[i]);
            }
            return library.function(name, result == null ? ValueLayout.JAVA_INT : result, layouts)
                .asSpreader(Object[].class, layouts.length);
        });
        try {
            return handle.invoke(arguments);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    private static MemoryLayout layout(Object argument) {
        return switch (argument) {
            case Integer ignored -> ValueLayout.JAVA_INT;
            case Long ignored -> ValueLayout.JAVA_LONG;
            case Float ignored -> ValueLayout.JAVA_FLOAT;
            case Double ignored -> ValueLayout.JAVA_DOUBLE;
            default -> throw new IllegalArgumentException("an argument must be a number: " + argument);
        };
    }
}
