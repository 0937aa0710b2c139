package io.hawser.broker.pool;

import io.hawser.shm.ledger.Ledger;
import java.util.List;

/** A worker's slot in the ledger of its session's vGPU. Immutable; any thread. */
public final class LedgerSlot {
    /** The most bytes that the broker takes from a worker's claim. */
    public static final long MAX_BYTES = 1L << 53;

    private final String vgpu;
    private final int descriptor;
    private final Ledger ledger;
    private final int slot;
    private final List<String> gpus;
    private final List<Long> contextBytes;

    /**
     * A slot.
     *
     * @param descriptor of the ledger's memory; the caller keeps it open as long as the worker lives.
     * @param contextBytes what a context costs on each GPU; 0 while that is not known.
     */
    public LedgerSlot(String vgpu, int descriptor, Ledger ledger, int slot, List<String> gpus,
        List<Long> contextBytes) {
        this.vgpu = vgpu;
        this.descriptor = descriptor;
        this.ledger = ledger;
        this.slot = slot;
        this.gpus = List.copyOf(gpus);
        this.contextBytes = List.copyOf(contextBytes);
    }

    /** Name of the vGPU. */
    public String vgpu() {
        return vgpu;
    }

    /** The ledger's memory; the broker's own descriptor, open as long as the worker lives. Event loop. */
    public int descriptor() {
        return descriptor;
    }

    /** Slots of the ledger. */
    public int slots() {
        return ledger.slotCount();
    }

    /** The worker's. */
    public int slot() {
        return slot;
    }

    /** UUIDs of the columns' GPUs, in order. */
    public List<String> gpus() {
        return gpus;
    }

    /** What a context costs on each of them; 0 while that is not known. */
    public List<Long> contextBytes() {
        return contextBytes;
    }

    /** What the session holds now on all GPUs, as its worker says, bounded. */
    public long heldBytes() {
        long sum = 0;
        for (int column = 0; column < gpus.size(); column++) {
            sum = Math.min(MAX_BYTES, sum + Math.min(MAX_BYTES, ledger.heldBytes(column, slot)));
        }
        return sum;
    }
}
