package io.hawser.broker.model;

/**
 * How much of a GPU there is for a vGPU.
 *
 * @param totalBytes what its guests are told that the GPU has.
 * @param limitBytes what all its sessions together may hold there.
 */
public record Amount(long totalBytes, long limitBytes) {
    /** Nothing: of a GPU that the vGPU does not have. */
    public static final Amount NONE = new Amount(0, 0);

    /**
     * A quota: guests see a GPU of this size.
     *
     * @param deviceBytes of the GPU; 0 when its worker does not know.
     */
    public static Amount quota(long bytes, long deviceBytes) {
        long size = deviceBytes == 0 ? bytes : Math.min(bytes, deviceBytes);
        return new Amount(size, size);
    }

    /**
     * Best effort: guests see the whole GPU, and have of it what nobody has reserved.
     *
     * @param deviceBytes of the GPU; 0 when its worker does not know.
     */
    public static Amount bestEffort(long deviceBytes, long reservedBytes) {
        return deviceBytes == 0 ? new Amount(Long.MAX_VALUE, Long.MAX_VALUE)
            : new Amount(deviceBytes, Math.max(0, deviceBytes - reservedBytes));
    }
}
