package io.hawser.broker.model;

/** Whether a vGPU shares its GPUs: its {@code mode}. */
public enum Sharing implements Labelled {
    /** Others may be placed on its GPUs. */
    SHARED,
    /** No other is. */
    EXCLUSIVE
}
