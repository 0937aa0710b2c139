package io.hawser.broker.events;

import java.time.Instant;
import java.util.Locale;

/**
 * An event; see openapi.yml.
 *
 * @param seq counts up from 1 since the broker started.
 * @param vgpu empty when the event concerns none.
 * @param sessionId 0 when the event concerns none.
 * @param text a sentence; text of guests and workers in it is made printable and cut.
 */
public record Event(long seq, Instant time, String kind, String severity, String vgpu, long sessionId, String text) {
    /** The subject of an event. */
    public enum Kind {
        /** A session started or ended. */
        SESSION,
        /** A guest was rejected. */
        REFUSED,
        /** A worker failed. */
        WORKER,
        /** A GPU appeared, disappeared or changed its health. */
        GPU,
        /** A vGPU was created, changed, placed or deleted. */
        VGPU,
        /** The memory of a swappable vGPU left its GPU or came back. */
        SWAP,
        /** A region was created, failed or was deleted. */
        REGION,
        /** An operator changed the broker. */
        ADMIN;

        /** The value in the REST interface. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** The severity of an event. */
    public enum Severity {
        /** Normal operation. */
        INFO,
        /** An operator may want to look into it. */
        WARNING,
        /** Something failed. */
        ERROR;

        /** The value in the REST interface. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }
}
