package io.hawser.broker.session;

import java.util.Locale;

/** How a session's records travel. */
public enum Carrier {
    /** A socket that the front door has accepted. */
    TCP,
    /** A region of shared memory. */
    SHM;

    /** Its name in REST, metrics and messages to workers. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
