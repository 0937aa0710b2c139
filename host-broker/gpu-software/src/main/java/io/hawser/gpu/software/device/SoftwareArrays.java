package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.backend.ArrayBackend;
import io.hawser.cuda.generated.CUDA_MEMCPY3D;
import io.hawser.cuda.generated.CUmemorytype;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/** CUDA arrays of the software GPU, and their copies. Decoder's thread only. */
final class SoftwareArrays implements ArrayBackend {
    /** Copies up to this size run on the issuing thread when they have no predecessors. */
    private static final long INLINE_COPY_BYTES = 64 << 10;

    private final Device device;
    private final SoftwareTextures textures;

    /** A mipmapped array: the handles of its levels, the largest first. */
    record Mipmap(List<Long> levels) {}

    /** One side of a copy: its memory and the pitches in it. */
    private record Side(MemorySegment memory, long pitch, long slicePitch) {}

    SoftwareArrays(Device device) {
        this.device = device;
        this.textures = new SoftwareTextures(device);
    }

    int create(MemorySegment out, MemorySegment descriptor) {
        if (ArrayMemory.isMappedLater(descriptor)) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        ArrayMemory shape = ArrayMemory.of(descriptor);
        int check = shape == null ? CUDA_ERROR_INVALID_VALUE : device.check();
        if (check == CUDA_SUCCESS) {
            long handle = allocate(shape);
            check = handle == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
            out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, handle);
        }
        return check;
    }

    private long allocate(ArrayMemory shape) {
        long address = device.allocate(shape.bytes());
        if (address == 0) {
            return 0;
        }
        device.ownAllocation(address);
        return device.handles.add(shape.at(address));
    }

    int destroy(long handle) {
        ArrayMemory array = device.handles.get(handle, ArrayMemory.class);
        int check = array == null ? CUDA_ERROR_INVALID_HANDLE : device.check();
        if (check == CUDA_SUCCESS) {
            device.handles.remove(handle);
            device.disownAllocation(array.address());
            device.freeAfterAll(array.address());
        }
        return check;
    }

    int createMipmapped(MemorySegment out, MemorySegment descriptor, int levels) {
        if (ArrayMemory.isMappedLater(descriptor)) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        ArrayMemory shape = ArrayMemory.of(descriptor);
        int check = shape == null || levels < 1 ? CUDA_ERROR_INVALID_VALUE : device.check();
        if (check != CUDA_SUCCESS) {
            return check;
        }
        List<Long> handles = new ArrayList<>();
        int most = shape.levels();
        for (int level = 0; level < Math.min(levels, most); level++) {
            long handle = allocate(shape.level(level));
            if (handle == 0) {
                handles.forEach(this::destroy);
                return CUDA_ERROR_OUT_OF_MEMORY;
            }
            handles.add(handle);
        }
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, device.handles.add(new Mipmap(handles)));
        return CUDA_SUCCESS;
    }

    int level(MemorySegment out, long handle, int level) {
        Mipmap mipmap = device.handles.get(handle, Mipmap.class);
        if (mipmap == null || level < 0 || level >= mipmap.levels.size()) {
            return mipmap == null ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
        }
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, mipmap.levels.get(level));
        return CUDA_SUCCESS;
    }

    int destroyMipmapped(long handle) {
        Mipmap mipmap = device.handles.get(handle, Mipmap.class);
        int check = mipmap == null ? CUDA_ERROR_INVALID_HANDLE : device.check();
        if (check == CUDA_SUCCESS) {
            mipmap.levels.forEach(this::destroy);
            device.handles.remove(handle);
        }
        return check;
    }

    @Override
    public int copy(MemorySegment copy, long streamHandle) {
        Stream stream = device.stream(streamHandle);
        int check = device.check(stream);
        if (check != CUDA_SUCCESS) {
            return check;
        }
        long width = field(copy, CUDA_MEMCPY3D.WIDTH_IN_BYTES_OFFSET);
        long rows = field(copy, CUDA_MEMCPY3D.HEIGHT_OFFSET);
        long slices = field(copy, CUDA_MEMCPY3D.DEPTH_OFFSET);
        Side from = side(copy, CUDA_MEMCPY3D.SRC_XIN_BYTES_OFFSET, width, rows, slices);
        Side to = side(copy, CUDA_MEMCPY3D.DST_XIN_BYTES_OFFSET, width, rows, slices);
        if (from == null || to == null) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        Context context = stream.context;
        context.issue(stream, () -> {
            if (context.error() == 0) {
                copyRows(to, from, width, rows, slices);
            }
        }, width * rows * slices <= INLINE_COPY_BYTES);
        return CUDA_SUCCESS;
    }

    private static long field(MemorySegment copy, long offset) {
        return copy.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }

    /** One side of CUDA_MEMCPY3D; both sides order their fields alike. Null when the box exceeds the side's memory. */
    private Side side(MemorySegment copy, long first, long width, long rows, long slices) {
        long at = first - CUDA_MEMCPY3D.SRC_XIN_BYTES_OFFSET;
        long x = field(copy, first);
        long y = field(copy, at + CUDA_MEMCPY3D.SRC_Y_OFFSET);
        long z = field(copy, at + CUDA_MEMCPY3D.SRC_Z_OFFSET);
        int type = copy.get(ValueLayout.JAVA_INT_UNALIGNED, at + CUDA_MEMCPY3D.SRC_MEMORY_TYPE_OFFSET);
        if (type == CUmemorytype.CU_MEMORYTYPE_ARRAY) {
            ArrayMemory array = device.handles.get(field(copy, at + CUDA_MEMCPY3D.SRC_ARRAY_OFFSET), ArrayMemory.class);
            boolean fits = array != null && isWithin(x, width, array.rowBytes()) && isWithin(y, rows, array.rows())
                && isWithin(z, slices, array.slices());
            if (!fits) {
                return null;
            }
            long slicePitch = array.rowBytes() * array.rows();
            long offset = z * slicePitch + y * array.rowBytes() + x;
            long span = (slices - 1) * slicePitch + (rows - 1) * array.rowBytes() + width;
            return new Side(device.memory.arena().slice(array.address() + offset, span), array.rowBytes(), slicePitch);
        }
        // The worker passes the first byte of the box and has checked its numbers.
        long pitch = field(copy, at + CUDA_MEMCPY3D.SRC_PITCH_OFFSET);
        long slicePitch = pitch * field(copy, at + CUDA_MEMCPY3D.SRC_HEIGHT_OFFSET);
        long span = (slices - 1) * slicePitch + (rows - 1) * pitch + width;
        if (type == CUmemorytype.CU_MEMORYTYPE_HOST) {
            long address = field(copy, at + CUDA_MEMCPY3D.SRC_HOST_OFFSET);
            return new Side(MemorySegment.ofAddress(address).reinterpret(span), pitch, slicePitch);
        }
        long address = field(copy, at + CUDA_MEMCPY3D.SRC_DEVICE_OFFSET);
        return device.memory.arena().isAllocated(address, span)
            ? new Side(device.memory.arena().slice(address, span), pitch, slicePitch) : null;
    }

    static boolean isWithin(long first, long count, long limit) {
        return first >= 0 && count >= 1 && count <= limit && first <= limit - count;
    }

    private static void copyRows(Side to, Side from, long width, long rows, long slices) {
        for (long slice = 0; slice < slices; slice++) {
            for (long row = 0; row < rows; row++) {
                MemorySegment.copy(from.memory, slice * from.slicePitch + row * from.pitch, to.memory,
                    slice * to.slicePitch + row * to.pitch, width);
            }
        }
    }

    @Override
    public int createTexture(MemorySegment out, MemorySegment resource, MemorySegment texture, MemorySegment view) {
        return textures.create(out, resource, texture, view);
    }

    @Override
    public int createSurface(MemorySegment out, MemorySegment resource) {
        return textures.createSurface(out, resource);
    }

    int destroyObject(long number) {
        return textures.destroy(number);
    }
}
