package io.hawser.gpu.software.dnn;

import io.hawser.cuda.Sizes;
import java.util.stream.LongStream;

/** Splits work among processors. */
final class Parallel {
    private static final long SMALL = 1 << 15; // steps that one thread does sooner than several begin
    private static final int PARTS_PER_PROCESSOR = 4;

    private Parallel() {
    }

    /** Does the items from one number up to another one. */
    interface Range {
        void run(long from, long to);
    }

    /**
     * Does {@code count} independent items, and returns when all are done.
     *
     * @param steps of an item, to tell large work from small.
     */
    static void each(long count, long steps, Range range) {
        long most = (long) PARTS_PER_PROCESSOR * Runtime.getRuntime().availableProcessors();
        long parts = Sizes.multiply(count, steps) < SMALL ? 1 : Math.min(count, most);
        if (parts == 1) {
            range.run(0, count);
            return;
        }
        long part = count / parts;
        long more = count % parts; // the first parts have one item more
        LongStream.range(0, parts).parallel().forEach(i -> {
            long from = i * part + Math.min(i, more);
            range.run(from, from + part + (i < more ? 1 : 0));
        });
    }
}
