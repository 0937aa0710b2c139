package io.hawser.broker.model;

/** With whom the processes of a vGPU's guests exchange data from GPU to GPU; its {@code communication}. */
public enum Communication implements Labelled {
    /** With none: each worker is alone. */
    NONE,
    /** With other processes of the same vGPU: its workers share a network of their own on this machine. */
    HOST
}
