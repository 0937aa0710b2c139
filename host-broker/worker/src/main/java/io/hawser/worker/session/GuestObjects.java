package io.hawser.worker.session;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HandleKind;
import java.util.IdentityHashMap;
import java.util.Map;

/** What a guest has made: handles, memory, images; and which context is current. Session thread only. */
public final class GuestObjects {
    /** CU_LIMIT_STACK_SIZE; it and the next four take device memory. */
    public static final int STACK_LIMIT = 0;
    private static final int COSTLY_LIMITS = 5; // up to CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT

    private final GpuBackend backend;
    private final StreamWork work;
    private final HandleTable handles = new HandleTable();
    private final AllocationMap allocations = new AllocationMap();
    private final BlobStore blobs = new BlobStore();
    private final GraphMemory graphMemory = new GraphMemory(allocations);
    private final StreamTable streams;
    private final MemoryQuota quota;
    private final Map<Handle, MemoryQuota.Charge> charges = new IdentityHashMap<>(); // of memory without an address

    private Handle currentContext;
    private int currentContextId;
    private int pendingFrees;

    /** What is kept with a context. */
    private static final class ContextInfo {
        private final int device;
        private final long[] limits = new long[COSTLY_LIMITS]; // device memory that has been claimed, by CUlimit

        ContextInfo(int device) {
            this.device = device;
        }
    }

    /**
     * Starts with nothing.
     *
     * @param backend the GPU.
     * @param work the session's streams.
     * @param perThreadStreams makes per-thread default streams.
     * @param quota of device memory.
     */
    GuestObjects(GpuBackend backend, StreamWork work, StreamTable.Maker perThreadStreams, MemoryQuota quota) {
        this.backend = backend;
        this.work = work;
        this.streams = new StreamTable(this, perThreadStreams);
        this.quota = quota;
        work.enterBy(this::enter);
    }

    /**
     * The handles.
     *
     * @return never null.
     */
    public HandleTable handles() {
        return handles;
    }

    /**
     * The memory that the guest may address.
     *
     * @return never null.
     */
    public AllocationMap allocations() {
        return allocations;
    }

    /**
     * Memory of graphs' allocating nodes.
     *
     * @return never null.
     */
    public GraphMemory graphMemory() {
        return graphMemory;
    }

    /**
     * The images that the guest has sent.
     *
     * @return never null.
     */
    public BlobStore blobs() {
        return blobs;
    }

    /**
     * The streams.
     *
     * @return never null.
     */
    public StreamTable streams() {
        return streams;
    }

    /**
     * The context of the guest thread whose call is being served.
     *
     * @return its handle, or null when it has none.
     */
    public Handle currentContext() {
        return currentContext;
    }

    /** Makes the calling guest thread's context current; false when the call has been ended. */
    boolean switchContext(Call call, int contextId) {
        if (contextId == currentContextId) {
            return true;
        }
        long id = HandleTable.id(HandleKind.CONTEXT, contextId);
        Handle context = contextId == 0 ? null : handles.find(HandleKind.CONTEXT, id);
        if (contextId != 0 && context == null && !handles.wasCreated(HandleKind.CONTEXT, id)) {
            call.fatal("a record's context must have been created: context=" + Integer.toUnsignedString(contextId));
            return false;
        }
        // A destroyed one counts as none: calls that need a context fail with CUDA_ERROR_INVALID_CONTEXT.
        boolean usable = context != null && !context.isFailed();
        int result = backend.setCurrent(usable ? context.nativeHandle() : 0);
        if (result != 0) {
            call.fail(result);
            return false;
        }
        currentContext = usable ? context : null;
        currentContextId = contextId;
        return true;
    }

    /**
     * Makes a context current on the backend outside of a guest's call; the next call switches again.
     *
     * @param context a live one.
     * @return CUresult.
     */
    public int enter(Handle context) {
        if (context == currentContext) {
            return 0;
        }
        currentContext = context;
        currentContextId = -1; // no guest thread's: ids of contexts are below 2^31 in any real program
        return backend.setCurrent(context.nativeHandle());
    }

    /** As {@link #enter(Handle)}, by the backend's own handle. */
    private int enter(long nativeContext) {
        if (currentContext != null && currentContext.nativeHandle() == nativeContext) {
            return 0;
        }
        currentContext = null;
        currentContextId = -1;
        return backend.setCurrent(nativeContext);
    }

