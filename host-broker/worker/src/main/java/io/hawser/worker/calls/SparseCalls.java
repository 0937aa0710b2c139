package io.hawser.worker.calls;

import io.hawser.cuda.backend.ArrayBackend;
import io.hawser.cuda.generated.CUarrayMapInfo;
import io.hawser.cuda.generated.CUarraySparseSubresourceType;
import io.hawser.cuda.generated.CUmemOperationType;
import io.hawser.cuda.generated.CUresourcetype;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsArrayPart;
import io.hawser.cuda.generated.SparseManualCalls;
import io.hawser.worker.session.ArrayShape;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/** Memory of sparse arrays and of arrays with deferred mapping. Session thread. */
final class SparseCalls implements SparseManualCalls<Call> {
    private static final int FIRST_HANDLE_OFFSET = 0; // in the payload of a call whose first parameter is a handle

    private final GuestObjects objects;
    private final ArrayBackend backend; // null when the backend has no arrays
    private final MappedParts parts;
    private final ContextWaits waits;

    SparseCalls(Session session, MappedParts parts) {
        this.objects = session.objects();
        this.backend = session.backend().arrays();
        this.parts = parts;
        this.waits = new ContextWaits(session);
    }

    @Override
    public void hwsArrayMap(Call call, long array, long memory, HwsArrayPart part, long hStream) {
        change(call, first(call, HandleKind.ARRAY), call.lastObject(), part, hStream);
    }

    @Override
    public void hwsArrayUnmap(Call call, long array, HwsArrayPart part, long hStream) {
        change(call, call.lastObject(), null, part, hStream);
    }

    @Override
    public void hwsMipmapMap(Call call, long mipmap, long memory, HwsArrayPart part, long hStream) {
        change(call, first(call, HandleKind.MIPMAPPED_ARRAY), call.lastObject(), part, hStream);
    }

    @Override
    public void hwsMipmapUnmap(Call call, long mipmap, HwsArrayPart part, long hStream) {
        change(call, call.lastObject(), null, part, hStream);
    }

    private Handle first(Call call, HandleKind kind) {
        return objects.handles().find(kind, call.in().i64(FIRST_HANDLE_OFFSET));
    }

    /** Maps memory onto a part of an array in stream order, or unmaps the part if there is none. */
    private void change(Call call, Handle array, Handle memory, HwsArrayPart part, long stream) {
        ArrayShape shape = array.info(ArrayShape.class);
        ArrayPart changed = ArrayPart.of(shape, part);
        Allocation allocation = memory == null ? null : memory.info(Allocation.class);
        // A level's memory is its mipmapped array's.
        if (!shape.isMappedLater() || array.owner().kind() != HandleKind.CONTEXT || changed == null
            || allocation != null && (part.memoryOffset() < 0 || part.memoryOffset() >= allocation.bytes)) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        if (backend == null || !parts.hasRoom()) {
            call.fail(backend == null ? CudaResult.NOT_SUPPORTED : CudaResult.OUT_OF_MEMORY);
            return;
        }
        int result;
        try (Arena arena = Arena.ofConfined()) {
            result = backend.mapMemory(describe(arena, array, memory, part), stream);
        }
        List<Runnable> unused = result != 0 ? List.of()
            : memory == null ? parts.unmap(array, changed) : parts.map(array, changed, allocation);
        if (unused.isEmpty()) {
            call.finish(result);
        } else {
            waits.run(call, () -> {
                unused.forEach(Runnable::run);
                call.finish(result);
            });
        }
    }

    private MemorySegment describe(Arena arena, Handle array, Handle memory, HwsArrayPart part) {
        MemorySegment info = arena.allocate(CUarrayMapInfo.BYTES, Long.BYTES);
        boolean isTail = part.tail() == CUarraySparseSubresourceType.CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
        info.set(ValueLayout.JAVA_INT, CUarrayMapInfo.RESOURCE_TYPE_OFFSET, array.kind() == HandleKind.ARRAY
            ? CUresourcetype.CU_RESOURCE_TYPE_ARRAY : CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
        info.set(ValueLayout.JAVA_LONG, CUarrayMapInfo.RESOURCE_OFFSET, array.nativeHandle());
        info.set(ValueLayout.JAVA_INT, CUarrayMapInfo.SUBRESOURCE_TYPE_OFFSET, (int) part.tail());
        if (isTail) {
            info.set(ValueLayout.JAVA_INT, CUarrayMapInfo.SUBRESOURCE_MIPTAIL_LAYER_OFFSET, (int) part.layer());
            info.set(ValueLayout.JAVA_LONG, CUarrayMapInfo.SUBRESOURCE_MIPTAIL_OFFSET_OFFSET, part.x());
            info.set(ValueLayout.JAVA_LONG, CUarrayMapInfo.SUBRESOURCE_MIPTAIL_SIZE_OFFSET, part.width());
        } else {
            long[] numbers = {part.level(), part.layer(), part.x(), part.y(), part.z(), part.width(), part.height(),
                part.depth()};
            for (int i = 0; i < numbers.length; i++) {
                info.set(ValueLayout.JAVA_INT, CUarrayMapInfo.SUBRESOURCE_OFFSET + (long) i * Integer.BYTES,
                    (int) numbers[i]);
            }
        }
        info.set(ValueLayout.JAVA_INT, CUarrayMapInfo.MEM_OPERATION_TYPE_OFFSET, memory == null
            ? CUmemOperationType.CU_MEM_OPERATION_TYPE_UNMAP : CUmemOperationType.CU_MEM_OPERATION_TYPE_MAP);
        info.set(ValueLayout.JAVA_LONG, CUarrayMapInfo.MEM_HANDLE_OFFSET, memory == null ? 0 : memory.nativeHandle());
        info.set(ValueLayout.JAVA_LONG, CUarrayMapInfo.OFFSET_OFFSET, memory == null ? 0 : part.memoryOffset());
        info.set(ValueLayout.JAVA_INT, CUarrayMapInfo.DEVICE_BIT_MASK_OFFSET, 1 << objects.deviceOf(array.owner()));
        return info;
    }
}
