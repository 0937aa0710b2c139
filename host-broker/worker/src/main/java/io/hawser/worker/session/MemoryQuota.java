package io.hawser.worker.session;

import io.hawser.shm.ledger.Ledger;
import io.hawser.shm.ledger.LedgerAccount;
import io.hawser.shm.ledger.LedgerLayout;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Device memory of a session on each GPU, counted against the quota that all sessions of its vGPU share. A caller
 * claims memory before it allocates, and gives it back after it has freed, with one {@link Charge} for each allocation.
 * Session thread only.
 */
public final class MemoryQuota {
    /**
     * Bytes that a driver's pools may keep on a GPU without charge. The pools allocate in pieces of this size, so
     * otherwise the first byte would cost a whole piece. Measured with NVIDIA's driver 580.
     */
    private static final long FREE_POOL_BYTES = 32L << 20;

    private final LedgerAccount account;
    private final int[] columns;
    private final long[] contextBytes;
    private final List<KeptMemory> keptMemories = new ArrayList<>();

    /** Part of a driver that keeps memory after the guest has freed it. Session thread. */
    public interface Keeper {
        /** The device memory that it has, in use or not. */
        long reservedBytes(int device);

        /** Makes it release all memory that it can release now; does not wait. */
        void trim(int device);

        /** Makes it release memory that CUDA would have released at the program's last synchronisation. */
        default void relax(int device) {
        }
    }

    /** Memory that counts until it is given back. */
    public final class Charge {
        private final int device;
        private final KeptMemory kept; // null for memory that no keeper keeps
        private long bytes;
        private Consumer<Runnable> successor; // null: no other account counts the memory afterwards
        private boolean isPassing; // the memory has been freed, and the successor has not answered

        private Charge(int device, long bytes, KeptMemory kept) {
            this.device = device;
            this.bytes = bytes;
            this.kept = kept;
        }

        /** The bytes that count; 0 once given back. */
        public long bytes() {
            return bytes;
        }

        /** Whether freeing returns the memory to a keeper, which counts it as long as it has it. */
        public boolean isKept() {
            return kept != null;
        }

        /**
         * Claims more, for memory whose length is known only after its allocation. Not for memory of a keeper.
         *
         * @param whole the new total, not less than now.
         * @return false, with nothing changed, when the quota does not allow it.
         */
        public boolean grow(long whole) {
            if (!claimBytes(device, whole - bytes)) {
                return false;
            }
            bytes = whole;
            return true;
        }

        /**
         * Takes over the bytes of another charge, which then counts nothing.
         *
         * @param other a charge of the same device and keeper.
         */
        void absorb(Charge other) {
            checkSameKeeper(other);
            bytes += other.bytes;
            other.bytes = 0;
        }

        /**
         * Moves a part of the bytes to a new charge.
         *
         * @param part 0..{@link #bytes}.
         * @return the new charge, with that part.
         */
        Charge split(long part) {
            if (part < 0 || part > bytes) {
                throw new IllegalArgumentException("a part of a charge must be 0..bytes: part=" + part
                    + " bytes=" + bytes);
            }
            bytes -= part;
            return new Charge(device, part, kept);
        }

        private void checkSameKeeper(Charge other) {
            if (other.device != device || other.kept != kept) {
                throw new IllegalArgumentException("charges must have the same device and keeper: device=" + device
                    + " other=" + other.device);
            }
        }

        /** The column of the device in the ledger. */
        public int column() {
            return columns[device];
        }

        /**
         * Sets the account that counts the memory after this session has freed it, while other sessions use it.
         *
         * @param next takes over the count, and then runs its argument on the session thread; replaces an earlier one.
         */
        public void passTo(Consumer<Runnable> next) {
            successor = next;
        }

        /**
         * Gives the charge back, because the memory has been freed. With a successor the charge counts until the
         * successor has taken over. Later calls have no effect.
         */
        public void giveBack() {
            if (isPassing) {
                return;
            }
            Consumer<Runnable> next = successor;
            successor = null;
            if (next == null) {
                giveBackNow();
            } else {
                isPassing = true;
                next.accept(this::giveBackNow);
            }
        }

        private void giveBackNow() {
            isPassing = false;
            long given = bytes;
            bytes = 0;
            if (kept != null) {
                kept.giveBack(device, given);
            } else {
                account.giveBack(columns[device], given);
            }
        }
    }

    /**
     * Memory that goes through a {@link Keeper}. It counts all memory that the keeper has, and at least the guest's
     * part.
     */
    public final class KeptMemory {
        private final Keeper keeper;
        private final boolean[] isUsed = new boolean[columns.length];
        private final long[] live = new long[columns.length];
        private final long[] counted = new long[columns.length];

        private KeptMemory(Keeper keeper) {
            this.keeper = keeper;
        }

        /**
         * Claims memory that the keeper is about to allocate.
         *
         * @return null when the quota does not allow it.
         */
        public Charge claim(int device, long bytes) {
            isUsed[device] = true;
            refresh(device);
            if (!claimMore(device, bytes)) {
                relieve(device);
                if (!claimMore(device, bytes)) {
                    return null;
                }
            }
            live[device] += bytes;
            return new Charge(device, bytes, this);
        }

        private boolean claimMore(int device, long bytes) {
            if (bytes < 0 || bytes > Long.MAX_VALUE - live[device]) {
                return false;
            }
            // Excludes memory that the keeper already has.
            long more = Math.max(0, live[device] + bytes - counted[device]);
            if (!account.claim(columns[device], more)) {
                return false;
            }
            counted[device] += more;
            return true;
        }

