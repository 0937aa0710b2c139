package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM;
import static io.hawser.cuda.generated.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM;
import static io.hawser.cuda.generated.CUresult.CUDA_ERROR_INVALID_VALUE;

import io.hawser.cuda.backend.GreenContexts;
import io.hawser.cuda.generated.CUdevResource;
import io.hawser.cuda.generated.CUdevSmResource;
import io.hawser.cuda.generated.CudaGreenNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Green contexts of the driver. Session thread, except {@link #home}. */
final class NvidiaGreenContexts implements GreenContexts {
    private static final int MAX_GROUPS = 1024; // of a guest's request; no GPU has so many multiprocessors

    /** Learns of a new green context. */
    interface Listener {
        void created(long context, long primary);
    }

    private static MemorySegment resources(Arena arena, int count) {
        return arena.allocate(CUdevResource.BYTES * (long) count, Long.BYTES);
    }

    /** The resource at an index. */
    private static MemorySegment at(MemorySegment resources, int index) {
        return resources.asSlice(CUdevResource.BYTES * (long) index, CUdevResource.BYTES);
    }

    private record Green(long handle, long primary) {}

    private final Listener listener;
    private final Map<Long, Green> greens = new ConcurrentHashMap<>(); // by context

    NvidiaGreenContexts(Listener listener) {
        this.listener = listener;
    }

    /** The primary context of a green context; any other context itself. Any thread. */
    long home(long context) {
        Green green = greens.get(context);
        return green == null ? context : green.primary;
    }

    boolean has(long context) {
        return greens.containsKey(context);
    }

    /** Destroys a green context without streams. */
    int destroy(long context) {
        return CudaGreenNative.cuGreenCtxDestroy(greens.remove(context).handle);
    }

    @Override
    public int resource(Whole whole, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment resource = resources(arena, 1);
            int result = get(whole, resource);
            copySm(resource, out);
            return result;
        }
    }

    private int get(Whole whole, MemorySegment out) {
        return whole.context() == 0
            ? CudaGreenNative.cuDeviceGetDevResource(whole.device(), out, CU_DEV_RESOURCE_TYPE_SM)
            : CudaGreenNative.cuGreenCtxGetDevResource(greens.get(whole.context()).handle, out,
                CU_DEV_RESOURCE_TYPE_SM);
    }

    private static void copySm(MemorySegment resource, MemorySegment out) {
        out.copyFrom(resource.asSlice(CUdevResource.SM_OFFSET, CUdevSmResource.BYTES));
    }

    /** The result of a split: groups, followed by the rest. */
    private record Groups(int count, MemorySegment parts, int result) {
        static Groups failed(int result) {
            return new Groups(0, MemorySegment.NULL, result);
        }

        MemorySegment part(int index) {
            return at(parts, index);
        }
    }

    private Groups divide(Split split, MemorySegment whole, Arena arena) {
        MemorySegment number = arena.allocate(ValueLayout.JAVA_INT);
        int result = CudaGreenNative.cuDevSmResourceSplitByCount(MemorySegment.NULL, number, whole, MemorySegment.NULL,
            split.flags(), split.minCount());
        int possible = Math.clamp(Integer.toUnsignedLong(number.get(ValueLayout.JAVA_INT, 0)), 0, MAX_GROUPS);
        if (result != 0 || possible == 0) {
            return Groups.failed(result == 0 ? CUDA_ERROR_INVALID_VALUE : result);
        }
        int count = split.groups() == 0 ? possible
            : (int) Math.min(possible, Integer.toUnsignedLong(split.groups()));
        MemorySegment parts = resources(arena, count + 1);
        number.set(ValueLayout.JAVA_INT, 0, count);
        result = CudaGreenNative.cuDevSmResourceSplitByCount(parts, number, whole,
            at(parts, count), split.flags(), split.minCount());
        return number.get(ValueLayout.JAVA_INT, 0) == count || result != 0 ? new Groups(count, parts, result)
            : Groups.failed(CUDA_ERROR_INVALID_VALUE);
    }

    @Override
    public int split(Split split, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment whole = resources(arena, 1);
            int result = get(split.whole(), whole);
            Groups groups = result != 0 ? Groups.failed(result) : divide(split, whole, arena);
            if (groups.result == 0) {
                MemorySegment rest = groups.part(groups.count);
                copySm(groups.part(0), out.asSlice(0, CUdevSmResource.BYTES));
                copySm(rest, out.asSlice(CUdevSmResource.BYTES, CUdevSmResource.BYTES));
                if (rest.get(ValueLayout.JAVA_INT, CUdevResource.TYPE_OFFSET) != CU_DEV_RESOURCE_TYPE_SM) {
                    out.asSlice(CUdevSmResource.BYTES, CUdevSmResource.BYTES).fill((byte) 0);
                }
                out.set(ValueLayout.JAVA_INT, 2 * CUdevSmResource.BYTES, groups.count);
            }
            return groups.result;
        }
    }

    @Override
    public int create(long primary, Split split, int[] parts, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment chosen = resources(arena, Math.max(1, parts.length));
            MemorySegment whole = parts.length == 0 ? chosen : resources(arena, 1);
            int result = get(split.whole(), whole);
            if (result == 0 && parts.length > 0) {
                result = choose(divide(split, whole, arena), split.groups(), parts, chosen);
            }
            return result != 0 ? result : create(primary, split.whole().device(), chosen, Math.max(1, parts.length),
                arena, out);
        }
    }

    private static int choose(Groups groups, int expected, int[] parts, MemorySegment chosen) {
        if (groups.result != 0 || groups.count != expected) {
            return groups.result != 0 ? groups.result : CUDA_ERROR_INVALID_VALUE;
        }
        for (int i = 0; i < parts.length; i++) {
            if (parts[i] < 0 || parts[i] > groups.count) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            at(chosen, i).copyFrom(groups.part(parts[i]));
        }
        return 0;
    }

    private int create(long primary, int device, MemorySegment resources, int count, Arena arena, MemorySegment out) {
        MemorySegment made = arena.allocate(ValueLayout.JAVA_LONG);
        int result = CudaGreenNative.cuDevResourceGenerateDesc(made, resources, count);
        if (result != 0) {
            return result;
        }
        result = CudaGreenNative.cuGreenCtxCreate(made, made.get(ValueLayout.JAVA_LONG, 0), device,
            CU_GREEN_CTX_DEFAULT_STREAM);
        if (result != 0) {
            return result;
        }
        long handle = made.get(ValueLayout.JAVA_LONG, 0);
        result = CudaGreenNative.cuCtxFromGreenCtx(out, handle);
        if (result != 0) {
            CudaGreenNative.cuGreenCtxDestroy(handle);
            return result;
        }
        long context = out.get(ValueLayout.JAVA_LONG, 0);
        greens.put(context, new Green(handle, primary));
        listener.created(context, primary);
        return 0;
    }
}
