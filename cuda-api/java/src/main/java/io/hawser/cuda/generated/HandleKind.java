package io.hawser.cuda.generated;

/** Kinds of handles; their numbers are on the wire. Written by the generator soon. */
public enum HandleKind {
    /** CUcontext. */
    CONTEXT(1),
    /** CUmodule and CUlibrary. */
    MODULE(2),
    /** CUfunction and CUkernel. */
    FUNCTION(3),
    /** CUstream. */
    STREAM(4),
    /** CUevent. */
    EVENT(5),
    /** CUmemoryPool. */
    MEMORY_POOL(6),
    /** CUlinkState. */
    LINK_STATE(7);

    private final int number;

    HandleKind(int number) {
        this.number = number;
    }

    /** Number on the wire: a handle is {@code number << 40 | id}. */
    public int number() {
        return number;
    }
}
