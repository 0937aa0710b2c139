package io.hawser.broker.status;

import io.hawser.broker.model.SessionView;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * The part of the last seconds in which the sessions of a vGPU had kernels on their GPUs. Call {@link #sample} from one
 * thread, {@link #percent} from any thread.
 */
public final class VgpuUse {
    /** Samples kept: workers report twice a second, so the figure needs some reports between the first and the last. */
    private static final int SAMPLES = 4;
    private static final double NS_PER_MS = 1e6;

    /** The kernels' time of each session, by id, at one time. */
    private record Sample(long takenNs, Map<Long, Long> gpuTimeMs) {}

    private final Supplier<List<SessionView>> sessions;
    private final Deque<Sample> samples = new ArrayDeque<>();
    private volatile Map<String, Integer> percents = Map.of();

    /** Creates an object that has seen nothing. */
    public VgpuUse(Supplier<List<SessionView>> sessions) {
        this.sessions = sessions;
    }

    /** Takes a sample. The caller does so about each second. */
    public void sample(long nowNs) {
        List<SessionView> present = sessions.get();
        Map<Long, Long> times = new HashMap<>();
        present.forEach(session -> times.put(session.id(), session.statistics().gpuTimeMs()));
        Sample first = samples.peekFirst();
        if (first != null && nowNs > first.takenNs) {
            Map<String, Long> sums = new HashMap<>();
            // A session that is missing in the first sample has begun since then.
            present.forEach(session -> sums.merge(session.guest().vgpu(),
                times.get(session.id()) - first.gpuTimeMs.getOrDefault(session.id(), 0L), Long::sum));
            double elapsedMs = (nowNs - first.takenNs) / NS_PER_MS;
            Map<String, Integer> next = new HashMap<>();
            sums.forEach((vgpu, ms) -> next.put(vgpu, Math.clamp(Math.round(100 * (double) ms / elapsedMs), 0, 100)));
            percents = Map.copyOf(next);
        }
        samples.addLast(new Sample(nowNs, times));
        if (samples.size() > SAMPLES) {
            samples.removeFirst();
        }
    }

    /** The figure of a vGPU, 0 to 100; 0 for one without sessions. */
    public int percent(String vgpu) {
        return percents.getOrDefault(vgpu, 0);
    }
}
