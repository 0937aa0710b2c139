package io.hawser.hypervisor.libvirt;

import java.util.List;

/** The names of life-cycle events: {@code virDomainEventType}, {@code virDomainEventStoppedDetailType}. */
final class Lifecycle {
    private static final int STOPPED = 5;
    private static final List<String> EVENTS = List.of("defined", "undefined", "started", "suspended", "resumed",
        "stopped", "shutdown", "suspended by power management", "crashed");
    private static final List<String> STOPPED_DETAILS = List.of("shut down", "destroyed", "crashed", "migrated",
        "saved", "failed", "loaded another snapshot");

    private Lifecycle() {}

    static String words(int event, int detail) {
        String what = event >= 0 && event < EVENTS.size() ? EVENTS.get(event) : "event " + event;
        return event == STOPPED && detail >= 0 && detail < STOPPED_DETAILS.size()
            ? what + " (" + STOPPED_DETAILS.get(detail) + ")" : what;
    }
}
