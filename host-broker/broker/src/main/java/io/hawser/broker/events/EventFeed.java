package io.hawser.broker.events;

import io.hawser.broker.BrokerListener;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.SessionView;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/** Turns the broker's callbacks into events and passes every callback on. On the broker's event loop; never waits. */
public final class EventFeed implements BrokerListener {
    /** Ended sessions whose last figures no reader has taken; bounds the memory when the reader hangs. */
    private static final int MAX_OVER = 4096;

    private final EventLog log;
    private final BrokerListener next;
    private final Queue<SessionView> over = new ConcurrentLinkedQueue<>();
    private final AtomicInteger overCount = new AtomicInteger();

    /** Adds to this log and passes each callback on to this listener. */
    public EventFeed(EventLog log, BrokerListener next) {
        this.log = log;
        this.next = next;
    }

    /** Takes an ended session with its last figures; null when there is none. Any thread. */
    public SessionView pollOver() {
        SessionView session = over.poll();
        if (session != null) {
            overCount.decrementAndGet();
        }
        return session;
    }

    @Override
    public void refused(Carrier carrier, Refusal refusal) {
        next.refused(carrier, refusal);
    }

    @Override
    public void refused(Carrier carrier, Refusal refusal, String vgpu, String peer, String reason) {
        next.refused(carrier, refusal, vgpu, peer, reason);
        log.add(Event.Kind.REFUSED, refusal == Refusal.INTERNAL ? Event.Severity.ERROR : Event.Severity.WARNING, vgpu,
            0, "A guest was refused (" + refusal.label() + ", " + carrier.label() + " " + peer + "): " + reason);
    }

    @Override
    public void sessionStarted(Carrier carrier, Duration time) {
        next.sessionStarted(carrier, time);
    }

    @Override
    public void sessionRuns(SessionView session) {
        next.sessionRuns(session);
        Guest guest = session.guest();
        log.add(Event.Kind.SESSION, Event.Severity.INFO, guest.vgpu(), session.id(), "Session " + session.id()
            + " started: " + guest.program() + " on " + guest.host() + " over " + guest.carrier().label());
    }

    @Override
    public void sessionCarried(SessionView session) {
        next.sessionCarried(session);
        log.add(Event.Kind.SESSION, Event.Severity.INFO, session.guest().vgpu(), session.id(), "Session " + session.id()
            + " goes over " + session.guest().carrier().label());
    }

    @Override
    public void sessionOver(SessionView session, String reason, boolean error) {
        next.sessionOver(session, reason, error);
        log.add(Event.Kind.SESSION, error ? Event.Severity.ERROR : Event.Severity.INFO, session.guest().vgpu(),
            session.id(), "Session " + session.id() + " ended: " + reason);
        if (overCount.incrementAndGet() <= MAX_OVER) {
            over.add(session);
        } else {
            overCount.decrementAndGet();
        }
    }

    @Override
    public void moveOver(MoveOutcome outcome) {
        next.moveOver(outcome);
        String vgpu = outcome.vgpu();
        switch (outcome.result()) {
            case MOVED -> log.add(Event.Kind.VGPU, Event.Severity.INFO, vgpu, 0, "vGPU " + vgpu + " moved: from="
                + outcome.from() + " to=" + outcome.to() + " sessions=" + outcome.sessions() + " ms=" + outcome.ms());
            case FAILED -> log.add(Event.Kind.VGPU, Event.Severity.WARNING, vgpu, 0, "vGPU " + vgpu
                + " has not moved: from=" + outcome.from() + " to=" + outcome.to() + ": " + outcome.problem());
            case REFUSED -> {} // the answer to the operator says why
        }
    }

    @Override
    public void workerStarted(Duration time) {
        next.workerStarted(time);
    }

    @Override
    public void workerFailed(String reason) {
        next.workerFailed(reason);
        log.add(Event.Kind.WORKER, Event.Severity.ERROR, "", 0, "A worker failed before it had a session: " + reason);
    }
}
