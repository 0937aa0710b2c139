package io.hawser.gpu.software.work;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** The handles of a library, each with the stream of its calls. Any thread. */
public final class HandleStreams {
    private final Map<Long, Long> streams = new ConcurrentHashMap<>();
    private final AtomicLong last = new AtomicLong();

    /**
     * Makes a handle with the default stream.
     *
     * @param out receives its number, 8 bytes; never 0, and never used again.
     */
    public void add(MemorySegment out) {
        long handle = last.incrementAndGet();
        streams.put(handle, 0L);
        out.set(ValueLayout.JAVA_LONG, 0, handle);
    }

    /** Ends a handle. */
    public void remove(long handle) {
        streams.remove(handle);
    }

    /**
     * Sets the stream of later calls.
     *
     * @param stream native stream.
     */
    public void set(long handle, long stream) {
        streams.put(handle, stream);
    }

    /**
     * The stream of a handle.
     *
     * @param handle from {@link #add}, and not removed: the worker checks the guest's handles.
     * @return native stream.
     */
    public long of(long handle) {
        return streams.get(handle);
    }
}
