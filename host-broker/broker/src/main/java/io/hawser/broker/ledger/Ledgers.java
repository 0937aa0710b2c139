package io.hawser.broker.ledger;

import io.hawser.broker.ipc.SharedMemory;
import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Device;
import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.shm.ledger.Ledger;
import io.hawser.shm.ledger.LedgerLayout;
import io.hawser.shm.os.Descriptors;
import java.io.IOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.jboss.logging.Logger;

/**
 * The ledgers of all vGPUs that have had a session. A worker receives a slot before its session and keeps it until its
 * process ends. The broker then clears the slot, so that no memory is counted longer, whatever the worker wrote. The
 * last slot belongs to the broker: it counts memory that sessions opened by IPC handles and its owner has freed. Event
 * loop only, except {@link #usedBytes}.
 */
public final class Ledgers implements SharedMemory.Charges, AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Ledgers.class);
    /** No GPU has so much; keeps a sum of what hostile workers name within a long. */
    private static final long MAX_KEPT_BYTES = 1L << 40;

    /** The quotas of vGPUs. */
    @FunctionalInterface
    public interface Quotas {
        /** A vGPU's present amount of a GPU; {@link Amount#NONE} when it has none. */
        Amount of(String vgpu, Device device);
    }

    /** The ledger of one vGPU and its slots. */
    private static final class Book {
        private final int descriptor;
        private final Ledger ledger;
        private final BitSet taken = new BitSet();
        private volatile List<String> gpus = List.of();
        private final long[] keptBytes = new long[LedgerLayout.MAX_COLUMNS]; // the broker's slot
        private final Set<LedgerSlot> copied = new HashSet<>(); // whose memory another worker may hold as well
        private long lockWord;
        private boolean forgotten;

        Book(int descriptor, Ledger ledger) {
            this.descriptor = descriptor;
            this.ledger = ledger;
        }
    }

    private final int slotCount;
    private final Supplier<List<Device>> devices;
    private final Quotas quotas;
    private final ToLongFunction<String> contextBytes;
    private final Map<String, Book> books = new ConcurrentHashMap<>();
    private final Map<Worker, LedgerSlot> byWorker = new HashMap<>();

    /**
     * Starts without ledgers.
     *
     * @param maxSessions limit of the broker; workers that are ending have slots as well.
     * @param devices the GPUs that vGPUs may use.
     * @param quotas read at the start of a session and by {@link #refresh}.
     * @param contextBytes memory of a context on a GPU, by its UUID; 0 while it is unknown.
     */
    public Ledgers(int maxSessions, Supplier<List<Device>> devices, Quotas quotas,
        ToLongFunction<String> contextBytes) {
        this.contextBytes = contextBytes;
        slotCount = Math.clamp(2L * maxSessions + 64, 1, LedgerLayout.MAX_SLOTS - 1);
        this.devices = devices;
        this.quotas = quotas;
    }

    /**
     * Gives a worker its slot.
     *
     * @throws IOException when no slot is free; the message gives the reason.
     */
    public LedgerSlot take(Worker worker, String vgpu) throws IOException {
        LedgerSlot slot = take(vgpu);
        byWorker.put(worker, slot);
        return slot;
    }

    LedgerSlot take(String vgpu) throws IOException {
        Book book = books.get(vgpu);
        if (book == null) {
            book = open(vgpu);
            books.put(vgpu, book);
        }
        book.forgotten = false;
        refresh(vgpu, book);
        int slot = book.taken.nextClearBit(0);
        if (slot >= slotCount) {
            throw new IOException("a vGPU must not exceed its limit of workers: vgpu=" + vgpu + " max="
                + slotCount);
        }
        book.ledger.clear(slot); // a child of the previous worker may still write to it
        book.taken.set(slot);
        return new LedgerSlot(vgpu, book.descriptor, book.ledger, slot, book.gpus,
            book.gpus.stream().map(contextBytes::applyAsLong).toList());
    }

    private Book open(String vgpu) throws IOException {
        int slots = slotCount + 1; // with the broker's
        int descriptor = Descriptors.memory("hawser-ledger", LedgerLayout.bytes(slots));
        try {
            return new Book(descriptor, new Ledger(io.hawser.shm.os.SharedMemory.mapWhileReachable(descriptor,
                LedgerLayout.bytes(slots)), slots));
        } catch (IOException e) {
            Descriptors.close(descriptor);
            throw new IOException("a ledger cannot be created: vgpu=" + vgpu + ": " + e.getMessage(), e);
        }
    }

    /** Clears and frees the slot of an ended worker. */
    public void release(Worker worker) {
        LedgerSlot slot = byWorker.remove(worker);
        if (slot != null) {
            release(slot);
        }
    }

    void release(LedgerSlot slot) {
        Book book = books.get(slot.vgpu());
        book.ledger.clear(slot.number());
        book.taken.clear(slot.number());
        endCopy(slot);
        if (book.forgotten && book.taken.isEmpty()) {
            close(slot.vgpu(), book);
        }
    }

    /** Forgets a deleted vGPU; its ledger is closed with its last worker. */
    public void forget(String vgpu) {
        Book book = books.get(vgpu);
        if (book != null) {
            book.forgotten = true;
            if (book.taken.isEmpty()) {
                close(vgpu, book);
            }
        }
    }

    private void close(String vgpu, Book book) {
        books.remove(vgpu);
        Descriptors.close(book.descriptor); // the mapping stays until its last reader is gone
    }

    /** Updates the limits of all vGPUs; sessions see the change at once. */
    public void refresh() {
        books.forEach(this::refresh);
    }

    private void refresh(String vgpu, Book book) {
        List<Device> present = devices.get();
        List<String> gpus = new ArrayList<>(book.gpus);
        for (Device device : present) {
            if (!gpus.contains(device.uuid()) && gpus.size() < LedgerLayout.MAX_COLUMNS) {
                gpus.add(device.uuid());
            }
        }
        book.gpus = List.copyOf(gpus);
        for (Device device : present) {
            int column = gpus.indexOf(device.uuid());
            if (column >= 0) {
                Amount amount = quotas.of(vgpu, device);
                book.ledger.limit(column, amount.totalBytes(), withCopies(book, column, amount.limitBytes()));
            }
        }
        for (int column = 0; column < book.gpus.size(); column++) {
            book.ledger.setHeldBytes(column, slotCount, book.keptBytes[column]);
        }
    }

    private static long withCopies(Book book, int column, long limitBytes) {
        long copiedBytes = 0; // workers write these numbers, so at most the quota counts once more
        for (LedgerSlot slot : book.copied) {
            copiedBytes += Math.clamp(book.ledger.heldBytes(column, slot.number()), 0, MAX_KEPT_BYTES);
        }
        copiedBytes = Math.min(copiedBytes, limitBytes);
        return limitBytes > Long.MAX_VALUE - copiedBytes ? Long.MAX_VALUE : limitBytes + copiedBytes;
    }

    /**
     * Lets the memory of a worker count twice beside the quota, because another worker of the vGPU takes a copy. The
     * worker has stopped for its move. Its end, or {@link #endCopy}, ends this.
     */
    public void allowCopy(Worker stopped) {
        LedgerSlot slot = byWorker.get(stopped);
        if (slot != null) {
            allowCopy(slot);
        }
    }

    void allowCopy(LedgerSlot stopped) {
        Book book = books.get(stopped.vgpu());
        book.copied.add(stopped);
        refresh(stopped.vgpu(), book);
    }

    /** Ends {@link #allowCopy}; does nothing without it. */
    public void endCopy(Worker stopped) {
        LedgerSlot slot = byWorker.get(stopped);
        if (slot != null) {
            endCopy(slot);
        }
    }

    void endCopy(LedgerSlot stopped) {
        Book book = books.get(stopped.vgpu());
        if (book.copied.remove(stopped)) {
            refresh(stopped.vgpu(), book);
        }
    }

    @Override
    public void keep(String vgpu, WorkerMessage.Share share) {
        count(vgpu, share.column(), Math.min(MAX_KEPT_BYTES, share.chargedBytes()));
    }

    @Override
    public void release(String vgpu, WorkerMessage.Share share) {
        count(vgpu, share.column(), -Math.min(MAX_KEPT_BYTES, share.chargedBytes()));
    }

    private void count(String vgpu, int column, long bytes) {
        Book book = books.get(vgpu);
        if (book != null) {
            book.keptBytes[column] += bytes;
            book.ledger.setHeldBytes(column, slotCount, book.keptBytes[column]);
        }
    }

    /** Repairs limits that a hostile worker has overwritten and frees abandoned locks. Called once a second. */
    public void sweep() {
        refresh();
        books.forEach((vgpu, book) -> {
            long word = book.ledger.lockWord();
            if (word != 0 && word == book.lockWord) {
                LOG.warnf("the abandoned lock of a ledger is freed: vgpu=%s", vgpu);
                book.ledger.freeLock(word);
            }
            book.lockWord = word;
        });
    }

    /** Memory that the sessions of a vGPU hold on all its GPUs. Any thread. */
    public long usedBytes(String vgpu) {
        Book book = books.get(vgpu);
        long sum = 0;
        for (int column = 0; book != null && column < book.gpus.size(); column++) {
            sum = Math.min(LedgerSlot.MAX_BYTES, sum + Math.min(LedgerSlot.MAX_BYTES, book.ledger.usedBytes(column)));
        }
        return sum;
    }

    /** Memory that the sessions of a vGPU hold on one GPU. Any thread. */
    public long usedBytes(String vgpu, String gpu) {
        Book book = books.get(vgpu);
        int column = book == null ? -1 : book.gpus.indexOf(gpu);
        return column < 0 ? 0 : Math.min(LedgerSlot.MAX_BYTES, book.ledger.usedBytes(column));
    }

    /** Whether no session holds memory and no lock is held. */
    boolean isClear() {
        return books.values().stream().allMatch(book -> book.ledger.lockWord() == 0)
            && books.keySet().stream().allMatch(vgpu -> usedBytes(vgpu) == 0);
    }

    @Override
    public void close() {
        books.forEach(this::close);
        byWorker.clear();
    }
}
