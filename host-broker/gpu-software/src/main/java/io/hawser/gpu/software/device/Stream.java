package io.hawser.gpu.software.device;

/** A stream and the work issued to it last. The issuing thread only. */
final class Stream {
    final long id;
    final Context context;
    final int flags;
    final int priority;
    /**
     * Whether the stream follows and precedes the legacy default stream's work (created without
     * CU_STREAM_NON_BLOCKING).
     */
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
