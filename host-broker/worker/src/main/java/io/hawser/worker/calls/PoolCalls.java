package io.hawser.worker.calls;

import io.hawser.cuda.backend.MemoryPools;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.PoolManualCalls;
import io.hawser.cuda.generated.PoolReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GraphMemory;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntSupplier;

/**
 * Memory pools. Freed memory that pools keep still counts as used, so that no number of pools lets a session exceed its
 * quota. Before an allocation fails for lack of quota, the pools are trimmed. Session thread.
 */
final class PoolCalls implements PoolManualCalls<Call>, MemoryQuota.Keeper {
    private static final int RELEASE_THRESHOLD = 4; // CUmemPool_attribute of CUDA 13.0 cuda.h
    private static final int RESERVED_MEM_CURRENT = 5;
    // CU_MEMPOOL_ATTR_USED_MEM_HIGH; the worker need not support later ones
    private static final int LAST_ATTRIBUTE = 8;
    private static final int MAX_POOLS = 1024; // per session; each costs memory in the driver

    private final Session session;
    private final GuestObjects objects;
    private final MemoryCalls memory;
    private final MemoryPools backend;
    private final CudaDriver driver;
    private final MemoryQuota.KeptMemory keptMemory;
    private final Map<Long, Integer> devices = new HashMap<>(); // by the backend's handle of the pool
    private final List<Long> defaults = new ArrayList<>();
    private boolean hasDefaults;

    PoolCalls(Session session, MemoryCalls memory) {
        this.session = session;
        this.memory = memory;
        this.objects = session.objects();
        this.backend = session.backend().memoryPools();
        this.driver = session.backend().driver();
        this.keptMemory = objects.quota().addKeeper(this);
    }

