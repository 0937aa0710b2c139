package io.hawser.broker.region;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.region.RegionTag;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Settings of a region; see {@link BrokerConfig.Region}.
 *
 * @param name of the region in REST, logs and metrics.
 * @param path a file of shared memory, a device's resource, or {@code ivshmem:TAG} for the ivshmem device that carries
 *     the tag; null with a doorbell socket.
 * @param sizeBytes length of the region; 0 takes the file's length.
 * @param vgpu the vGPU that the region opens.
 * @param slots maximum number of guest processes at a time.
 * @param guestTimeout after which a guest without a new beat counts as dead.
 * @param doorbellSocket on which the ivshmem server listens; null with a path.
 * @param vectors doorbells of the ivshmem server: the broker's, then one for each slot while vectors remain.
 * @param source of the settings; it limits the paths that they may name.
 */
public record RegionSettings(String name, Path path, long sizeBytes, String vgpu, int slots, Duration guestTimeout,
    Path doorbellSocket, int vectors, Source source) {
    /** Source of the settings. */
    public enum Source {
        /** The broker's settings: any path. */
        ADMINISTRATOR,
        /** REST: paths below {@link RegionFolders}, devices by their tag. */
        REST
    }

    private static final String IVSHMEM = "ivshmem:";
    /** Characters that are safe in logs, metrics and addresses. */
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}");
    /** Linux un.h: sun_path holds 107 bytes and a NUL, and QEMU connects to this path. */
    private static final int MAX_SOCKET_PATH_BYTES = 107;
    private static final Duration SHORTEST_TIMEOUT = Duration.ofMillis(4L * RegionLayout.BEAT_MS);

    /** Takes a region of the broker's settings. */
    public static RegionSettings of(String name, BrokerConfig.Region region) {
        return of(name, region.path(), region.size().map(s -> s.asLongValue()).orElse(0L), region.vgpu(),
            region.slots(), region.guestTimeout(), region.doorbellSocket(), region.vectors(), Source.ADMINISTRATOR);
    }

    /** Takes a request of REST; {@code slots} 0 and empty {@code vectors} select the defaults. */
    public static RegionSettings ofRest(String name, Optional<Path> path, long sizeBytes, String vgpu, int slots,
        Duration guestTimeout, Optional<Path> doorbellSocket, Optional<Integer> vectors) {
        return of(name, path, sizeBytes, vgpu, slots, guestTimeout, doorbellSocket, vectors, Source.REST);
    }

    private static RegionSettings of(String name, Optional<Path> path, long sizeBytes, String vgpu, int slots,
        Duration guestTimeout, Optional<Path> doorbellSocket, Optional<Integer> vectors, Source source) {
        int slotCount = slots == 0 ? RegionGeometry.DEFAULT_SLOTS : slots;
        return new RegionSettings(name, path.orElse(null), sizeBytes, vgpu, slotCount, guestTimeout,
            doorbellSocket.orElse(null), doorbellSocket.isPresent() ? vectors.orElse(1 + slotCount) : 0, source);
    }

    /** Whether the broker serves the region's ivshmem device. */
    public boolean hasDoorbell() {
        return doorbellSocket != null;
    }

    /**
     * Path, socket or shortened tag, for messages. A whole tag would open the region until the broker has formatted it.
     */
    public String place() {
        return hasTag() ? IVSHMEM + tag() : (hasDoorbell() ? doorbellSocket : path).toString();
    }

    /** Whether a tag identifies the region's ivshmem device. */
    boolean hasTag() {
        return path != null && path.toString().startsWith(IVSHMEM);
    }

    /** The tag of the device. Requires {@link #hasTag} and a successful {@link #check}. */
    RegionTag tag() {
        return new RegionTag(path.toString().substring(IVSHMEM.length()));
    }

    /** Rejects invalid settings. */
    void check() throws RegionException {
        require(NAME.matcher(name).matches(), "a region's name must match " + NAME + ": name=" + name);
        require(path == null != (doorbellSocket == null), "a region must have either a path or a doorbell socket");
        if (hasTag()) {
            try {
                tag();
            } catch (IllegalArgumentException e) {
                throw new RegionException(RegionException.Kind.INVALID, e.getMessage());
            }
        } else {
            require(path == null || isPlace(path), "a region's path must be absolute and name a file: path=" + path);
        }
        require(slots >= 1 && slots <= RegionLayout.MAX_SLOTS, "a region must have 1.." + RegionLayout.MAX_SLOTS
            + " slots: slots=" + slots);
        require(guestTimeout.compareTo(SHORTEST_TIMEOUT) >= 0, "a guest's timeout must be at least "
            + SHORTEST_TIMEOUT.toMillis() + " ms: guestTimeoutMs=" + guestTimeout.toMillis());
        if (sizeBytes != 0) {
            geometry(sizeBytes);
        }
        if (hasDoorbell()) {
            require(isPlace(doorbellSocket)
                && doorbellSocket.toString().getBytes(StandardCharsets.UTF_8).length <= MAX_SOCKET_PATH_BYTES,
                "a doorbell socket's path must be absolute and at most " + MAX_SOCKET_PATH_BYTES
                    + " bytes: doorbellSocket=" + doorbellSocket);
            require(Long.bitCount(sizeBytes) == 1, "the size of an ivshmem device must be given and a power of two: "
                + "sizeBytes=" + sizeBytes);
            require(vectors >= 1 && vectors <= 1 + slots, "an ivshmem server must have 1.." + (1 + slots)
                + " vectors, the broker's and one of each slot: vectors=" + vectors);
        }
    }

    /**
     * Whether a path is absolute, is not the root, and has no control characters, which could forge a line of a log or
     * record.
     */
    private static boolean isPlace(Path path) {
        return path.isAbsolute() && path.getFileName() != null
            && path.toString().codePoints().noneMatch(Character::isISOControl);
    }

    /** The geometry of a region with these settings and the given length. */
    RegionGeometry geometry(long bytes) throws RegionException {
        try {
            return RegionGeometry.of(bytes, slots);
        } catch (IllegalArgumentException e) {
            throw new RegionException(RegionException.Kind.INVALID, e.getMessage());
        }
    }

    private static void require(boolean holds, String rule) throws RegionException {
        if (!holds) {
            throw new RegionException(RegionException.Kind.INVALID, rule);
        }
    }
}
