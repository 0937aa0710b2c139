package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;

/** Waits for any of several event descriptors. One thread. */
public final class EventPoll {
    // Linux poll.h: struct pollfd { int fd; short events; short revents; }
    private static final int POLLFD_BYTES = 8;
    private static final int EVENTS_OFFSET = 4;
    private static final int REVENTS_OFFSET = 6;
    private static final short POLLIN = 1;
    private static final short POLLRDHUP = 0x2000;
    private static final int EINTR = 4;
    private static final long SECOND_NS = 1_000_000_000L;
    private static final MethodHandle PPOLL = Libc.find("ppoll", Libc.INT, Libc.ADDRESS, Libc.LONG, Libc.ADDRESS,
        Libc.ADDRESS);

    private MemorySegment descriptors = MemorySegment.NULL;
    private final MemorySegment timeout = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
    private int count;

    /**
     * Sets the descriptors to wait for.
     *
     * @param events must stay open while this waits for them; null entries are skipped.
     */
    public void watch(List<EventFd> events) {
        makeRoom(events.size());
        for (int i = 0; i < count; i++) {
            // The kernel skips a negative descriptor.
            watch(i, events.get(i) == null ? -1 : events.get(i).fd());
        }
    }

    /**
     * Sets the descriptors to wait for, of any kind: one is ready when it can be read, or its connection has ended.
     *
     * @param given must stay open while this waits for them; negative numbers are skipped.
     */
    public void watch(int... given) {
        makeRoom(given.length);
        for (int i = 0; i < count; i++) {
            watch(i, given[i]);
        }
    }

    private void makeRoom(int number) {
        count = number;
        if (descriptors.byteSize() < (long) count * POLLFD_BYTES) {
            descriptors = Arena.ofAuto().allocate(2L * count * POLLFD_BYTES, Long.BYTES);
        }
    }

    private void watch(int index, int descriptor) {
        long at = (long) index * POLLFD_BYTES;
        descriptors.set(ValueLayout.JAVA_INT, at, descriptor);
        descriptors.set(ValueLayout.JAVA_SHORT, at + EVENTS_OFFSET, POLLIN);
        descriptors.set(ValueLayout.JAVA_SHORT, at + REVENTS_OFFSET, (short) 0);
    }

    /**
     * Waits until one of the descriptors has a count.
     *
     * @param timeoutNs maximum wait; negative for no limit. May return early.
     * @return whether one has a count.
     */
    public boolean await(long timeoutNs) throws IOException {
        MemorySegment limit = MemorySegment.NULL;
        if (timeoutNs >= 0) {
            limit = timeout;
            limit.set(ValueLayout.JAVA_LONG, 0, timeoutNs / SECOND_NS);
            limit.set(ValueLayout.JAVA_LONG, Long.BYTES, timeoutNs % SECOND_NS);
        }
        return poll(descriptors, count, limit) > 0;
    }

    /** Number of descriptors with events; 0 after the time limit or a signal. */
    private static int poll(MemorySegment descriptors, int count, MemorySegment limit) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try {
            int ready = (int) PPOLL.invokeExact(scratch.state, descriptors, (long) count, limit, MemorySegment.NULL);
            if (ready < 0 && scratch.errno() != EINTR) {
                throw Libc.failure("events must be waited for: count=" + count, scratch.errno());
            }
            return Math.max(ready, 0);
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Whether the peer of a connected socket has closed its sending half, or the connection is lost. Does not wait. */
    public static boolean isHungUp(int socket) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment descriptor = arena.allocate(POLLFD_BYTES, Long.BYTES);
            descriptor.set(ValueLayout.JAVA_INT, 0, socket);
            descriptor.set(ValueLayout.JAVA_SHORT, EVENTS_OFFSET, POLLRDHUP);
            return poll(descriptor, 1, arena.allocate(2 * Long.BYTES, Long.BYTES)) > 0;
        }
    }

    /** Whether a descriptor had a count when {@link #await} returned. */
    public boolean isReady(int index) {
        return descriptors.get(ValueLayout.JAVA_SHORT, (long) index * POLLFD_BYTES + REVENTS_OFFSET) != 0;
    }
}
