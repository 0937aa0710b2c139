package io.hawser.cuda.backend;

import java.util.List;

/**
 * Options for opening a backend.
 *
 * @param memoryBytes most device memory that it may allocate; 0 for all memory of the device.
 * @param threads processors that a software GPU may use; 0 for all.
 * @param devices number of GPUs of the software GPU.
 * @param chosen UUIDs of the GPUs to offer, in that order, as 8-4-4-4-12 digits; empty for all. For NVIDIA's driver,
 *     CUDA_VISIBLE_DEVICES chooses instead.
 */
public record BackendOptions(long memoryBytes, int threads, int devices, List<String> chosen) {
    /** Most GPUs of the software GPU: as many as guests can see. */
    public static final int MAX_DEVICES = 64;

    /** No limits and one GPU. */
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

    /** Creates options for one GPU. */
    public BackendOptions(long memoryBytes, int threads) {
        this(memoryBytes, threads, 1, List.of());
    }
}
