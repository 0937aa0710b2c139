package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.ArrayManualCalls;
import io.hawser.cuda.generated.CUmemorytype;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsDevicePlace;
import io.hawser.cuda.generated.HwsExtent;
import io.hawser.cuda.generated.HwsPosition;
import io.hawser.cuda.generated.HwsRegionPlace;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.session.ArrayShape;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CopyWindow;
import io.hawser.worker.session.CopyWindow.Direction;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.LongToIntFunction;
import java.util.function.ToIntFunction;

/** CUDA arrays: their quota, and copies of boxes with checked numbers. Session thread. */
final class ArrayCalls implements ArrayManualCalls<Call> {
    private static final int FIRST_HANDLE_OFFSET = 0; // in the payload of a call whose first parameter is a handle

    private final Session session;
    private final GuestObjects objects;
    private final GpuBackend backend;
    private final CudaDriver driver;
    private final RegionCopies region;
    private final ArrayCopy copy; // null when the backend has no arrays
    private final MappedParts parts;
    private final CopyWindow rounds;

    ArrayCalls(Session session, RegionCopies region, MappedParts parts) {
        this.parts = parts;
        this.rounds = session.turns().copies();
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend();
        this.driver = backend.driver();
        this.region = region;
        this.copy = backend.arrays() == null ? null : new ArrayCopy(backend.arrays());
    }

    @Override
    public void cuArray3DCreate_v2(Call call, long pHandleId, MemorySegment pAllocateArray) {
        MemorySegment descriptor = stable(pAllocateArray);
        create(call, HandleKind.ARRAY, pHandleId, ArrayShape.of(descriptor, 1),
            out -> driver.cuArray3DCreate_v2(out, descriptor), driver::cuArrayDestroy);
    }

    @Override
    public void cuMipmappedArrayCreate(Call call, long pHandleId, MemorySegment pMipmappedArrayDesc,
        int numMipmapLevels) {
        MemorySegment descriptor = stable(pMipmappedArrayDesc);
        create(call, HandleKind.MIPMAPPED_ARRAY, pHandleId, ArrayShape.of(descriptor, numMipmapLevels),
            out -> driver.cuMipmappedArrayCreate(out, descriptor, numMipmapLevels), driver::cuMipmappedArrayDestroy);
    }

    /** Copies a part of the record, because a deferred call no longer has its record. */
    private static MemorySegment stable(MemorySegment part) {
        return Arena.ofAuto().allocate(part.byteSize(), Long.BYTES).copyFrom(part);
    }

    /**
     * Creates an array. If no memory is left but memory is about to be freed, it waits for that and tries again. CUDA's
     * cuMemFree waits for running work; here it returns at once, so that other threads need not wait.
     */
    private void create(Call call, HandleKind kind, long id, ArrayShape shape, ToIntFunction<MemorySegment> creator,
        LongToIntFunction destroyer) {
        Handle context = objects.owningContext();
        if (context == null || shape == null) {
            call.fail(context == null ? CudaResult.INVALID_CONTEXT : CudaResult.INVALID_VALUE);
            return;
        }
        int result = attempt(call, kind, id, shape, context, creator, destroyer);
        if (result != CudaResult.OUT_OF_MEMORY || !objects.isFreeing()) {
            call.finish(result);
            return;
        }
        call.deferWithoutRecord();
        Runnable again = () -> {
            int entered = objects.isLive(context) ? objects.enter(context) : CudaResult.INVALID_CONTEXT;
            call.finish(entered != 0 ? entered : attempt(call, kind, id, shape, context, creator, destroyer));
        };
        int wait = backend.whenContextReached(context.nativeHandle(), status -> session.completions().add(
            () -> session.gates().whenClosed(again))); // runs after all earlier frees
        if (wait != 0) {
            call.finish(wait);
        }
    }

