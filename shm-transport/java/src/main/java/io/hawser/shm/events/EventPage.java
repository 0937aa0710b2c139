package io.hawser.shm.events;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SharedMemory;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The state of one event of CUDA that several sessions of a vGPU use: 4096 bytes of anonymous memory, which the broker
 * makes. Each record of the event has a number, from 1 on; numbers wrap, so they are compared by their difference. A
 * record has the slot {@code number % SLOTS}. The recording stream writes the number into the slot's value when it
 * reaches the record. A stream that waits for the record waits until the value is not smaller.
 *
 * <pre>
 * offset            writer   word, little-endian
 *      0            workers  latest: 32 bits, number of the latest record
 *     64 + 16 slot  GPUs     value: 32 bits, number of the slot's last record that its stream has reached
 *     72 + 16 slot  workers  claim: 64 bits; low half: number of the slot's last record, high half: its recorder
 * </pre>
 *
 * <p>A record of number n waits in its stream for the record of number {@code n - SLOTS}, so that values never
 * decrease. A worker claims the slot first and then advances the latest number; any worker advances it for one that
 * died in between. When a worker has ended, the broker completes its records ({@link #endRecords}). The page is read
 * unchecked: a hostile worker can at most complete or block records of its own vGPU. Any thread.
 */
public final class EventPage implements AutoCloseable {
    /** Length of a page. */
    public static final int PAGE_BYTES = 4096;
    /** Records of an event that may be unfinished before a further one waits. */
    public static final int SLOTS = 64;

    private static final long LATEST_OFFSET = 0;
    private static final long SLOTS_OFFSET = 64;
    private static final long SLOT_BYTES = 16;
    private static final long CLAIM_OFFSET = 8;
    private static final int MAX_TRIES = 10_000; // a hostile worker can change the page at any time

    private static final VarHandle I32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();
    private static final VarHandle I64 = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private final SharedMemory mapping;
    private final MemorySegment page;

    private EventPage(SharedMemory mapping) {
        this.mapping = mapping;
        page = mapping.memory();
    }

    /**
     * Creates the memory of an event without records.
     *
     * @return its descriptor, which the caller closes.
     */
    public static int create() throws IOException {
        return Descriptors.memory("hawser-event", PAGE_BYTES);
    }

    /** Maps a page; the descriptor may be closed afterwards. */
    public static EventPage map(int descriptor) throws IOException {
        return new EventPage(SharedMemory.map(descriptor, PAGE_BYTES, 0));
    }

    /** The whole page, for the backend that lets streams use it. */
    public MemorySegment memory() {
        return page;
    }

    /** Number of the latest record; 0 before the first. */
    public int latest() {
        return (int) I32.getVolatile(page, LATEST_OFFSET);
    }

    /** The value of a record's slot: 4 bytes that streams write and wait for. */
    public MemorySegment value(int number) {
        return page.asSlice(valueOffset(number), Integer.BYTES);
    }

    private static long valueOffset(int number) {
        return SLOTS_OFFSET + Math.floorMod(number, SLOTS) * SLOT_BYTES;
    }

    /** Whether a record has been reached. */
    public boolean isDone(int number) {
        return (int) I32.getVolatile(page, valueOffset(number)) - number >= 0;
    }

    /**
     * Begins a record.
     *
     * @param recorder the low half of the session's number.
     * @return its number.
     * @throws IOException if other sessions prevent it, which correct ones do not.
     */
    public int claim(int recorder) throws IOException {
        for (int i = 0; i < MAX_TRIES; i++) {
            int before = latest();
            int number = before + 1;
            long offset = valueOffset(number) + CLAIM_OFFSET;
            long claim = (long) I64.getVolatile(page, offset);
            boolean isClaimed = (int) claim == number;
            boolean isMine = !isClaimed && (int) claim - number < 0
                && I64.compareAndSet(page, offset, claim, (long) recorder << 32 | number & 0xFFFF_FFFFL);
            if (isMine || isClaimed) {
                boolean ignored = I32.compareAndSet(page, LATEST_OFFSET, before, number); // or others have done it
            }
            if (isMine) {
                return number;
            }
        }
        throw new IOException("a record of a shared event must get a number: latest=" + latest());
    }

    /** Completes a record, because its stream will not reach it. */
    public void complete(int number) {
        long offset = valueOffset(number);
        int value = (int) I32.getVolatile(page, offset);
        while (value - number < 0 && !I32.compareAndSet(page, offset, value, number)) {
            value = (int) I32.getVolatile(page, offset);
        }
    }

    /** Completes all records of a session that has ended. */
    public void endRecords(int recorder) {
        for (int slot = 0; slot < SLOTS; slot++) {
            long claim = (long) I64.getVolatile(page, SLOTS_OFFSET + slot * SLOT_BYTES + CLAIM_OFFSET);
            int number = (int) claim;
            if ((int) (claim >> 32) == recorder && Math.floorMod(number, SLOTS) == slot) {
                complete(number);
            }
        }
    }

    @Override
    public void close() {
        mapping.close();
    }
}
