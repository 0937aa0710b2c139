package io.hawser.gpu.nvidia;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;

/** The driver's compiler of PTX, a library of its own that the driver opens when it first meets PTX. */
final class JitCompiler {
    // By this name the driver 580 asks for it; the dynamic linker then finds the one that is loaded.
    private static final String LIBRARY = "libnvidia-ptxjitcompiler.so.1";
    private static final Logger LOG = System.getLogger(JitCompiler.class.getName());

    private JitCompiler() { }

    /** Loads it for the life of the process. Without it PTX is refused by the driver, as natively. */
    static void load() {
        try {
            SymbolLookup.libraryLookup(LIBRARY, Arena.global());
        } catch (IllegalArgumentException e) {
            LOG.log(Level.WARNING, "the driver''s compiler of PTX cannot be loaded, so that PTX is refused: {0}",
                e.getMessage());
        }
    }
}
