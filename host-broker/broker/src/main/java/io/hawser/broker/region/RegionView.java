package io.hawser.broker.region;

import io.hawser.shm.region.RegionGeometry;

/**
 * The state of a region at one moment.
 *
 * @param problem why the broker does not serve it; empty while it does.
 * @param connected whether a virtual machine is connected to its doorbell socket.
 */
public record RegionView(RegionSettings settings, RegionGeometry geometry, State state, String problem, int slotsInUse,
    int sessions, boolean connected) {

    /** Phase of a region's life. */
    public enum State {
        /** The region accepts claims. */
        SERVING,
        /** The broker is ending the region's sessions. */
        ENDING,
        /** The region's memory is unusable; an administrator can only remove the region. */
        FAILED
    }
}
