package io.hawser.worker.calls;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.backend.ArrayBackend;
import io.hawser.cuda.generated.CUDA_RESOURCE_DESC;
import io.hawser.cuda.generated.CUresourcetype;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.HwsResource;
import io.hawser.cuda.generated.TextureManualCalls;
import io.hawser.cuda.generated.TextureReplies;
import io.hawser.worker.session.ArrayShape;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongToIntFunction;

/**
 * Texture and surface objects. The guest gets the backend's own numbers, which belong to a context. A guest can destroy
 * only objects that its session has created. Session thread.
 */
final class TextureCalls implements TextureManualCalls<Call> {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final int MAX_OBJECTS = 1 << 20; // of both kinds; each costs memory here and in the backend

    private enum Kind { TEXTURE, SURFACE }

    private record ObjectKey(Kind kind, long number) {}

    private final GuestObjects objects;
    private final ArrayBackend backend; // null when the backend has no arrays
    private final CudaDriver driver;
    private final Map<Handle, Map<ObjectKey, Boolean>> live = new HashMap<>(); // by context
    private int count;

    TextureCalls(Session session) {
        this.objects = session.objects();
        this.backend = session.backend().arrays();
        this.driver = session.backend().driver();
    }

    @Override
    public void hwsTextureCreate(Call call, long array, long mipmappedArray, MemorySegment resource,
        MemorySegment texture, int hasView, MemorySegment view) {
        MemorySegment descriptor = call.scratch(CUDA_RESOURCE_DESC.BYTES);
        if (!canCreate(call) || !fill(call, descriptor, array, mipmappedArray, resource)) {
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = backend.createTexture(out, descriptor, aligned(call, texture),
            hasView == 0 ? MemorySegment.NULL : aligned(call, view));
        if (result == 0) {
            TextureReplies.hwsTextureCreate(call.reply(), enter(Kind.TEXTURE, out));
        }
        call.finish(result);
    }

    @Override
    public void hwsSurfaceCreate(Call call, long array) {
        MemorySegment descriptor = call.scratch(CUDA_RESOURCE_DESC.BYTES);
        if (!canCreate(call)) {
            return;
        }
        descriptor.set(INT, CUDA_RESOURCE_DESC.RES_TYPE_OFFSET, CUresourcetype.CU_RESOURCE_TYPE_ARRAY);
        descriptor.set(LONG, CUDA_RESOURCE_DESC.RES_ARRAY_H_ARRAY_OFFSET, array);
        MemorySegment out = call.scratch(Long.BYTES);
        int result = backend.createSurface(out, descriptor);
        if (result == 0) {
            TextureReplies.hwsSurfaceCreate(call.reply(), enter(Kind.SURFACE, out));
        }
        call.finish(result);
    }

    @Override
    public void cuTexObjectDestroy(Call call, long texObject) {
        destroy(call, new ObjectKey(Kind.TEXTURE, texObject), driver::cuTexObjectDestroy);
    }

    @Override
    public void cuSurfObjectDestroy(Call call, long surfObject) {
        destroy(call, new ObjectKey(Kind.SURFACE, surfObject), driver::cuSurfObjectDestroy);
    }

    private void destroy(Call call, ObjectKey key, LongToIntFunction destroyer) {
        Map<ObjectKey, Boolean> own = live.get(objects.owningContext());
        if (own == null || own.remove(key) == null) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        count--;
        call.finish(destroyer.applyAsInt(key.number()));
    }

    /** Whether another object may be created; if not, this fails the call. */
    private boolean canCreate(Call call) {
        if (objects.owningContext() == null || backend == null) {
            call.fail(backend == null ? CudaResult.NOT_SUPPORTED : CudaResult.INVALID_CONTEXT);
            return false;
        }
        live.keySet().removeIf(context -> {
            boolean isGone = !objects.isLive(context); // its objects ended with it
            count -= isGone ? live.get(context).size() : 0;
            return isGone;
        });
        if (count >= MAX_OBJECTS) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return false;
        }
        return true;
    }

