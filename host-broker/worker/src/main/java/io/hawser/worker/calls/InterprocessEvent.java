package io.hawser.worker.calls;

import io.hawser.cuda.backend.Signals;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.shm.events.EventPage;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.Gates;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/**
 * An event of the guest that other sessions can use (CU_EVENT_INTERPROCESS). Until the guest asks for its handle it is
 * an event of the driver, for this session alone. Then an {@link EventPage} has its state: streams write a number there
 * for a record, and wait for the number of the latest record. The driver's own sharing needs files of the machine,
 * which a jailed worker does not have.
 *
 * <p>The driver's event still has the last record of this session. While that is the latest of all, the driver answers.
 *
 * <p>A stream that waits for another session is a gate ({@link Gates}), since the record may depend on later calls of
 * this guest. A call that waits for the record polls the page. It must not use a stream, because other calls would wait
 * for that stream. Session thread.
 */
final class InterprocessEvent {
    /** CU_EVENT_INTERPROCESS. */
    static final int FLAG = 4;

    private static final Logger LOG = System.getLogger(InterprocessEvent.class.getName());
    private static final long POLL_MS = 1;

    private final Session session;
    private final CudaDriver driver;
    private final Signals signals;
    private final long local; // the driver's event
    private EventPage page; // null until it is shared
    private Runnable closed;
    private int own; // number of the record that the driver's event has; 0 for none
    private int pending; // work in streams that uses the page
    private boolean isDestroyed;

    /**
     * @param local the driver's event, which ends with the guest's handle.
     */
    InterprocessEvent(Session session, long local) {
        this.session = session;
        this.driver = session.backend().driver();
        this.signals = session.backend().signals();
        this.local = local;
    }

    /** Whether it has a page. */
    boolean isShared() {
        return page != null;
    }

    /**
     * Uses a page from now on.
     *
     * @param shared the page, this object's from now on.
     * @param whenClosed runs when the event has been destroyed and no stream uses the page any more.
     * @return CUresult; the page is closed after an error.
     */
    int share(EventPage shared, Runnable whenClosed) {
        int result = signals.open(shared.memory());
        if (result != 0) {
            shared.close();
            return result;
        }
        page = shared;
        closed = whenClosed;
        return 0;
    }

    /** Enters the record that the driver's event has, if its stream has not reached it yet. */
    int shareRecord(long context) {
        return driver.cuEventQuery(local) == CUresult.CUDA_ERROR_NOT_READY
            ? session.work().inSideStream(context, this::recordBehindLocal) : 0;
    }

    private int recordBehindLocal(StreamState side) {
        session.work().issued(side, 1); // in the guest's streams, the record of the driver's event counts
        int result = driver.cuStreamWaitEvent(side.stream(), local, 0);
        return result != 0 ? result : write(side);
    }

    /** Records it in a stream. */
    int record(StreamState stream) {
        int result = driver.cuEventRecordWithFlags(local, stream.stream(), 0);
        return result != 0 ? result : write(stream);
    }

    private int write(StreamState stream) {
        int number;
        try {
            number = page.claim(session.number());
        } catch (IOException e) {
            LOG.log(Level.WARNING, "session {0}: {1}", session.id(), e.getMessage());
            return CudaResult.UNKNOWN;
        }
        int before = number - EventPage.SLOTS;
        int result = page.isDone(before) ? 0 : await(stream, before);
        if (result == 0) {
            result = signals.write(stream.stream(), page.value(number), number);
        }
        if (result != 0) {
            page.complete(number);
            return result;
        }
        own = number;
        pending++;
        session.work().whenReached(stream, status -> {
            if (status != 0) {
                page.complete(number);
            }
            end();
        });
        return 0;
    }

    /** Records it behind all work of a context. */
    int recordContext(long context) {
        int result = driver.cuCtxRecordEvent(context, local);
        return result != 0 ? result : session.work().inSideStream(context, this::recordBehindLocal);
    }

    /** Makes a stream wait for the latest record. */
    int wait(StreamState stream) {
        int number = page.latest();
        return number == own ? driver.cuStreamWaitEvent(stream.stream(), local, 0)
            : page.isDone(number) ? 0 : await(stream, number);
    }

    /** Makes all streams of a context wait for the latest record. */
    int waitContext(long context) {
        int number = page.latest();
        if (number != own && page.isDone(number)) {
            return 0;
        }
        int result = number == own ? 0 : session.work().inSideStream(context, side -> {
            int waits = await(side, number);
            return waits != 0 ? waits : driver.cuEventRecordWithFlags(local, side.stream(), 0);
        });
        own = result == 0 ? number : own;
        return result != 0 ? result : driver.cuCtxWaitEvent(context, local);
    }

    private int await(StreamState stream, int number) {
        session.work().issued(stream, Signals.AWAIT_ENTRIES);
        int result = signals.await(stream.stream(), page.value(number), number);
        if (result == 0) {
            Gates.Gate gate = session.gates().open();
            pending++;
            session.work().whenReached(stream, status -> {
                session.gates().close(gate);
                end();
            });
        }
        return result;
    }

    /** Whether the latest record has been reached: a CUresult. */
    int query() {
        int number = page.latest();
        return number == own ? driver.cuEventQuery(local) : page.isDone(number) ? 0 : CUresult.CUDA_ERROR_NOT_READY;
    }

    /** Whether the driver's event has the latest record. */
    boolean isLocal() {
        return page.latest() == own;
    }

    /** Runs an action once the record that is the latest now has been reached, or the event has been destroyed. */
    void whenReached(Runnable action) {
        poll(page.latest(), action);
    }

    private void poll(int number, Runnable action) {
        if (isDestroyed || page.isDone(number)) {
            action.run();
        } else {
            session.serveLater(() -> poll(number, action), POLL_MS);
        }
    }

    /** Ends it with the guest's handle. */
    void destroy() {
        isDestroyed = true;
        closeIfUnused();
    }

    private void end() {
        pending--;
        closeIfUnused();
    }

    private void closeIfUnused() {
        if (isDestroyed && pending == 0) {
            session.gates().whenClosed(() -> { // the driver may wait for the device
                signals.close(page.memory());
                page.close();
                closed.run();
            });
        }
    }
}
