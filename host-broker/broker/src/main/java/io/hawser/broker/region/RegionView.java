package io.hawser.broker.region;

import io.hawser.shm.RegionGeometry;

/**
 * A region at one moment.
 *
 * @param problem why it is not served; empty while it is.
 * @param connected whether a virtual machine is connected to its doorbell socket.
 */
public record RegionView(RegionSettings settings, RegionGeometry geometry, State state, String problem, int slotsInUse,
    int sessions, boolean connected) {

    /** Where a region is in its life. */
    public enum State {
        /** Claims are let in. */
        SERVING,
        /** Its sessions are being ended. */
        ENDING,
        /** Its memory cannot be used any more; it waits to be removed. */
        FAILED
    }
}
