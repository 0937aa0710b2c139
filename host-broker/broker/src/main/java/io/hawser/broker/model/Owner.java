package io.hawser.broker.model;

/**
 * The owner of a vGPU, for people and for programs that create vGPUs; the broker makes no decisions by it.
 *
 * @param id a libvirt domain's UUID, or a host's name or address; empty without an owner.
 */
public record Owner(Kind kind, String id) {
    /** No owner. */
    public static final Owner NONE = new Owner(Kind.NONE, "");

    /** The kinds of owners. */
    public enum Kind implements Labelled {
        /** No owner. */
        NONE,
        /** A virtual machine of libvirt. */
        DOMAIN,
        /** A remote host. */
        HOST
    }
}
