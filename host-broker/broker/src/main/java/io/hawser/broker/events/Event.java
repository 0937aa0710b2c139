package io.hawser.broker.events;

import java.time.Instant;
import java.util.Locale;

/**
 * Something that happened; see openapi.yml.
 *
 * @param seq counts up from 1 since the broker started.
 * @param vgpu empty when it concerns none.
 * @param sessionId 0 when it concerns none.
 * @param text a sentence; what guests and workers say in it is printable and cut.
 */
public record Event(long seq, Instant time, String kind, String severity, String vgpu, long sessionId, String text) {
    /** What it is about. */
    public enum Kind {
        /** A session started or ended. */
        SESSION,
        /** A guest was not let in. */
        REFUSED,
        /** A worker failed. */
        WORKER,
        /** A GPU came, went or changed its health. */
        GPU,
        /** A vGPU was made, changed, placed or deleted. */
        VGPU,
        /** A region was made, failed or deleted. */
        REGION,
        /** Somebody administered the broker. */
        ADMIN;

        /** As the interface has it. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** How much it matters. */
    public enum Severity {
        /** As it should be. */
        INFO,
        /** Somebody may want to know why. */
        WARNING,
        /** Something failed. */
        ERROR;

        /** As the interface has it. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }
}
