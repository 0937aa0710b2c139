package io.hawser.broker.view;

import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.WorkerStats;
import java.time.Instant;
import java.util.List;
import java.util.Locale;

/** A session; see openapi.yml. */
public record SessionInfo(long id, String vgpu, String carrier, String keyId, String state, Instant started,
    String peer, String host, String program, long guestPid, long workerPid, List<String> gpus,
    long memoryBytes, Statistics statistics, String broker) {

    /** Its totals; see openapi.yml. */
    public record Statistics(long calls, long replies, long roundTrips, long bytesIn, long bytesOut,
        long refusedRecords, long deviceBytes, long kernels, long gpuTimeMs, long waitedMs) {}

    /**
     * Converts a session to its form in the REST interface.
     *
     * @param broker name of its broker in a pool; empty for none.
     */
    public static SessionInfo of(SessionView view, String broker) {
        WorkerStats totals = view.statistics();
        return new SessionInfo(view.id(), view.guest().vgpu(), view.guest().carrier().label(), view.guest().keyId(),
            view.state().name().toLowerCase(Locale.ROOT), view.started(), view.guest().peer(), view.guest().host(),
            view.guest().program(), view.guest().pid(), view.workerPid(), view.gpus(), view.memoryBytes(),
            new Statistics(totals.calls(), totals.replies(), totals.roundTrips(), totals.bytesIn(), totals.bytesOut(),
                totals.refusedRecords(), totals.deviceBytes(), totals.kernels(), totals.gpuTimeMs(),
                totals.waitedMs()),
            broker);
    }
}
