package io.hawser.worker.session;

import io.hawser.cuda.generated.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/**
 * Events that were recorded before their session has moved: the driver here has never seen those records. Their times
 * are known against one event that was recorded here at the arrival. Session thread.
 */
public final class MovedEvents {
    private static final double NS_A_MS = 1e6;

    private final Map<Long, Double> times = new HashMap<>(); // ms before the base, by native event
    private long base; // native; 0 before the arrival

    /** Whether an event's last record was before the move. */
    public boolean has(long event) {
        return !times.isEmpty() && times.containsKey(event);
    }

    /** Forgets the time of an event. Its record here, or its end, makes the time void. */
    public void forget(long event) {
        if (!times.isEmpty()) {
            times.remove(event);
        }
    }

    /**
     * Takes over the times of another worker.
     *
     * @param driver of the context that is current.
     * @param before ms from each event to the departure.
     * @param sinceNs time since the departure.
     * @return CUresult.
     */
    int arrive(CudaDriver driver, Map<Long, Double> before, long sinceNs) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(Long.BYTES, Long.BYTES);
            int result = driver.cuEventCreate(out, 0);
            if (result != 0) {
                return result;
            }
            base = out.get(ValueLayout.JAVA_LONG, 0);
            before.forEach((event, ms) -> times.put(event, ms + sinceNs / NS_A_MS));
            return driver.cuEventRecordWithFlags(base, 0, 0);
        }
    }

    /**
     * Time between two events, at least one of which {@link #has} knows.
     *
     * @param out receives milliseconds as a float.
     * @return CUresult.
     */
    public int elapsed(CudaDriver driver, long start, long end, MemorySegment out) {
        double ms = times.getOrDefault(start, 0.0) - times.getOrDefault(end, 0.0);
        int result = 0;
        if (!has(end)) {
            result = driver.cuEventElapsedTime_v2(out, base, end);
            ms += result == 0 ? out.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0) : 0;
        } else if (!has(start)) { // recorded here, and so later
            result = driver.cuEventElapsedTime_v2(out, base, start);
            ms -= result == 0 ? out.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0) : 0;
        }
        out.set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, (float) ms);
        return result;
    }

    /** Times of all events here, for a further move: ms before the base event, by native event. */
    Map<Long, Double> times() {
        return times;
    }

    /** The base event; 0 for none. */
    long base() {
        return base;
    }
}
