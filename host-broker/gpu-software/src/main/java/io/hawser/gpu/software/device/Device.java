package io.hawser.gpu.software.device;

import io.hawser.cuda.generated.CUresult;
import io.hawser.gpu.software.compile.PtxKernel;
import io.hawser.gpu.software.exec.GlobalMemory;
import io.hawser.gpu.software.exec.KernelLaunch;
import io.hawser.gpu.software.image.ImageException;
import io.hawser.gpu.software.ptx.PtxException;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * The state of the devices that the object groups share. All devices share one memory and one set of processors; each
 * has its own part of the memory. A kernel of one device can therefore access another's memory, with or without enabled
 * peer access. Only the decoder's thread calls the methods, except {@link #output} and {@link #heap}.
 */
final class Device implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(Device.class.getName());
    private static final long PENDING_FREE_TIMEOUT_MS = 2000;

    final DeviceMemory memory;
    final ManagedHeap managed;
    final HostMemory host;
    final Scheduler scheduler;
    final Handles handles = new Handles();
    final GraphMemory graphMemory = new GraphMemory();
    private Context current;
    private final Context[] primaries; // by device
    private final long memoryOfEach;
    private final long[] used; // by device, if there are several; guarded by freed
    private final Map<Long, Integer> deviceOf = new HashMap<>(); // by allocation; guarded by freed
    private volatile Consumer<byte[]> sink = text -> {};
    private final AtomicLong heapBytes = new AtomicLong();
    private final Object freed = new Object();
    private int pendingFrees;
    // The contexts that own allocations (by address) and modules (by handle). The decoder's thread only.
    private final Map<Long, Context> allocationOwners = new HashMap<>();
    private final Map<Long, Context> moduleOwners = new HashMap<>();
    private final Set<Library> libraries = new HashSet<>();

    /** @param memoryBytes memory of all devices together. */
    Device(long memoryBytes, int processors, int devices) {
        memory = new DeviceMemory(memoryBytes);
        managed = new ManagedHeap(memory);
        primaries = new Context[devices];
        used = new long[devices];
        memoryOfEach = memory.totalBytes() / devices & -GlobalMemory.GRANULE_BYTES;
        host = new HostMemory(memory.arena());
        scheduler = new Scheduler(memory.arena(), processors);
    }

    /** The context of the calling guest thread, or null. */
    Context current() {
        return current;
    }

    /** The context that owns what a call creates, or null. */
    private Context owner() {
        return current == null ? null : current.owner;
    }

    void setCurrent(Context context) {
        current = context;
    }

    int count() {
        return primaries.length;
    }

    Context primary(int ordinal) {
        return primaries[ordinal];
    }

    void setPrimary(int ordinal, Context context) {
        primaries[ordinal] = context;
    }

    /** Memory of each device in bytes. */
    long memoryOfEach() {
        return memoryOfEach;
    }

    /** Unallocated memory of the current context's device in bytes. */
    long freeBytes() {
        if (primaries.length == 1) {
            return memory.freeBytes();
        }
        synchronized (freed) {
            return Math.min(memoryOfEach - used[ordinal()], memory.freeBytes());
        }
    }

    private int ordinal() {
        return current == null ? 0 : current.ordinal;
    }

    /** A stream of the current context, or another stream by its handle; null if there is none. */
    Stream stream(long handle) {
        return handle == 0 || handle == 1 ? current == null ? null : current.legacy : handles.get(handle, Stream.class);
    }

    /** CUDA_SUCCESS if a call on this stream can be issued, otherwise the error. */
    int check(Stream stream) {
        if (stream == null) {
            return current == null ? CUresult.CUDA_ERROR_INVALID_CONTEXT : CUresult.CUDA_ERROR_INVALID_HANDLE;
        }
        if (stream.capture() != null) { // only functions of libraries become nodes
            stream.invalidateCapture();
            return CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        return stream.context.error();
    }

    /** CUDA_SUCCESS if a call can be made in the current context, otherwise the error. */
    int check() {
        return current == null ? CUresult.CUDA_ERROR_INVALID_CONTEXT : current.error();
    }

    void setOutput(Consumer<byte[]> output) {
        sink = output;
    }

    /** Passes on the text that kernels print; any thread. */
    void output(byte[] text) {
        sink.accept(text);
    }

    /**
     * Allocates device memory. cuMemFree only takes effect when the work before it ends. If there is no room, this
     * therefore waits for pending frees: at most {@value #PENDING_FREE_TIMEOUT_MS} ms, because a stream that waits for
     * its guest must not block the decoder forever.
     *
     * @return the address, or 0.
     */
    long allocate(long bytes) {
        long deadlineNs = System.nanoTime() + PENDING_FREE_TIMEOUT_MS * 1_000_000;
        while (true) {
            int pending;
            synchronized (freed) {
                pending = pendingFrees;
            }
            long address = take(bytes);
            long leftMs = (deadlineNs - System.nanoTime()) / 1_000_000;
            if (address != 0 || pending == 0 || leftMs <= 0) {
                return address;
            }
            synchronized (freed) {
                if (pendingFrees == pending) {
                    try {
                        freed.wait(leftMs);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                        return 0;
                    }
                }
            }
        }
    }

    private long take(long bytes) {
        if (primaries.length == 1) {
            return memory.allocate(bytes);
        }
        synchronized (freed) {
            long address = bytes <= memoryOfEach - used[ordinal()] ? memory.allocate(bytes) : 0;
            if (address != 0) {
                used[ordinal()] += memory.sizeOf(address);
                deviceOf.put(address, ordinal());
            }
            return address;
        }
    }

    /** Frees memory from {@link #allocate}; any thread. */
    void giveBack(long address) {
        synchronized (freed) {
            Integer ordinal = deviceOf.remove(address);
            if (ordinal != null) {
                used[ordinal] -= memory.sizeOf(address);
            }
            memory.free(address);
        }
    }

    /** Assigns an allocation to the current context. */
    void ownAllocation(long address) {
        allocationOwners.put(address, owner());
    }

    /** Removes an allocation that is being freed from its context. */
    void disownAllocation(long address) {
        allocationOwners.remove(address);
    }

    /** Assigns a module to the current context. */
    void ownModule(long handle) {
        moduleOwners.put(handle, owner());
    }

    /** Removes a module that is being unloaded from its context. */
    void disownModule(long handle) {
        moduleOwners.remove(handle);
    }

    /** Adds a library and returns its handle. */
    long addLibrary(Library library) {
        libraries.add(library);
        return handles.add(library);
    }

    /** Unloads a library's modules in all contexts. */
    void unloadLibrary(long handle, Library library) {
        libraries.remove(library);
        handles.remove(handle);
        library.instances.forEach((context, module) -> {
            moduleOwners.remove(module);
            unload(module, context);
        });
        if (library.managed != null) {
            library.managed.release();
        }
    }

    /**
     * The module of a handle. A library has one module in each context; the first request loads it.
     *
     * @return null if there is no such module.
     */
    LoadedModule module(long handle) throws ImageException, PtxException, LoadedModule.NoMemoryException {
        Library library = handles.get(handle, Library.class);
        return library == null || current == null ? handles.get(handle, LoadedModule.class) : module(library);
    }

    /** Loads a module; the library may be null. */
    LoadedModule load(MemorySegment image, Library library) throws ImageException, PtxException,
        LoadedModule.NoMemoryException {
        return LoadedModule.load(image, memory, managed, library);
    }

    private LoadedModule module(Library library) throws ImageException, PtxException,
        LoadedModule.NoMemoryException {
        Long known = library.instances.get(owner());
        if (known == null) {
            LoadedModule module = load(MemorySegment.ofArray(library.image), library);
            module.context = owner();
            known = handles.add(module);
            library.instances.put(owner(), known);
            ownModule(known);
        }
        return handles.get(known, LoadedModule.class);
    }

    /** Handle of a module's kernel, refused or not; 0 if the module has none of that name. */
    long kernel(LoadedModule module, String name) {
        Long known = module.functions.get(name);
        PtxKernel kernel = module.image.kernels().get(name);
        if (known != null || kernel == null) {
            return known == null ? 0 : known;
        }
        try {
            kernel.prepare();
        } catch (PtxException e) {
            // The operator must see the missing instruction even if the program hides its error.
            LOG.log(System.Logger.Level.WARNING, "a kernel is refused: " + e.getMessage());
        }
        long handle = handles.add(new KernelFunction(module, kernel));
        module.functions.put(name, handle);
        return handle;
    }

    /** A kernel by its handle; a library's kernel comes from the current context's module. Null if there is none. */
    KernelFunction function(long handle) {
        KernelFunction function = handles.get(handle, KernelFunction.class);
        if (function == null || function.module.library == null || function.module.context == owner()
            || current == null) {
            return function;
        }
        try {
            return handles.get(kernel(module(function.module.library), function.kernel.name()), KernelFunction.class);
        } catch (ImageException | PtxException | LoadedModule.NoMemoryException e) {
            LOG.log(System.Logger.Level.WARNING, "a library cannot be used in a further context: " + e.getMessage());
            return null;
        }
    }

    /** Frees the allocations and modules of a context after its work is done. */
    void release(Context context) {
        allocationOwners.entrySet().removeIf(owned -> {
            if (owned.getValue() == context) {
                long address = owned.getKey();
                freeLater();
                context.issueAfterAll(() -> freeNow(address));
            }
            return owned.getValue() == context;
        });
        moduleOwners.entrySet().removeIf(owned -> {
            if (owned.getValue() == context) {
                unload(owned.getKey(), context);
            }
            return owned.getValue() == context;
        });
        libraries.forEach(library -> library.instances.remove(context));
        context.issueAfterAll(() -> memory.arena().objects().removeAll(context));
    }

    /** Removes a module and its functions; frees the variables when the context's work is done. */
    void unload(long handle, Context context) {
        LoadedModule module = handles.get(handle, LoadedModule.class);
        handles.remove(handle);
        module.functions.values().forEach(handles::remove);
        if (context == null) {
            module.free(memory);
        } else {
            context.issueAfterAll(() -> module.free(memory));
        }
    }

    /** Frees an allocation when all work of the allocation's context is done. */
    void freeAfterAll(long address) {
        freeLater();
        Context owner = allocationOwners.remove(address);
        (owner == null ? current.owner : owner).issueAfterAll(() -> freeNow(address));
    }

    /** Counts a free as pending; {@link #freeNow} completes it. */
    void freeLater() {
        synchronized (freed) {
            pendingFrees++;
        }
    }

    /** Completes a free that {@link #freeLater} counted; any thread. */
    void freeNow(long address) {
        giveBack(address);
        synchronized (freed) {
            pendingFrees--;
            freed.notifyAll();
        }
    }

    /** Frees the memory of a graph's allocating node; false when it is not allocated. The node keeps the address. */
    boolean free(GraphMemory.Block block) {
        if (!block.isLive()) {
            return false;
        }
        graphMemory.free(block);
        freeIfUnused(block);
        return true;
    }

    /** Frees a graph's memory when nothing can use it any more and the work of the current context is done. */
    void freeIfUnused(GraphMemory.Block block) {
        if (block.isGone() && graphMemory.remove(block)) {
            if (current == null) {
                memory.free(block.place.address);
            } else {
                freeAfterAll(block.place.address);
            }
        }
    }

    /** Memory from malloc() in kernels that no kernel has freed, in bytes. */
    long kernelHeapBytes() {
        return heapBytes.get();
    }

    /** Memory for malloc() in kernels, in total at most {@code limit} bytes; any thread. */
    KernelLaunch.DeviceHeap heap(long limit) {
        return new KernelLaunch.DeviceHeap() {
            @Override
            public long allocate(long bytes) {
                if (bytes <= 0 || bytes > limit || heapBytes.addAndGet(bytes) > limit) {
                    if (bytes > 0 && bytes <= limit) {
                        heapBytes.addAndGet(-bytes);
                    }
                    return 0;
                }
                long address = memory.allocate(bytes);
                // The allocator rounds up. Counting the real size lets free() subtract the same number.
                heapBytes.addAndGet((address == 0 ? 0 : memory.sizeOf(address)) - bytes);
                return address;
            }

            @Override
            public boolean free(long address) {
                long bytes = memory.sizeOf(address);
                if (bytes == 0 || !memory.free(address)) {
                    return false;
                }
                heapBytes.addAndGet(-bytes);
                return true;
            }
        };
    }

    @Override
    public void close() {
        scheduler.close();
        // If a thread is still running, unmapping would crash the JVM. The process is about to end and then frees the
        // memory.
        if (scheduler.isTerminated()) {
            memory.close();
        }
    }
}
