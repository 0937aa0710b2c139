package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;

/** One object that the guest has made. */
public final class Handle {
    private final HandleKind kind;
    private final long id;
    private final long nativeHandle;
    private final Handle owner;
    private final Object info;

    /**
     * Describes an object.
     *
     * @param kind what it is.
     * @param id the guest's name of it.
     * @param nativeHandle the backend's handle; 0 when its creation has failed.
     * @param owner the object that it goes with: a function's module, else a context; null for none.
     * @param info what the session keeps with it, or null.
     */
    Handle(HandleKind kind, long id, long nativeHandle, Handle owner, Object info) {
        this.kind = kind;
        this.id = id;
        this.nativeHandle = nativeHandle;
        this.owner = owner;
        this.info = info;
    }

    /**
     * What it is.
     *
     * @return its kind.
     */
    public HandleKind kind() {
        return kind;
    }

    /**
     * The guest's name of it.
     *
     * @return {@code kind << 40 | number}.
     */
    public long id() {
        return id;
    }

    /**
     * The backend's handle.
     *
     * @return 0 when its creation has failed.
     */
    public long nativeHandle() {
        return nativeHandle;
    }

    /**
     * The object that it goes with.
     *
     * @return its owner, or null.
     */
    public Handle owner() {
        return owner;
    }

    /**
     * What the session keeps with it.
     *
     * @param <T> its type.
     * @param type the type that this kind of handle has.
     * @return the information, or null.
     */
    public <T> T info(Class<T> type) {
        return type.cast(info);
    }

    /**
     * Whether its creation failed without the guest waiting for it.
     *
     * @return true when calls with it must fail.
     */
    public boolean isFailed() {
        return nativeHandle == 0;
    }
}
