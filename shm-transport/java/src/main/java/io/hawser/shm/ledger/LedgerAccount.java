package io.hawser.shm.ledger;

/**
 * One session's slot of a ledger. It claims memory before its allocation and returns it after the free. One thread.
 *
 * <p>The order of steps keeps the limit: a claim first writes its own slot and then sums up the other slots. Of two
 * concurrent claims at least one therefore sees the other. The lock only prevents that both are refused. A claim never
 * waits for a lock whose holder was killed, stopped or is hostile: after a bounded spin it continues without the lock.
 */
public final class LedgerAccount {
    /** About a tenth of a millisecond. A holder that is not preempted needs a hundredth of that. */
    private static final int LOCK_SPINS = 2000;
    /** Attempts of a claim that conflicts with others while it has no lock. */
    private static final int ATTEMPTS = 8;

    private final Ledger ledger;
    private final int slot;
    // The correct values of the slot: other workers of the vGPU may overwrite the slot, so it is never read back.
    private final long[] held = new long[LedgerLayout.MAX_COLUMNS];
    private long turn;
    private long seenWanted;

    /**
     * Uses an empty slot that belongs to this session alone.
     *
     * @param ledger ledger of the vGPU.
     * @param slot number of the slot, below the ledger's number of slots.
     */
    public LedgerAccount(Ledger ledger, int slot) {
        if (slot < 0 || slot >= ledger.slotCount()) {
            throw new IllegalArgumentException("a slot must be one of the ledger's: slot=" + slot + ", slotCount="
                + ledger.slotCount());
        }
        this.ledger = ledger;
        this.slot = slot;
        seenWanted = ledger.wanted();
    }

    /** The ledger. */
    public Ledger ledger() {
        return ledger;
    }

    /**
     * Claims memory. Does not wait, but spins for at most a fraction of a millisecond.
     *
     * @param column column of the GPU.
     * @param bytes 0 or more.
     * @return false, with nothing changed, if all sessions together would then hold more than the limit.
     */
    public boolean claim(int column, long bytes) {
        if (bytes < 0) {
            throw new IllegalArgumentException("a claim must not be negative: bytes=" + bytes);
        }
        long token = lock();
        try {
            for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
                if (!fits(column, bytes)) {
                    return false;
                }
                ledger.setHeldBytes(column, slot, held[column] + bytes);
                if (fits(column, bytes)) { // after the write: pairs with the same order in a claim without the lock
                    held[column] += bytes;
                    return true;
                }
                ledger.setHeldBytes(column, slot, held[column]);
                spin(1 << attempt + 1 + slot % 4); // different slots continue at different times
            }
            return false;
        } finally {
            if (token != 0) {
                ledger.unlock(token);
            }
        }
    }

    private boolean fits(int column, long bytes) {
        long room = ledger.limitBytes(column) - held[column]; // below 0 if the broker has lowered the limit
        long others = room < 0 ? 0 : ledger.usedBytes(column, slot);
        return bytes <= room && others <= room - bytes;
    }

    /** Counts memory that is already held, even beyond the limit. */
    public void force(int column, long bytes) {
        if (bytes < 0) {
            throw new IllegalArgumentException("held memory must not be negative: bytes=" + bytes);
        }
        held[column] += bytes;
        ledger.setHeldBytes(column, slot, held[column]);
    }

    /**
     * Returns claimed memory.
     *
     * @param bytes at most the memory that the session holds there.
     */
    public void giveBack(int column, long bytes) {
        if (bytes < 0 || bytes > held[column]) {
            throw new IllegalArgumentException("returned memory must be held: bytes=" + bytes + ", heldBytes="
                + held[column]);
        }
        held[column] -= bytes;
        ledger.setHeldBytes(column, slot, held[column]);
    }

    /** Memory of a GPU that this session holds. */
    public long heldBytes(int column) {
        return held[column];
    }

    /** Memory of a GPU that the vGPU's sessions can still claim, 0 or more. */
    public long freeBytes(int column) {
        long room = ledger.limitBytes(column) - held[column];
        return room <= 0 ? 0 : Math.max(0, room - ledger.usedBytes(column, slot));
    }

    /** Whether the sessions hold more than the limit. */
    public boolean isOver(int column) {
        return !fits(column, 0);
    }

    /**
     * Publishes the held memory that the session's guest keeps without using it.
     *
     * @param bytes of all GPUs, 0 or more.
     * @return whether a session has called {@link #want} since the last call.
     */
    public boolean keep(long bytes) {
        ledger.setKeptBytes(slot, bytes);
        long before = seenWanted;
        seenWanted = ledger.wanted();
        return seenWanted != before;
    }

    /** Whether guests of the vGPU keep memory that they do not use. */
    public boolean isKept() {
        return ledger.keptBytes() > 0;
    }

    /** Makes the guests of all sessions give back the memory that they keep. */
    public void want() {
        ledger.want();
    }

    private long lock() {
        long token = ++turn << LedgerLayout.SLOT_BITS | slot + 1;
        for (int i = 0; i < LOCK_SPINS; i++) {
            if (ledger.tryLock(token)) {
                return token;
            }
            Thread.onSpinWait();
        }
        return 0;
    }

    private static void spin(int times) {
        for (int i = 0; i < times; i++) {
            Thread.onSpinWait();
        }
    }
}
