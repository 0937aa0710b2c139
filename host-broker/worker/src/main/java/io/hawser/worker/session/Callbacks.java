package io.hawser.worker.session;

import io.hawser.worker.channel.Outbox;
import io.netty.util.collection.LongObjectHashMap;
import java.util.concurrent.CountDownLatch;

/**
 * Host functions of streams. The stream waits in the worker while the function runs in the guest. Session thread,
 * except for the wait itself.
 */
public final class Callbacks {
    /** A few times what a guest needs for a short function. */
    private static final long SPIN_NS = Runtime.getRuntime().availableProcessors() >= 8 ? 100_000 : 0;

    private final Completions completions;
    private final StreamWork work;
    private final Outbox outbox;
    private final Gates gates;
    private final LongObjectHashMap<Pending> pending = new LongObjectHashMap<>();
    private boolean cancelled;

    /** A host function that the guest has not acknowledged yet. */
    private static final class Pending {
        final long id;
        final CountDownLatch done = new CountDownLatch(1);
        boolean isSent;
        Gates.Gate gate;

        Pending(long id) {
            this.id = id;
        }

        /**
         * Backend thread: blocks the stream until the guest has run the function or the session is over. Most functions
         * are short. So it first waits without sleeping, where there are processors for that.
         */
        void await() {
            long startNs = System.nanoTime();
            while (done.getCount() != 0 && System.nanoTime() - startNs < SPIN_NS) {
                Thread.onSpinWait();
            }
            try {
                done.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // the backend is closing; let its thread end
            }
        }
    }

    /**
     * Starts without host functions.
     *
     * @param completions passes events of streams to the session thread.
     * @param work issues work to streams.
     * @param outbox takes the requests to the guest.
     * @param gates records which work waits for the guest.
     */
    Callbacks(Completions completions, StreamWork work, Outbox outbox, Gates gates) {
        this.completions = completions;
        this.work = work;
        this.outbox = outbox;
        this.gates = gates;
    }

    /**
     * Runs a function of the guest in stream order. If the stream fails, the guest gets the error instead, as CUDA
     * promises for cuStreamAddCallback.
     *
     * @param stream the stream.
     * @param callbackId the guest's number of the callback; not in use by an unfinished one.
     * @return CUresult, or -1 when the id is in use.
     */
    public int issue(StreamState stream, long callbackId) {
        if (pending.containsKey(callbackId)) {
            return -1;
        }
        work.issued(stream, Gates.HOST_FUNCTION);
        Pending callback = new Pending(callbackId);
        pending.put(callbackId, callback);
        int result = work.hostFunction(stream, () -> {
            completions.add(() -> send(callback, 0));
            callback.await();
        });
        if (result != 0) {
            pending.remove(callbackId);
            return result;
        }
        callback.gate = gates.open();
        work.whenReached(stream, status -> send(callback, status));
        return 0;
    }

    private void send(Pending callback, int status) {
        if (!callback.isSent && !cancelled) {
            callback.isSent = true;
            outbox.callback(callback.id, status);
        }
    }

    /**
     * Takes the guest's acknowledgement.
     *
     * @param callbackId the guest's number of the callback.
     * @return false when no CALLBACK with this id was sent.
     */
    boolean acknowledge(long callbackId) {
        Pending callback = pending.get(callbackId);
        if (callback == null || !callback.isSent) {
            return false;
        }
        pending.remove(callbackId);
        callback.done.countDown();
        gates.close(callback.gate);
        return true;
    }

    /** Releases every waiting stream: the session is over. */
    void cancel() {
        cancelled = true;
        for (Pending callback : pending.values()) {
            callback.done.countDown();
            gates.close(callback.gate);
        }
        pending.clear();
    }
}
