package io.hawser.gpu.nvidia;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;

/** The driver's PTX compiler: a separate library that the driver opens at its first use of PTX. */
final class JitCompiler {
    // The driver 580 opens the library by this name; the dynamic linker then finds the copy that is already loaded.
    private static final String LIBRARY = "libnvidia-ptxjitcompiler.so.1";
    private static final Logger LOG = System.getLogger(JitCompiler.class.getName());

    private JitCompiler() {}

    /** Loads the compiler until the process exits. Without it the driver rejects PTX, as it does natively. */
    static void load() {
        try {
            SymbolLookup.libraryLookup(LIBRARY, Arena.global());
        } catch (IllegalArgumentException e) {
            LOG.log(Level.WARNING, "the driver''s PTX compiler cannot be loaded, so the driver will reject PTX: {0}",
                e.getMessage());
        }
    }
}
