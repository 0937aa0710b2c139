package io.hawser.cuda.backend;

import java.util.List;

/**
 * How a backend is opened.
 *
 * @param memoryBytes most device memory that it may give out; 0 for what the device has.
 * @param threads processors that a software GPU may use; 0 for all.
 * @param devices how many GPUs a software GPU is.
 * @param chosen UUIDs of the GPUs to offer, in that order, as 8-4-4-4-12 digits; empty for all. A real driver is told
 *     by its own means.
 */
public record BackendOptions(long memoryBytes, int threads, int devices, List<String> chosen) {
    /** Most GPUs that the software GPU pretends to be: as many as guests can see. */
    public static final int MAX_DEVICES = 64;

    /** No limit, one GPU. */
    public static final BackendOptions DEFAULT = new BackendOptions(0, 0);

    /** Checks the values. */
    public BackendOptions {
        if (memoryBytes < 0 || threads < 0) {
            throw new IllegalArgumentException(
                    "limits must not be negative: memoryBytes=" + memoryBytes + ", threads=" + threads);
        }
        if (devices < 1 || devices > MAX_DEVICES) {
            throw new IllegalArgumentException("devices must be 1.." + MAX_DEVICES + ": devices=" + devices);
        }
        chosen = List.copyOf(chosen);
    }

    /** One GPU. */
    public BackendOptions(long memoryBytes, int threads) {
        this(memoryBytes, threads, 1, List.of());
    }
}
