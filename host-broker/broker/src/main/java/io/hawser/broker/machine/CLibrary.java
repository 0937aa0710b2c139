package io.hawser.broker.machine;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;

/** The C library of this process. */
public final class CLibrary {
    private static final int VERSION_BYTES = 32;

    private CLibrary() {
    }

    /** The version of glibc, such as 2.39; empty for another library. */
    public static String glibcVersion() {
        Linker linker = Linker.nativeLinker();
        Optional<MemorySegment> function = linker.defaultLookup().find("gnu_get_libc_version");
        if (function.isEmpty()) {
            return "";
        }
        try {
            MemorySegment version = (MemorySegment) linker.downcallHandle(function.get(),
                FunctionDescriptor.of(ValueLayout.ADDRESS)).invokeExact();
            return version.reinterpret(VERSION_BYTES).getString(0);
        } catch (Throwable e) { // invokeExact declares no less
            throw new IllegalStateException("gnu_get_libc_version takes nothing and gives a string", e);
        }
    }
}
