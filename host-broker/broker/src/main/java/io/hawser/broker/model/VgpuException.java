package io.hawser.broker.model;

/** An operation on a vGPU or a token failed; the message names the rule and the values, for the client. */
public final class VgpuException extends Exception {
    private static final long serialVersionUID = 1L;

    /** The kinds of reasons. */
    public enum Kind {
        /** The request can never succeed. */
        INVALID,
        /** A rule prevents it at present. */
        CONFLICT,
        /** The object has changed since the client read it. */
        CHANGED,
        /** The object does not exist. */
        MISSING,
        /** The broker cannot do it at present: GPUs unknown, too many requests, or no database. */
        UNAVAILABLE
    }

    private final Kind kind;

    /** Creates an exception. */
    public VgpuException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** An exception of kind INVALID. */
    public static VgpuException invalid(String message) {
        return new VgpuException(Kind.INVALID, message);
    }

    /** An exception of kind CONFLICT. */
    public static VgpuException conflict(String message) {
        return new VgpuException(Kind.CONFLICT, message);
    }

    /** An exception of kind MISSING for the name of a vGPU. */
    public static VgpuException missing(String name) {
        return new VgpuException(Kind.MISSING, "there is no such vGPU: vgpu=" + Texts.shown(name));
    }

    /** The kind of the reason. */
    public Kind kind() {
        return kind;
    }
}
