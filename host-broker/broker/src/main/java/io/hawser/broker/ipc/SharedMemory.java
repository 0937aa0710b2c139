package io.hawser.broker.ipc;

import com.sun.management.UnixOperatingSystemMXBean;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.shm.events.EventPage;
import io.hawser.shm.os.Descriptors;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jboss.logging.Logger;

/**
 * Device memory that sessions of a vGPU share with each other under random names. Knowing a name is the permission to
 * open it. The value comes from the sharing worker, and the broker passes it on unread: a driver's handle, or a
 * descriptor of the memory. Workers are assumed captured, so a descriptor can be of any file. The broker never reads,
 * maps or waits for it. Event loop only.
 *
 * <p>A descriptor keeps its memory allocated. The broker closes it when the owner has given up the name, since nobody
 * can find the memory then. Importers have descriptors of their own.
 *
 * <p>The driver keeps the memory until its owner and all importers have closed it. The owner's worker is charged until
 * it frees the memory; afterwards the broker charges its own slot of the vGPU's ledger:
 * <ul>
 * <li>A find that succeeds makes the session an importer, until its worker sends release or has ended.
 * <li>When the owner's worker sends unshare or has ended, {@link Charges#keep} counts the memory if there are
 *     importers. The owner gives its own charge back after the broker's answer, so that no byte is uncounted.
 * <li>With the last importer the name is removed, and {@link Charges#release} ends the count.
 * </ul>
 * An event has importers as well, but costs nothing. The broker makes its page of memory ({@link EventPage}), whose
 * descriptor the owner finds, too. When the worker of a session that uses it has exited, the broker completes the
 * session's records there.
 *
 * <p>A name belongs to one vGPU, so a hostile worker cannot charge another vGPU. In its own vGPU it can report too many
 * bytes, as in the ledger's memory, or too few, which {@code OutsideLook} finds in the importers' processes.
 */
public final class SharedMemory {
    private static final Logger LOG = Logger.getLogger(SharedMemory.class);

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

    /** The descriptor of an entry that has none. */
    public static final int NO_DESCRIPTOR = -1;
    /** Descriptors for one vGPU; stops one tenant from using up the broker's. */
    private static final int MAX_VGPU_DESCRIPTORS = 4096;

    /**
     * What a session has found.
     *
     * @param share the owner's message.
     * @param descriptor belongs to this table, and is open until its next change; {@link #NO_DESCRIPTOR} for none.
     */
    public record Found(WorkerMessage.Share share, int descriptor) {}

    private static final class Entry {
        private final long session;
        private final WorkerMessage.Share share;
        private final int descriptor; // closed when the entry has no owner any more
        private final EventPage page; // null for memory; closed with the entry
        private final Map<Long, Integer> importers = new HashMap<>(); // imports, by session
        private boolean isOrphan; // the owner has freed the memory

        Entry(long session, WorkerMessage.Share share, int descriptor, EventPage page) {
            this.session = session;
            this.share = share;
            this.descriptor = descriptor;
            this.page = page;
        }
    }

    private final Charges charges;
    private final Map<String, Map<String, Entry>> byVgpu = new HashMap<>();
    private final Map<Long, Integer> counts = new HashMap<>(); // number of names by session
    private final Map<Long, Integer> imports = new HashMap<>(); // number of imports by session
    private final Map<String, Integer> descriptors = new HashMap<>(); // number of descriptors by vGPU
    private final int maxDescriptors;
    private int descriptorCount;

    /**
     * Makes an empty table.
     *
     * @param maxDescriptors limit of descriptors of all vGPUs; a vGPU gets at most a quarter of them.
     */
    public SharedMemory(Charges charges, int maxDescriptors) {
        this.charges = charges;
        this.maxDescriptors = maxDescriptors;
    }

    /** A quarter of the descriptors that this process may open; connections and workers need the others. */
    public static int affordableDescriptors() {
        long max = ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean system
            ? system.getMaxFileDescriptorCount() : 0;
        return (int) Math.min(Integer.MAX_VALUE, max / 4);
    }

