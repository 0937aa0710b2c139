package io.hawser.broker.model;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Set;
import java.util.UUID;

/**
 * A named share of GPUs as it was asked for; where it is, {@link VgpuView} says.
 *
 * @param name names it everywhere; does not change.
 * @param memoryBytes device memory on each of its GPUs, for all its sessions together, and reserved there; 0 is best
 * effort: what others have not reserved.
 * @param computeShare 1 to 100: its weight among those that want a GPU at the same time.
 * @param gpus which.
 * @param carriers by which its guests may come; not empty.
 * @param maxSessions at a time; 0 has no limit but the broker's.
 * @param created, and {@code changed}: in microseconds, as databases keep times.
 */
public record Vgpu(String name, UUID id, Owner owner, long memoryBytes, int computeShare, Sharing mode, GpuChoice gpus,
    Set<Carrier> carriers, int maxSessions, Origin origin, Instant created, Instant changed) {
    /** What is there from the first start. */
    public static final String DEFAULT_NAME = "default";
    /** A share without a wish. */
    public static final int FULL_SHARE = 100;

    /** Whether memory is reserved for it. */
    public boolean reserves() {
        return memoryBytes > 0;
    }

    /** The present, in the precision of a database. */
    public static Instant now() {
        return Instant.now().truncatedTo(ChronoUnit.MICROS);
    }

    /** The same of another origin. */
    public Vgpu of(Origin other) {
        return new Vgpu(name, id, owner, memoryBytes, computeShare, mode, gpus, carriers, maxSessions, other, created,
            changed);
    }
}
