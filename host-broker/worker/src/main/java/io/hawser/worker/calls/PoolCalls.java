package io.hawser.worker.calls;

import io.hawser.cuda.backend.MemoryPools;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Memory pools. What pools hold back of memory that the guest has freed counts as used, so that no number of pools
 * takes a session beyond its quota; they are trimmed before an allocation is refused for it. Session thread.
 */
final class PoolCalls {
    private static final int RESERVED_MEM_CURRENT = 5; // CUmemPool_attribute of CUDA 13.0 cuda.h
    private static final int USED_MEM_CURRENT = 7;
    private static final int LAST_ATTRIBUTE = 8; // CU_MEMPOOL_ATTR_USED_MEM_HIGH; later ones need no remote support
    private static final int MAX_POOLS = 1024; // of one session; each costs memory in the driver

    private final Session session;
    private final GuestObjects objects;
    private final MemoryPools backend;

    PoolCalls(Session session) {
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend().memoryPools();
        if (backend != null) {
            objects.countHeldBack(this::heldBackBytes, this::trim);
        }
    }

    void hwsMemPoolCreate(Call call, long poolId, int device, long maxSize) {
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
            call.register(HandleKind.MEMORY_POOL, poolId, out.get(ValueLayout.JAVA_LONG, 0));
        }
        call.finish(result);
    }

    void hwsMemPoolGetAttribute(Call call, long nativePool, int attribute) {
        if (backend == null || attribute < 1 || attribute > LAST_ATTRIBUTE) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = backend.getAttribute(nativePool, attribute, out);
        call.reply().fixed(Long.BYTES);
        call.reply().i64(0, out.get(ValueLayout.JAVA_LONG, 0));
        call.finish(result);
    }

    void hwsMemPoolSetAttribute(Call call, long nativePool, int attribute, long value) {
        call.finish(backend == null || attribute < 1 || attribute > LAST_ATTRIBUTE ? CudaResult.NOT_SUPPORTED
            : backend.setAttribute(nativePool, attribute, value));
    }

    private List<Long> pools() {
        List<Long> pools = new ArrayList<>();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            for (int device = 0; device < session.backend().deviceCount(); device++) {
                // Whether or not the guest has asked for its handle.
                if (session.backend().driver().cuDeviceGetDefaultMemPool(out, device) == 0) {
                    pools.add(out.get(ValueLayout.JAVA_LONG, 0));
                }
            }
        }
        for (Handle pool : objects.handles().all(HandleKind.MEMORY_POOL)) {
            if (!pool.isFailed() && !pools.contains(pool.nativeHandle())) {
                pools.add(pool.nativeHandle());
            }
        }
        return pools;
    }

    private long heldBackBytes() {
        long bytes = 0;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            for (long pool : pools()) {
                long reserved = read(pool, RESERVED_MEM_CURRENT, out);
                bytes += Math.max(0, reserved - read(pool, USED_MEM_CURRENT, out));
            }
        }
        return bytes;
    }

    private long read(long pool, int attribute, MemorySegment out) {
        out.set(ValueLayout.JAVA_LONG, 0, 0);
        return backend.getAttribute(pool, attribute, out) == 0 ? out.get(ValueLayout.JAVA_LONG, 0) : 0;
    }

    private void trim() {
        if (!session.gates().isOpen()) { // it may wait for the device
            pools().forEach(pool -> session.backend().driver().cuMemPoolTrimTo(pool, 0));
        }
    }
}
