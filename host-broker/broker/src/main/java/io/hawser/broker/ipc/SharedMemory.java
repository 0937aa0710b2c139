package io.hawser.broker.ipc;

import io.hawser.broker.pool.WorkerMessage;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Device memory that sessions of a vGPU share with each other under random names. Knowing a name is the permission to
 * open it. The value is a driver's handle from the sharing worker; the broker passes it on unread. Event loop only.
 *
 * <p>The driver keeps the memory until its owner and all importers have closed it. The owner's worker is charged until
 * it frees the memory; afterwards the broker charges its own slot of the vGPU's ledger:
 * <ul>
 * <li>A find that succeeds makes the session an importer, until its worker sends release or has ended.
 * <li>When the owner's worker sends unshare or has ended, {@link Charges#keep} counts the memory if there are
 *     importers. The owner gives its own charge back after the broker's answer, so that no byte is uncounted.
 * <li>With the last importer the name is removed, and {@link Charges#release} ends the count.
 * </ul>
 * A name belongs to one vGPU, so a hostile worker cannot charge another vGPU. In its own vGPU it can report too many
 * bytes, as in the ledger's memory, or too few, which {@code OutsideLook} finds in the importers' processes.
 */
public final class SharedMemory {
    /** Limit of names of one session; a correct worker needs no more. */
    public static final int MAX_NAMES = 1024;
    /** Imports of one session at a time; an honest worker has no more. Bounds the table and its charges. */
    public static final int MAX_IMPORTS = 1024;

    /** Counts memory without an owner against its vGPU. */
    public interface Charges {
        /** Begins to count memory that its owner has freed and other sessions still have open. */
        void keep(String vgpu, WorkerMessage.Share share);

        /** Ends the count. */
        void release(String vgpu, WorkerMessage.Share share);
    }

    private static final class Entry {
        private final long session;
        private final WorkerMessage.Share share;
        private final Map<Long, Integer> importers = new HashMap<>(); // imports, by session
        private boolean isOrphan; // the owner has freed the memory

        Entry(long session, WorkerMessage.Share share) {
            this.session = session;
            this.share = share;
        }
    }

    private final Charges charges;
    private final Map<String, Map<String, Entry>> byVgpu = new HashMap<>();
    private final Map<Long, Integer> counts = new HashMap<>(); // number of names by session
    private final Map<Long, Integer> imports = new HashMap<>(); // number of imports by session

    /** Makes an empty table. */
    public SharedMemory(Charges charges) {
        this.charges = charges;
    }

    /**
     * Stores a name until its session withdraws it or ends.
     *
     * @return false when the vGPU already has the name, or the session has too many.
     */
    public boolean share(long session, String vgpu, WorkerMessage.Share share) {
        Map<String, Entry> names = byVgpu.computeIfAbsent(vgpu, name -> new HashMap<>());
        int count = counts.getOrDefault(session, 0);
        if (count >= MAX_NAMES || names.putIfAbsent(share.name(), new Entry(session, share)) != null) {
            return false;
        }
        counts.put(session, count + 1);
        return true;
    }

    /** Removes a name if it belongs to this session. */
    public void unshare(long session, String vgpu, String name) {
        Map<String, Entry> names = byVgpu.getOrDefault(vgpu, Map.of());
        Entry entry = names.get(name);
        if (entry != null && entry.session == session && !entry.isOrphan) {
            counts.merge(session, -1, Integer::sum);
            disown(vgpu, names, entry);
        }
    }

    private void disown(String vgpu, Map<String, Entry> names, Entry entry) {
        if (entry.importers.isEmpty()) {
            names.remove(entry.share.name());
        } else {
            entry.isOrphan = true;
            charges.keep(vgpu, entry.share);
        }
    }

    /**
     * Finds what another session of the vGPU has shared under this name. The session becomes an importer of memory, but
     * not of an event.
     *
     * @return empty if no session shares the name, or if the session has too many imports.
     */
    public Optional<WorkerMessage.Share> find(long session, String vgpu, String name) {
        Entry entry = byVgpu.getOrDefault(vgpu, Map.of()).get(name);
        if (entry == null || entry.isOrphan) {
            return Optional.empty();
        }
        if (entry.share.isMemory() && entry.session != session) {
            int count = imports.getOrDefault(session, 0);
            if (count >= MAX_IMPORTS) {
                return Optional.empty();
            }
            imports.put(session, count + 1);
            entry.importers.merge(session, 1, Integer::sum);
        }
        return Optional.of(entry.share);
    }

    /** Ends one import of a session. Has no effect if the session has none under this name. */
    public void release(long session, String vgpu, String name) {
        Map<String, Entry> names = byVgpu.getOrDefault(vgpu, Map.of());
        Entry entry = names.get(name);
        if (entry != null && entry.importers.containsKey(session)) {
            imports.merge(session, -1, Integer::sum);
            entry.importers.computeIfPresent(session, (key, count) -> count == 1 ? null : count - 1);
            forgetUnused(vgpu, names, entry);
        }
    }

    private void forgetUnused(String vgpu, Map<String, Entry> names, Entry entry) {
        if (entry.isOrphan && entry.importers.isEmpty()) {
            names.remove(entry.share.name());
            charges.release(vgpu, entry.share);
        }
    }

    /** Removes the names and imports of an ended session. */
    public void sessionEnded(long session, String vgpu) {
        boolean hadNames = counts.remove(session) != null;
        boolean hadImports = imports.remove(session) != null;
        if (!hadNames && !hadImports) {
            return;
        }
        Map<String, Entry> names = byVgpu.get(vgpu);
        for (Entry entry : List.copyOf(names.values())) {
            if (entry.importers.remove(session) != null) {
                forgetUnused(vgpu, names, entry);
            }
            if (entry.session == session && !entry.isOrphan) {
                disown(vgpu, names, entry);
            }
        }
    }

    /** Number of names of all vGPUs, including those of freed memory that importers have open. */
    public int size() {
        return byVgpu.values().stream().mapToInt(Map::size).sum();
    }
}
