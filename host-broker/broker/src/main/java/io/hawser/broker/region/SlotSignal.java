package io.hawser.broker.region;

import io.hawser.shm.os.Futex;
import io.hawser.shm.region.RegionLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.concurrent.TimeUnit;

/**
 * Waits for signals of guest processes of this kernel that a slot has changed. Its thread sleeps on the futex of the
 * region's header, so that the broker sees a claim at once and an unused region costs nothing.
 *
 * <p>The guest can write any value to the word, and can truncate the file under the sleeping thread, after which no
 * wake-up reaches it. Therefore each sleep is bounded, and {@link #close} does not wait for the thread. The thread
 * accesses the memory only through its segment, which throws once it is unmapped.
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
     * @param heard runs on this object's thread; runs once more than needed when the memory is gone.
     */
    SlotSignal(String region, MemorySegment memory, Runnable heard) {
        this.memory = memory;
        this.heard = heard;
        int seen = count();
        Thread.ofPlatform().daemon().name("hawser-slots-" + region).stackSize(STACK_BYTES).start(() -> listen(seen));
    }

    private int count() {
        // Pairs with the guest's increment, which follows the change of its slot.
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
            // The file was truncated, or the memory unmapped meanwhile: the event loop finds out which and logs it.
            heard.run();
        }
    }

    /** Ends the thread within {@link RegionLayout#BEAT_MS}; the caller may unmap the memory at once. */
    @Override
    public void close() {
        closed = true;
    }
}
