package io.hawser.shm.ledger;

import java.lang.foreign.MemorySegment;

/**
 * A ledger's memory: limits, what each session holds, and the lock of those who claim. Whoever maps it may write
 * anything at any time, so each number is read once and held to its range, and nothing here waits for the lock.
 * Methods for the broker say so; the others are for both sides. Any thread.
 */
public final class Ledger {
    private final MemorySegment memory;
    private final int slotCount;

    /**
     * Uses memory as a ledger.
     *
     * @param memory at least {@link LedgerLayout#bytes} of it, zeros at first; must not vanish.
     * @param slotCount its slots, as the broker says.
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
     * Says how much there is on a GPU. Broker only.
     *
     * @param totalBytes what a guest is told that the GPU has.
     * @param limitBytes what all sessions together may hold; what they hold beyond it already they keep.
     */
    public void limit(int column, long totalBytes, long limitBytes) {
        set(head(column) + LedgerLayout.TOTAL_OFFSET, totalBytes);
        set(head(column) + LedgerLayout.LIMIT_OFFSET, limitBytes);
    }

    /** What all sessions together may hold of a GPU, 0 or more. */
    public long limitBytes(int column) {
        return Math.max(0, get(head(column) + LedgerLayout.LIMIT_OFFSET));
    }

    /** What a guest is told that a GPU has, 0 or more. */
    public long totalBytes(int column) {
        return Math.max(0, get(head(column) + LedgerLayout.TOTAL_OFFSET));
    }

    /** What a session holds of a GPU, 0 or more. */
    public long heldBytes(int column, int slot) {
        return Math.max(0, get(slot(column, slot)));
    }

    /** What all sessions hold of a GPU; {@link Long#MAX_VALUE} where a slot was made to hold that much. */
    public long usedBytes(int column) {
        return usedBytes(column, -1);
    }

    /** As {@link #usedBytes(int)}, without one slot. */
    long usedBytes(int column, int without) {
        long sum = 0;
        long first = slot(column, 0);
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

    /** Says what a session holds. */
    void hold(int column, int slot, long bytes) {
        set(slot(column, slot), bytes);
    }

    /**
     * Takes the lock if it is free.
     *
     * @param token not 0, of a slot.
     */
    boolean tryLock(long token) {
        return get(LedgerLayout.LOCK_OFFSET) == 0
                && LedgerLayout.I64.compareAndSet(memory, LedgerLayout.LOCK_OFFSET, 0L, token);
    }

    /** Frees the lock, unless somebody else has it by now. */
    void unlock(long token) {
        LedgerLayout.I64.compareAndSet(memory, LedgerLayout.LOCK_OFFSET, token, 0L);
    }

    /**
     * A session's worker is gone: it holds nothing, and not the lock. Broker only, once the process is no more.
     *
     * @param slot the session's.
     */
    public void clear(int slot) {
        for (int column = 0; column < LedgerLayout.MAX_COLUMNS; column++) {
            long offset = slot(column, slot);
            if (get(offset) != 0) { // a column that was never used takes no page
                set(offset, 0);
            }
        }
        long token = lockWord();
        if ((token & LedgerLayout.SLOT_MASK) == slot + 1) {
            unlock(token);
        }
    }

    /** The lock word now: 0, or who has the lock and when he took it. Broker only. */
    public long lockWord() {
        return get(LedgerLayout.LOCK_OFFSET);
    }

    /**
     * Frees a lock that has been held for longer than anyone honest holds it. Its holder, if it still lives, claims no
     * worse for it: the lock spares claims that meet from being refused, and is not what keeps the limit. Broker only.
     *
     * @param word what {@link #lockWord} was a while ago; unchanged since, the lock is freed.
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

    private static int check(String what, int value, int limit) {
        if (value < 0 || value >= limit) {
            throw new IllegalArgumentException("a ledger's " + what + " must be below " + limit + ": " + what + "="
                    + value);
        }
        return value;
    }
}
