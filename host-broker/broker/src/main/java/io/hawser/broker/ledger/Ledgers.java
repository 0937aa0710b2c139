package io.hawser.broker.ledger;

import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Device;
import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.ipc.SharedMemory;
import io.hawser.broker.pool.Worker;
import io.hawser.shm.ledger.Ledger;
import io.hawser.shm.ledger.LedgerLayout;
import io.hawser.shm.os.Descriptors;
import java.io.IOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.jboss.logging.Logger;

/**
 * The ledgers of all vGPUs that have had a session. A worker gets a slot before its session and has it until its
 * process is gone; then what it held is taken out, so that nothing is counted for longer, whatever it did. The last
 * slot is the broker's: memory that sessions have by IPC handles and whose owner has given it up. Event loop only,
 * except {@link #usedBytes}.
 */
public final class Ledgers implements SharedMemory.Charges, AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Ledgers.class);
    /** No GPU has so much; keeps a sum of what hostile workers name within a long. */
    private static final long MAX_KEPT_BYTES = 1L << 40;

    /** How much there is. */
    @FunctionalInterface
    public interface Quotas {
        /** What a vGPU has of a GPU now; {@link Amount#NONE} when it has nothing of it. */
        Amount of(String vgpu, Device device);
    }

    /** One vGPU's. */
    private static final class Book {
        private final int descriptor;
        private final Ledger ledger;
        private final BitSet taken = new BitSet();
        private volatile List<String> gpus = List.of();
        private final long[] keptBytes = new long[LedgerLayout.MAX_COLUMNS]; // the broker's slot
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
    private final Map<Worker, LedgerSlot> seats = new HashMap<>();

    /**
     * Keeps none yet.
     *
     * @param maxSessions of the broker; workers that are ending have slots as well.
     * @param devices the GPUs, those that vGPUs may use.
     * @param quotas asked when a session begins, and by {@link #refresh}.
     * @param contextBytes what a context costs on a GPU, by its UUID; 0 while that is not known.
     */
    public Ledgers(int maxSessions, Supplier<List<Device>> devices, Quotas quotas,
            ToLongFunction<String> contextBytes) {
        this.contextBytes = contextBytes;
        slotCount = (int) Math.clamp(2L * maxSessions + 64, 1, LedgerLayout.MAX_SLOTS - 1);
        this.devices = devices;
        this.quotas = quotas;
    }

    /**
     * Gives a worker its slot.
     *
     * @throws IOException when there is none; says why.
     */
    public LedgerSlot take(Worker worker, String vgpu) throws IOException {
        LedgerSlot seat = take(vgpu);
        seats.put(worker, seat);
        return seat;
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
            throw new IOException("a vGPU has so many workers at most: vgpu=" + vgpu + " max=" + slotCount);
        }
        book.ledger.clear(slot); // whoever had it may have left a child that still writes
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
            throw new IOException("no ledger can be made: vgpu=" + vgpu + ": " + e.getMessage(), e);
        }
    }

    /** The worker's process is gone. */
    public void gone(Worker worker) {
        LedgerSlot seat = seats.remove(worker);
        if (seat != null) {
            gone(seat);
        }
    }

    void gone(LedgerSlot seat) {
        Book book = books.get(seat.vgpu());
        book.ledger.clear(seat.slot());
        book.taken.clear(seat.slot());
        if (book.forgotten && book.taken.isEmpty()) {
            close(seat.vgpu(), book);
        }
    }

    /** The vGPU is no more; its ledger goes with its last worker. */
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
        Descriptors.close(book.descriptor); // the mapping stays for whoever reads it now
    }

    /** Asks again what each vGPU has; sessions see it at once. */
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
                book.ledger.limit(column, amount.totalBytes(), amount.limitBytes());
            }
        }
        for (int column = 0; column < book.gpus.size(); column++) {
            book.ledger.setHeldBytes(column, slotCount, book.keptBytes[column]);
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

    /** Once a second: takes back what a hostile worker has written over, and locks that nobody frees. */
    public void sweep() {
        refresh();
        books.forEach((vgpu, book) -> {
            long word = book.ledger.lockWord();
            if (word != 0 && word == book.lockWord) {
                LOG.warnf("the lock of a ledger stood still and is freed: vgpu=%s", vgpu);
                book.ledger.freeLock(word);
            }
            book.lockWord = word;
        });
    }

    /** What the sessions of a vGPU hold now, over its GPUs. Any thread. */
    public long usedBytes(String vgpu) {
        Book book = books.get(vgpu);
        long sum = 0;
        for (int column = 0; book != null && column < book.gpus.size(); column++) {
            sum = Math.min(LedgerSlot.MAX_BYTES, sum + Math.min(LedgerSlot.MAX_BYTES, book.ledger.usedBytes(column)));
        }
        return sum;
    }

    /** What the sessions of a vGPU hold now on one GPU. Any thread. */
    public long usedBytes(String vgpu, String gpu) {
        Book book = books.get(vgpu);
        int column = book == null ? -1 : book.gpus.indexOf(gpu);
        return column < 0 ? 0 : Math.min(LedgerSlot.MAX_BYTES, book.ledger.usedBytes(column));
    }

    /** Whether no session holds anything and no lock is held. */
    boolean isClear() {
        return books.values().stream().allMatch(book -> book.ledger.lockWord() == 0)
            && books.keySet().stream().allMatch(vgpu -> usedBytes(vgpu) == 0);
    }

    @Override
    public void close() {
        books.forEach(this::close);
        seats.clear();
    }
}
