package io.hawser.worker.session;

import io.hawser.shm.ledger.Ledger;
import io.hawser.shm.ledger.LedgerAccount;
import io.hawser.shm.ledger.LedgerLayout;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;

/**
 * Device memory of a session, GPU by GPU, as it counts against the quota of its vGPU, which all sessions of that share.
 * What is to be allocated is claimed first and given back after it has been freed, by one {@link Charge} each. Session
 * thread only.
 */
public final class MemoryQuota {
    /**
     * What a driver's pools may hold back on a GPU at no charge: they take memory in pieces of this size, and the first
     * byte would cost as much. NVIDIA's driver 580.
     */
    private static final long FREE_POOL_BYTES = 32L << 20;

    private final LedgerAccount account;
    private final int[] columns;
    private final long[] contextBytes;
    private final List<Store> stores = new ArrayList<>();

    /** Something of a driver that keeps memory when the guest has freed it. Session thread. */
    public interface Keeper {
        /** What it has of a device's memory, in use or not. */
        long reservedBytes(int device);

        /** Makes it give back what it can now; waits for nothing. */
        void trim(int device);

        /** Makes it give back what it keeps longer than CUDA does, which takes it when a program synchronises. */
        default void relax(int device) {
        }
    }

    /** Memory that is counted until it is given back. */
    public final class Charge {
        private final int device;
        private final Store store; // null for memory that no keeper keeps
        private long bytes;

        private Charge(int device, long bytes, Store store) {
            this.device = device;
            this.bytes = bytes;
            this.store = store;
        }

        /** What is counted: 0 once it has been given back. */
        public long bytes() {
            return bytes;
        }

        /** Whether its memory goes back to a keeper that counts it as long as it has it. */
        public boolean isKept() {
            return store != null;
        }

        /**
         * Claims more, for memory whose length is known only with it. Not for what is kept.
         *
         * @param whole what is to be counted in all, no less than now.
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
         * Counts what another counts, which then counts nothing.
         *
         * @param other of the same device and keeper.
         */
        void absorb(Charge other) {
            checkKin(other);
            bytes += other.bytes;
            other.bytes = 0;
        }

        /**
         * Counts less; the result counts the rest.
         *
         * @param part at least 0, at most what is counted.
         */
        Charge split(long part) {
            if (part < 0 || part > bytes) {
                throw new IllegalArgumentException("a part of a charge is inside it: part=" + part + " bytes=" + bytes);
            }
            bytes -= part;
            return new Charge(device, part, store);
        }

        private void checkKin(Charge other) {
            if (other.device != device || other.store != store) {
                throw new IllegalArgumentException("charges are joined on one device: device=" + device + " other="
                    + other.device);
            }
        }

        /** The memory has been freed, at the first call. */
        public void giveBack() {
            long given = bytes;
            bytes = 0;
            if (store != null) {
                store.giveBack(device, given);
            } else {
                account.giveBack(columns[device], given);
            }
        }
    }

    /** Memory that goes through a {@link Keeper}: what that has counts, and at least what the guest has of it. */
    public final class Store {
        private final Keeper keeper;
        private final boolean[] isUsed = new boolean[columns.length];
        private final long[] live = new long[columns.length];
        private final long[] counted = new long[columns.length];

        private Store(Keeper keeper) {
            this.keeper = keeper;
        }

        /**
         * Claims memory that the keeper is about to be asked for.
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
            long more = Math.max(0, live[device] + bytes - counted[device]); // the rest it has already
            if (!account.claim(columns[device], more)) {
                return false;
            }
            counted[device] += more;
            return true;
        }

        /**
         * Counts what the keeper has taken for a claim, which may be more.
         *
         * @return false when that is over the quota: the memory must be freed again.
         */
        public boolean settle(int device) {
            refresh(device);
            if (account.isOver(columns[device])) {
                relieve(device);
            }
            return !account.isOver(columns[device]);
        }

        private void giveBack(int device, long bytes) {
            live[device] -= bytes;
            refresh(device);
        }

        /** Counts what the keeper has now. */
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
     * @param account the session's.
     * @param columns the ledger's, by the number of the device.
     * @param contextBytes what a context costs, by the number of the device.
     */
    public MemoryQuota(LedgerAccount account, int[] columns, long[] contextBytes) {
        this.account = account;
        this.columns = columns.clone();
        this.contextBytes = contextBytes.clone();
    }

    /**
     * A quota that no other session shares.
     *
     * @param devices how many there are.
     * @param limitBytes of each; 0 for what the device has.
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
     * Counts what a keeper has.
     *
     * @param keeper asked on the session thread.
     * @return through which its memory is claimed.
     */
    public Store store(Keeper keeper) {
        Store store = new Store(keeper);
        stores.add(store);
        return store;
    }

    /**
     * Claims memory that is about to be allocated.
     *
     * @param device its number.
     * @param bytes how much.
     * @return null when the quota does not allow it, or the number is negative.
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
        stores.forEach(store -> store.trim(device));
    }

    /** Counts again what keepers have, and makes them give back what nobody asked them to keep. */
    public void refresh() {
        for (Store store : stores) {
            for (int device = 0; device < columns.length; device++) {
                store.relax(device);
            }
        }
    }

    /** What one more context costs on a device; 0 where that is not known. */
    public long contextBytes(int device) {
        return contextBytes[device];
    }

    /** What the session holds of all devices. */
    public long heldBytes() {
        long sum = 0;
        for (int column : columns) {
            sum += account.heldBytes(column);
        }
        return sum;
    }

    /**
     * What a guest is told that a device has.
     *
     * @param deviceBytes what there is in truth.
     */
    public long totalBytes(int device, long deviceBytes) {
        return Math.min(deviceBytes, account.ledger().totalBytes(columns[device]));
    }

    /**
     * What a guest is told that a device has left.
     *
     * @param deviceBytes what is left in truth.
     */
    public long freeBytes(int device, long deviceBytes) {
        return Math.min(deviceBytes, account.freeBytes(columns[device]));
    }
}
