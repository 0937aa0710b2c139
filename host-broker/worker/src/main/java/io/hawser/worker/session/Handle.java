package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;

/** One object that the guest has created. */
public final class Handle {
    private final HandleKind kind;
    private final long id;
    private final long nativeHandle;
    private final Handle owner;
    private final Object info;

    /**
     * Describes an object.
     *
     * @param kind its kind.
     * @param id the guest's id.
     * @param nativeHandle the backend's handle; 0 when its creation failed.
     * @param owner the object that it ends with: a function's module, a green context's primary context, else a
     *     context; null for none.
     * @param info the session's record of it, or null.
     */
    Handle(HandleKind kind, long id, long nativeHandle, Handle owner, Object info) {
        this.kind = kind;
        this.id = id;
        this.nativeHandle = nativeHandle;
        this.owner = owner;
        this.info = info;
    }

    /**
     * Its kind.
     *
     * @return the kind.
     */
    public HandleKind kind() {
        return kind;
    }

    /**
     * The guest's id.
     *
     * @return {@code kind << 40 | number}.
     */
    public long id() {
        return id;
    }

    /**
     * The backend's handle.
     *
     * @return 0 when its creation failed.
     */
    public long nativeHandle() {
        return nativeHandle;
    }

    /**
     * The object that it ends with.
     *
     * @return its owner, or null.
     */
    public Handle owner() {
        return owner;
    }

    /**
     * Whether this is a green context: its primary context owns it.
     *
     * @return false for all other objects.
     */
    public boolean isGreen() {
        return kind == HandleKind.CONTEXT && owner != null;
    }

    /**
     * The session's record of the object.
     *
     * @param <T> its type.
     * @param type the type for this kind of handle.
     * @return the record, or null.
     */
    public <T> T info(Class<T> type) {
        return type.cast(info);
    }

    /**
     * Whether its creation failed and no reply reported that to the guest.
     *
     * @return true when calls with it must fail.
     */
    public boolean isFailed() {
        return nativeHandle == 0;
    }
}
