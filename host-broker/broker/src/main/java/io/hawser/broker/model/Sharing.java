package io.hawser.broker.model;

/** Whether a vGPU shares its GPUs; its {@code mode}. */
public enum Sharing implements Labelled {
    /** Other vGPUs may have the same GPUs. */
    SHARED,
    /** No other vGPU has its GPUs. */
    EXCLUSIVE
}
