package io.hawser.worker.calls;

import io.hawser.cuda.CallContext;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.MemoryManualCalls;
import io.hawser.cuda.generated.MemoryReplies;
import io.hawser.cuda.generated.PoolManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GraphMemory;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.ToIntFunction;

/** Device memory: the quota and the map of what the session may address. */
final class MemoryCalls implements MemoryManualCalls, PoolManualCalls {
    private final Session session;
    private final GuestObjects objects;
    private final GpuBackend backend;
    private final CudaDriver driver;

    MemoryCalls(Session session) {
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend();
        this.driver = backend.driver();
    }

    @Override
    public void cuMemAlloc_v2(CallContext call, long bytesize) {
        allocate(call, bytesize, out -> driver.cuMemAlloc_v2(out, bytesize), false);
    }

    @Override
    public void cuMemAllocPitch_v2(CallContext call, long widthInBytes, long height, int elementSizeBytes) {
        // The length is known only with the pitch: at least this much is needed.
        long atLeast = Math.multiplyHigh(widthInBytes, height) == 0 ? widthInBytes * height : -1;
        if (widthInBytes <= 0 || height <= 0 || atLeast <= 0) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        allocate(call, atLeast, out -> driver.cuMemAllocPitch_v2(out, out.asSlice(Long.BYTES), widthInBytes, height,
            elementSizeBytes), true, height);
    }

    private void allocate(CallContext call, long bytes, ToIntFunction<MemorySegment> allocator, boolean hasPitch) {
        allocate(call, bytes, allocator, hasPitch, 0);
    }

    /**
     * Allocates, and once more when the first attempt found no room while memory was on its way back: CUDA's cuMemFree
     * waits for running work, ours does not hold up other threads meanwhile.
     */
    private void allocate(CallContext call, long bytes, ToIntFunction<MemorySegment> allocator, boolean hasPitch,
            long height) {
        Handle context = objects.currentContext();
        if (context == null || bytes <= 0) {
            call.fail(context == null ? CudaResult.INVALID_CONTEXT : CudaResult.INVALID_VALUE);
            return;
        }
        MemorySegment out = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
        int result = attempt(context, bytes, allocator, out, hasPitch, height);
        if (result != CudaResult.OUT_OF_MEMORY || !objects.isFreeing()) {
            answer(call, result, out, hasPitch);
            return;
        }
        Call.of(call).deferWithoutRecord();
        Runnable again = () -> {
            int entered = objects.isLive(context) ? objects.enter(context) : CudaResult.INVALID_CONTEXT;
            answer(call, entered != 0 ? entered : attempt(context, bytes, allocator, out, hasPitch, height), out,
                hasPitch);
        };
        int wait = backend.whenContextReached(context.nativeHandle(), status -> session.completions().add(
            () -> session.gates().whenClosed(again))); // behind all frees that came before
        if (wait != 0) {
            call.finish(wait);
        }
    }

    private int attempt(Handle context, long bytes, ToIntFunction<MemorySegment> allocator, MemorySegment out,
            boolean hasPitch, long height) {
        if (!objects.fitsQuota(bytes)) {
            return CudaResult.OUT_OF_MEMORY;
        }
        int result = allocator.applyAsInt(out);
        if (result != 0) {
            return result;
        }
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        long length = hasPitch ? out.get(ValueLayout.JAVA_LONG, Long.BYTES) * height : bytes;
        if (!objects.fitsQuota(length)) {
            objects.freeBegins(length);
            free(context, address, length);
            return CudaResult.OUT_OF_MEMORY;
        }
        if (!objects.allocations().add(address, length, context)) {
            throw new IllegalStateException("the backend gave memory that is in use: address=0x"
                + Long.toHexString(address) + " bytes=" + length);
        }
        return 0;
    }

    private static void answer(CallContext call, int result, MemorySegment out, boolean hasPitch) {
        if (result == 0) {
            long address = out.get(ValueLayout.JAVA_LONG, 0);
            if (hasPitch) {
                MemoryReplies.cuMemAllocPitch_v2(call.reply(), address, out.get(ValueLayout.JAVA_LONG, Long.BYTES));
            } else {
                MemoryReplies.cuMemAlloc_v2(call.reply(), address); // as cuMemAllocAsync's
            }
        }
        call.finish(result);
    }

    @Override
    public void cuMemFree_v2(CallContext call, long dptr) {
        if (dptr == 0) {
            call.finish(0);
            return;
        }
        Handle context = objects.allocations().ownerAt(dptr);
        if (context == null) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        GraphMemory.Block block = objects.graphMemory().at(dptr);
        if (block != null) { // its node keeps the address
            session.gates().whenClosed(() -> freeOfGraph(context, block));
            call.finish(0);
            return;
        }
        // Gone for later copies at once; given back when work that may still use it is done.
        long bytes = objects.allocations().remove(dptr);
        objects.freeBegins(bytes);
        int wait = backend.whenContextReached(context.nativeHandle(),
            status -> session.completions().add(() -> free(context, dptr, bytes)));
        if (wait != 0) {
            free(context, dptr, bytes);
        }
        call.finish(wait);
    }

    private void free(Handle context, long dptr, long bytes) {
        session.gates().whenClosed(() -> freeNow(context, dptr, bytes));
    }

    private void freeNow(Handle context, long dptr, long bytes) {
        objects.freeEnds(bytes);
        if (objects.isLive(context)) { // else it went with its context
            int entered = objects.enter(context);
            session.deferError(entered != 0 ? entered : driver.cuMemFree_v2(dptr));
        }
    }

    private void freeOfGraph(Handle context, GraphMemory.Block block) {
        if (objects.isLive(context)) {
            int entered = objects.enter(context);
            int result = entered != 0 ? entered : driver.cuMemFree_v2(block.address());
            session.deferError(result);
            if (result == 0) {
                objects.graphMemory().freed(block);
            }
        }
    }

    @Override
    public void cuMemGetInfo_v2(CallContext call) {
        MemorySegment out = call.scratch(2 * Long.BYTES);
        int result = driver.cuMemGetInfo_v2(out, out.asSlice(Long.BYTES));
        if (result == 0) {
            long free = out.get(ValueLayout.JAVA_LONG, 0);
            long total = out.get(ValueLayout.JAVA_LONG, Long.BYTES);
            long quota = objects.memoryBytes() == 0 ? total : Math.min(total, objects.memoryBytes());
            MemoryReplies.cuMemGetInfo_v2(call.reply(), Math.clamp(quota - objects.usedBytes(), 0, free), quota);
        }
        call.finish(result);
    }

    @Override
    public void cuMemAllocAsync(CallContext call, long bytesize, long hStream) {
        allocate(call, bytesize, out -> driver.cuMemAllocAsync(out, bytesize, hStream), false);
    }

    @Override
    public void cuMemAllocFromPoolAsync(CallContext call, long bytesize, long pool, long hStream) {
        allocate(call, bytesize, out -> driver.cuMemAllocFromPoolAsync(out, bytesize, pool, hStream), false);
    }

    @Override
    public void cuMemFreeAsync(CallContext call, long dptr, long hStream) {
        long bytes = objects.allocations().lengthAt(dptr);
        if (bytes < 0) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        GraphMemory.Block block = objects.graphMemory().at(dptr);
        int result = driver.cuMemFreeAsync(dptr, hStream);
        if (result == 0 && block != null) {
            objects.graphMemory().freed(block); // its node keeps the address
        } else if (result == 0) {
            objects.allocations().remove(dptr);
        }
        call.finish(result);
    }
}
