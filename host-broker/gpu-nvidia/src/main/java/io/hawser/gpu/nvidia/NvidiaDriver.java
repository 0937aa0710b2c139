package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaForeign;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;
import java.util.function.LongUnaryOperator;

/** The Driver API; it also records the objects that a session creates in a primary context. Session thread only. */
final class NvidiaDriver extends CudaForeign {
    private final Belongings nothing = new Belongings((SpareStreams) null);
    private final LongUnaryOperator functionHere;
    private final NvidiaMemoryPools pools;
    private Belongings current = nothing;
    private final Map<Long, StreamOrigin> streamOrigins = new HashMap<>();

    /** Where a stream was created, and how. */
    private record StreamOrigin(Belongings owner, SpareStreams.Kind kind) {}

    /**
     * Makes the driver of a session.
     *
     * @param functionHere maps a kernel's handle to its handle in the current context.
     * @param pools records the streams in which memory is freed.
     */
    NvidiaDriver(LongUnaryOperator functionHere, NvidiaMemoryPools pools) {
        this.functionHere = functionHere;
        this.pools = pools;
    }

    /** Sets the record of later objects; null for a context whose objects end with it. */
    void setBelongings(Belongings belongings) {
        nothing.memory.clear();
        nothing.streams.clear();
        nothing.events.clear();
        nothing.modules.clear();
        nothing.arrays.clear();
        nothing.mipmappedArrays.clear();
        nothing.textures.clear();
        nothing.surfaces.clear();
        current = belongings == null ? nothing : belongings;
    }

    Belongings belongings() {
        return current;
    }

    private static int record(int result, MemorySegment out, java.util.Set<Long> set) {
        if (result == 0) {
            set.add(out.get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
        }
        return result;
    }

    @Override
    public int cuMemAlloc_v2(MemorySegment dptr, long bytesize) {
        return record(super.cuMemAlloc_v2(dptr, bytesize), dptr, current.memory);
    }

    @Override
    public int cuMemAllocPitch_v2(MemorySegment dptr, MemorySegment pPitch, long WidthInBytes, long Height,
        int ElementSizeBytes) {
        return record(super.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes), dptr,
            current.memory);
    }

    @Override
    public int cuMemAllocAsync(MemorySegment dptr, long bytesize, long hStream) {
        return record(super.cuMemAllocAsync(dptr, bytesize, hStream), dptr, current.memory);
    }