    private int attempt(Call call, HandleKind kind, long id, ArrayShape shape, Handle context,
        ToIntFunction<MemorySegment> creator, LongToIntFunction destroyer) {
        MemoryQuota.Charge charge = objects.quota().claim(objects.deviceOf(context), shape.chargedBytes());
        if (charge == null) {
            return CudaResult.OUT_OF_MEMORY;
        }
        MemorySegment out = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);
        int result = creator.applyAsInt(out);
        if (result != 0) {
            charge.giveBack();
            return result;
        }
        long array = out.get(ValueLayout.JAVA_LONG, 0);
        objects.register(call, kind, id, array, context, shape);
        if (call.isRejected()) {
            int _ = destroyer.applyAsInt(array);
            charge.giveBack();
        } else {
            Handle made = objects.handles().find(kind, id);
            objects.keepCharge(made, charge);
            if (shape.isMappedLater()) {
                charge.passTo(counted -> {
                    parts.forget(made);
                    counted.run();
                });
            }
        }
        return 0;
    }

    @Override
    public void cuMipmappedArrayGetLevel(Call call, long pLevelArrayId, long hMipmappedArray, int level) {
        Handle mipmap = call.lastObject();
        ArrayShape shape = mipmap.info(ArrayShape.class);
        if (level < 0 || level >= shape.levels()) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = driver.cuMipmappedArrayGetLevel(out, hMipmappedArray, level);
        if (result == 0) {
            objects.register(call, HandleKind.ARRAY, pLevelArrayId, out.get(ValueLayout.JAVA_LONG, 0), mipmap,
                shape.level(level));
        }
        call.finish(result);
    }

    @Override
    public void cuArrayDestroy(Call call, long hArray, long hArrayId) {
        Handle array = call.lastObject();
        if (array.owner().kind() != HandleKind.CONTEXT) {
            call.fail(CudaResult.INVALID_HANDLE); // a level ends with its mipmapped array
            return;
        }
        destroy(call, array, driver::cuArrayDestroy);
    }

    @Override
    public void cuMipmappedArrayDestroy(Call call, long hMipmappedArray, long hMipmappedArrayId) {
        destroy(call, call.lastObject(), driver::cuMipmappedArrayDestroy);
    }

    /**
     * Destroys an array: later copies cannot use it from now on. Its memory is freed when work that may still use it is
     * done.
     */
    private void destroy(Call call, Handle array, LongToIntFunction destroyer) {
        Handle context = array.owner();
        MemoryQuota.Charge charge = objects.takeCharge(array);
        objects.drop(array.kind(), array.id());
        objects.freeBegins();
        Runnable free = () -> session.gates().whenClosed(() -> {
            if (objects.isLive(context)) { // otherwise it ended with its context
                int entered = objects.enter(context);
                session.deferError(entered != 0 ? entered : destroyer.applyAsInt(array.nativeHandle()));
            }
            objects.freeEnds(charge);
        });
        int wait = backend.whenContextReached(context.nativeHandle(), status -> session.completions().add(free));
        if (wait != 0) {
            free.run();
        }
        call.finish(wait);
    }

    /** Whether the array contains this box; if not, this fails the call. */
    private boolean check(Call call, Handle array, ArrayBox box) {
        if (copy == null) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return false;
        }
        if (!array.info(ArrayShape.class).contains(box.xBytes(), box.y(), box.z(), box.widthBytes(), box.rows(),
            box.slices())) {
            call.fail(CudaResult.INVALID_VALUE);
            return false;
        }
        return true;
    }

    @Override
    public void hwsWriteArray(Call call, long array, HwsPosition origin, HwsExtent extent, long hStream,
        MemorySegment data) {
        ArrayBox box = ArrayBox.of(origin, extent);
        if (!check(call, call.lastObject(), box)) {
            return;
        }
        if (box.isEmpty()) {
            call.finish(0);
            return;
        }
        rounds.issued(Direction.TO_DEVICE, box.bytes(), call.lastStream());
        MemorySegment stays = session.work().stabilise(call, call.lastStream(), data);
        call.finish(stays == null ? CudaResult.OUT_OF_MEMORY : copy.withMemory(true, array, box,
            CUmemorytype.CU_MEMORYTYPE_HOST, stays.address(), box.widthBytes(), box.widthBytes() * box.rows(),
            hStream));
    }

    @Override
    public void hwsReadArray(Call call, long array, HwsPosition origin, HwsExtent extent, long hStream) {
        ArrayBox box = ArrayBox.of(origin, extent);
        if (!check(call, call.lastObject(), box)) {
            return;
        }
        Handle named = call.lastObject();
        StreamState stream = call.lastStream();
        rounds.issued(Direction.TO_HOST, box.bytes(), stream);
        session.work().read(call, stream, box.isEmpty() ? 0 : box.bytes(), RecordLayout.MAX_BULK_BYTES,
            (destination, offset, through) -> box.copy(offset, destination.byteSize(),
                (part, at) -> {
                    if (through == stream.stream()) { // one piece may need several operations
                        session.work().issued(stream, 1);
                    }
                    return readPart(named, part, destination.address() + at - offset, through);
                }));
    }

    /** A long read continues after its call was served, so the array may be destroyed by then. */
    private int readPart(Handle array, ArrayBox part, long address, long stream) {
        if (objects.handles().find(HandleKind.ARRAY, array.id()) != array) {
            return CudaResult.INVALID_HANDLE;
        }
        return copy.withMemory(false, array.nativeHandle(), part, CUmemorytype.CU_MEMORYTYPE_HOST, address,
            part.widthBytes(), part.widthBytes() * part.rows(), stream);
    }

    @Override
    public void hwsWriteArrayShared(Call call, long array, HwsPosition origin, HwsExtent extent, long hStream,
        HwsRegionPlace host, int chunk) {
        copyShared(call, true, array, origin, extent, hStream, host, chunk);
    }

    @Override
    public void hwsReadArrayShared(Call call, long array, HwsPosition origin, HwsExtent extent, long hStream,
        HwsRegionPlace host, int chunk) {
        copyShared(call, false, array, origin, extent, hStream, host, chunk);
    }

    private void copyShared(Call call, boolean toArray, long array, HwsPosition origin, HwsExtent extent, long stream,
        HwsRegionPlace host, int chunk) {
        ArrayBox box = ArrayBox.of(origin, extent);
        long spanBytes = RegionCopies.spanBytes(host, extent);
        if (check(call, call.lastObject(), box) && region.allows(call, host.offset(), spanBytes, chunk)) {
            rounds.issued(Direction.of(toArray), box.bytes(), call.lastStream());
            region.settle(call, chunk, host.offset(), toArray ? 0 : spanBytes,
                box.isEmpty() ? 0 : copy.withMemory(toArray, array, box,
                    CUmemorytype.CU_MEMORYTYPE_HOST, region.bytes(host.offset(), spanBytes, chunk).address(),
                    host.pitch(),
                    host.slicePitch(), stream));
        }
    }

    @Override
    public void hwsDeviceToArray(Call call, long array, HwsPosition origin, HwsExtent extent, HwsDevicePlace place,
        long hStream) {
        copyOnDevice(call, true, array, ArrayBox.of(origin, extent), Box.of(place, extent), hStream);
    }

    @Override
    public void hwsArrayToDevice(Call call, long array, HwsPosition origin, HwsExtent extent, HwsDevicePlace place,
        long hStream) {
        copyOnDevice(call, false, array, ArrayBox.of(origin, extent), Box.of(place, extent), hStream);
    }

    private void copyOnDevice(Call call, boolean toArray, long array, ArrayBox box, Box device, long stream) {
        if (!check(call, call.lastObject(), box) || !CopyCalls.check(call, device)) {
            return;
        }
        call.finish(box.isEmpty() ? 0 : copy.withMemory(toArray, array, box, CUmemorytype.CU_MEMORYTYPE_DEVICE,
            device.start(), device.pitch(), device.slicePitch(), stream));
    }

    @Override
    public void hwsArrayToArray(Call call, long dstArray, HwsPosition dstOrigin, long srcArray, HwsPosition srcOrigin,
        HwsExtent extent, long hStream) {
        Handle destination = objects.handles().find(HandleKind.ARRAY, call.in().i64(FIRST_HANDLE_OFFSET));
        ArrayBox to = ArrayBox.of(dstOrigin, extent);
        ArrayBox from = ArrayBox.of(srcOrigin, extent);
        if (check(call, destination, to) && check(call, call.lastObject(), from)) {
            call.finish(to.isEmpty() ? 0 : copy.withArray(dstArray, to, srcArray, from, hStream));
        }
    }
}
