package io.hawser.broker.model;

import java.util.List;

/**
 * What a worker can only be told before it opens its GPUs, so that those of one pool are all alike in it.
 *
 * @param gpus UUIDs, in the session's order; empty for all that there are.
 * @param percentage of each GPU's multiprocessors that NVIDIA's MPS gives it, 1 to {@value #WHOLE}; that for as many as
 *     MPS's daemon gives by itself, and where there is no MPS.
 */
public record WorkerKind(List<String> gpus, int percentage) {
    /** No percentage of its own. */
    public static final int WHOLE = 100;
    /** Sees all GPUs, and has all of them. */
    public static final WorkerKind FIRST = new WorkerKind(List.of(), WHOLE);

    /** Holds it to its range. */
    public WorkerKind {
        if (percentage < 1 || percentage > WHOLE) {
            throw new IllegalArgumentException("a percentage must be 1.." + WHOLE + ": percentage=" + percentage);
        }
        gpus = List.copyOf(gpus);
    }

    @Override
    public String toString() {
        return (gpus.isEmpty() ? "all" : gpus.toString()) + (percentage < WHOLE ? " " + percentage + "%" : "");
    }
}