    @Override
    public int cuMemAllocFromPoolAsync(MemorySegment dptr, long bytesize, long pool, long hStream) {
        return record(super.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream), dptr, current.memory);
    }

    @Override
    public int cuMemFree_v2(long dptr) {
        current.memory.remove(dptr);
        return super.cuMemFree_v2(dptr);
    }

    @Override
    public int cuMemFreeAsync(long dptr, long hStream) {
        pools.freed(hStream);
        current.memory.remove(dptr);
        return super.cuMemFreeAsync(dptr, hStream);
    }

    int freeMemory(long dptr) {
        return super.cuMemFree_v2(dptr);
    }

    @Override
    public int cuStreamCreateWithPriority(MemorySegment phStream, int flags, int priority) {
        SpareStreams.Kind kind = new SpareStreams.Kind(flags, priority);
        long spare = current.spares == null ? 0 : current.spares.take(kind);
        if (spare == 0) {
            int result = super.cuStreamCreateWithPriority(phStream, flags, priority);
            if (result != 0) {
                return result;
            }
        } else {
            phStream.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, spare);
        }
        long stream = phStream.get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
        current.streams.add(stream);
        streamOrigins.put(stream, new StreamOrigin(current, kind));
        return CUresult.CUDA_SUCCESS;
    }

    @Override
    public int cuStreamDestroy_v2(long hStream) {
        pools.forget(hStream);
        // The stream may belong to a context that is not current.
        StreamOrigin origin = streamOrigins.remove(hStream);
        if (origin == null || !origin.owner.streams.remove(hStream)) {
            return super.cuStreamDestroy_v2(hStream);
        }
        if (origin.owner.spares != null && origin.owner.spares.give(hStream, origin.kind)) {
            return CUresult.CUDA_SUCCESS;
        }
        if (super.cuStreamQuery(hStream) == CUresult.CUDA_ERROR_NOT_READY) {
            origin.owner.addLateStream();
        }
        return super.cuStreamDestroy_v2(hStream);
    }

    /** The belongings of a primary context, which keep destroyed streams. */
    Belongings ofPrimary() {
        return new Belongings(new SpareStreams(new SpareStreams.Streams() {
            @Override
            public int query(long stream) {
                return NvidiaDriver.super.cuStreamQuery(stream);
            }

            @Override
            public void destroy(long stream) {
                destroyStream(stream);
            }
        }));
    }

    int destroyStream(long hStream) {
        pools.forget(hStream);
        return super.cuStreamDestroy_v2(hStream);
    }

    @Override
    public int cuEventCreate(MemorySegment phEvent, int Flags) {
        return record(super.cuEventCreate(phEvent, Flags), phEvent, current.events);
    }

    @Override
    public int cuEventDestroy_v2(long hEvent) {
        current.events.remove(hEvent);
        return super.cuEventDestroy_v2(hEvent);
    }

    int destroyEvent(long hEvent) {
        return super.cuEventDestroy_v2(hEvent);
    }

    @Override
    public int cuArray3DCreate_v2(MemorySegment pHandle, MemorySegment pAllocateArray) {
        return record(super.cuArray3DCreate_v2(pHandle, pAllocateArray), pHandle, current.arrays);
    }

    @Override
    public int cuArrayDestroy(long hArray) {
        current.arrays.remove(hArray);
        return super.cuArrayDestroy(hArray);
    }

    int destroyArray(long hArray) {
        return super.cuArrayDestroy(hArray);
    }

    @Override
    public int cuMipmappedArrayCreate(MemorySegment pHandle, MemorySegment pMipmappedArrayDesc, int numMipmapLevels) {
        return record(super.cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels), pHandle,
            current.mipmappedArrays);
    }

    @Override
    public int cuMipmappedArrayDestroy(long hMipmappedArray) {
        current.mipmappedArrays.remove(hMipmappedArray);
        return super.cuMipmappedArrayDestroy(hMipmappedArray);
    }

    int destroyMipmappedArray(long hMipmappedArray) {
        return super.cuMipmappedArrayDestroy(hMipmappedArray);
    }

    @Override
    public int cuTexObjectDestroy(long texObject) {
        current.textures.remove(texObject);
        return super.cuTexObjectDestroy(texObject);
    }

    int destroyTexture(long texObject) {
        return super.cuTexObjectDestroy(texObject);
    }

    @Override
    public int cuSurfObjectDestroy(long surfObject) {
        current.surfaces.remove(surfObject);
        return super.cuSurfObjectDestroy(surfObject);
    }

    int destroySurface(long surfObject) {
        return super.cuSurfObjectDestroy(surfObject);
    }

    @Override
    public int cuFuncSetAttribute(long hfunc, int attrib, int value) {
        return super.cuFuncSetAttribute(functionHere.applyAsLong(hfunc), attrib, value);
    }

    @Override
    public int cuFuncSetCacheConfig(long hfunc, int config) {
        return super.cuFuncSetCacheConfig(functionHere.applyAsLong(hfunc), config);
    }

    @Override
    public int cuFuncSetSharedMemConfig(long hfunc, int config) {
        return super.cuFuncSetSharedMemConfig(functionHere.applyAsLong(hfunc), config);
    }

    @Override
    public int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(MemorySegment numBlocks, long func, int blockSize,
        long dynamicSMemSize, int flags) {
        return super.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, functionHere.applyAsLong(func),
            blockSize, dynamicSMemSize, flags);
    }

    @Override
    public int cuOccupancyAvailableDynamicSMemPerBlock(MemorySegment dynamicSmemSize, long func, int numBlocks,
        int blockSize) {
        return super.cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, functionHere.applyAsLong(func),
            numBlocks, blockSize);
    }
}
