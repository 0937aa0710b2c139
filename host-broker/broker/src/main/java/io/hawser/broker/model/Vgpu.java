package io.hawser.broker.model;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Set;
import java.util.UUID;

/**
 * A named share of GPUs, as requested; {@link VgpuView} has its place.
 *
 * @param name its key everywhere; never changes.
 * @param memoryBytes device memory on each of its GPUs for all its sessions together, reserved there; 0 is best effort,
 * the memory that other vGPUs have not reserved.
 * @param computeShare 1 to 100: its weight among the vGPUs that compete for a GPU.
 * @param gpus its choice of GPUs.
 * @param carriers permitted carriers of its guests; not empty.
 * @param maxSessions sessions at a time; 0 for no limit besides the broker's.
 * @param communication with whom its workers exchange data.
 * @param swappable whether the broker may move its memory to the host while it is idle; it then reserves memory, is
 * shared, has one GPU and no communication.
 * @param rdma whether its sessions may use RDMA.
 * @param expires when the broker deletes it and ends its sessions; null for never.
 * @param labels free keys and values of its creator.
 * @param created, and {@code changed}: in microseconds, the precision of databases.
 */
public record Vgpu(String name, UUID id, Owner owner, long memoryBytes, int computeShare, Sharing mode, GpuChoice gpus,
    Set<Carrier> carriers, int maxSessions, Communication communication, boolean swappable, boolean rdma,
    Instant expires, Labels labels, Origin origin, Instant created, Instant changed) {
    /** Name of the vGPU of the first start. */
    public static final String DEFAULT_NAME = "default";
    /** The default compute share. */
    public static final int FULL_SHARE = 100;

    /** Whether it reserves memory. */
    public boolean reserves() {
        return memoryBytes > 0;
    }

    /** The name of the network that its workers share; empty for none. */
    public String network() {
        return communication == Communication.HOST ? name : "";
    }

    /** The present time, in the precision of a database. */
    public static Instant now() {
        return Instant.now().truncatedTo(ChronoUnit.MICROS);
    }

    /** The same vGPU with another origin. */
    public Vgpu withOrigin(Origin other) {
        return new Vgpu(name, id, owner, memoryBytes, computeShare, mode, gpus, carriers, maxSessions, communication,
            swappable, rdma, expires, labels, other, created, changed);
    }

    /** The same vGPU with another expiry, at a time of its change. */
    public Vgpu withExpiry(Instant other, Instant now) {
        return new Vgpu(name, id, owner, memoryBytes, computeShare, mode, gpus, carriers, maxSessions, communication,
            swappable, rdma, other, labels, origin, created, now);
    }

    /** Whether another vGPU has the same properties as a client can ask for, except the expiry. */
    public boolean isAlike(Vgpu other) {
        return new Vgpu(name, other.id, owner, memoryBytes, computeShare, mode, gpus, carriers, maxSessions,
            communication, swappable, rdma, other.expires, labels, other.origin, other.created, other.changed)
            .equals(other);
    }
}
