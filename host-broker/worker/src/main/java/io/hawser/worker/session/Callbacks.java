package io.hawser.worker.session;

import io.hawser.worker.channel.Outbox;
import io.netty.util.collection.LongObjectHashMap;

/**
 * Host functions of streams. The stream waits for a word ({@link WaitWords}) while the function runs in the guest: a
 * host function of the driver would need two switches of threads more. Session thread.
 */
public final class Callbacks {
    private final StreamWork work;
    private final Outbox outbox;
    private final Gates gates;
    private final LongObjectHashMap<Pending> pending = new LongObjectHashMap<>();
    private boolean cancelled;

    /** A host function that the guest has not acknowledged yet. */
    private static final class Pending {
        final WaitWords.Word word;
        boolean isSent;
        Gates.Gate gate; // null until the stream waits

        Pending(WaitWords.Word word) {
            this.word = word;
        }
    }

    /**
     * Starts without host functions.
     *
     * @param work issues work to streams.
     * @param outbox takes the requests to the guest.
     * @param gates records which work waits for the guest.
     */
    Callbacks(StreamWork work, Outbox outbox, Gates gates) {
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
        WaitWords.Word word = work.waitWords().take();
        if (word == null) {
            return CudaResult.OUT_OF_MEMORY;
        }
        Pending callback = new Pending(word);
        work.whenReached(stream, status -> send(callback, callbackId, status));
        work.seal();
        int result = word.await(stream.stream());
        if (result != 0) {
            word.give();
            return result;
        }
        callback.gate = gates.open();
        pending.put(callbackId, callback);
        return 0;
    }

    private void send(Pending callback, long id, int status) {
        if (callback.gate != null && !cancelled) {
            callback.isSent = true;
            outbox.callback(id, status);
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
        callback.word.open();
        callback.word.give(); // the next wait is for a larger number, which serves this one as well
        gates.close(callback.gate);
        return true;
    }

    /** Releases every waiting stream: the session is over. */
    void cancel() {
        cancelled = true;
        for (Pending callback : pending.values()) {
            callback.word.open();
            gates.close(callback.gate);
        }
        pending.clear();
    }
}
