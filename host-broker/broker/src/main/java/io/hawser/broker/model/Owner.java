package io.hawser.broker.model;

/**
 * Whose a vGPU is; for people and for those that make vGPUs, never for decisions of the broker.
 *
 * @param id a libvirt domain's UUID, or a host's name or address; empty without an owner.
 */
public record Owner(Kind kind, String id) {
    /** Nobody's. */
    public static final Owner NONE = new Owner(Kind.NONE, "");

    /** What an owner is. */
    public enum Kind implements Labelled {
        /** There is none. */
        NONE,
        /** A virtual machine of libvirt. */
        DOMAIN,
        /** A remote host. */
        HOST
    }
}
