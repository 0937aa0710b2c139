package io.hawser.worker.channel.tcp;

import io.hawser.shm.ring.Patience;
import io.hawser.shm.ring.Spin;
import io.hawser.worker.channel.RecordHandler;
import io.netty.channel.SelectStrategy;
import io.netty.util.IntSupplier;

/**
 * What the event loop does when nothing has come: it looks again, and for ends of the session's work, as long as recent
 * waits say that this is worth a processor; then it sleeps. So a guest that is quick is answered without a wake-up, and
 * the end of its work crosses no thread. Each look is a system call, so where processors are few it sleeps at once.
 * Event loop only.
 */
final class SpinningSelect implements SelectStrategy {
    private static final int FEW_CPUS = 2;

    private final Spin spin = new Spin();
    private final boolean spins;
    private RecordHandler handler; // null while there is nobody to look for
    private boolean waiting; // since begin()
    private final Patience patience = new Patience();
    private boolean patient; // spun as long as the guest is worth, and goes on for the device
    private boolean asleep;

    SpinningSelect() {
        this(Runtime.getRuntime().availableProcessors() > FEW_CPUS && Spin.isWanted());
    }

    SpinningSelect(boolean spins) {
        this.spins = spins;
    }

    /** Looks for this session's work as well from now on. */
    void attend(RecordHandler recordHandler) {
        if (spins) {
            handler = recordHandler;
            handler.polled(true);
        }
    }

    /** Never calls the session again. */
    void leave() {
        if (handler != null) {
            handler.polled(false);
            handler = null;
        }
    }

    /** Something has come: the session's work is looked for again. Called before it is served. */
    void awake() {
        if (asleep) {
            asleep = false;
            if (handler != null) {
                handler.polled(true);
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
        handler.polled(false);
        return SELECT;
    }

    /** Whether to go on for the device. */
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
            spin.end(false); // else it was the device that was waited for: that says nothing of the guest
        }
        waiting = false;
    }
}
