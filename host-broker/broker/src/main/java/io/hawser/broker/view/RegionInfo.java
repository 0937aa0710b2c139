package io.hawser.broker.view;

import io.hawser.broker.region.RegionSettings;
import io.hawser.broker.region.RegionView;
import java.util.Locale;

/** A region; see openapi.yml. */
public record RegionInfo(String name, String path, String doorbellSocket, int vectors, boolean connected, String vgpu,
    long sizeBytes, long heapBytes, int slots, int slotsInUse, int sessions, long guestTimeoutMs, String state,
    String problem, String broker) {

    /** Its key in a pool, where each broker has its own names; its name at a broker that is alone. */
    public String key() {
        return broker.isEmpty() ? name : broker + "/" + name;
    }

    /**
     * Converts a region to its form in the REST interface.
     *
     * @param broker name of its broker in a pool; empty for none.
     */
    public static RegionInfo of(RegionView view, String broker) {
        RegionSettings settings = view.settings();
        return new RegionInfo(settings.name(), settings.hasDoorbell() ? "" : settings.place(),
            settings.hasDoorbell() ? settings.place() : "", settings.vectors(), view.connected(), settings.vgpu(),
            view.geometry().regionBytes(), view.geometry().heapBytes(), view.geometry().slotCount(), view.slotsInUse(),
            view.sessions(), settings.guestTimeout().toMillis(), view.state().name().toLowerCase(Locale.ROOT),
            view.problem(), broker);
    }
}
