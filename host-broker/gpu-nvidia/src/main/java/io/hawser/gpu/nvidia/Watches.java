package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUresult;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.function.IntSupplier;

/**
 * Detects the end of the last work in streams. While no work has been issued behind it, the streams themselves can be
 * queried. That needs no event, and succeeds at once for idle streams. Before more work is issued, {@link #seal} gives
 * each watch an event. Session thread only.
 *
 * <p>The actions run in the order of issue, as for {@link Markers}. A poll queries watches from the newest to the
 * oldest. If any is done, the actions of all done markers run first, because markers are older than watches. Then the
 * actions of the done watches run, oldest first.
 */
final class Watches {
    private static final int NOT_READY = CUresult.CUDA_ERROR_NOT_READY;
    /**
     * Longest time that a thread polls at once if it will not poll later: less than the cost of a notification by
     * another thread.
     */
    private static final long INLINE_NS = 4_000;

    /** The functions of the driver's streams that this class needs. */
    interface Streams {
        /** CUDA_SUCCESS, CUDA_ERROR_NOT_READY or the context's error. */
        int query(long stream);

        /** Forwards the output of the work of an idle stream. */
        void flush(long stream);
    }

    private static final class Watch {
        final long[] streams; // of the current context
        final IntConsumer action;
        final IntSupplier sealer;
        int idle; // the first so many streams have been found idle
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

    /** Whether there are no watches. */
    boolean isEmpty() {
        return watches.isEmpty();
    }

    /**
     * Watches all work of some streams of the current context.
     *
     * @param of the streams.
     * @param action receives the CUresult when all of it is done or has failed.
     * @param sealer puts the action behind an event instead; returns a CUresult.
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

    /** Runs the actions of finished work; returns whether there was any. */
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

    /** Gives each watch an event, because more work may be issued next. */
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
