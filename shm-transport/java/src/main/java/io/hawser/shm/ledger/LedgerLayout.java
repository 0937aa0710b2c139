package io.hawser.shm.ledger;

import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The layout of a ledger; all numbers are little-endian 64-bit.
 *
 * <pre>
 *     0  lock: 0, or the claiming slot: turn &lt;&lt; 16 | slot + 1
 *    64  wanted: counts the sessions that found no memory while others kept memory that they do not use
 *  4096  column heads, {@value #COLUMN_HEAD_BYTES} bytes for each GPU:
 *          0  limitBytes: maximum for all sessions together
 *          8  totalBytes: size of the GPU's memory as guests see it
 *  8192  columns, one for each GPU: bytes that each session holds there, by slot
 *        one more column: bytes of all GPUs that each session's guest keeps without using them
 * </pre>
 *
 * <p>The ledger does not contain its number of slots. The broker passes that number to each process that maps the
 * ledger: any of a vGPU's workers can write anywhere in it, and a worker is assumed to be its guest's.
 */
public final class LedgerLayout {
    /** GPUs of one vGPU. */
    public static final int MAX_COLUMNS = 64;
    /** Sessions of one vGPU at a time, including ending ones; the lock word has 16 bits for a slot. */
    public static final int MAX_SLOTS = 8192;

    static final long LOCK_OFFSET = 0;
    static final long WANTED_OFFSET = 64;
    static final long COLUMN_HEADS_OFFSET = 4096;
    static final long COLUMN_HEAD_BYTES = 64;
    static final long LIMIT_OFFSET = 0;
    static final long TOTAL_OFFSET = 8;
    static final long COLUMNS_OFFSET = COLUMN_HEADS_OFFSET + MAX_COLUMNS * COLUMN_HEAD_BYTES;
    static final int KEPT_COLUMN = MAX_COLUMNS;
    static final int SLOT_BITS = 16;
    static final long SLOT_MASK = (1L << SLOT_BITS) - 1;

    static final VarHandle I64 = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private LedgerLayout() {
    }

    /**
     * Length of a ledger.
     *
     * @param slotCount number of slots, 1..{@link #MAX_SLOTS}.
     * @return length in bytes; only the pages of used columns occupy memory.
     */
    public static long bytes(int slotCount) {
        if (slotCount < 1 || slotCount > MAX_SLOTS) {
            throw new IllegalArgumentException("a ledger must have 1.." + MAX_SLOTS + " slots: slotCount=" + slotCount);
        }
        return COLUMNS_OFFSET + (KEPT_COLUMN + 1L) * slotCount * Long.BYTES;
    }

    static long headOffset(int column) {
        return COLUMN_HEADS_OFFSET + column * COLUMN_HEAD_BYTES;
    }

    static long slotOffset(int slotCount, int column, int slot) {
        return COLUMNS_OFFSET + ((long) column * slotCount + slot) * Long.BYTES;
    }
}
