package io.hawser.hypervisor;

/**
 * A shared-memory device of a domain.
 *
 * @param name of the file in /dev/shm.
 * @param sizeBytes 0 when it says none.
 * @param model {@code ivshmem-plain}, ...; empty when it says none.
 * @param alias empty when it has none.
 */
public record Shmem(String name, long sizeBytes, String model, String alias) {
    /** How the names of regions' files begin; the domain's UUID follows. */
    public static final String PREFIX = "hawser-";
}
