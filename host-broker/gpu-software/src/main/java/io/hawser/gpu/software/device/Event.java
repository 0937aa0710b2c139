package io.hawser.gpu.software.device;

/** An event: the point that it recorded last. The issuing thread only. */
final class Event {
    // CUDA 13.0 cuda.h: CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING. The only other flag is CU_EVENT_INTERPROCESS.
    static final int BLOCKING_SYNC = 1;
    static final int DISABLE_TIMING = 2;
    static final int ALL_FLAGS = 7;

    final int flags;
    private Work recorded;
    private Context context;

    Event(int flags) {
        this.flags = flags;
    }

    /** The recorded point; null if it was never recorded. */
    Work recorded() {
        return recorded;
    }

    /** The context of the stream that recorded it; null if it was never recorded. */
    Context context() {
        return context;
    }

    void record(Work work, Context of) {
        recorded = work;
        context = of;
    }

    boolean hasTiming() {
        return (flags & DISABLE_TIMING) == 0;
    }

    boolean isDone() {
        return recorded == null || recorded.isDone();
    }
}
