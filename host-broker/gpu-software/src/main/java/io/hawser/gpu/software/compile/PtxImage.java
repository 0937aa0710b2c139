package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.GlobalMemory;
import io.hawser.gpu.software.ptx.PtxException;
import java.util.List;
import java.util.Map;

/**
 * One or several modules linked together: what cuModuleLoadData and cuLibraryLoadData make. Use: {@link #link},
 * allocate
 * memory for {@link #variables()}, {@link #place}, then launch kernels. Loading is single-threaded; launches of
 * placed images
 * are not. An image holds no native memory: dropping the reference frees it, compiled code included.
 */
public final class PtxImage {
    private PtxImage() {
    }

    /**
     * Resolves external functions and variables between the modules.
     *
     * @throws PtxException CUDA_ERROR_NOT_FOUND for an unresolved symbol, CUDA_ERROR_INVALID_PTX for a double
     * definition.
     */
    public static PtxImage link(List<PtxModule> modules) throws PtxException {
        return new PtxImage();
    }

    /** Variables that need memory (defined ones, global and const), in a stable order. */
    public List<PtxVariable> variables() {
        return List.of();
    }

    /** The exported variable of this name that the host may ask for, or null. */
    public PtxVariable variable(String name) {
        return null;
    }

    /** All kernels by name; names are unique in an image. */
    public Map<String, PtxKernel> kernels() {
        return Map.of();
    }

    /**
     * Tells the image where its variables are and writes their initial bytes (zeros where there are none),
     * relocations included.
     *
     * @param memory    the arena that kernels will run on.
     * @param addresses for each of {@link #variables()} an address inside the arena, aligned and marked allocated.
     */
    public void place(GlobalMemory memory, Map<PtxVariable, Long> addresses) {
    }
}
