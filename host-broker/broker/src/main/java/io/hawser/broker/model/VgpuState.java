package io.hawser.broker.model;

/** Whether guests can come. */
public enum VgpuState implements Labelled {
    /** It has its GPUs. */
    READY,
    /** No worker has told yet which GPUs there are. */
    WAITING,
    /** It cannot have what it should; its problem says why. */
    UNPLACED
}