        /**
         * Counts the memory that the keeper has allocated for a claim, which may be more.
         *
         * @return false when that exceeds the quota: the caller must free the memory again.
         */
        public boolean settle(int device) {
            refresh(device);
            if (account.isOver(columns[device])) {
                relieve(device);
            }
            return !account.isOver(columns[device]);
        }

        private boolean isCounted() {
            for (int device = 0; device < columns.length; device++) {
                refresh(device);
                if (live[device] > 0 || counted[device] > 0) {
                    return true;
                }
            }
            return false;
        }

        private void giveBack(int device, long bytes) {
            live[device] -= bytes;
            refresh(device);
        }

        /** Counts the memory that the keeper has now. */
        void refresh(int device) {
            if (!isUsed[device]) {
                return;
            }
            long now = Math.max(live[device], keeper.reservedBytes(device) - FREE_POOL_BYTES);
            if (now > counted[device]) {
                account.force(columns[device], now - counted[device]);
            } else {
                account.giveBack(columns[device], counted[device] - now);
            }
            counted[device] = now;
        }

        private void relax(int device) {
            refresh(device);
            if (counted[device] > live[device]) {
                keeper.relax(device);
                refresh(device);
            }
        }

        private void trim(int device) {
            if (isUsed[device] && counted[device] > live[device]) {
                keeper.trim(device);
                refresh(device);
            }
        }
    }

    /**
     * Counts in a ledger.
     *
     * @param account the session's account.
     * @param columns the ledger's columns, by device number.
     * @param contextBytes memory that a context costs, by device number.
     */
    public MemoryQuota(LedgerAccount account, int[] columns, long[] contextBytes) {
        this.account = account;
        this.columns = columns.clone();
        this.contextBytes = contextBytes.clone();
    }

    /**
     * Makes a quota that no other session shares.
     *
     * @param devices number of devices.
     * @param limitBytes limit for each; 0 for no limit but the device's.
     */
    public static MemoryQuota alone(int devices, long limitBytes) {
        Ledger ledger = new Ledger(Arena.ofAuto().allocate(LedgerLayout.bytes(1), Long.BYTES), 1);
        int[] columns = new int[devices];
        long limit = limitBytes == 0 ? Long.MAX_VALUE : limitBytes;
        for (int device = 0; device < devices; device++) {
            columns[device] = device;
            ledger.limit(device, limit, limit);
        }
        return new MemoryQuota(new LedgerAccount(ledger, 0), columns, new long[devices]);
    }

    /**
     * Adds a keeper whose memory counts.
     *
     * @param keeper the keeper, called on the session thread.
     * @return claims the keeper's memory.
     */
    public KeptMemory addKeeper(Keeper keeper) {
        KeptMemory kept = new KeptMemory(keeper);
        keptMemories.add(kept);
        return kept;
    }

    /**
     * Claims memory that is about to be allocated.
     *
     * @param device its number.
     * @param bytes the amount.
     * @return null when the quota does not allow it, or the amount is negative.
     */
    public Charge claim(int device, long bytes) {
        return claimBytes(device, bytes) ? new Charge(device, bytes, null) : null;
    }

    private boolean claimBytes(int device, long bytes) {
        if (bytes < 0) {
            return false;
        }
        if (account.claim(columns[device], bytes)) {
            return true;
        }
        relieve(device);
        return account.claim(columns[device], bytes);
    }

    private void relieve(int device) {
        keptMemories.forEach(kept -> kept.trim(device));
    }

    /** Counts the keepers' memory again. Makes them release memory that the guest has not asked them to keep. */
    public void refresh() {
        for (KeptMemory kept : keptMemories) {
            for (int device = 0; device < columns.length; device++) {
                kept.relax(device);
            }
        }
    }

    /** Whether a keeper has memory that counts. */
    boolean hasKept() {
        return keptMemories.stream().anyMatch(KeptMemory::isCounted);
    }

    /**
     * Publishes the held memory that the guest keeps without using it.
     *
     * @param bytes of all devices, 0 or more.
     * @return whether the guest must give it back, because a session of the vGPU found no memory.
     */
    public boolean keep(long bytes) {
        return account.keep(bytes);
    }

    /** Whether guests of the vGPU keep memory that they do not use. */
    boolean isKept() {
        return account.isKept();
    }

    /** Makes the guests of the vGPU's sessions give back the memory that they keep. */
    void want() {
        account.want();
    }

    /** The number of the device that has a column in the ledger; -1 when the session has no such device. */
    public int deviceOf(int column) {
        for (int device = 0; device < columns.length; device++) {
            if (columns[device] == column) {
                return device;
            }
        }
        return -1;
    }

    /** Memory that one more context costs on a device; 0 where that is not known. */
    public long contextBytes(int device) {
        return contextBytes[device];
    }

    /** Memory that the session holds on all devices. */
    public long heldBytes() {
        long sum = 0;
        for (int column : columns) {
            sum += account.heldBytes(column);
        }
        return sum;
    }

    /**
     * Total memory of a device, as the guest sees it.
     *
     * @param deviceBytes the device's total.
     */
    public long totalBytes(int device, long deviceBytes) {
        return Math.min(deviceBytes, account.ledger().totalBytes(columns[device]));
    }

    /**
     * Free memory of a device, as the guest sees it.
     *
     * @param deviceBytes the device's free memory.
     */
    public long freeBytes(int device, long deviceBytes) {
        return Math.min(deviceBytes, account.freeBytes(columns[device]));
    }
}
