package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.hawser.cuda.generated.CUDA_ARRAY3D_DESCRIPTOR;
import io.hawser.cuda.generated.CUDA_MEMCPY3D;
import io.hawser.cuda.generated.CUarray_format;
import io.hawser.cuda.generated.CUmemorytype;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SoftwareArraysTest {
    private static final int LAYERED = ArrayMemory.LAYERED;
    private static final int CUBEMAP = ArrayMemory.CUBEMAP;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64);
    private SoftwareBackend backend;
    private long context;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(64 << 20, 2);
        context = context();
    }

    private long context() {
        assertEquals(CUDA_SUCCESS, backend.createContext(0, 0, true, out));
        long made = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.setCurrent(made));
        return made;
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    private MemorySegment descriptor(long width, long height, long depth, int flags) {
        MemorySegment descriptor = arena.allocate(CUDA_ARRAY3D_DESCRIPTOR.BYTES, 8);
        descriptor.set(ValueLayout.JAVA_LONG, CUDA_ARRAY3D_DESCRIPTOR.WIDTH_OFFSET, width);
        descriptor.set(ValueLayout.JAVA_LONG, CUDA_ARRAY3D_DESCRIPTOR.HEIGHT_OFFSET, height);
        descriptor.set(ValueLayout.JAVA_LONG, CUDA_ARRAY3D_DESCRIPTOR.DEPTH_OFFSET, depth);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.FORMAT_OFFSET, CUarray_format.CU_AD_FORMAT_FLOAT);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.NUM_CHANNELS_OFFSET, 1);
        descriptor.set(ValueLayout.JAVA_INT, CUDA_ARRAY3D_DESCRIPTOR.FLAGS_OFFSET, flags);
        return descriptor;
    }

    private int create(long width, long height, long depth, int flags) {
        return backend.driver().cuArray3DCreate_v2(out, descriptor(width, height, depth, flags));
    }

    private long freeBytes() {
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemGetInfo_v2(out, out.asSlice(8)));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    @Test
    void shouldTakeTheShapesThatCudaTakes() {
        assertEquals(CUDA_SUCCESS, create(131072, 0, 0, 0));
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(131073, 0, 0, 0));
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(0, 0, 0, 0));
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(16, 0, 4, 0), "a volume has rows");
        assertEquals(CUDA_SUCCESS, create(16, 0, 4, LAYERED));
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(16, 8, 0, LAYERED), "no layer");
        assertEquals(CUDA_SUCCESS, create(8, 8, 6, CUBEMAP));
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(8, 4, 6, CUBEMAP));
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(8, 8, 5, CUBEMAP));
        assertEquals(CUDA_SUCCESS, create(8, 8, 12, CUBEMAP | LAYERED));
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(16, 8, 2, ArrayMemory.TEXTURE_GATHER));
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(16, 8, 0, 0x20));
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(16384, 16384, 16385, 0));
        assertEquals(CUDA_ERROR_OUT_OF_MEMORY, create(16384, 16384, 16384, 0));
    }

    @Test
    void shouldGiveMemoryBackWithArrayAndWithContext() {
        long before = freeBytes();
        assertEquals(CUDA_SUCCESS, create(1024, 1024, 0, 0));
        long array = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(before - (4 << 20), freeBytes());
        assertEquals(CUDA_SUCCESS, backend.driver().cuArrayDestroy(array));
        assertEquals(CUDA_ERROR_INVALID_HANDLE, backend.driver().cuArrayDestroy(array));
        assertEquals(before, freeBytes());
        assertEquals(CUDA_SUCCESS, backend.driver().cuMipmappedArrayCreate(out, descriptor(64, 32, 0, 0), 3));
        long mipmap = out.get(ValueLayout.JAVA_LONG, 0);
        assertNotEquals(before, freeBytes());
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.driver().cuMipmappedArrayGetLevel(out, mipmap, 3));
        assertEquals(CUDA_SUCCESS, backend.driver().cuMipmappedArrayDestroy(mipmap));
        assertEquals(before, freeBytes());
        assertEquals(CUDA_SUCCESS, create(1024, 1024, 0, 0));
        assertEquals(CUDA_SUCCESS, backend.destroyContext(context));
        context();
        assertEquals(before, freeBytes());
    }

    @Test
    void shouldCopyOnlyWhatLiesInTheArrayAndInDeviceMemory() {
        assertEquals(CUDA_SUCCESS, create(16, 4, 2, 0));
        long array = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemAlloc_v2(out, 512));
        long memory = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(CUDA_SUCCESS, copy(array, 0, 0, 0, memory, 64, 4, 64, 4, 2));
        assertEquals(CUDA_SUCCESS, copy(array, 4, 1, 1, memory, 64, 4, 60, 3, 1));
        assertEquals(CUDA_ERROR_INVALID_VALUE, copy(array, 4, 0, 0, memory, 64, 4, 64, 1, 1));
        assertEquals(CUDA_ERROR_INVALID_VALUE, copy(array, 0, 2, 0, memory, 64, 4, 64, 3, 1));
        assertEquals(CUDA_ERROR_INVALID_VALUE, copy(array, 0, 0, 2, memory, 64, 4, 64, 1, 1));
        assertEquals(CUDA_ERROR_INVALID_VALUE, copy(array + 1, 0, 0, 0, memory, 64, 4, 64, 1, 1));
        assertEquals(CUDA_ERROR_INVALID_VALUE, copy(array, 0, 0, 0, memory, 512, 4, 64, 2, 1), "behind the memory");
    }

    private int copy(long array, long x, long y, long z, long memory, long pitch, long height, long width, long rows,
        long slices) {
        MemorySegment copy = arena.allocate(CUDA_MEMCPY3D.BYTES, 8);
        copy.set(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.DST_MEMORY_TYPE_OFFSET, CUmemorytype.CU_MEMORYTYPE_ARRAY);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.DST_ARRAY_OFFSET, array);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.DST_XIN_BYTES_OFFSET, x);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.DST_Y_OFFSET, y);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.DST_Z_OFFSET, z);
        copy.set(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.SRC_MEMORY_TYPE_OFFSET, CUmemorytype.CU_MEMORYTYPE_DEVICE);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.SRC_DEVICE_OFFSET, memory);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.SRC_PITCH_OFFSET, pitch);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.SRC_HEIGHT_OFFSET, height);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.WIDTH_IN_BYTES_OFFSET, width);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.HEIGHT_OFFSET, rows);
        copy.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.DEPTH_OFFSET, slices);
        return backend.arrays().copy(copy, 0);
    }
}
