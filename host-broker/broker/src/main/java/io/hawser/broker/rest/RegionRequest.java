package io.hawser.broker.rest;

import io.hawser.broker.region.RegionSettings;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/** A request for a region; see openapi.yml. A null field selects the default. */
public record RegionRequest(String name, String path, String doorbellSocket, Integer vectors, String vgpu,
    Long sizeBytes, Integer slots, Long guestTimeoutMs) {
    private static final long DEFAULT_GUEST_TIMEOUT_MS = 30_000;

    /**
     * Converts the request to settings.
     *
     * @throws IllegalArgumentException when a field is out of range or a path is malformed.
     */
    RegionSettings settings() {
        if (name == null || sizeBytes != null && sizeBytes < 0 || slots != null && slots < 1) {
            throw new IllegalArgumentException("a region must have a name, a size of 0 or more bytes and 1 or more "
                + "slots: name=" + name + " sizeBytes=" + sizeBytes + " slots=" + slots);
        }
        return RegionSettings.ofRest(name, file(path), sizeBytes == null ? 0 : sizeBytes,
            vgpu == null ? "default" : vgpu, slots == null ? 0 : slots,
            Duration.ofMillis(guestTimeoutMs == null ? DEFAULT_GUEST_TIMEOUT_MS : guestTimeoutMs),
            file(doorbellSocket), Optional.ofNullable(vectors));
    }

    private static Optional<Path> file(String path) {
        // InvalidPathException, for a NUL, is an IllegalArgumentException.
        return Optional.ofNullable(path).filter(p -> !p.isEmpty()).map(Path::of);
    }
}
