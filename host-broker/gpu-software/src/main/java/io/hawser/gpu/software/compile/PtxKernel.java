package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.CtaSlot;
import io.hawser.gpu.software.exec.DeviceFault;
import io.hawser.gpu.software.exec.KernelLaunch;
import io.hawser.gpu.software.ptx.PtxException;
import java.util.List;

/** An entry function of a linked image. Thread-safe once the image is placed. */
public final class PtxKernel {
    /**
     * A kernel parameter's place in the packed parameter buffer.
     *
     * @param offset bytes from the start.
     * @param bytes  size.
     */
    public record Param(int offset, int bytes) { }

    private PtxKernel() {
    }

    /** The mangled name. */
    public String name() {
        return "";
    }

    /** Parameters in order. */
    public List<Param> params() {
        return List.of();
    }

    /** Size of the packed parameter buffer. */
    public int paramBytes() {
        return 0;
    }

    /** CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: shared memory without the dynamic part. */
    public int staticSharedBytes() {
        return 0;
    }

    /** CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES of one thread. */
    public int localBytesPerThread() {
        return 0;
    }

    /** CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: const variables of the kernel's module. */
    public int constBytes() {
        return 0;
    }

    /** CU_FUNC_ATTRIBUTE_NUM_REGS: an estimate from the most 32-bit values alive at once, 1..255. */
    public int registers() {
        return 0;
    }

    /** CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: 1024 or what .maxntid or .reqntid says. */
    public int maxThreadsPerBlock() {
        return 1024;
    }

    /** The block that .reqntid demands as {x, y, z}, or null. */
    public int[] requiredBlock() {
        return null;
    }

    /** PTX .version of the kernel's module as major * 10 + minor, for CU_FUNC_ATTRIBUTE_PTX_VERSION. */
    public int ptxVersion() {
        return 0;
    }

    /** .target of the kernel's module, for example 75. */
    public int targetSm() {
        return 0;
    }

    /**
     * Makes the bytecode, when that has not happened yet. The first launch does it too.
     *
     * @throws PtxException CUDA_ERROR_NOT_SUPPORTED if the kernel is beyond what can be translated.
     */
    public void prepare() throws PtxException {
    }

    /**
     * Runs one CTA to its end on the calling thread.
     *
     * @param slot scratch of the calling thread; any kernel's launches may reuse it.
     * @throws DeviceFault if the kernel faults or the launch is cancelled; the slot stays usable.
     */
    public void runCta(KernelLaunch launch, int ctaX, int ctaY, int ctaZ, CtaSlot slot) {
    }

    /**
     * Begins a CTA that {@link #resume} carries on: for cooperative launches, where every CTA has a slot of its own
     * and a few
     * host threads take turns at them. {@code begin; while (!resume(slot)) other CTAs;} equals {@link #runCta}.
     */
    public void begin(KernelLaunch launch, int ctaX, int ctaY, int ctaZ, CtaSlot slot) {
    }

    /**
     * Runs the slot's CTA until it ends or all of its threads only spin on memory.
     *
     * @return whether the CTA has ended.
     * @throws DeviceFault as {@link #runCta}.
     */
    public boolean resume(CtaSlot slot) {
        return true;
    }
}
