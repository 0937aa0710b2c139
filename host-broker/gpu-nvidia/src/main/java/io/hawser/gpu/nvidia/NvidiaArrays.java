package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.ArrayBackend;
import io.hawser.cuda.generated.CudaNative;
import io.hawser.cuda.generated.CudaSparseNative;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Copies with arrays, textures and surfaces of the driver. Session thread only. */
final class NvidiaArrays implements ArrayBackend {
    private final NvidiaDriver driver;

    NvidiaArrays(NvidiaDriver driver) {
        this.driver = driver;
    }

    @Override
    public int copy(MemorySegment cudaMemcpy3d, long stream) {
        return CudaNative.cuMemcpy3DAsync_v2(cudaMemcpy3d, stream);
    }

    @Override
    public int mapMemory(MemorySegment arrayMapInfo, long stream) {
        return CudaSparseNative.cuMemMapArrayAsync(arrayMapInfo, 1, stream);
    }

    @Override
    public int createTexture(MemorySegment out, MemorySegment resource, MemorySegment texture, MemorySegment view) {
        int result = CudaNative.cuTexObjectCreate(out, resource, texture, view);
        if (result == 0) {
            driver.belongings().textures.add(out.get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
        }
        return result;
    }

    @Override
    public int createSurface(MemorySegment out, MemorySegment resource) {
        int result = CudaNative.cuSurfObjectCreate(out, resource);
        if (result == 0) {
            driver.belongings().surfaces.add(out.get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
        }
        return result;
    }
}
