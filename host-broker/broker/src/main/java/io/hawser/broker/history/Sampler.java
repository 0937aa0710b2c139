package io.hawser.broker.history;

import io.hawser.broker.view.SessionInfo;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Makes samples of the sessions' activity since the previous call. One thread. */
public final class Sampler {
    private static final SessionInfo.Statistics NOTHING = new SessionInfo.Statistics(0, 0, 0, 0, 0, 0, 0, 0, 0,
        0);

    /** Sums for one key. */
    private static final class Sum {
        private int sessions;
        private double usedBytes;
        private double calls;
        private double roundTrips;
        private double bytesIn;
        private double bytesOut;
        private double waitedMs;

        private void add(SessionInfo.Statistics before, SessionInfo.Statistics now, boolean over) {
            sessions += over ? 0 : 1;
            usedBytes += over ? 0 : now.deviceBytes();
            calls += now.calls() - before.calls();
            roundTrips += now.roundTrips() - before.roundTrips();
            bytesIn += now.bytesIn() - before.bytesIn();
            bytesOut += now.bytesOut() - before.bytesOut();
            waitedMs += now.waitedMs() - before.waitedMs();
        }

        private Sample sample(double seconds, double utilizationPercent) {
            double waited = sessions == 0 ? 0 : Math.min(100, waitedMs / (seconds * 10 * sessions));
            return new Sample(sessions, usedBytes, calls / seconds, roundTrips / seconds, bytesIn / seconds,
                bytesOut / seconds, utilizationPercent, waited);
        }
    }

    private Map<Long, SessionInfo.Statistics> before = new HashMap<>();

    /**
     * The samples of the time since the last call.
     *
     * @param over sessions that have ended since then, taken before {@code running}.
     * @param running the present sessions.
     * @param utilizations of the GPUs by UUID, in percent; NaN where unknown.
     * @param seconds time since the last call; above 0.
     */
    public Map<History.Key, Sample> sample(List<SessionInfo> over, List<SessionInfo> running,
        Map<String, Double> utilizations, double seconds) {
        Map<History.Key, Sum> sums = new HashMap<>();
        sums.put(History.Key.BROKER, new Sum());
        utilizations.keySet().forEach(uuid -> sums.put(new History.Key(History.Kind.GPU, uuid), new Sum()));
        for (SessionInfo session : over) {
            add(sums, session, true);
        }
        Map<Long, SessionInfo.Statistics> next = new HashMap<>();
        for (SessionInfo session : running) {
            add(sums, session, false);
            next.put(session.id(), session.statistics());
        }
        before = next;
        Map<History.Key, Sample> samples = new HashMap<>();
        sums.forEach((key, sum) -> samples.put(key, sum.sample(seconds, utilization(key, utilizations))));
        return samples;
    }

    private void add(Map<History.Key, Sum> sums, SessionInfo session, boolean over) {
        SessionInfo.Statistics last = before.getOrDefault(session.id(), NOTHING);
        List<History.Key> keys = new ArrayList<>(List.of(History.Key.BROKER, new History.Key(History.Kind.VGPU,
            session.vgpu())));
        if (!session.gpus().isEmpty()) {
            // A session reports one figure for all its GPUs: it counts for the first GPU.
            keys.add(new History.Key(History.Kind.GPU, session.gpus().getFirst()));
        }
        for (History.Key key : keys) {
            sums.computeIfAbsent(key, k -> new Sum()).add(last, session.statistics(), over);
        }
    }

    private static double utilization(History.Key key, Map<String, Double> utilizations) {
        return switch (key.kind()) {
            case GPU -> utilizations.getOrDefault(key.id(), Double.NaN);
            case BROKER -> utilizations.values().stream().filter(u -> !u.isNaN()).mapToDouble(u -> u).average()
                .orElse(Double.NaN);
            case VGPU -> Double.NaN;
        };
    }
}
