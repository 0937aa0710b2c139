package io.hawser.cuda.backend;

/** Finds and opens a kind of GPU; {@code ServiceLoader} finds the provider. */
public interface GpuBackendProvider {
    /** {@code software} or {@code nvidia}. */
    String name();

    /** Whether this machine has the required devices and libraries; cheap, opens nothing. */
    boolean isAvailable();

    /**
     * Opens the GPU.
     *
     * @throws IllegalStateException if the GPU cannot be opened; the message gives the reason.
     */
    GpuBackend open(BackendOptions options);

    /**
     * Opens the moves of other processes' GPU state. Needs no GPU memory of its own.
     *
     * @return null where this kind of GPU has none.
     * @throws IllegalStateException if the driver does not start; the message gives the reason.
     */
    default ProcessCheckpoints checkpoints() {
        return null;
    }
}
