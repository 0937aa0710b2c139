package io.hawser.cuda.backend;

/**
 * How a backend is opened.
 *
 * @param memoryBytes most device memory that it may give out; 0 for what the device has.
 * @param threads processors that a software GPU may use; 0 for all.
 */
public record BackendOptions(long memoryBytes, int threads) {
    /** No limit. */
    public static final BackendOptions DEFAULT = new BackendOptions(0, 0);

    /** Checks the values. */
    public BackendOptions {
        if (memoryBytes < 0 || threads < 0) {
            throw new IllegalArgumentException(
                    "limits must not be negative: memoryBytes=" + memoryBytes + ", threads=" + threads);
        }
    }
}
