package io.hawser.shm.turns;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.ring.Sleeper;
import io.hawser.shm.ring.Waker;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * One worker's page of turns: 4096 bytes of anonymous memory, shared with the broker alone. All words are little-endian
 * 32-bit numbers. The words of each side have their own cache lines.
 *
 * <pre>
 * offset  writer  word
 *      0  broker  permit: {@link #FREE}, {@link #OPEN}, {@link #TURN}, {@link #WAIT} or {@link #NEXT}
 *      4  both    signal: a futex, incremented by the broker after a permit for which the worker sleeps
 *      8  broker  copies: {@link #UNCOUNTED}, {@link #REPORTED}, {@link #COUNTED}, or a limit in KiB
 *    128  worker  state: {@link #IDLE}, {@link #WANTS} or {@link #BUSY}
 *    132  worker  waiting: not 0 while the worker sleeps until the permit changes; the broker resets it to 0
 *    136  worker  copied: number of {@link #COPIED_UNIT_BYTES} that the worker has copied, modulo 2^32
 * </pre>
 *
 * <p>Each side stores its own word and then reads the other's, with sequential consistency. A worker that begins stores
 * {@link #BUSY} and reads the permit again; a broker that withdraws a permit stores {@link #WAIT} and reads the state.
 * At least one side therefore sees the other's store. The worker signals its own event descriptor when the broker
 * should read the page. The broker uses the worker's words unchecked: wrong ones harm only the worker's own vGPU, or
 * give others the shares that they would have without turns.
 */
public final class TurnPage implements AutoCloseable {
    /** Length of a page. */
    public static final int PAGE_BYTES = 4096;

    /** Permit: no other vGPU uses this GPU; launch without reporting. A page that nobody has written has this value. */
    public static final int FREE = 0;
    /** Permit: others share the GPU but need nothing now; launch, and keep the amount of unfinished work small. */
    public static final int OPEN = 1;
    /** Permit: others want the GPU; as {@link #OPEN}, and report when all work is done. */
    public static final int TURN = 2;
    /** Permit: launch nothing; report when there is something to launch, and when all launched work is done. */
    public static final int WAIT = 3;
    /** Permit: as {@link #WAIT}, but the turn comes soon: stay awake. */
    public static final int NEXT = 4;

    /** State: no work is launched or waiting to be launched. */
    public static final int IDLE = 0;
    /** State: work waits to be launched, and no launched work runs. */
    public static final int WANTS = 1;
    /** State: launched work may still be running. */
    public static final int BUSY = 2;

    /** Copies: no other vGPU can be harmed by them; copy without counting. A page that nobody has written has it. */
    public static final int UNCOUNTED = 0;
    /** Copies: count them, and ring at the first one. */
    public static final int REPORTED = -1;
    /** Copies: count them. */
    public static final int COUNTED = -2;

    /** Unit of the word {@code copied}, in bytes. */
    public static final int COPIED_UNIT_BYTES = 1 << 16;

    private static final long PERMIT_OFFSET = 0;
    private static final long SIGNAL_OFFSET = 4;
    private static final long COPIES_OFFSET = 8;
    private static final long STATE_OFFSET = 128; // two cache lines further: processors fetch lines in pairs
    private static final long WAITING_OFFSET = 132;
    private static final long COPIED_OFFSET = 136;

    private static final VarHandle I32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private final MemorySegment page;
    private final SharedMemory mapping; // null for a private page
    private final Sleeper sleeper;
    private final Waker waker;

    private TurnPage(MemorySegment page, SharedMemory mapping) {
        this.page = page;
        this.mapping = mapping;
        sleeper = new Sleeper(page, WAITING_OFFSET, SIGNAL_OFFSET);
        waker = new Waker(page, WAITING_OFFSET, SIGNAL_OFFSET);
    }

    /**
     * Creates the memory of a page, all words 0.
     *
     * @return its descriptor, which the caller closes.
     */
    public static int create() throws IOException {
        return Descriptors.memory("hawser-turns", PAGE_BYTES);
    }

    /** Maps a page; the descriptor may be closed afterwards. */
    public static TurnPage map(int descriptor) throws IOException {
        SharedMemory mapping = SharedMemory.map(descriptor, PAGE_BYTES, 0);
        return new TurnPage(mapping.memory(), mapping);
    }

    /** Creates a private page, for a worker without turns: its permit is {@link #FREE}. */
    public static TurnPage alone() {
        return new TurnPage(Arena.ofAuto().allocate(PAGE_BYTES, PAGE_BYTES), null);
    }

    /** The broker's permit. Any thread. */
    public int permit() {
        return (int) I32.getVolatile(page, PERMIT_OFFSET);
    }

    /** Whether a permit forbids all launches. */
    public static boolean isWait(int permit) {
        return permit == WAIT || permit == NEXT;
    }

    /** Sets the permit and wakes the worker if it sleeps for it. Broker. */
    public void setPermit(int permit) {
        I32.setVolatile(page, PERMIT_OFFSET, permit);
        waker.wake();
    }

    /** The worker's state; any value but the three states counts as {@link #BUSY}. Any thread. */
    public int state() {
        int state = (int) I32.getVolatile(page, STATE_OFFSET);
        return state == IDLE || state == WANTS ? state : BUSY;
    }

    /** Sets the worker's state. Worker. */
    public void setState(int state) {
        I32.setVolatile(page, STATE_OFFSET, state);
    }

    /**
     * How the worker copies between host and device. Any thread.
     *
     * @return {@link #UNCOUNTED}, {@link #REPORTED} or {@link #COUNTED}; else, above 0, the KiB of a round of copies in
     *     one direction. The worker begins a round when the last one is done.
     */
    public int copies() {
        return (int) I32.getOpaque(page, COPIES_OFFSET);
    }

    /** Sets the word that {@link #copies} describes. Broker. */
    public void setCopies(int copies) {
        I32.setVolatile(page, COPIES_OFFSET, copies);
    }

    /** Returns how many {@link #COPIED_UNIT_BYTES} the worker has copied; only differences count. Broker. */
    public int copied() {
        return (int) I32.getVolatile(page, COPIED_OFFSET);
    }

    /** Sets the word that {@link #copied} describes. Worker. */
    public void setCopied(int units) {
        I32.setVolatile(page, COPIED_OFFSET, units);
    }

    /**
     * Sleeps while the permit is {@link #WAIT} or {@link #NEXT}. Worker; may return early.
     *
     * @param notice whether to return when the permit is NEXT as well.
     * @param timeoutNs maximum sleep.
     */
    public void awaitPermit(boolean notice, long timeoutNs) {
        int seen = sleeper.prepare();
        int permit = permit();
        if (permit == WAIT || permit == NEXT && !notice) {
            sleeper.sleep(seen, timeoutNs);
        }
    }

    @Override
    public void close() {
        if (mapping != null) {
            mapping.close();
        }
    }
}
