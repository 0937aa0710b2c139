package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUresult;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.function.IntSupplier;

/**
 * Ends of work behind which nothing has been issued: then the streams themselves can be asked, which costs no event and
 * answers at once for streams that are idle. Before anything more is issued, {@link #seal} gives each an event of its
 * own. Session thread only.
 *
 * <p>Order is that of {@link Markers}: from the newest to the oldest is asked, then what the markers find is acted
 * on, which is older than any of these, then these from the oldest on.
 */
final class Watches {
    private static final int NOT_READY = CUresult.CUDA_ERROR_NOT_READY;
    /** How long a thread that will not look again asks at once: less than it costs to be told by another thread. */
    private static final long INLINE_NS = 4_000;

    /** The driver's streams, as far as they matter here. */
    interface Streams {
        /** CUDA_SUCCESS, CUDA_ERROR_NOT_READY or the context's error. */
        int query(long stream);

        /** Hands on what the work of a stream that is idle has printed. */
        void flush(long stream);
    }

    private static final class Watch {
        final long[] streams; // of the current context
        final IntConsumer action;
        final IntSupplier sealer;
        int idle; // so many of the streams, from the first, have been found idle
        int status = NOT_READY;

        Watch(long[] streams, IntConsumer action, IntSupplier sealer) {
            this.streams = streams;
            this.action = action;
            this.sealer = sealer;
        }
    }

    private final Streams streams;
    private final Markers markers;
    private final List<Watch> watches = new ArrayList<>(); // oldest first

    Watches(Streams streams, Markers markers) {
        this.streams = streams;
        this.markers = markers;
    }

    /** Whether nothing is watched. */
    boolean isEmpty() {
        return watches.isEmpty();
    }

    /**
     * Watches all work of some streams of the current context.
     *
     * @param of the streams.
     * @param action gets the CUresult when all of it is done or has failed.
     * @param sealer puts the action behind an event instead; answers a CUresult.
     */
    void add(long[] of, IntConsumer action, IntSupplier sealer) {
        watches.add(new Watch(of, action, sealer));
        if (markers.isPolled()) {
            return;
        }
        if (!markers.isWatching()) {
            long startNs = System.nanoTime();
            while (!poll() && System.nanoTime() - startNs < INLINE_NS) {
                Thread.onSpinWait();
            }
        }
        seal();
    }

    /** Runs the actions that are due; whether there was any. */
    boolean poll() {
        boolean any = false;
        for (int i = watches.size() - 1; i >= 0; i--) {
            any |= isDone(watches.get(i));
        }
        if (!any) {
            return false;
        }
        markers.pass();
        List<Watch> all = List.copyOf(watches);
        watches.removeIf(watch -> watch.status != NOT_READY);
        for (Watch watch : all) {
            if (watch.status != NOT_READY) {
                for (long stream : watch.streams) {
                    streams.flush(stream);
                }
                watch.action.accept(watch.status);
            }
        }
        return true;
    }

    private boolean isDone(Watch watch) {
        while (watch.idle < watch.streams.length) {
            int status = streams.query(watch.streams[watch.idle]);
            if (status == NOT_READY) {
                return false;
            }
            watch.idle = status == 0 ? watch.idle + 1 : watch.streams.length;
            watch.status = status == 0 && watch.idle < watch.streams.length ? NOT_READY : status;
        }
        return true;
    }

    /** Something may be issued next: whatever is watched gets an event. */
    void seal() {
        if (watches.isEmpty()) {
            return;
        }
        List<Watch> all = List.copyOf(watches);
        watches.clear();
        for (Watch watch : all) {
            int result = watch.sealer.getAsInt();
            if (result != 0) {
                watch.action.accept(result);
            }
        }
    }
}
