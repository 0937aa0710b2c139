package io.hawser.broker.metrics;

import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.WorkerStats;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What the sessions of each vGPU have done, those that are over too. A total does not shrink while its vGPU is there:
 * a session that is on its way from the one to the other counts at least as before. Thread-safe.
 */
final class VgpuTotals {
    private final Map<String, WorkerStats> retired = new HashMap<>();
    private final Map<String, WorkerStats> shown = new HashMap<>();

    /** A session is over, and is not among the sessions any more. */
    synchronized void over(SessionView session) {
        retired.merge(session.guest().vgpu(), session.statistics().retired(), WorkerStats::plus);
    }

    /** The totals of these vGPUs; those of others are forgotten. */
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
