package io.hawser.hypervisor.model;

/**
 * A shared-memory device of a domain.
 *
 * @param name of the file in /dev/shm.
 * @param sizeBytes 0 if the XML has none.
 * @param model such as {@code ivshmem-plain}; empty if the XML has none.
 * @param alias empty if the XML has none.
 */
public record Shmem(String name, long sizeBytes, String model, String alias) {
    /** Prefix of the names of regions' files; the domain's UUID follows. */
    public static final String PREFIX = "hawser-";
}
