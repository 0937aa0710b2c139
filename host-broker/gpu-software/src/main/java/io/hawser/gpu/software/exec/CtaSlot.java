package io.hawser.gpu.software.exec;

/**
 * Scratch for one running CTA: shared memory, local memory, saved registers. It is kept by a host thread and reused
 * from CTA to CTA and from
 * kernel to kernel, so that a launch allocates nothing in the steady state. Used by one thread at a time.
 */
public final class CtaSlot {
    /** A slot for CTAs on this arena. */
    public CtaSlot(GlobalMemory memory) {
    }
}
