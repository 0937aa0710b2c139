package io.hawser.broker.model;

/** Something cannot be done with a vGPU or a token; the message names the rule and the numbers, for whoever asked. */
public final class VgpuException extends Exception {
    private static final long serialVersionUID = 1L;

    /** What kind of reason it is. */
    public enum Kind {
        /** What was asked for can never be. */
        INVALID,
        /** A rule stands in the way now. */
        CONFLICT,
        /** It is not any more what whoever asks takes it for. */
        CHANGED,
        /** There is no such thing. */
        MISSING,
        /** The broker cannot do it now: GPUs not known yet, too much asked at once, no database. */
        UNAVAILABLE
    }

    private final Kind kind;

    /** Makes one. */
    public VgpuException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** The same for what can never be. */
    public static VgpuException invalid(String message) {
        return new VgpuException(Kind.INVALID, message);
    }

    /** The same for a rule that stands in the way. */
    public static VgpuException conflict(String message) {
        return new VgpuException(Kind.CONFLICT, message);
    }

    /** The same for a name that there is not. */
    public static VgpuException missing(String name) {
        return new VgpuException(Kind.MISSING, "there is no such vGPU: vgpu=" + Texts.shown(name));
    }

    /** What kind of reason. */
    public Kind kind() {
        return kind;
    }
}
