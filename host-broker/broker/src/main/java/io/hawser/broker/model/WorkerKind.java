package io.hawser.broker.model;

import java.util.List;

/**
 * Properties that a worker must receive before it opens its GPUs. All workers of a pool have the same.
 *
 * @param gpus UUIDs, in the session's order; empty for all GPUs.
 * @param percentage share of each GPU's multiprocessors under NVIDIA's MPS, 1 to {@value #WHOLE}; {@value #WHOLE} for
 * the default of MPS's daemon, and without MPS.
 * @param network the vGPU whose workers share a network of their own; empty for none.
 */
public record WorkerKind(List<String> gpus, int percentage, String network) {
    /** The percentage without a limit. */
    public static final int WHOLE = 100;
    /** All GPUs without a limit. */
    public static final WorkerKind FIRST = new WorkerKind(List.of(), WHOLE);

    /** A kind without a network of a vGPU. */
    public WorkerKind(List<String> gpus, int percentage) {
        this(gpus, percentage, "");
    }

    /** Checks the range of the percentage. */
    public WorkerKind {
        if (percentage < 1 || percentage > WHOLE) {
            throw new IllegalArgumentException("a percentage must be 1.." + WHOLE + ": percentage=" + percentage);
        }
        gpus = List.copyOf(gpus);
    }

    @Override
    public String toString() {
        return (gpus.isEmpty() ? "all" : gpus.toString()) + (percentage < WHOLE ? " " + percentage + "%" : "")
            + (network.isEmpty() ? "" : " network of " + network);
    }
}
