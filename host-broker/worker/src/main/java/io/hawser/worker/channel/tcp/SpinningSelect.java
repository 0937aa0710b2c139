package io.hawser.worker.channel.tcp;

import io.hawser.shm.ring.Patience;
import io.hawser.shm.ring.Spin;
import io.hawser.worker.channel.RecordHandler;
import io.netty.channel.SelectStrategy;
import io.netty.util.IntSupplier;

/**
 * Decides how the event loop waits. It polls the socket and the session's work while recent waits were short enough to
 * justify a spinning processor; then it sleeps. So a guest that sends often gets its replies without a wake-up, and the
 * end of its work needs no thread switch. Each poll is a system call, so a machine with few processors sleeps at once.
 * Event loop only.
 */
final class SpinningSelect implements SelectStrategy {
    private static final int FEW_CPUS = 2;

    private final Spin spin = new Spin();
    private final boolean spins;
    private RecordHandler handler; // null without a session
    private boolean waiting; // true since spin.begin()
    private final Patience patience = new Patience();
    private boolean patient; // true when spinning for the guest has ended and spinning for the device goes on
    private boolean asleep;

    SpinningSelect() {
        this(Runtime.getRuntime().availableProcessors() > FEW_CPUS && Spin.isWanted());
    }

    SpinningSelect(boolean spins) {
        this.spins = spins;
    }

    /** Polls this session's work too from now on. */
    void attend(RecordHandler recordHandler) {
        if (spins) {
            handler = recordHandler;
            handler.setPolled(true);
        }
    }

    /** Stops all calls to the session. */
    void leave() {
        if (handler != null) {
            handler.setPolled(false);
            handler = null;
        }
    }

    /** Resumes polling the session's work, because input has arrived. Call it before serving the input. */
    void awake() {
        if (asleep) {
            asleep = false;
            if (handler != null) {
                handler.setPolled(true);
            }
        }
    }

    @Override
    public int calculateStrategy(IntSupplier selectNow, boolean hasTasks) throws Exception {
        if (handler == null) {
            return hasTasks ? selectNow.get() : SELECT;
        }
        awake();
        int ready = selectNow.get();
        if (ready > 0 || hasTasks) {
            endWait();
            return ready;
        }
        if (handler.poll()) {
            endWait();
            return CONTINUE;
        }
        if (!waiting) {
            waiting = true;
            patient = false;
            spin.begin();
        }
        if (!patient && spin.once()) {
            return CONTINUE;
        }
        if (handler.isWorthPolling() && isPatient()) {
            return CONTINUE;
        }
        if (patient) {
            patience.end(false);
        }
        spin.end(true);
        waiting = false;
        asleep = true;
        handler.setPolled(false);
        return SELECT;
    }

    /** Whether to keep spinning for the device. */
    private boolean isPatient() {
        if (!patient) {
            patient = true;
            patience.begin();
        }
        return patience.once();
    }

    private void endWait() {
        if (waiting && patient) {
            patience.end(true);
        } else if (waiting) {
            spin.end(false); // otherwise the device ended the wait, which shows nothing about the guest's pace
        }
        waiting = false;
    }
}
