package io.hawser.hypervisor.model;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * The result of a domain's wish, as hawserd writes it into the metadata.
 *
 * @param vgpu the vGPU's name at the broker; empty while there is none.
 * @param transport empty while the wish is unknown.
 * @param reason a sentence; empty if the vGPU is ready.
 * @param by {@code metadata} or {@code device}: the source of the wish.
 */
public record VgpuStatus(State state, String vgpu, String transport, Instant since, String reason, String by) {
    /** The metadata's namespace. */
    public static final String NAMESPACE = "urn:hawser:status:1";
    /** The metadata's prefix. */
    public static final String PREFIX = "hawser-status";

    /** The state of the vGPU. */
    public enum State {
        /** The guest can use the vGPU. */
        READY,
        /** hawserd waits for the broker, or for the guest to find the device. */
        WAITING,
        /** The vGPU is not available; the reason explains why. */
        REFUSED,
        /** An administrator has removed the device from the running domain. */
        DETACHED;

        /** The form in the metadata. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Truncates the time to whole seconds. */
    public VgpuStatus {
        since = since.truncatedTo(ChronoUnit.SECONDS);
    }

    /** The attributes of its element. */
    public Map<String, String> attributes() {
        Map<String, String> all = new LinkedHashMap<>();
        all.put("state", state.label());
        all.put("vgpu", vgpu);
        all.put("transport", transport);
        all.put("since", since.toString());
        all.put("reason", reason);
        all.put("by", by);
        return all;
    }

    /** Whether both are equal, apart from the time. */
    public boolean isSameAs(VgpuStatus other) {
        return other != null && state == other.state && vgpu.equals(other.vgpu) && transport.equals(other.transport)
            && reason.equals(other.reason) && by.equals(other.by);
    }

    /** Parses the attributes; null if hawserd did not write them. */
    public static VgpuStatus of(Map<String, String> attributes) {
        try {
            return new VgpuStatus(State.valueOf(attributes.getOrDefault("state", "").toUpperCase(Locale.ROOT)),
                attributes.getOrDefault("vgpu", ""), attributes.getOrDefault("transport", ""),
                Instant.parse(attributes.getOrDefault("since", "")), attributes.getOrDefault("reason", ""),
                attributes.getOrDefault("by", ""));
        } catch (IllegalArgumentException | java.time.DateTimeException e) {
            return null; // another program wrote this element; it counts as absent
        }
    }
}
