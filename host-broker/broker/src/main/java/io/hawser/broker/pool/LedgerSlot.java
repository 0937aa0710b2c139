package io.hawser.broker.pool;

import io.hawser.shm.ledger.Ledger;
import java.util.List;

/** A worker's slot in the ledger of its session's vGPU. Immutable; any thread. */
public final class LedgerSlot {
    /** Upper bound in bytes for a worker's claim; the broker reduces larger claims to this value. */
    public static final long MAX_BYTES = 1L << 53;

    private final String vgpu;
    private final int descriptor;
    private final Ledger ledger;
    private final int slot;
    private final List<String> gpus;
    private final List<Long> contextBytes;

    /**
     * Describes a slot.
     *
     * @param descriptor of the ledger's memory; the caller keeps it open until the worker ends.
     * @param contextBytes memory of a context on each GPU; 0 where unknown.
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

    /** The broker's own descriptor of the ledger's memory, open until the worker ends. Event loop. */
    public int descriptor() {
        return descriptor;
    }

    /** Number of slots in the ledger. */
    public int slots() {
        return ledger.slotCount();
    }

    /** Number of the worker's slot. */
    public int number() {
        return slot;
    }

    /** UUIDs of the columns' GPUs, in order. */
    public List<String> gpus() {
        return gpus;
    }

    /** Memory of a context on each of these GPUs, in bytes; 0 where unknown. */
    public List<Long> contextBytes() {
        return contextBytes;
    }

    /** Memory that the session holds on all GPUs, as its worker reports it, bounded by {@link #MAX_BYTES}. */
    public long heldBytes() {
        long sum = 0;
        for (int column = 0; column < gpus.size(); column++) {
            sum = Math.min(MAX_BYTES, sum + Math.min(MAX_BYTES, ledger.heldBytes(column, slot)));
        }
        return sum;
    }
}