    /**
     * Adds a handle that goes with the current context, or with none if it is a context.
     *
     * @param call that made it; fatal when the id cannot be used.
     * @param kind its kind.
     * @param id the guest's name of it.
     * @param nativeHandle the backend's, 0 when its creation failed.
     */
    void register(Call call, HandleKind kind, long id, long nativeHandle) {
        Object info = kind == HandleKind.STREAM && nativeHandle != 0
            ? new StreamState(currentContext == null ? 0 : currentContext.nativeHandle(), nativeHandle) : null;
        register(call, kind, id, nativeHandle, kind == HandleKind.CONTEXT ? null : currentContext, info);
    }

    /**
     * Adds a handle.
     *
     * @param call that made it; fatal when the id cannot be used.
     * @param kind its kind.
     * @param id the guest's name of it.
     * @param nativeHandle the backend's, 0 when its creation failed.
     * @param owner with which it goes.
     * @param info what is kept with it.
     */
    public void register(Call call, HandleKind kind, long id, long nativeHandle, Handle owner, Object info) {
        if (!handles.add(new Handle(kind, id, nativeHandle, owner, info))) {
            call.fatal("a new handle must have an id of its kind that is not in use: kind=" + kind + " id=0x"
                + Long.toHexString(id) + " handles=" + handles.size());
        }
    }

    /**
     * Adds a context.
     *
     * @param call that made it; fatal when the id cannot be used.
     * @param id the guest's name of it.
     * @param nativeHandle the backend's.
     * @param device number of its device.
     * @param charge what it costs.
     */
    public void registerContext(Call call, long id, long nativeHandle, int device, MemoryQuota.Charge charge) {
        register(call, HandleKind.CONTEXT, id, nativeHandle, null, new ContextInfo(device));
        if (!call.isRejected()) {
            keepCharge(handles.find(HandleKind.CONTEXT, id), charge);
        }
    }

    /**
     * Claims what a limit of the current context takes of its device; what was claimed for a higher one stays, since
     * drivers keep it.
     *
     * @param limit a CUlimit.
     * @param value of it.
     * @return CUresult: CUDA_ERROR_OUT_OF_MEMORY when the quota does not allow it.
     */
    public int claimLimit(int limit, long value) {
        if (currentContext == null) {
            return CudaResult.INVALID_CONTEXT;
        }
        return limit < 0 || limit >= COSTLY_LIMITS
            || holdsLimit(limit, backend.limitBytes(deviceOf(currentContext), limit, value)) ? 0
            : CudaResult.OUT_OF_MEMORY;
    }

    /**
     * Device memory that is claimed for a limit of the current context.
     *
     * @param limit a CUlimit.
     * @return bytes; 0 without a context and for limits that cost nothing.
     */
    public long claimedFor(int limit) {
        return currentContext == null || limit < 0 || limit >= COSTLY_LIMITS ? 0
            : currentContext.info(ContextInfo.class).limits[limit];
    }

    /**
     * Gives back what {@link #claimLimit} claimed for a limit that the driver has refused.
     *
     * @param limit a CUlimit.
     * @param bytes {@link #claimedFor} before.
     */
    public void unclaimLimit(int limit, long bytes) {
        long more = claimedFor(limit) - bytes;
        if (more > 0) {
            currentContext.info(ContextInfo.class).limits[limit] = bytes;
            charges.get(currentContext).split(more).giveBack();
        }
    }

    /**
     * Whether a kernel's local memory has been claimed in the current context, now if not before.
     *
     * @param bytes of the device, as the backend says of a limit on the stack; over 0.
     * @return false when the quota does not allow it.
     */
    public boolean holdsStack(long bytes) {
        return currentContext == null || holdsLimit(STACK_LIMIT, bytes);
    }

    private boolean holdsLimit(int limit, long bytes) {
        long[] limits = currentContext.info(ContextInfo.class).limits;
        if (bytes <= limits[limit]) {
            return true;
        }
        MemoryQuota.Charge charge = charges.get(currentContext);
        long more = bytes - limits[limit];
        if (more > Long.MAX_VALUE - charge.bytes() || !charge.grow(charge.bytes() + more)) {
            return false;
        }
        limits[limit] = bytes;
        return true;
    }

