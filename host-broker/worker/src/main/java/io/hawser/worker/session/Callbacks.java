package io.hawser.worker.session;

import io.hawser.worker.channel.Outbox;
import io.netty.util.collection.LongObjectHashMap;
import java.util.concurrent.CountDownLatch;

/**
 * Host functions of streams: the stream waits in the worker while the function runs in the guest. Session thread, but
 * for the waiting itself.
 */
public final class Callbacks {
    private final Completions completions;
    private final StreamWork work;
    private final Outbox outbox;
    private final Gates gates;
    private final LongObjectHashMap<Pending> pending = new LongObjectHashMap<>();
    private boolean cancelled;

    /** A host function that was asked for and has not been acknowledged. */
    private static final class Pending {
        final long id;
        final CountDownLatch done = new CountDownLatch(1);
        boolean isSent;
        Gates.Gate gate;

        Pending(long id) {
            this.id = id;
        }

        /** The backend's thread: holds the stream until the guest has run the function or the session is over. */
        void await() {
            try {
                done.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // the backend is being closed: let its thread end
            }
        }
    }

    /**
     * Starts without host functions.
     *
     * @param completions brings what streams say to the session thread.
     * @param work issues to streams.
     * @param outbox takes the requests to the guest.
     * @param gates told of what waits for the guest.
     */
    Callbacks(Completions completions, StreamWork work, Outbox outbox, Gates gates) {
        this.completions = completions;
        this.work = work;
        this.outbox = outbox;
        this.gates = gates;
    }

    /**
     * Asks for a function to be run in stream order. When the stream has failed the guest is told with the error, so
     * that it can tell a cuStreamAddCallback what CUDA promises.
     *
     * @param stream where.
     * @param callbackId the guest's, in use by none that is not done.
     * @return CUresult, or -1 when the id is in use.
     */
    public int issue(StreamState stream, long callbackId) {
        if (pending.containsKey(callbackId)) {
            return -1;
        }
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
     * Takes an acknowledgement.
     *
     * @param callbackId the guest's.
     * @return false when the guest was not asked to run it.
     */
    boolean done(long callbackId) {
        Pending callback = pending.get(callbackId);
        if (callback == null || !callback.isSent) {
            return false;
        }
        pending.remove(callbackId);
        callback.done.countDown();
        gates.close(callback.gate);
        return true;
    }

    /** Lets every stream go on: the session is over. */
    void cancel() {
        cancelled = true;
        for (Pending callback : pending.values()) {
            callback.done.countDown();
            gates.close(callback.gate);
        }
        pending.clear();
    }
}
