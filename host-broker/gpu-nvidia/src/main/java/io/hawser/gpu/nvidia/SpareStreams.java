package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUresult;
import java.util.ArrayList;
import java.util.List;

/**
 * Destroyed streams of a primary context, kept for the next streams of the same flags and priority: to create and
 * destroy a stream costs the driver more than a short copy. A stream is used again only once its work is done, because
 * its next user must not wait for that. It has no other state: the guest keeps a stream's attributes, capture and id.
 * Session thread only.
 */
final class SpareStreams {
    /** More than the short copies that a GPU has in flight; each costs the driver some memory. */
    static final int MAX = 8;

    /** The functions of the driver's streams that this class needs. */
    interface Streams {
        /** CUDA_SUCCESS, CUDA_ERROR_NOT_READY or the context's error. */
        int query(long stream);

        /** Destroys a stream; its work still runs. */
        void destroy(long stream);
    }

    /** The properties that streams of one kind share. */
    record Kind(int flags, int priority) {}

    private static final class Spare {
        final long stream;
        final Kind kind;
        boolean idle; // once idle, it stays so until it is taken

        Spare(long stream, Kind kind) {
            this.stream = stream;
            this.kind = kind;
        }
    }

    private final Streams streams;
    private final List<Spare> spares = new ArrayList<>(MAX); // the next to query first

    SpareStreams(Streams streams) {
        this.streams = streams;
    }

    /** An idle stream of a kind; 0 when it finds none. Queries one stream, and another one the next time. */
    long take(Kind kind) {
        for (int i = 0; i < spares.size(); i++) {
            if (spares.get(i).kind.equals(kind)) {
                Spare spare = spares.remove(i);
                if (isIdle(spare)) {
                    return spare.stream;
                }
                spares.add(spare);
                return 0;
            }
        }
        return 0;
    }

    /** Keeps a stream that the guest has destroyed. False: the caller destroys it. */
    boolean give(long stream, Kind kind) {
        if (spares.size() == MAX) {
            Spare next = spares.removeFirst();
            if (!isIdle(next)) {
                spares.add(next);
                return false;
            }
            streams.destroy(next.stream);
        }
        spares.add(new Spare(stream, kind));
        return true;
    }

    /** Whether no spare has work. */
    boolean areIdle() {
        for (Spare spare : spares) {
            if (!isIdle(spare)) {
                return false;
            }
        }
        return true;
    }

    /** Whether a stream has no work. A stream of a failed context counts as busy for ever. */
    private boolean isIdle(Spare spare) {
        spare.idle = spare.idle || streams.query(spare.stream) == CUresult.CUDA_SUCCESS;
        return spare.idle;
    }
}
