package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.MemoryManualCalls;
import io.hawser.cuda.generated.MemoryReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GraphMemory;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Device memory: the quota, and the map of the memory that the session may address. */
final class MemoryCalls implements MemoryManualCalls<Call> {
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
    public void cuMemAlloc_v2(Call call, long bytesize) {
        allocate(call, bytesize, false, (context, out) -> plain(context, bytesize, out));
    }

    private int plain(Handle context, long bytes, MemorySegment out) {
        MemoryQuota.Charge charge = objects.quota().claim(objects.deviceOf(context),
            backend.allocationBytes(bytes));
        if (charge == null) {
            return CudaResult.OUT_OF_MEMORY;
        }
        int result = driver.cuMemAlloc_v2(out, bytes);
        if (result != 0) {
            charge.giveBack();
            return result;
        }
        add(out, bytes, context, charge);
        return 0;
    }

    @Override
    public void cuMemAllocPitch_v2(Call call, long widthInBytes, long height, int elementSizeBytes) {
        // The pitch determines the real length; this is a lower bound.
        long atLeast = Math.multiplyHigh(widthInBytes, height) == 0 ? widthInBytes * height : -1;
        if (widthInBytes <= 0 || height <= 0 || atLeast <= 0) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        allocate(call, atLeast, true, (context, out) -> pitched(context, widthInBytes, height, elementSizeBytes, out));
    }

    private int pitched(Handle context, long widthBytes, long height, int elementBytes, MemorySegment out) {
        MemoryQuota.Charge charge = objects.quota().claim(objects.deviceOf(context), widthBytes * height);
        if (charge == null) {
            return CudaResult.OUT_OF_MEMORY;
        }
        int result = driver.cuMemAllocPitch_v2(out, out.asSlice(Long.BYTES), widthBytes, height, elementBytes);
        if (result != 0) {
            charge.giveBack();
            return result;
        }
        long bytes = out.get(ValueLayout.JAVA_LONG, Long.BYTES) * height;
        if (!charge.grow(backend.allocationBytes(bytes))) {
            objects.freeBegins();
            free(context, out.get(ValueLayout.JAVA_LONG, 0), charge);
            return CudaResult.OUT_OF_MEMORY;
        }
        add(out, bytes, context, charge);
        return 0;
    }

    void add(MemorySegment out, long bytes, Handle context, MemoryQuota.Charge charge) {
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        if (!objects.allocations().add(address, bytes, context, charge)) {
            throw new IllegalStateException("the backend must not return memory that is in use: address=0x"
                + Long.toHexString(address) + " bytes=" + bytes);
        }
    }

    /** Claims and allocates. {@code out} receives the address and, for pitched memory, the pitch. */
    @FunctionalInterface
    interface Attempt {
        int allocate(Handle context, MemorySegment out);
    }

    /**
     * Allocates. If no memory is left but memory is about to be freed, it waits for that and tries again. CUDA's
     * cuMemFree waits for running work; here it returns at once, so that other threads need not wait.
     */
    void allocate(Call call, long bytes, boolean hasPitch, Attempt attempt) {
        Handle context = objects.owningContext();
        if (context == null || bytes <= 0) {
            call.fail(context == null ? CudaResult.INVALID_CONTEXT : CudaResult.INVALID_VALUE);
            return;
        }
        MemorySegment out = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
        int result = attempt.allocate(context, out);
        if (result != CudaResult.OUT_OF_MEMORY || !objects.isFreeing()) {
            answer(call, result, out, hasPitch);
            return;
        }
        call.deferWithoutRecord();
        Runnable again = () -> {
            int entered = objects.isLive(context) ? objects.enter(context) : CudaResult.INVALID_CONTEXT;
            answer(call, entered != 0 ? entered : attempt.allocate(context, out), out, hasPitch);
        };
        int wait = backend.whenContextReached(context.nativeHandle(), status -> session.completions().add(
            () -> session.gates().whenClosed(again))); // runs after all earlier frees
        if (wait != 0) {
            call.finish(wait);
        }
    }

    private static void answer(Call call, int result, MemorySegment out, boolean hasPitch) {
        if (result == 0) {
            long address = out.get(ValueLayout.JAVA_LONG, 0);
            if (hasPitch) {
                MemoryReplies.cuMemAllocPitch_v2(call.reply(), address, out.get(ValueLayout.JAVA_LONG, Long.BYTES));
            } else {
                MemoryReplies.cuMemAlloc_v2(call.reply(), address); // cuMemAllocAsync has the same reply
            }
        }
        call.finish(result);
    }

    @Override
    public void cuMemFree_v2(Call call, long dptr) {
        if (dptr == 0) {
            call.finish(0);
            return;
        }
        GraphMemory.Block block = objects.graphMemory().at(dptr);
        if (block != null) { // the graph's node keeps the address
            session.gates().whenClosed(() -> freeOfGraph(block));
            call.finish(0);
            return;
        }
        Handle context = objects.allocations().ownerAt(dptr);
        if (context == null) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        // Later copies cannot use the memory from now on. It is freed when work that may still use it is done.
        MemoryQuota.Charge charge = objects.allocations().chargeAt(dptr);
        objects.allocations().remove(dptr);
        objects.freeBegins();
        int wait = backend.whenContextReached(context.nativeHandle(),
            status -> session.completions().add(() -> free(context, dptr, charge)));
        if (wait != 0) {
            free(context, dptr, charge);
        }
        call.finish(wait);
    }

    private void free(Handle context, long dptr, MemoryQuota.Charge charge) {
        session.gates().whenClosed(() -> freeNow(context, dptr, charge));
    }

    private void freeNow(Handle context, long dptr, MemoryQuota.Charge charge) {
        if (objects.isLive(context)) { // otherwise it ended with its context
            int entered = objects.enter(context);
            session.deferError(entered != 0 ? entered : driver.cuMemFree_v2(dptr));
        }
        objects.freeEnds(charge);
    }

    private void freeOfGraph(GraphMemory.Block block) {
        if (objects.isLive(block.context())) {
            int entered = objects.enter(block.context());
            int result = entered != 0 ? entered : driver.cuMemFree_v2(block.address());
            session.deferError(result);
            if (result == 0) {
                objects.graphMemory().freed(block);
            }
        }
    }

    @Override
    public void cuMemGetInfo_v2(Call call) {
        objects.quota().refresh(); // before the query, because it may make a pool release memory
        MemorySegment out = call.scratch(2 * Long.BYTES);
        int result = driver.cuMemGetInfo_v2(out, out.asSlice(Long.BYTES));
        Handle context = objects.owningContext();
        if (result == 0 && context == null) {
            result = CudaResult.INVALID_CONTEXT;
        }
        if (result == 0) {
            int device = objects.deviceOf(context);
            MemoryReplies.cuMemGetInfo_v2(call.reply(),
                objects.quota().freeBytes(device, out.get(ValueLayout.JAVA_LONG, 0)),
                objects.quota().totalBytes(device, out.get(ValueLayout.JAVA_LONG, Long.BYTES)));
        }
        call.finish(result);
    }
}
