package io.hawser.worker.session;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HandleKind;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** The objects of a guest: handles, memory and images; and the current context. Session thread only. */
public final class GuestObjects {
    /** CU_LIMIT_STACK_SIZE. This limit and the four after it take device memory. */
    public static final int STACK_LIMIT = 0;
    private static final int COSTLY_LIMITS = 5; // up to CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT

    private final GpuBackend backend;
    private final StreamWork work;
    private final HandleTable handles = new HandleTable();
    private final AllocationMap allocations = new AllocationMap();
    private final Moving moving;
    private final BlobStore blobs = new BlobStore();
    private final GraphMemory graphMemory = new GraphMemory(allocations);
    private final StreamTable streams;
    private final MemoryQuota quota;
    private final DeviceArena arena;
    private boolean hasClosedGraphs;
    private final Map<Handle, MemoryQuota.Charge> charges = new IdentityHashMap<>(); // of memory without an address

    private Handle currentContext;
    private int currentContextId;
    private int pendingFrees;

    /** The session's record of a context. */
    private static final class ContextInfo {
        private final int device;
        private final long[] limits = new long[COSTLY_LIMITS]; // claimed device memory, by CUlimit

        ContextInfo(int device) {
            this.device = device;
        }
    }

    /**
     * Starts without objects.
     *
     * @param backend the GPU.
     * @param work the session's streams.
     * @param perThreadStreams makes per-thread default streams.
     * @param quota quota of device memory.
     * @param moving gets the objects that begin and end.
     */
    GuestObjects(GpuBackend backend, StreamWork work, StreamTable.Maker perThreadStreams, MemoryQuota quota,
        Moving moving) {
        this.moving = moving;
        this.backend = backend;
        this.work = work;
        this.streams = new StreamTable(this, perThreadStreams);
        this.quota = quota;
        this.arena = new DeviceArena(backend.virtualMemory(), allocations, quota);
        work.use(arena);
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
     * The memory of the guest's cuMemAlloc.
     *
     * @return never null.
     */
    public DeviceArena arena() {
        return arena;
    }

    /**
     * Memory of allocating graph nodes.
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
     * The context of the guest thread whose call is in service.
     *
     * @return its handle, or null when it has none.
     */
    public Handle currentContext() {
        return currentContext;
    }

    /**
     * The context that owns what the call in service creates: the current one, or the primary context of a green one.
     *
     * @return its handle, or null without a current context.
     */
    public Handle owningContext() {
        return currentContext != null && currentContext.isGreen() ? currentContext.owner() : currentContext;
    }

    /** Makes the calling guest thread's context current; false when this has ended the call. */
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
        // A destroyed context counts as none: calls that need a context fail with CUDA_ERROR_INVALID_CONTEXT.
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
     * Makes a context current on the backend outside a guest's call; the next call switches again.
     *
     * @param context a live one.
     * @return CUresult.
     */
    public int enter(Handle context) {
        if (context == currentContext) {
            return 0;
        }
        currentContext = context;
        currentContextId = -1; // matches no guest thread: real programs have fewer than 2^31 contexts
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
     * Adds a handle. The current context owns it, unless it is a context itself.
     *
     * @param call the creating call; becomes fatal when the id cannot be used.
     * @param kind its kind.
     * @param id the guest's id.
     * @param nativeHandle the backend's handle, 0 when its creation failed.
     */
    void register(Call call, HandleKind kind, long id, long nativeHandle) {
        Object info = kind == HandleKind.STREAM && nativeHandle != 0
            ? new StreamState(currentContext == null ? 0 : currentContext.nativeHandle(), nativeHandle) : null;
        // A green context owns its streams only.
        Handle owner = kind == HandleKind.STREAM ? currentContext : owningContext();
        register(call, kind, id, nativeHandle, kind == HandleKind.CONTEXT ? null : owner, info);
    }

    /**
     * Adds a handle.
     *
     * @param call the creating call; becomes fatal when the id cannot be used.
     * @param kind its kind.
     * @param id the guest's id.
     * @param nativeHandle the backend's handle, 0 when its creation failed.
     * @param owner the handle that it ends with.
     * @param info the session's record of it.
     */
    public void register(Call call, HandleKind kind, long id, long nativeHandle, Handle owner, Object info) {
        Handle handle = new Handle(kind, id, nativeHandle, owner, info);
        call.make(handle);
        if (!handles.add(handle)) {
            call.fatal("a new handle must have an id of its kind that is not in use: kind=" + kind + " id=0x"
                + Long.toHexString(id) + " handles=" + handles.size());
        }
    }

    /**
     * Adds a context.
     *
     * @param call the creating call; becomes fatal when the id cannot be used.
     * @param id the guest's id.
     * @param nativeHandle the backend's handle.
     * @param device number of its device.
     * @param charge its charge on the quota.
     */
    public void registerContext(Call call, long id, long nativeHandle, int device, MemoryQuota.Charge charge) {
        register(call, HandleKind.CONTEXT, id, nativeHandle, null, new ContextInfo(device));
        if (!call.isRejected()) {
            keepCharge(handles.find(HandleKind.CONTEXT, id), charge);
        }
    }

    /**
     * Adds a green context, which ends with its primary context.
     *
     * @param call the creating call; becomes fatal when the id cannot be used.
     * @param id the guest's id.
     * @param nativeHandle the backend's handle.
     * @param primary its primary context.
     */
    public void registerGreenContext(Call call, long id, long nativeHandle, Handle primary) {
        register(call, HandleKind.CONTEXT, id, nativeHandle, primary, new ContextInfo(deviceOf(primary)));
    }

    /**
     * Claims the device memory that a limit of the current context takes. Lowering a limit releases nothing, because
     * drivers keep the memory.
     *
     * @param limit a CUlimit.
     * @param value its value.
     * @return CUresult: CUDA_ERROR_OUT_OF_MEMORY when the quota does not allow it.
     */
    public int claimLimit(int limit, long value) {
        if (owningContext() == null) {
            return CudaResult.INVALID_CONTEXT;
        }
        return limit < 0 || limit >= COSTLY_LIMITS
            || claimLimitBytes(limit, backend.limitBytes(deviceOf(owningContext()), limit, value)) ? 0
                : CudaResult.OUT_OF_MEMORY;
    }

    /**
     * Device memory that is claimed for a limit of the current context.
     *
     * @param limit a CUlimit.
     * @return bytes; 0 without a context and for limits that cost nothing.
     */
    public long claimedFor(int limit) {
        return owningContext() == null || limit < 0 || limit >= COSTLY_LIMITS ? 0
            : owningContext().info(ContextInfo.class).limits[limit];
    }

    /**
     * Undoes {@link #claimLimit} after the driver has rejected the limit.
     *
     * @param limit a CUlimit.
     * @param bytes result of {@link #claimedFor} before.
     */
    public void unclaimLimit(int limit, long bytes) {
        long more = claimedFor(limit) - bytes;
        if (more > 0) {
            owningContext().info(ContextInfo.class).limits[limit] = bytes;
            charges.get(owningContext()).split(more).giveBack();
        }
    }

    /**
     * Claims a kernel's local memory in the current context, unless enough is claimed already.
     *
     * @param bytes device memory, as the backend computes it for a limit on the stack; over 0.
     * @return false when the quota does not allow it.
     */
    public boolean claimStack(long bytes) {
        return owningContext() == null || claimLimitBytes(STACK_LIMIT, bytes);
    }

    private boolean claimLimitBytes(int limit, long bytes) {
        long[] limits = owningContext().info(ContextInfo.class).limits;
        if (bytes <= limits[limit]) {
            return true;
        }
        MemoryQuota.Charge charge = charges.get(owningContext());
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
     * Removes a handle that the backend has destroyed, and the handles that it owns.
     *
     * @param kind its kind.
     * @param id the guest's id.
     */
    public void drop(HandleKind kind, long id) {
        Handle handle = handles.find(kind, id);
        if (handle == null) {
            return;
        }
        List<Handle> all = handles.remove(handle);
        for (Handle gone : all) {
            moving.journal().forget(gone.id());
            if (gone.kind() == HandleKind.EVENT) {
                moving.events().forget(gone.nativeHandle());
            }
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
                allocations.removeOwner(gone);
                graphMemory.forget(gone);
                forgetLibraries(gone);
                if (gone == currentContext) {
                    currentContext = null;
                    currentContextId = -1;
                }
            }
        }
        for (Handle gone : all) {
            if (gone.kind() == HandleKind.CONTEXT) {
                work.forget(gone.nativeHandle()); // after its streams were abandoned
            }
        }
    }

    /**
     * Destroys a context that has no work, with its green contexts and all of their objects.
     *
     * @param context a live one.
     * @return CUresult.
     */
    public int destroyContext(Handle context) {
        for (Handle green : handles.all(HandleKind.CONTEXT)) {
            int ended = green.owner() == context ? destroyContext(green) : CudaResult.SUCCESS;
            if (ended != 0) {
                return ended;
            }
        }
        int result = backend.destroyContext(context.nativeHandle());
        if (result == 0) {
            drop(HandleKind.CONTEXT, context.id());
        }
        return result;
    }

    /** Removes the variables that libraries have in a context that has ended. Libraries belong to no context. */
    private void forgetLibraries(Handle context) {
        for (Handle module : handles.all(HandleKind.MODULE)) {
            if (module.owner() == null && module.info(LibraryVariables.class) != null) {
                module.info(LibraryVariables.class).forget(context, allocations);
            }
        }
    }

    /** Destroys all graphs, once, because the session has ended. */
    public void closeGraphs() {
        if (!hasClosedGraphs && backend.graphs() != null) {
            GraphState.closeAll(handles, backend.graphs());
        }
        hasClosedGraphs = true;
    }

    /** Destroys all remaining objects, context by context. */
    void close() {
        closeGraphs();
        for (Handle context : handles.all(HandleKind.CONTEXT)) {
            if (isLive(context) && !context.isFailed()) {
                destroyContext(context);
            }
            drop(HandleKind.CONTEXT, context.id());
        }
        for (HandleKind kind : HandleKind.values()) {
            handles.all(kind).forEach(handle -> drop(kind, handle.id()));
        }
        arena.close();
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
     * Keeps the charge of an object without an address. Dropping the handle gives it back, unless it was taken before.
     *
     * @param handle a registered handle.
     * @param charge its charge.
     */
    public void keepCharge(Handle handle, MemoryQuota.Charge charge) {
        charges.put(handle, charge);
    }

    /**
     * The charge of an object.
     *
     * @param handle the object's handle.
     * @return null when it has none.
     */
    public MemoryQuota.Charge chargeOf(Handle handle) {
        return charges.get(handle);
    }

    /**
     * Takes the charge of an object; the caller gives it back once the memory is freed.
     *
     * @param handle the object's handle.
     * @return null when it has none, or that was taken before.
     */
    public MemoryQuota.Charge takeCharge(Handle handle) {
        return charges.remove(handle);
    }

    /**
     * Device memory that the session holds.
     *
     * @return bytes of allocations, of memory whose free waits for running work, and of memory that a driver keeps for
     *     it.
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

    /** Counts memory that will be freed when running work is done. */
    public void freeBegins() {
        pendingFrees++;
    }

    /**
     * Records that such memory has been freed.
     *
     * @param charge its charge; null for none.
     */
    public void freeEnds(MemoryQuota.Charge charge) {
        pendingFrees--;
        if (charge != null) {
            charge.giveBack();
        }
    }

    /**
     * Whether memory is still about to be freed. An allocation that failed for lack of memory should then wait and
     * retry.
     *
     * @return true after {@link #freeBegins} and before the last {@link #freeEnds}.
     */
    public boolean isFreeing() {
        return pendingFrees > 0;
    }
}
