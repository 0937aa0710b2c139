package io.hawser.broker.metrics;

import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.WorkerStats;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The totals of each vGPU's sessions, including ended ones. A total never shrinks during the life of its vGPU, even
 * while a session moves from the running to the ended ones. Thread-safe.
 */
final class VgpuTotals {
    private final Map<String, WorkerStats> retired = new HashMap<>();
    private final Map<String, WorkerStats> shown = new HashMap<>();

    /** Adds a session that has ended and is no longer among the running sessions. */
    synchronized void over(SessionView session) {
        retired.merge(session.guest().vgpu(), session.statistics().retired(), WorkerStats::plus);
    }

    /** The totals of these vGPUs; the totals of all other vGPUs are dropped. */
    synchronized Map<String, WorkerStats> totals(Collection<String> vgpus, List<SessionView> sessions) {
        Set<String> known = Set.copyOf(vgpus);
        retired.keySet().retainAll(known);
        shown.keySet().retainAll(known);
        Map<String, WorkerStats> sums = new HashMap<>(retired);
        known.forEach(name -> sums.putIfAbsent(name, WorkerStats.NONE));
        sessions.forEach(session -> sums.computeIfPresent(session.guest().vgpu(),
            (name, sum) -> sum.plus(session.statistics())));
        sums.replaceAll((name, sum) -> shown.getOrDefault(name, WorkerStats.NONE).advance(sum));
        shown.putAll(sums);
        return sums;
    }
}
