package io.hawser.broker.model;

/**
 * A vGPU's amount of a GPU's memory.
 *
 * @param totalBytes size of the GPU that its guests see.
 * @param limitBytes limit of all its sessions together.
 */
public record Amount(long totalBytes, long limitBytes) {
    /** For a GPU that the vGPU does not have. */
    public static final Amount NONE = new Amount(0, 0);

    /**
     * The amount of a quota: guests see a GPU of this size.
     *
     * @param deviceBytes size of the GPU; 0 when its worker does not know it.
     */
    public static Amount quota(long bytes, long deviceBytes) {
        long size = deviceBytes == 0 ? bytes : Math.min(bytes, deviceBytes);
        return new Amount(size, size);
    }

    /**
     * The amount of best effort: guests see the whole GPU and may use the unreserved part.
     *
     * @param deviceBytes size of the GPU; 0 when its worker does not know it.
     */
    public static Amount bestEffort(long deviceBytes, long reservedBytes) {
        return deviceBytes == 0 ? new Amount(Long.MAX_VALUE, Long.MAX_VALUE)
            : new Amount(deviceBytes, Math.max(0, deviceBytes - reservedBytes));
    }
}
