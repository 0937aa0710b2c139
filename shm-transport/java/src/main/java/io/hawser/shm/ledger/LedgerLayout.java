package io.hawser.shm.ledger;

import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Where things are in a ledger; all numbers are little-endian 64-bit.
 *
 * <pre>
 *     0  lock: 0, or who is claiming: turn &lt;&lt; 16 | slot + 1
 *  4096  column heads, {@value #COLUMN_HEAD_BYTES} bytes for each GPU:
 *          0  limitBytes: what all sessions together may hold there
 *          8  totalBytes: what a guest is told that the GPU has
 *  8192  columns, one for each GPU: bytes that each session holds there, by slot
 * </pre>
 *
 * <p>The number of slots is no part of it: who maps the ledger is told by the broker, since any of a vGPU's workers,
 * which are assumed to be their guests', can write anywhere in it.
 */
public final class LedgerLayout {
    /** GPUs of one vGPU. */
    public static final int MAX_COLUMNS = 64;
    /** Sessions of one vGPU at a time, those that are ending included; the lock word names a slot in 16 bits. */
    public static final int MAX_SLOTS = 8192;

    static final long LOCK_OFFSET = 0;
    static final long COLUMN_HEADS_OFFSET = 4096;
    static final long COLUMN_HEAD_BYTES = 64;
    static final long LIMIT_OFFSET = 0;
    static final long TOTAL_OFFSET = 8;
    static final long COLUMNS_OFFSET = COLUMN_HEADS_OFFSET + MAX_COLUMNS * COLUMN_HEAD_BYTES;
    static final int SLOT_BITS = 16;
    static final long SLOT_MASK = (1L << SLOT_BITS) - 1;

    static final VarHandle I64 = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private LedgerLayout() {
    }

    /**
     * Length of a ledger.
     *
     * @param slotCount its slots, 1..{@link #MAX_SLOTS}.
     * @return bytes, of which only the pages of columns in use take memory.
     */
    public static long bytes(int slotCount) {
        if (slotCount < 1 || slotCount > MAX_SLOTS) {
            throw new IllegalArgumentException("a ledger must have 1.." + MAX_SLOTS + " slots: slotCount=" + slotCount);
        }
        return COLUMNS_OFFSET + (long) MAX_COLUMNS * slotCount * Long.BYTES;
    }

    static long headOffset(int column) {
        return COLUMN_HEADS_OFFSET + column * COLUMN_HEAD_BYTES;
    }

    static long slotOffset(int slotCount, int column, int slot) {
        return COLUMNS_OFFSET + ((long) column * slotCount + slot) * Long.BYTES;
    }
}
