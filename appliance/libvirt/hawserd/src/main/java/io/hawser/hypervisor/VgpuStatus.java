package io.hawser.hypervisor;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * What has come of a domain's wish, as its metadata says it.
 *
 * @param vgpu the vGPU's name at the broker; empty while there is none.
 * @param transport empty while the wish is not known.
 * @param reason a sentence; empty when it is ready.
 * @param by {@code metadata} or {@code device}: what asked for it.
 */
public record VgpuStatus(State state, String vgpu, String transport, Instant since, String reason, String by) {
    /** The metadata's namespace. */
    public static final String NAMESPACE = "urn:hawser:status:1";
    /** The metadata's prefix. */
    public static final String PREFIX = "hawser-status";

    /** How far it is. */
    public enum State {
        /** The guest can use it. */
        READY,
        /** For the broker, or for the guest to see the device. */
        WAITING,
        /** It cannot be had; the reason says why. */
        REFUSED,
        /** Somebody has taken the device out of the running domain. */
        DETACHED;

        /** As the metadata has it. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Makes one; times are whole seconds. */
    public VgpuStatus {
        since = since.truncatedTo(ChronoUnit.SECONDS);
    }

    /** The attributes of its element. */
    Map<String, String> attributes() {
        Map<String, String> all = new LinkedHashMap<>();
        all.put("state", state.label());
        all.put("vgpu", vgpu);
        all.put("transport", transport);
        all.put("since", since.toString());
        all.put("reason", reason);
        all.put("by", by);
        return all;
    }

    /** Whether it says the same, whenever that began. */
    boolean saysAs(VgpuStatus other) {
        return other != null && state == other.state && vgpu.equals(other.vgpu) && transport.equals(other.transport)
            && reason.equals(other.reason) && by.equals(other.by);
    }

    /** What the attributes say; null when they are not ours. */
    static VgpuStatus of(Map<String, String> attributes) {
        try {
            return new VgpuStatus(State.valueOf(attributes.getOrDefault("state", "").toUpperCase(Locale.ROOT)),
                attributes.getOrDefault("vgpu", ""), attributes.getOrDefault("transport", ""),
                Instant.parse(attributes.getOrDefault("since", "")), attributes.getOrDefault("reason", ""),
                attributes.getOrDefault("by", ""));
        } catch (IllegalArgumentException | java.time.DateTimeException e) {
            return null; // somebody else has written there: as if there were none
        }
    }
}
