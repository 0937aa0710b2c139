package io.hawser.shm.ledger;

/**
 * One session's slot of a ledger. It claims before memory is allocated and gives back after it is freed. One thread.
 *
 * <p>What keeps the limit is the order: a claim writes its own slot first and adds up the others' after that, so that
 * of two claims that meet at least one sees the other. The lock only spares them from both being refused. So nobody
 * waits for a lock whose holder was killed, stopped or is hostile: after a bounded spin a claim goes on without it.
 */
public final class LedgerAccount {
    /** About a tenth of a millisecond; an honest holder needs a hundredth of that, if it is not put to sleep. */
    private static final int LOCK_SPINS = 2000;
    /** Attempts of a claim that meets others without the lock. */
    private static final int ATTEMPTS = 8;

    private final Ledger ledger;
    private final int slot;
    // What the slot should say: other workers of the vGPU may write there, and are not believed.
    private final long[] held = new long[LedgerLayout.MAX_COLUMNS];
    private long turn;

    /**
     * Uses a slot that is this session's alone, and empty.
     *
     * @param ledger the vGPU's.
     * @param slot below its number of slots.
     */
    public LedgerAccount(Ledger ledger, int slot) {
        if (slot < 0 || slot >= ledger.slotCount()) {
            throw new IllegalArgumentException("a slot must be one of the ledger's: slot=" + slot + ", slotCount="
                    + ledger.slotCount());
        }
        this.ledger = ledger;
        this.slot = slot;
    }

    /** The ledger. */
    public Ledger ledger() {
        return ledger;
    }

    /**
     * Claims memory. Waits for nothing, but spins for at most a fraction of a millisecond.
     *
     * @param column of the GPU.
     * @param bytes 0 or more.
     * @return false, with nothing changed, when all sessions together would hold more than the limit.
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
                ledger.hold(column, slot, held[column] + bytes);
                if (fits(column, bytes)) { // after the write: pairs with the same of a claim that has no lock
                    held[column] += bytes;
                    return true;
                }
                ledger.hold(column, slot, held[column]);
                spin(1 << attempt + 1 + slot % 4); // slots go on at different times
            }
            return false;
        } finally {
            if (token != 0) {
                ledger.unlock(token);
            }
        }
    }

    private boolean fits(int column, long bytes) {
        long room = ledger.limitBytes(column) - held[column]; // below 0 where the limit was taken back
        long others = room < 0 ? 0 : ledger.usedBytes(column, slot);
        return bytes <= room && others <= room - bytes;
    }

    /** Counts memory that is held already, whatever the limit says. */
    public void force(int column, long bytes) {
        if (bytes < 0) {
            throw new IllegalArgumentException("what is held must not be negative: bytes=" + bytes);
        }
        held[column] += bytes;
        ledger.hold(column, slot, held[column]);
    }

    /**
     * Gives back what was claimed.
     *
     * @param bytes at most what the session holds there.
     */
    public void giveBack(int column, long bytes) {
        if (bytes < 0 || bytes > held[column]) {
            throw new IllegalArgumentException("what is given back must be held: bytes=" + bytes + ", heldBytes="
                    + held[column]);
        }
        held[column] -= bytes;
        ledger.hold(column, slot, held[column]);
    }

    /** What this session holds of a GPU. */
    public long heldBytes(int column) {
        return held[column];
    }

    /** What all sessions of the vGPU may still claim of a GPU now, 0 or more. */
    public long freeBytes(int column) {
        long room = ledger.limitBytes(column) - held[column];
        return room <= 0 ? 0 : Math.max(0, room - ledger.usedBytes(column, slot));
    }

    /** Whether the sessions hold more than the limit. */
    public boolean isOver(int column) {
        return !fits(column, 0);
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
