package io.hawser.shm.ledger;

import java.lang.foreign.MemorySegment;

/**
 * A ledger's memory: limits, the memory that each session holds, and the lock of claims. Any process that maps the
 * ledger may write anything at any time. Each number is therefore read once and limited to its range, and no method
 * waits for the lock. Both sides use the methods, except those marked "broker only". Any thread.
 */
public final class Ledger {
    private final MemorySegment memory;
    private final int slotCount;

    /**
     * Uses memory as a ledger.
     *
     * @param memory at least {@link LedgerLayout#bytes} bytes, zeros at first; must stay mapped.
     * @param slotCount number of slots, from the broker.
     */
    public Ledger(MemorySegment memory, int slotCount) {
        if (memory.byteSize() < LedgerLayout.bytes(slotCount)) {
            throw new IllegalArgumentException("a ledger's memory must hold its slots: bytes=" + memory.byteSize()
                + ", slotCount=" + slotCount);
        }
        this.memory = memory;
        this.slotCount = slotCount;
    }

    /** Number of slots. */
    public int slotCount() {
        return slotCount;
    }

    /**
     * Sets the memory of a GPU. Broker only.
     *
     * @param totalBytes size of the GPU's memory as guests see it.
     * @param limitBytes maximum for all sessions together; sessions keep memory that they already hold beyond it.
     */
    public void limit(int column, long totalBytes, long limitBytes) {
        set(head(column) + LedgerLayout.TOTAL_OFFSET, totalBytes);
        set(head(column) + LedgerLayout.LIMIT_OFFSET, limitBytes);
    }

    /** Maximum of a GPU's memory for all sessions together, 0 or more. */
    public long limitBytes(int column) {
        return Math.max(0, get(head(column) + LedgerLayout.LIMIT_OFFSET));
    }

    /** Size of a GPU's memory as guests see it, 0 or more. */
    public long totalBytes(int column) {
        return Math.max(0, get(head(column) + LedgerLayout.TOTAL_OFFSET));
    }

    /** Memory of a GPU that a session holds, 0 or more. */
    public long heldBytes(int column, int slot) {
        return Math.max(0, get(slot(column, slot)));
    }

    /** Memory of a GPU that all sessions hold; {@link Long#MAX_VALUE} if a worker wrote impossible numbers. */
    public long usedBytes(int column) {
        return usedBytes(column, -1);
    }

    /** As {@link #usedBytes(int)}, without one slot. */
    long usedBytes(int column, int without) {
        return sum(slot(column, 0), without);
    }

    private long sum(long first, int without) {
        long sum = 0;
        for (int slot = 0; slot < slotCount; slot++) {
            if (slot != without) {
                sum += Math.max(0, get(first + (long) slot * Long.BYTES));
                if (sum < 0) {
                    return Long.MAX_VALUE;
                }
            }
        }
        return sum;
    }

    /**
     * Memory of all GPUs that guests keep without using it; it counts as held. {@link Long#MAX_VALUE} if a worker wrote
     * impossible numbers.
     */
    long keptBytes() {
        return sum(keptSlot(0), -1);
    }

    /** Sets the memory that the guest of the caller's slot keeps without using it. */
    void setKeptBytes(int slot, long bytes) {
        set(keptSlot(slot), bytes);
    }

    /** Counts the calls of {@link #want}. */
    long wanted() {
        return get(LedgerLayout.WANTED_OFFSET);
    }

    /** Makes all sessions ask their guests for the memory that they keep. */
    void want() {
        LedgerLayout.I64.getAndAdd(memory, LedgerLayout.WANTED_OFFSET, 1L);
    }

    /** Sets the memory that the caller's slot holds: a session's slot or the broker's. */
    public void setHeldBytes(int column, int slot, long bytes) {
        set(slot(column, slot), bytes);
    }

    /**
     * Takes the lock if it is free.
     *
     * @param token not 0; contains a slot.
     */
    boolean tryLock(long token) {
        return get(LedgerLayout.LOCK_OFFSET) == 0
            && LedgerLayout.I64.compareAndSet(memory, LedgerLayout.LOCK_OFFSET, 0L, token);
    }

    /** Frees the lock, unless another slot holds it by now. */
    void unlock(long token) {
        LedgerLayout.I64.compareAndSet(memory, LedgerLayout.LOCK_OFFSET, token, 0L);
    }

    /**
     * Clears the slot of a session whose worker has ended: it holds no memory and not the lock. Broker only, after the
     * end of the process.
     *
     * @param slot slot of the session.
     */
    public void clear(int slot) {
        for (int column = 0; column < LedgerLayout.MAX_COLUMNS; column++) {
            long offset = slot(column, slot);
            if (get(offset) != 0) { // leaves a column that was never used without a page
                set(offset, 0);
            }
        }
        if (get(keptSlot(slot)) != 0) {
            set(keptSlot(slot), 0);
        }
        long token = lockWord();
        if ((token & LedgerLayout.SLOT_MASK) == slot + 1) {
            unlock(token);
        }
    }

    /** The lock word: 0, or the holder's slot and turn. Broker only. */
    public long lockWord() {
        return get(LedgerLayout.LOCK_OFFSET);
    }

    /**
     * Frees a lock that has been held for longer than any honest holder needs. A holder that still lives can complete
     * its claim correctly. The lock only prevents that concurrent claims are both refused; the order of writes keeps
     * the limit. Broker only.
     *
     * @param word an earlier value of {@link #lockWord}; the lock is freed only if it still has this value.
     */
    public void freeLock(long word) {
        if (word != 0) {
            unlock(word);
        }
    }

    private long get(long offset) {
        return (long) LedgerLayout.I64.getVolatile(memory, offset);
    }

    private void set(long offset, long value) {
        LedgerLayout.I64.setVolatile(memory, offset, value);
    }

    private static long head(int column) {
        return LedgerLayout.headOffset(check("column", column, LedgerLayout.MAX_COLUMNS));
    }

    private long slot(int column, int slot) {
        return LedgerLayout.slotOffset(slotCount, check("column", column, LedgerLayout.MAX_COLUMNS),
            check("slot", slot, slotCount));
    }

    private long keptSlot(int slot) {
        return LedgerLayout.slotOffset(slotCount, LedgerLayout.KEPT_COLUMN, check("slot", slot, slotCount));
    }

    private static int check(String what, int value, int limit) {
        if (value < 0 || value >= limit) {
            throw new IllegalArgumentException("a ledger's " + what + " must be below " + limit + ": " + what + "="
                + value);
        }
        return value;
    }
}
