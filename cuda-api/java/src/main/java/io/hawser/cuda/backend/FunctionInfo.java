package io.hawser.cuda.backend;

/** Data about a kernel that a guest needs to launch it without a round trip; {@link GpuBackend#function} sets it. */
public final class FunctionInfo {
    /** Attributes in the reply: CUfunction_attribute 0 to 15. */
    public static final int ATTRIBUTES = 16;

    /**
     * Maximum number of parameters: a kernel's parameter space has 32,764 bytes (PTX ISA 8.1); guests' counts are
     * capped.
     */
    public static final int MAX_PARAMS = 4096;

    /** Maximum length of {@link #refusal} in UTF-8: the guest prints it as one line on standard error. */
    public static final int MAX_REFUSAL_BYTES = 1000;

    private long handle;
    private String refusal = "";
    private int[] offsets = {};
    private int[] sizes = {};
    private final int[] attributes = new int[ATTRIBUTES];

    /**
     * Sets all data except the attributes.
     *
     * @param nativeHandle the kernel.
     * @param paramOffsets offset in bytes of each parameter in the packed parameters.
     * @param paramSizes size in bytes of each parameter.
     */
    public void set(long nativeHandle, int[] paramOffsets, int[] paramSizes) {
        if (paramOffsets.length != paramSizes.length || paramOffsets.length > MAX_PARAMS) {
            throw new IllegalArgumentException("each parameter has an offset and a size, at most " + MAX_PARAMS
                + ": offsets=" + paramOffsets.length + ", sizes=" + paramSizes.length);
        }
        handle = nativeHandle;
        offsets = paramOffsets;
        sizes = paramSizes;
    }

    /** Sets an attribute by its CUfunction_attribute. */
    public void attribute(int index, int value) {
        attributes[index] = value;
    }

    /**
     * Sets the reason that each launch of the kernel returns CUDA_ERROR_NOT_SUPPORTED.
     *
     * @param reason names the instruction and the kernel.
     */
    public void refusal(String reason) {
        refusal = reason;
    }

    /** The reason that the kernel cannot be launched; empty for a kernel that can. */
    public String refusal() {
        return refusal;
    }

    /** The kernel. */
    public long handle() {
        return handle;
    }

    /** Number of parameters. */
    public int paramCount() {
        return offsets.length;
    }

    /** Offset in bytes of a parameter. */
    public int paramOffset(int index) {
        return offsets[index];
    }

    /** Size in bytes of a parameter. */
    public int paramSize(int index) {
        return sizes[index];
    }

    /** An attribute by its CUfunction_attribute. */
    public int attribute(int index) {
        return attributes[index];
    }
}
