package io.hawser.broker.model;

import java.time.Instant;
import java.util.List;

/**
 * A snapshot of a session.
 *
 * @param workerPid 0 while it has no worker.
 * @param gpus UUIDs of its GPUs; empty before they are known.
 * @param memoryBytes its device memory quota; 0 is all of the device.
 */
public record SessionView(long id, Guest guest, long workerPid, Instant started, SessionState state,
    List<String> gpus, long memoryBytes, WorkerStats statistics) {

    /** The same session with this amount of device memory in its statistics. */
    public SessionView withDeviceBytes(long deviceBytes) {
        return new SessionView(id, guest, workerPid, started, state, gpus, memoryBytes,
            statistics.withDeviceBytes(deviceBytes));
    }
}
