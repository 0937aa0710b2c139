package io.hawser.cuda.backend;

/** Finds and opens a kind of GPU; found by {@code ServiceLoader}. */
public interface GpuBackendProvider {
    /** {@code software} or {@code nvidia}. */
    String name();

    /** Whether this machine has what it needs; cheap, opens nothing. */
    boolean isAvailable();

    /**
     * Opens it.
     *
     * @throws IllegalStateException if the GPU cannot be opened; the message says why.
     */
    GpuBackend open(BackendOptions options);
}
