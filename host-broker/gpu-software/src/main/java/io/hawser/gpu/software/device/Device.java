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
 * The state of the devices that the object groups share. All are one memory and one set of processors, of which each
 * device has its part of the memory: kernels of one reach what another has, whether or not that was enabled. Its
 * methods belong to the decoder's thread, except {@link #output} and {@link #heap}.
 */
final class Device implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(Device.class.getName());
    private static final long PENDING_FREE_TIMEOUT_MS = 2000;

    final DeviceMemory memory;
    final HostMemory host;
    final Scheduler scheduler;
    final Handles handles = new Handles();
    final GraphMemory graphMemory = new GraphMemory();
    private Context current;
    private final Context[] primaries; // by device
    private final long memoryOfEach;
    private final long[] used; // by device, where there are several; guarded by freed
    private final Map<Long, Integer> deviceOf = new HashMap<>(); // of allocations, likewise
    private volatile Consumer<byte[]> sink = text -> { };
    private final AtomicLong heapBytes = new AtomicLong();
    private final Object freed = new Object();
    private int pendingFrees;
    // What goes with which context: addresses of allocations and handles of modules. The decoder's thread only.
    private final Map<Long, Context> allocationOwners = new HashMap<>();
    private final Map<Long, Context> moduleOwners = new HashMap<>();
    private final Set<Library> libraries = new HashSet<>();

    /** @param memoryBytes of all devices together. */
    Device(long memoryBytes, int processors, int devices) {
        memory = new DeviceMemory(memoryBytes);
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

    /** Memory of the current context's device that is not allocated, in bytes. */
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

    /** A stream of the current context, or another one by its handle; null if there is none. */
    Stream stream(long handle) {
        return handle == 0 || handle == 1 ? current == null ? null : current.legacy : handles.get(handle, Stream.class);
    }

    /** Why a call on this stream cannot be issued: CUDA_SUCCESS when it can. */
    int check(Stream stream) {
        if (stream == null) {
            return current == null ? CUresult.CUDA_ERROR_INVALID_CONTEXT : CUresult.CUDA_ERROR_INVALID_HANDLE;
        }
        return stream.context.error();
    }

    /** Why a call cannot be made in the current context: CUDA_SUCCESS when it can. */
    int check() {
        return current == null ? CUresult.CUDA_ERROR_INVALID_CONTEXT : current.error();
    }

    void setOutput(Consumer<byte[]> output) {
        sink = output;
    }

    /** Where kernels print; any thread. */
    void output(byte[] text) {
        sink.accept(text);
    }

    /**
     * Allocates device memory. When there is no room but earlier frees only wait for work to end, as CUDA's cuMemFree
     * does, this waits for them: at most {@value #PENDING_FREE_TIMEOUT_MS} ms, so that a stream that waits for its
     * guest cannot hold up the decoder for ever.
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

    /** Frees what {@link #allocate} gave; any thread. */
    void giveBack(long address) {
        synchronized (freed) {
            Integer ordinal = deviceOf.remove(address);
            if (ordinal != null) {
                used[ordinal] -= memory.sizeOf(address);
            }
            memory.free(address);
        }
    }

    /** Notes that an allocation goes with the current context. */
    void ownAllocation(long address) {
        allocationOwners.put(address, current);
    }

    /** Notes that an allocation is being freed. */
    void disownAllocation(long address) {
        allocationOwners.remove(address);
    }

    /** Notes that a module goes with the current context. */
    void ownModule(long handle) {
        moduleOwners.put(handle, current);
    }

    /** Notes that a module is being unloaded. */
    void disownModule(long handle) {
        moduleOwners.remove(handle);
    }

    /** Adds a library; answers its handle. */
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
    }

    /**
     * The module of a handle; a library's is the current context's own, which is made when it is first asked for.
     *
     * @return null if there is no such module.
     */
    LoadedModule module(long handle) throws ImageException, PtxException, LoadedModule.NoMemoryException {
        Library library = handles.get(handle, Library.class);
        return library == null || current == null ? handles.get(handle, LoadedModule.class) : module(library);
    }

    private LoadedModule module(Library library) throws ImageException, PtxException,
            LoadedModule.NoMemoryException {
        Long known = library.instances.get(current);
        if (known == null) {
            LoadedModule module = LoadedModule.load(MemorySegment.ofArray(library.image), memory);
            module.library = library;
            module.context = current;
            known = handles.add(module);
            library.instances.put(current, known);
            ownModule(known);
        }
        return handles.get(known, LoadedModule.class);
    }

    /** Handle of a module's kernel, refused or not; 0 if it has none of that name. */
    long kernel(LoadedModule module, String name) {
        Long known = module.functions.get(name);
        PtxKernel kernel = module.image.kernels().get(name);
        if (known != null || kernel == null) {
            return known == null ? 0 : known;
        }
        try {
            kernel.prepare();
        } catch (PtxException e) {
            // The operator must see the missing instruction, even where the program hides its error.
            LOG.log(System.Logger.Level.WARNING, "a kernel is refused: " + e.getMessage());
        }
        long handle = handles.add(new KernelFunction(module, kernel));
        module.functions.put(name, handle);
        return handle;
    }

    /** A kernel by its handle, a library's as the current context has it; null if there is none. */
    KernelFunction function(long handle) {
        KernelFunction function = handles.get(handle, KernelFunction.class);
        if (function == null || function.module.library == null || function.module.context == current
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

    /** Frees what goes with a context, when its work is done. */
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
    }

    /** Forgets a module and its functions; its variables go when the context's work is done. */
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

    /** Frees an allocation once all work of the context is done that it goes with. */
    void freeAfterAll(long address) {
        freeLater();
        Context owner = allocationOwners.remove(address);
        (owner == null ? current : owner).issueAfterAll(() -> freeNow(address));
    }

    /** Notes that a free is on its way; {@link #freeNow} ends it. */
    void freeLater() {
        synchronized (freed) {
            pendingFrees++;
        }
    }

    /** The end of {@link #freeLater}; any thread. */
    void freeNow(long address) {
        giveBack(address);
        synchronized (freed) {
            pendingFrees--;
            freed.notifyAll();
        }
    }

    /** Frees memory of a graph's allocating node; false when it is not allocated. Its node keeps the place. */
    boolean free(GraphMemory.Block block) {
        if (!block.isLive()) {
            return false;
        }
        graphMemory.free(block);
        settle(block);
        return true;
    }

    /** Gives such memory back, when nothing can use it any more and the work of the current context is done. */
    void settle(GraphMemory.Block block) {
        if (block.isGone() && graphMemory.remove(block)) {
            if (current == null) {
                memory.free(block.place.address);
            } else {
                freeAfterAll(block.place.address);
            }
        }
    }

    /** Memory for malloc() in kernels, at most {@code limit} bytes at once; any thread. */
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
                // The allocator rounds up; count what it really took, so that free() gives back the same.
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
        // With a thread still inside, unmapping would crash the JVM; the process is about to end and frees it then.
        if (scheduler.isTerminated()) {
            memory.close();
        }
    }
}
