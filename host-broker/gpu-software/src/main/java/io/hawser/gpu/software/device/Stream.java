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
    /** The graph that receives the stream's work; null while the stream does not capture. */
    private Graph capture;
    private boolean isInvalid; // the capture

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

    /** The graph that receives the stream's work, or null. */
    Graph capture() {
        return capture;
    }

    /** Begins a capture into a graph, or ends it with null. */
    void capture(Graph graph) {
        capture = graph;
        isInvalid = false;
    }

    /** Ends the capture because of a call that cannot become a node. */
    void invalidateCapture() {
        isInvalid = true;
    }

    /** Whether the capture has come to an early end. */
    boolean isCaptureInvalid() {
        return isInvalid;
    }
}
