package io.hawser.broker.events;

import io.hawser.broker.model.Printable;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * The events of late. Whoever knows of one {@link #add adds} it, from any thread and without waiting; one thread, the
 * reader, {@link #take takes} the new ones, and from then on they are {@link #latest} too.
 */
public final class EventLog {
    /** Kept of each kind, so that a flood of one does not push the others out. */
    static final int KEPT_OF_A_KIND = 256;
    /** Of each kind in a second; the rest is counted. Stops guests that come and go from drowning the page. */
    static final int EACH_SECOND = 20;
    /** Not yet taken; stops a flood from filling the memory while the reader has no processor. */
    static final int MAX_PENDING = 4096;
    /** A sentence; what is longer is cut. */
    static final int MAX_TEXT_CHARACTERS = 400;

    private record Pending(Instant time, Event.Kind kind, Event.Severity severity, String vgpu, long sessionId,
        String text) { }

    /** What the reader keeps of one kind. Guarded by the log. */
    private static final class Kept {
        private final Deque<Event> events = new ArrayDeque<>();
        private long secondNs;
        private int inSecond;
        private long dropped;
    }

    private final LongSupplier nowNs;
    private final ConcurrentLinkedQueue<Pending> pending = new ConcurrentLinkedQueue<>();
    private final AtomicInteger pendingCount = new AtomicInteger();
    private final AtomicLong overrun = new AtomicLong();
    private final Map<Event.Kind, Kept> kept = new EnumMap<>(Event.Kind.class);
    private volatile Thread reader;
    private long seq;

    /** Makes an empty log with a clock that never jumps. */
    public EventLog(LongSupplier nowNs) {
        this.nowNs = nowNs;
        for (Event.Kind kind : Event.Kind.values()) {
            Kept one = new Kept();
            one.secondNs = nowNs.getAsLong();
            kept.put(kind, one);
        }
    }

    /** Wakes this thread at each event from now on. */
    public void reader(Thread thread) {
        reader = thread;
    }

    /**
     * Adds an event. Any thread; never waits.
     *
     * @param vgpu empty when it concerns none.
     * @param sessionId 0 when it concerns none.
     */
    public void add(Event.Kind kind, Event.Severity severity, String vgpu, long sessionId, String text) {
        if (pendingCount.incrementAndGet() > MAX_PENDING) {
            pendingCount.decrementAndGet();
            overrun.incrementAndGet();
            return;
        }
        pending.add(new Pending(Instant.now(), kind, severity, vgpu, sessionId,
            Printable.text(text, MAX_TEXT_CHARACTERS)));
        LockSupport.unpark(reader);
    }

    /** What was added since the last call, oldest first, floods cut to what they are. The reader only. */
    public synchronized List<Event> take() {
        List<Event> taken = new ArrayList<>();
        kept.forEach((kind, one) -> turn(kind, one, taken));
        Pending next;
        while ((next = pending.poll()) != null) {
            pendingCount.decrementAndGet();
            Kept one = kept.get(next.kind());
            if (one.inSecond < EACH_SECOND) {
                one.inSecond++;
                keep(one, next, taken);
            } else {
                one.dropped++;
            }
        }
        long lost = overrun.getAndSet(0);
        if (lost > 0) {
            keep(kept.get(Event.Kind.ADMIN), new Pending(Instant.now(), Event.Kind.ADMIN, Event.Severity.WARNING, "", 0,
                lost + " events came faster than they could be kept"), taken);
        }
        return taken;
    }

    /** A second of a kind is over: what it had too much of becomes one event. */
    private void turn(Event.Kind kind, Kept one, List<Event> taken) {
        long now = nowNs.getAsLong();
        if (now - one.secondNs < TimeUnit.SECONDS.toNanos(1)) {
            return;
        }
        one.secondNs = now;
        one.inSecond = 0;
        if (one.dropped > 0) {
            keep(one, new Pending(Instant.now(), kind, Event.Severity.WARNING, "", 0, "and " + one.dropped
                + " more events of this kind within a second"), taken);
            one.dropped = 0;
        }
    }

    private void keep(Kept one, Pending event, List<Event> taken) {
        Event made = new Event(++seq, event.time(), event.kind().label(), event.severity().label(), event.vgpu(),
            event.sessionId(), event.text());
        one.events.addLast(made);
        if (one.events.size() > KEPT_OF_A_KIND) {
            one.events.removeFirst();
        }
        taken.add(made);
    }

    /** The newest events that were taken, newest first. Any thread. */
    public synchronized List<Event> latest(int limit) {
        return kept.values().stream().flatMap(one -> one.events.stream())
            .sorted(Comparator.comparingLong(Event::seq).reversed()).limit(limit).toList();
    }
}
