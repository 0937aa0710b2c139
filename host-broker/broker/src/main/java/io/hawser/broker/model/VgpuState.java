package io.hawser.broker.model;

/** Whether guests can use a vGPU. */
public enum VgpuState implements Labelled {
    /** It has its GPUs. */
    READY,
    /** No worker has reported the GPUs yet. */
    WAITING,
    /** Its GPUs are not available; its problem gives the reason. */
    UNPLACED
}
