package io.hawser.gpu.software.device;

/** A stream: what was issued last to it. Touched by the issuing thread only. */
final class Stream {
    final long id;
    final Context context;
    final int flags;
    final int priority;
    /** Follows the context's legacy default stream and is followed by it (created without CU_STREAM_NON_BLOCKING). */
    final boolean blocking;
    private Work last;

    Stream(long id, Context context, int flags, int priority, boolean blocking) {
        this.id = id;
        this.context = context;
        this.flags = flags;
        this.priority = priority;
        this.blocking = blocking;
    }

    /** The work issued last; null once it is done. */
    Work last() {
        if (last != null && last.isDone()) {
            last = null;
        }
        return last;
    }

    void setLast(Work work) {
        last = work;
    }
}