    /**
     * The device of a context.
     *
     * @param context a live one.
     * @return its number.
     */
    public int deviceOf(Handle context) {
        return context.info(ContextInfo.class).device;
    }

    /**
     * Forgets a handle that the backend has destroyed, and those that went with it.
     *
     * @param kind its kind.
     * @param id the guest's name of it.
     */
    public void drop(HandleKind kind, long id) {
        Handle handle = handles.find(kind, id);
        if (handle == null) {
            return;
        }
        for (Handle gone : handles.remove(handle)) {
            MemoryQuota.Charge charge = takeCharge(gone);
            if (charge != null) {
                charge.giveBack();
            }
            if (gone.kind() == HandleKind.STREAM && !gone.isFailed()) {
                work.abandon(gone.info(StreamState.class));
            } else if (gone.kind() == HandleKind.MODULE || gone.kind() == HandleKind.IPC_MEMORY) {
                allocations.removeOwner(gone);
                if (gone.kind() == HandleKind.MODULE && gone.info(LibraryVariables.class) != null) {
                    gone.info(LibraryVariables.class).takeCharges().forEach(MemoryQuota.Charge::giveBack);
                }
            } else if (gone.kind() == HandleKind.CONTEXT) {
                streams.forget(gone).forEach(work::abandon);
                work.forget(gone.nativeHandle());
                allocations.removeOwner(gone);
                graphMemory.forget(gone);
                forgetLibraries(gone);
                if (gone == currentContext) {
                    currentContext = null;
                    currentContextId = -1;
                }
            }
        }
    }

    /** Forgets the variables that libraries, which belong to no context, have in one that has ended. */
    private void forgetLibraries(Handle context) {
        for (Handle module : handles.all(HandleKind.MODULE)) {
            if (module.owner() == null && module.info(LibraryVariables.class) != null) {
                module.info(LibraryVariables.class).forget(context, allocations);
            }
        }
    }

    /** Destroys all that is left, context by context. */
    void close() {
        if (backend.graphs() != null) {
            GraphState.closeAll(handles, backend.graphs());
        }
        for (Handle context : handles.all(HandleKind.CONTEXT)) {
            if (!context.isFailed()) {
                backend.destroyContext(context.nativeHandle());
            }
            drop(HandleKind.CONTEXT, context.id());
        }
        for (HandleKind kind : HandleKind.values()) {
            handles.all(kind).forEach(handle -> drop(kind, handle.id()));
        }
        blobs.close();
    }

    /**
     * The quota of device memory.
     *
     * @return never null.
     */
    public MemoryQuota quota() {
        return quota;
    }

    /**
     * Keeps what an object without an address costs; given back when its handle is dropped, unless taken before.
     *
     * @param handle a registered one.
     * @param charge what it costs.
     */
    public void keepCharge(Handle handle, MemoryQuota.Charge charge) {
        charges.put(handle, charge);
    }

    /**
     * What an object costs, to be given back once its memory is freed.
     *
     * @param handle which.
     * @return null when it costs nothing, or that was taken before.
     */
    public MemoryQuota.Charge takeCharge(Handle handle) {
        return charges.remove(handle);
    }

    /**
     * Device memory that the session holds.
     *
     * @return bytes, of allocations, of those whose free waits for running work, and of what a driver keeps for it.
     */
    public long usedBytes() {
        return quota.heldBytes();
    }

    /**
     * Whether a context that was live still is.
     *
     * @param context its handle.
     * @return false after its destruction.
     */
    public boolean isLive(Handle context) {
        return handles.find(HandleKind.CONTEXT, context.id()) == context;
    }

    /** Notes that memory is to be freed when running work is done. */
    public void freeBegins() {
        pendingFrees++;
    }

    /**
     * Notes that such memory has been freed.
     *
     * @param charge what it costs; null for nothing.
     */
    public void freeEnds(MemoryQuota.Charge charge) {
        pendingFrees--;
        if (charge != null) {
            charge.giveBack();
        }
    }

    /**
     * Whether memory is still on its way back, so that an allocation that found none should wait for it.
     *
     * @return true after {@link #freeBegins} and before the last {@link #freeEnds}.
     */
    public boolean isFreeing() {
        return pendingFrees > 0;
    }
}