    /**
     * Stores a name until its session withdraws it or ends.
     *
     * @param descriptor the memory's, this table's from now on; {@link #NO_DESCRIPTOR} for none, as for an event.
     * @return false when the vGPU already has the name, or a limit of names or descriptors is reached. The descriptor
     *     is then closed.
     */
    public boolean share(long session, String vgpu, WorkerMessage.Share share, int descriptor) {
        Map<String, Entry> names = byVgpu.computeIfAbsent(vgpu, name -> new HashMap<>());
        int count = counts.getOrDefault(session, 0);
        Entry entry = count >= MAX_NAMES || (descriptor >= 0 || !share.isMemory()) && !hasRoom(vgpu)
            || names.containsKey(share.name()) ? null : entry(session, share, descriptor);
        if (entry == null) {
            if (descriptor >= 0) {
                Descriptors.close(descriptor);
            }
            return false;
        }
        names.put(share.name(), entry);
        counts.put(session, count + 1);
        if (entry.descriptor >= 0) {
            descriptors.merge(vgpu, 1, Integer::sum);
            descriptorCount++;
        }
        return true;
    }

    /** An entry, for an event with a page; null when the machine has no memory for that, or for a passed descriptor. */
    private static Entry entry(long session, WorkerMessage.Share share, int descriptor) {
        if (share.isMemory()) {
            return new Entry(session, share, descriptor, null);
        }
        if (descriptor >= 0) {
            return null;
        }
        try {
            int made = EventPage.create();
            try {
                return new Entry(session, share, made, EventPage.map(made));
            } catch (IOException e) {
                Descriptors.close(made);
                throw e;
            }
        } catch (IOException e) {
            LOG.warnf("an event cannot be shared: %s", e.getMessage());
            return null;
        }
    }

    private boolean hasRoom(String vgpu) {
        return descriptorCount < maxDescriptors
            && descriptors.getOrDefault(vgpu, 0) < Math.min(MAX_VGPU_DESCRIPTORS, maxDescriptors / 4);
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
        if (entry.descriptor >= 0) {
            Descriptors.close(entry.descriptor);
            descriptors.computeIfPresent(vgpu, (key, count) -> count == 1 ? null : count - 1);
            descriptorCount--;
        }
        if (entry.importers.isEmpty()) {
            remove(names, entry);
            return;
        }
        entry.isOrphan = true;
        if (entry.share.isMemory()) {
            charges.keep(vgpu, entry.share);
        }
    }

    private static void remove(Map<String, Entry> names, Entry entry) {
        names.remove(entry.share.name());
        if (entry.page != null) {
            entry.page.close();
        }
    }

    /**
     * Finds what another session of the vGPU has shared under this name. Another session than the owner's becomes
     * an importer.
     *
     * @return empty if no session shares the name, or if the session has too many imports.
     */
    public Optional<Found> find(long session, String vgpu, String name) {
        Entry entry = byVgpu.getOrDefault(vgpu, Map.of()).get(name);
        if (entry == null || entry.isOrphan) {
            return Optional.empty();
        }
        if (entry.session != session) {
            int count = imports.getOrDefault(session, 0);
            if (count >= MAX_IMPORTS) {
                return Optional.empty();
            }
            imports.put(session, count + 1);
            entry.importers.merge(session, 1, Integer::sum);
        }
        return Optional.of(new Found(entry.share, entry.descriptor));
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
            remove(names, entry);
            if (entry.share.isMemory()) {
                charges.release(vgpu, entry.share);
            }
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
            if (entry.page != null && (entry.session == session || entry.importers.containsKey(session))) {
                entry.page.endRecords((int) session);
            }
            if (entry.importers.remove(session) != null) {
                forgetUnused(vgpu, names, entry);
            }
            if (entry.session == session && !entry.isOrphan) {
                disown(vgpu, names, entry);
            }
        }
    }

    /** Number of descriptors that the table has open. */
    int descriptors() {
        return descriptorCount;
    }

    /** Number of names of all vGPUs, including those of freed memory that importers have open. */
    public int size() {
        return byVgpu.values().stream().mapToInt(Map::size).sum();
    }
}