    @Override
    public void hwsMemPoolCreate(Call call, long poolId, int device, long maxSize) {
        if (backend == null) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return;
        }
        if (device < 0 || device >= session.backend().deviceCount()) {
            call.fail(CudaResult.INVALID_DEVICE);
            return;
        }
        if (objects.handles().all(HandleKind.MEMORY_POOL).size() >= MAX_POOLS) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = backend.create(device, maxSize, out);
        if (result == 0) {
            devices.put(out.get(ValueLayout.JAVA_LONG, 0), device);
            call.register(HandleKind.MEMORY_POOL, poolId, out.get(ValueLayout.JAVA_LONG, 0));
        }
        call.finish(result);
    }

    @Override
    public void hwsMemPoolGetAttribute(Call call, long pool, int attr) {
        if (backend == null || attr < 1 || attr > LAST_ATTRIBUTE) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = backend.getAttribute(pool, attr, out);
        PoolReplies.hwsMemPoolGetAttribute(call.reply(), out.get(ValueLayout.JAVA_LONG, 0));
        call.finish(result);
    }

    @Override
    public void hwsMemPoolSetAttribute(Call call, long pool, int attr, long value) {
        call.finish(backend == null || attr < 1 || attr > LAST_ATTRIBUTE ? CudaResult.NOT_SUPPORTED
            : backend.setAttribute(pool, attr, value));
    }

    @Override
    public void cuMemAllocAsync(Call call, long bytesize, long hStream) {
        memory.allocate(call, bytesize, false, (context, out) -> fromPool(context, objects.deviceOf(context), bytesize,
            hStream, out, () -> driver.cuMemAllocAsync(out, bytesize, hStream)));
    }

    @Override
    public void cuMemAllocFromPoolAsync(Call call, long bytesize, long pool, long hStream) {
        memory.allocate(call, bytesize, false, (context, out) -> fromPool(context, deviceOf(pool, context), bytesize,
            hStream, out, () -> driver.cuMemAllocFromPoolAsync(out, bytesize, pool, hStream)));
    }

    private int fromPool(Handle context, int device, long bytes, long stream, MemorySegment out,
        IntSupplier allocator) {
        MemoryQuota.Charge charge = keptMemory.claim(device, bytes);
        if (charge == null) {
            return CudaResult.OUT_OF_MEMORY;
        }
        int result = allocator.getAsInt();
        if (result == 0 && !keptMemory.settle(device)) {
            // The pool could not reuse the memory that it kept, and has allocated more than the quota allows.
            session.deferError(driver.cuMemFreeAsync(out.get(ValueLayout.JAVA_LONG, 0), stream));
            result = CudaResult.OUT_OF_MEMORY;
        }
        if (result != 0) {
            charge.giveBack();
            return result;
        }
        memory.add(out, bytes, context, charge);
        return 0;
    }

    @Override
    public void cuMemFreeAsync(Call call, long dptr, long hStream) {
        GraphMemory.Block block = objects.graphMemory().at(dptr);
        if (block == null && objects.allocations().ownerAt(dptr) == null) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        int result = driver.cuMemFreeAsync(dptr, hStream);
        if (result == 0 && block != null) {
            objects.graphMemory().freed(block); // the graph's node keeps the address
        } else if (result == 0) {
            MemoryQuota.Charge charge = objects.allocations().chargeAt(dptr);
            objects.allocations().remove(dptr);
            giveBackAfter(call.lastStream(), charge);
        }
        call.finish(result);
    }

    /** Gives a charge back: at once if the pool still counts the memory, else when the stream has freed it. */
    private void giveBackAfter(StreamState stream, MemoryQuota.Charge charge) {
        if (charge.isKept()) {
            charge.giveBack();
            return;
        }
        objects.freeBegins();
        int wait = session.backend().whenStreamReached(stream.context(), stream.stream(),
            status -> session.completions().add(() -> objects.freeEnds(charge)));
        if (wait != 0) {
            objects.freeEnds(charge);
        }
    }

    /**
     * The device of a pool's memory.
     *
     * @param pool the backend's handle of a live pool.
     * @param context the current context, whose device an unknown pool must have.
     * @return its number.
     */
    private int deviceOf(long pool, Handle context) {
        findDefaults();
        Integer device = devices.get(pool);
        return device == null ? objects.deviceOf(context) : device;
    }

    /** Records the default pools of all devices, even if the guest has not asked for their handles. */
    private void findDefaults() {
        if (hasDefaults) {
            return;
        }
        hasDefaults = true;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            for (int device = 0; device < session.backend().deviceCount(); device++) {
                if (driver.cuDeviceGetDefaultMemPool(out, device) == 0) {
                    devices.put(out.get(ValueLayout.JAVA_LONG, 0), device);
                    defaults.add(out.get(ValueLayout.JAVA_LONG, 0));
                }
            }
        }
    }

    private List<Long> poolsOf(int device) {
        findDefaults();
        List<Long> pools = new ArrayList<>();
        for (long pool : defaults) {
            if (devices.get(pool) == device) {
                pools.add(pool);
            }
        }
        for (Handle pool : objects.handles().all(HandleKind.MEMORY_POOL)) {
            Integer owner = pool.isFailed() ? null : devices.get(pool.nativeHandle());
            if (owner != null && owner == device && !pools.contains(pool.nativeHandle())) {
                pools.add(pool.nativeHandle());
            }
        }
        return pools;
    }

    @Override
    public long reservedBytes(int device) {
        if (backend == null) {
            return 0;
        }
        long bytes = 0;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            for (long pool : poolsOf(device)) {
                out.set(ValueLayout.JAVA_LONG, 0, 0);
                bytes += backend.getAttribute(pool, RESERVED_MEM_CURRENT, out) == 0
                    ? out.get(ValueLayout.JAVA_LONG, 0) : 0; // a pool without this attribute keeps nothing
            }
        }
        return bytes;
    }

    @Override
    public void relax(int device) {
        if (backend == null || session.gates().isOpen()) {
            return;
        }
        backend.noticeFrees();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment threshold = arena.allocate(ValueLayout.JAVA_LONG);
            for (long pool : poolsOf(device)) {
                threshold.set(ValueLayout.JAVA_LONG, 0, 0);
                if (backend.getAttribute(pool, RELEASE_THRESHOLD, threshold) == 0) {
                    driver.cuMemPoolTrimTo(pool, threshold.get(ValueLayout.JAVA_LONG, 0));
                }
            }
        }
    }

    @Override
    public void trim(int device) {
        if (backend == null || session.gates().isOpen()) { // trimming may wait for the device
            return;
        }
        backend.noticeFrees();
        poolsOf(device).forEach(pool -> driver.cuMemPoolTrimTo(pool, 0));
    }
}
