package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.PtxException;
import java.util.List;

/** One PTX text, parsed and checked: every instruction in it is one that the software GPU does. Immutable. */
public final class PtxModule {
    private PtxModule() {
    }

    /**
     * Parses and checks a module. Bytecode is made later, at a kernel's first launch.
     *
     * @param ptx the text, without the terminating NUL.
     * @throws PtxException CUDA_ERROR_INVALID_PTX or CUDA_ERROR_NOT_SUPPORTED, naming line and instruction.
     */
    public static PtxModule compile(String ptx) throws PtxException {
        throw PtxException.unsupported(1, "all of it");
    }

    /** Module-scope variables in the order of the text, external ones too. */
    public List<PtxVariable> variables() {
        return List.of();
    }
}
