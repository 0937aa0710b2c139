package io.hawser.worker.calls;

import io.hawser.cuda.backend.ArrayBackend;
import io.hawser.cuda.generated.CUDA_MEMCPY3D;
import io.hawser.cuda.generated.CUmemorytype;
import io.hawser.worker.session.CudaResult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Fills in CUDA_MEMCPY3D from checked numbers and issues it. It reuses one structure. Session thread only. */
final class ArrayCopy {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    private final ArrayBackend backend;
    private final MemorySegment copy = Arena.ofAuto().allocate(CUDA_MEMCPY3D.BYTES, Long.BYTES);

    ArrayCopy(ArrayBackend backend) {
        this.backend = backend;
    }

    /**
     * Copies between an array and memory.
     *
     * @param toArray the direction.
     * @param memoryType CU_MEMORYTYPE_HOST or CU_MEMORYTYPE_DEVICE.
     * @param address address of the memory's first byte.
     * @param pitch bytes from one row to the next; at least a row when there are several.
     * @param slicePitch bytes from one slice to the next.
     * @return CUresult; CUDA_ERROR_INVALID_VALUE when the slice pitch is not a multiple of the row pitch.
     */
    int withMemory(boolean toArray, long array, ArrayBox box, int memoryType, long address, long pitch,
        long slicePitch, long stream) {
        boolean hasOneRow = box.rows() == 1 && box.slices() == 1;
        long rowPitch = hasOneRow ? box.widthBytes() : pitch;
        long height = box.slices() == 1 ? box.rows() : rowPitch <= 0 ? 0 : slicePitch / rowPitch;
        if (rowPitch < box.widthBytes() || height < box.rows() || box.slices() > 1 && height * rowPitch != slicePitch) {
            return CudaResult.INVALID_VALUE;
        }
        copy.fill((byte) 0);
        extent(box);
        if (toArray) {
            destination(array, box);
            copy.set(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.SRC_MEMORY_TYPE_OFFSET, memoryType);
            copy.set(LONG, CUDA_MEMCPY3D.SRC_HOST_OFFSET, address);
            copy.set(LONG, CUDA_MEMCPY3D.SRC_DEVICE_OFFSET, address);
            copy.set(LONG, CUDA_MEMCPY3D.SRC_PITCH_OFFSET, rowPitch);
            copy.set(LONG, CUDA_MEMCPY3D.SRC_HEIGHT_OFFSET, height);
        } else {
            source(array, box);
            copy.set(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.DST_MEMORY_TYPE_OFFSET, memoryType);
            copy.set(LONG, CUDA_MEMCPY3D.DST_HOST_OFFSET, address);
            copy.set(LONG, CUDA_MEMCPY3D.DST_DEVICE_OFFSET, address);
            copy.set(LONG, CUDA_MEMCPY3D.DST_PITCH_OFFSET, rowPitch);
            copy.set(LONG, CUDA_MEMCPY3D.DST_HEIGHT_OFFSET, height);
        }
        return backend.copy(copy, stream);
    }

    /** Copies between arrays; both boxes have the same size. */
    int withArray(long destinationArray, ArrayBox to, long sourceArray, ArrayBox from, long stream) {
        copy.fill((byte) 0);
        extent(to);
        destination(destinationArray, to);
        source(sourceArray, from);
        return backend.copy(copy, stream);
    }

    private void extent(ArrayBox box) {
        copy.set(LONG, CUDA_MEMCPY3D.WIDTH_IN_BYTES_OFFSET, box.widthBytes());
        copy.set(LONG, CUDA_MEMCPY3D.HEIGHT_OFFSET, box.rows());
        copy.set(LONG, CUDA_MEMCPY3D.DEPTH_OFFSET, box.slices());
    }

    private void destination(long array, ArrayBox box) {
        copy.set(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.DST_MEMORY_TYPE_OFFSET, CUmemorytype.CU_MEMORYTYPE_ARRAY);
        copy.set(LONG, CUDA_MEMCPY3D.DST_ARRAY_OFFSET, array);
        copy.set(LONG, CUDA_MEMCPY3D.DST_XIN_BYTES_OFFSET, box.xBytes());
        copy.set(LONG, CUDA_MEMCPY3D.DST_Y_OFFSET, box.y());
        copy.set(LONG, CUDA_MEMCPY3D.DST_Z_OFFSET, box.z());
    }

    private void source(long array, ArrayBox box) {
        copy.set(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.SRC_MEMORY_TYPE_OFFSET, CUmemorytype.CU_MEMORYTYPE_ARRAY);
        copy.set(LONG, CUDA_MEMCPY3D.SRC_ARRAY_OFFSET, array);
        copy.set(LONG, CUDA_MEMCPY3D.SRC_XIN_BYTES_OFFSET, box.xBytes());
        copy.set(LONG, CUDA_MEMCPY3D.SRC_Y_OFFSET, box.y());
        copy.set(LONG, CUDA_MEMCPY3D.SRC_Z_OFFSET, box.z());
    }
}
