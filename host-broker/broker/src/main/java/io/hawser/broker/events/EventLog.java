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
 * The latest events. Any thread {@link #add adds} events without waiting. One thread, the reader, {@link #take takes}
 * the new ones; {@link #latest} contains them from then on.
 */
public final class EventLog {
    /** Events of each kind to keep, so that a flood of one kind does not displace the others. */
    static final int KEPT_OF_A_KIND = 256;
    /** Events of each kind in a second; more are only counted. Stops reconnecting guests from flooding the page. */
    static final int EACH_SECOND = 20;
    /** Events not yet taken; stops a flood from filling the memory while the reader does not run. */
    static final int MAX_PENDING = 4096;
    /** Longest text; longer texts are cut. */
    static final int MAX_TEXT_CHARACTERS = 400;

    private record Pending(Instant time, Event.Kind kind, Event.Severity severity, String vgpu, long sessionId,
        String text) {}

    /** The events of one kind. Guarded by the log. */
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

    /** Creates an empty log; the clock must be monotonic. */
    public EventLog(LongSupplier nowNs) {
        this.nowNs = nowNs;
        for (Event.Kind kind : Event.Kind.values()) {
            Kept one = new Kept();
            one.secondNs = nowNs.getAsLong();
            kept.put(kind, one);
        }
    }

    /** Sets the thread that each event wakes. */
    public void setReader(Thread thread) {
        reader = thread;
    }

    /**
     * Adds an event. Any thread; never waits.
     *
     * @param vgpu empty when the event concerns none.
     * @param sessionId 0 when the event concerns none.
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

    /** Takes the events added since the last call, the oldest first, with floods reduced. Reader only. */
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

    /** Ends a kind's second and summarizes its dropped events in one event. */
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

    /** The newest taken events, the newest first. Any thread. */
    public synchronized List<Event> latest(int limit) {
        return kept.values().stream().flatMap(one -> one.events.stream())
            .sorted(Comparator.comparingLong(Event::seq).reversed()).limit(limit).toList();
    }
}