    private long enter(Kind kind, MemorySegment out) {
        long number = out.get(ValueLayout.JAVA_LONG, 0);
        live.computeIfAbsent(objects.owningContext(), context -> new HashMap<>())
            .put(new ObjectKey(kind, number), true);
        count++;
        return number;
    }

    private static MemorySegment aligned(Call call, MemorySegment part) {
        return call.scratch(part.byteSize()).copyFrom(part);
    }

    /** Fills in the backend's structure from checked values; on failure it fails the call. */
    private static boolean fill(Call call, MemorySegment descriptor, long array, long mipmappedArray,
        MemorySegment resource) {
        int type = resource.get(INT, HwsResource.RES_TYPE_OFFSET);
        descriptor.set(INT, CUDA_RESOURCE_DESC.RES_TYPE_OFFSET, type);
        return switch (type) {
            case CUresourcetype.CU_RESOURCE_TYPE_ARRAY -> {
                descriptor.set(LONG, CUDA_RESOURCE_DESC.RES_ARRAY_H_ARRAY_OFFSET, array);
                yield require(call, array != 0 && mipmappedArray == 0);
            }
            case CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY -> {
                descriptor.set(LONG, CUDA_RESOURCE_DESC.RES_MIPMAP_H_MIPMAPPED_ARRAY_OFFSET, mipmappedArray);
                yield require(call, mipmappedArray != 0 && array == 0);
            }
            case CUresourcetype.CU_RESOURCE_TYPE_LINEAR, CUresourcetype.CU_RESOURCE_TYPE_PITCH2D ->
                require(call, array == 0 && mipmappedArray == 0) && fillMemory(call, descriptor, type, resource);
            default -> require(call, false);
        };
    }

    private static boolean require(Call call, boolean condition) {
        if (!condition) {
            call.fail(CudaResult.INVALID_VALUE);
        }
        return condition;
    }

    private static boolean fillMemory(Call call, MemorySegment descriptor, int type, MemorySegment resource) {
        int format = resource.get(INT, HwsResource.FORMAT_OFFSET);
        int channels = resource.get(INT, HwsResource.NUM_CHANNELS_OFFSET);
        long address = resource.get(LONG, HwsResource.DEV_PTR_OFFSET);
        long width = resource.get(LONG, HwsResource.WIDTH_OFFSET);
        long height = resource.get(LONG, HwsResource.HEIGHT_OFFSET);
        long pitch = resource.get(LONG, HwsResource.PITCH_IN_BYTES_OFFSET);
        int elementBytes = ArrayShape.elementBytes(format, channels);
        if (type == CUresourcetype.CU_RESOURCE_TYPE_LINEAR) {
            descriptor.set(LONG, CUDA_RESOURCE_DESC.RES_LINEAR_DEV_PTR_OFFSET, address);
            descriptor.set(INT, CUDA_RESOURCE_DESC.RES_LINEAR_FORMAT_OFFSET, format);
            descriptor.set(INT, CUDA_RESOURCE_DESC.RES_LINEAR_NUM_CHANNELS_OFFSET, channels);
            descriptor.set(LONG, CUDA_RESOURCE_DESC.RES_LINEAR_SIZE_IN_BYTES_OFFSET, width);
            return require(call, elementBytes != 0) && call.checkDevice(address, width);
        }
        long rowBytes = Sizes.multiply(width, elementBytes);
        descriptor.set(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_DEV_PTR_OFFSET, address);
        descriptor.set(INT, CUDA_RESOURCE_DESC.RES_PITCH2_D_FORMAT_OFFSET, format);
        descriptor.set(INT, CUDA_RESOURCE_DESC.RES_PITCH2_D_NUM_CHANNELS_OFFSET, channels);
        descriptor.set(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_WIDTH_OFFSET, width);
        descriptor.set(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_HEIGHT_OFFSET, height);
        descriptor.set(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_PITCH_IN_BYTES_OFFSET, pitch);
        return require(call, elementBytes != 0 && width > 0 && height > 0 && rowBytes <= pitch)
            && call.checkDevice(address, Sizes.box(pitch, height, rowBytes));
    }
}
