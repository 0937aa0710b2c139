package io.hawser.broker.history;

import java.util.HashMap;
import java.util.Map;

/** Measures the memory of a history with many busy vGPUs. */
public final class HistoryLoad {
    private static final long START = 86_400;

    private HistoryLoad() {
    }

    /** Memory in MiB of the history of the given number of vGPUs that were busy for a whole day. */
    public static double mebibytes(int busy) {
        History history = new History(START);
        Map<History.Key, Sample> samples = new HashMap<>();
        for (int i = 0; i < busy; i++) {
            samples.put(new History.Key(History.Kind.VGPU, "v" + i), new Sample(1, 1e9, 1e4, 1e3, 1e8, 1e7, Double.NaN,
                5));
        }
        long before = used();
        for (int second = 0; second < 86_400; second++) {
            history.add(START + second, samples);
        }
        long after = used();
        if (history.chunks() == 0) {
            throw new IllegalStateException("nothing is held");
        }
        return (after - before) / (double) (1 << 20);
    }

    private static long used() {
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
