package io.hawser.broker.region;

import io.hawser.shm.RegionLayout;
import io.hawser.shm.os.Futex;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.concurrent.TimeUnit;

/**
 * Waits for the guest processes of this kernel to say that a slot has changed, on a thread that sleeps by the futex of
 * the region's header, so that a claim is seen at once and a region that nobody uses costs nothing.
 *
 * <p>The guest can write the word as it likes, and can cut the file under a thread that sleeps, which then nobody can
 * wake: so each sleep is bounded, and {@link #close} does not wait for the thread. It touches the memory only by its
 * segment, which refuses once it is unmapped.
 */
final class SlotSignal implements AutoCloseable {
    private static final VarHandle INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();
    private static final long OFFSET = RegionLayout.HEADER_SLOT_SIGNAL_OFFSET;
    private static final long SLEEP_NS = TimeUnit.MILLISECONDS.toNanos(RegionLayout.BEAT_MS);
    private static final long STACK_BYTES = 128 * 1024;

    private final MemorySegment memory;
    private final Runnable heard;
    private volatile boolean closed;

    /**
     * Starts to listen.
     *
     * @param memory of the whole region, from a shared arena.
     * @param heard called on the thread of this; once more than needed when the memory is found to be gone.
     */
    SlotSignal(String region, MemorySegment memory, Runnable heard) {
        this.memory = memory;
        this.heard = heard;
        int seen = count();
        Thread.ofPlatform().daemon().name("hawser-slots-" + region).stackSize(STACK_BYTES).start(() -> listen(seen));
    }

    private int count() {
        // Pairs with the guest's counting up, before which it has changed its slot.
        return (int) INT.getAcquire(memory, OFFSET);
    }

    private void listen(int first) {
        Pace pace = new Pace();
        try {
            for (int seen = first; !closed;) {
                Futex.await(memory, OFFSET, seen, SLEEP_NS);
                int now = closed ? seen : count();
                if (now != seen) {
                    seen = now;
                    heard.run();
                    pace.rest();
                }
            }
        } catch (InternalError | IllegalStateException e) {
            // Cut, or unmapped in this moment: the event loop finds out which, and says so.
            heard.run();
        }
    }

    /** Ends the thread, within {@link RegionLayout#BEAT_MS}; the memory may be unmapped at once. */
    @Override
    public void close() {
        closed = true;
    }
}
