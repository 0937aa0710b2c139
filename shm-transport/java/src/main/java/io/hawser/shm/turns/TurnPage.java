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
 * One worker's page of turns: 4096 bytes of anonymous memory that it shares with the broker alone. All words are
 * little-endian 32-bit numbers; those of the two sides lie in cache lines of their own.
 *
 * <pre>
 * offset  who writes  word
 *      0  broker      permit: {@link #FREE}, {@link #OPEN}, {@link #TURN}, {@link #WAIT} or {@link #NEXT}
 *      4  both        signal: a futex, counted up by the broker after a permit that the worker sleeps for
 *    128  worker      state: {@link #IDLE}, {@link #WANTS} or {@link #BUSY}
 *    132  worker      waiting: not 0 while the worker sleeps until the permit changes; the broker takes it back to 0
 * </pre>
 *
 * <p>Both sides store their word and then look at the other's, with sequential consistency: a worker that begins stores
 * {@link #BUSY} and looks at the permit again; a broker that takes a permit away stores {@link #WAIT} and looks at the
 * state. So one of them sees the other. The worker rings an event descriptor of its own when the broker should look.
 * The page is as the worker says: a broker that believes it harms only the worker's own vGPU, or gives others what the
 * driver would have given them without turns.
 */
public final class TurnPage implements AutoCloseable {
    /** Length of a page. */
    public static final int PAGE_BYTES = 4096;

    /** Permit: nobody else has this GPU; launch without a word. A page that nobody has written says so. */
    public static final int FREE = 0;
    /** Permit: others have the GPU, and want nothing; launch, and keep what is issued and not done short. */
    public static final int OPEN = 1;
    /** Permit: others want the GPU; as {@link #OPEN}, and say when all is done. */
    public static final int TURN = 2;
    /** Permit: launch nothing; say when something is to be launched, and when all that was launched is done. */
    public static final int WAIT = 3;
    /** Permit: as {@link #WAIT}, and the turn comes soon: be awake. */
    public static final int NEXT = 4;

    /** State: nothing is launched, nothing is to be. */
    public static final int IDLE = 0;
    /** State: something is to be launched, nothing that was launched runs. */
    public static final int WANTS = 1;
    /** State: something that was launched is not known to be done. */
    public static final int BUSY = 2;

    private static final long PERMIT_OFFSET = 0;
    private static final long SIGNAL_OFFSET = 4;
    private static final long STATE_OFFSET = 128; // two lines further: processors fetch them in pairs
    private static final long WAITING_OFFSET = 132;

    private static final VarHandle I32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private final MemorySegment page;
    private final SharedMemory mapping; // null for a page of one's own
    private final Sleeper sleeper;
    private final Waker waker;

    private TurnPage(MemorySegment page, SharedMemory mapping) {
        this.page = page;
        this.mapping = mapping;
        sleeper = new Sleeper(page, WAITING_OFFSET, SIGNAL_OFFSET);
        waker = new Waker(page, WAITING_OFFSET, SIGNAL_OFFSET);
    }

    /**
     * Makes the memory of a page, all words 0.
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

    /** A page of one's own, for whom nobody gives turns: its permit is {@link #FREE}. */
    public static TurnPage alone() {
        return new TurnPage(Arena.ofAuto().allocate(PAGE_BYTES, PAGE_BYTES), null);
    }

    /** What the broker permits. Any thread. */
    public int permit() {
        return (int) I32.getVolatile(page, PERMIT_OFFSET);
    }

    /** Whether a permit lets nothing be launched. */
    public static boolean isWait(int permit) {
        return permit == WAIT || permit == NEXT;
    }

    /** Says what the worker may do, and wakes it if it sleeps for that. Broker. */
    public void permit(int permit) {
        I32.setVolatile(page, PERMIT_OFFSET, permit);
        waker.wake();
    }

    /** What the worker says; anything but the three states counts as {@link #BUSY}. Any thread. */
    public int state() {
        int state = (int) I32.getVolatile(page, STATE_OFFSET);
        return state == IDLE || state == WANTS ? state : BUSY;
    }

    /** Says what the worker does. Worker. */
    public void state(int state) {
        I32.setVolatile(page, STATE_OFFSET, state);
    }

    /**
     * Sleeps while the permit is {@link #WAIT}, or {@link #NEXT}. Worker; may return early.
     *
     * @param notice returns as well when the permit is NEXT.
     * @param timeoutNs at most so long.
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
