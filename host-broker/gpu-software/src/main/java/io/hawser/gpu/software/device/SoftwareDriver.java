package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.generated.CUfunction_attribute;
import io.hawser.cuda.generated.CUlimit;
import io.hawser.cuda.generated.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.Consumer;

/**
 * The Driver API on the software GPU. Functions without an implementation in this class return CUDA_ERROR_NOT_SUPPORTED
 * by the interface's default. Decoder's thread only. Only an allocation that waits for frees blocks, see {@link
 * Device#allocate}.
 */
final class SoftwareDriver implements CudaDriver {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    /** The pitch of cuMemAllocPitch is a multiple of this, the allocator's granule, so that each row is aligned. */
    private static final int PITCH_BYTES = 512;
    /** Fills up to this size run on the issuing thread when they have no predecessors. */
    private static final long INLINE_FILL_BYTES = 64 << 10;
    // CUDA 13.0 cuda.h, CU_STREAM_NON_BLOCKING.
    private static final int NON_BLOCKING = 1;
    private static final int ACCESS_READ_WRITE = 3;

    private final Device device;
    private final SoftwareArrays arrays;
    private final long[] poolHandles; // by device
    private int cacheConfig;
    private int sharedConfig;

    SoftwareDriver(Device device, SoftwareArrays arrays) {
        this.device = device;
        this.arrays = arrays;
        poolHandles = new long[device.count()];
    }

    // Contexts.

    @Override
    public int cuCtxGetLimit(MemorySegment value, int limit) {
        int check = device.check();
        if (check != CUDA_SUCCESS) {
            return check;
        }
        int known = device.current().checkLimit(limit);
        if (known != CUDA_SUCCESS) {
            return known;
        }
        value.set(LONG, 0, device.current().limits[limit]);
        return CUDA_SUCCESS;
    }

    @Override
    public int cuCtxSetLimit(int limit, long value) {
        int check = device.check();
        if (check != CUDA_SUCCESS) {
            return check;
        }
        int known = device.current().checkNewLimit(limit);
        if (known != CUDA_SUCCESS) {
            return known;
        }
        // The guest chooses the size, and every thread of a block gets it: CUDA's documentation allows 512 KiB.
        if (value < 0 || limit == CUlimit.CU_LIMIT_STACK_SIZE && value > 512 << 10) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        device.current().limits[limit] = value;
        return CUDA_SUCCESS;
    }

    @Override
    public int cuCtxGetCacheConfig(MemorySegment config) {
        config.set(INT, 0, cacheConfig);
        return device.check();
    }

    @Override
    public int cuCtxSetCacheConfig(int config) {
        cacheConfig = config;
        return device.check();
    }

    @Override
    public int cuCtxGetSharedMemConfig(MemorySegment config) {
        config.set(INT, 0, sharedConfig);
        return device.check();
    }

    @Override
    public int cuCtxSetSharedMemConfig(int config) {
        sharedConfig = config;
        return device.check();
    }

    @Override
    public int cuCtxGetStreamPriorityRange(MemorySegment least, MemorySegment greatest) {
        least.set(INT, 0, 0);
        greatest.set(INT, 0, 0);
        return device.check();
    }

    @Override
    public int cuCtxResetPersistingL2Cache() {
        return device.check();
    }

    @Override
    public int cuCtxRecordEvent(long contextHandle, long eventHandle) {
        Context context = device.handles.get(contextHandle, Context.class);
        Event event = device.handles.get(eventHandle, Event.class);
        if (context == null || event == null) {
            return context == null ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
        }
        event.record(context.issueAfterAll(() -> {}), context);
        return context.error();
    }

    @Override
    public int cuCtxWaitEvent(long contextHandle, long eventHandle) {
        Context context = device.handles.get(contextHandle, Context.class);
        Event event = device.handles.get(eventHandle, Event.class);
        if (context == null || event == null) {
            return context == null ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
        }
        if (event.recorded() != null) {
            context.awaitAll(event.recorded());
        }
        return context.error();
    }

    @Override
    public int cuCtxEnablePeerAccess(long peerHandle, int flags) {
        int check = device.check();
        Context peer = device.handles.get(peerHandle, Context.class);
        if (check != CUDA_SUCCESS || flags != 0) {
            return check != CUDA_SUCCESS ? check : CUDA_ERROR_INVALID_VALUE;
        }
        if (peer == null) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        if (peer.ordinal == device.current().ordinal) {
            return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        }
        return device.current().peers().add(peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    }

    @Override
    public int cuCtxDisablePeerAccess(long peerHandle) {
        int check = device.check();
        Context peer = device.handles.get(peerHandle, Context.class);
        if (check != CUDA_SUCCESS || peer == null) {
            return check != CUDA_SUCCESS ? check : CUDA_ERROR_INVALID_CONTEXT;
        }
        return device.current().peers().remove(peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    }

    // Functions.

    @Override
    public int cuFuncSetAttribute(long handle, int attribute, int value) {
        KernelFunction function = device.function(handle);
        if (function == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        if (attribute == CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
            if (value < 0 || value > Properties.SHARED_BYTES_OPT_IN - function.kernel.staticSharedBytes()) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            function.maxDynamicSharedBytes = value;
            return CUDA_SUCCESS;
        }
        // This hint divides a cache, and this device has none.
        return attribute == CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }

    @Override
    public int cuFuncSetCacheConfig(long handle, int config) {
        return device.function(handle) == null ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    }

    @Override
    public int cuFuncSetSharedMemConfig(long handle, int config) {
        return device.function(handle) == null ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    }

    @Override
    public int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(MemorySegment blocks, long handle, int blockSize,
        long dynamicSharedBytes, int flags) {
        KernelFunction function = device.function(handle);
        if (function == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        if (blockSize < 1 || dynamicSharedBytes < 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        blocks.set(INT, 0, Occupancy.blocksPerMultiprocessor(function, blockSize, dynamicSharedBytes));
        return CUDA_SUCCESS;
    }

    @Override
    public int cuOccupancyAvailableDynamicSMemPerBlock(MemorySegment bytes, long handle, int blocks, int blockSize) {
        KernelFunction function = device.function(handle);
        if (function == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        if (blocks < 1 || blockSize < 1 || Occupancy.blocksPerMultiprocessor(function, blockSize, 0) < blocks) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        bytes.set(LONG, 0, Occupancy.availableDynamicSharedBytes(function, blocks));
        return CUDA_SUCCESS;
    }

    // Memory.

    @Override
    public int cuMemAlloc_v2(MemorySegment pointer, long bytes) {
        int check = device.check();
        if (check != CUDA_SUCCESS) {
            return check;
        }
        if (bytes <= 0) {
            return bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
        }
        long address = device.allocate(bytes);
        if (address == 0) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        device.ownAllocation(address);
        pointer.set(LONG, 0, address);
        return CUDA_SUCCESS;
    }

    @Override
    public int cuMemAllocPitch_v2(MemorySegment pointer, MemorySegment pitch, long width, long height,
        int elementBytes) {
        if (width <= 0 || height <= 0 || width > Long.MAX_VALUE - PITCH_BYTES
            || elementBytes != 4 && elementBytes != 8 && elementBytes != 16) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        long row = (width + PITCH_BYTES - 1) & -PITCH_BYTES;
        if (height > device.memory.totalBytes() / row) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        pitch.set(LONG, 0, row);
        return cuMemAlloc_v2(pointer, row * height);
    }

    @Override
    public int cuMemFree_v2(long pointer) {
        int check = device.check();
        if (check != CUDA_SUCCESS) {
            return check;
        }
        if (device.graphMemory.at(pointer) != null) {
            return device.free(device.graphMemory.at(pointer)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        }
        if (device.memory.sizeOf(pointer) == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        device.freeAfterAll(pointer);
        return CUDA_SUCCESS;
    }

    @Override
    public int cuMemGetInfo_v2(MemorySegment free, MemorySegment total) {
        free.set(LONG, 0, device.freeBytes());
        total.set(LONG, 0, device.memoryOfEach());
        return device.check();
    }

    // Pools. Stream-ordered frees return memory to the device's allocator.

    @Override
    public int cuDeviceGetDefaultMemPool(MemorySegment pool, int ordinal) {
        if (ordinal < 0 || ordinal >= device.count()) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        if (poolHandles[ordinal] == 0) {
            poolHandles[ordinal] = device.handles.add(new SoftwarePools.Pool(true));
        }
        pool.set(LONG, 0, poolHandles[ordinal]);
        return CUDA_SUCCESS;
    }

    @Override
    public int cuDeviceSetMemPool(int ordinal, long pool) {
        return ordinal < 0 || ordinal >= device.count() ? CUDA_ERROR_INVALID_DEVICE : SoftwarePools.check(device, pool);
    }

    @Override
    public int cuMemPoolTrimTo(long pool, long minBytesToKeep) {
        return SoftwarePools.check(device, pool);
    }

    @Override
    public int cuMemPoolSetAccess(long pool, MemorySegment map, long count) {
        return SoftwarePools.check(device, pool);
    }

    @Override
    public int cuMemPoolGetAccess(MemorySegment flags, long pool, MemorySegment location) {
        flags.set(INT, 0, ACCESS_READ_WRITE);
        return SoftwarePools.check(device, pool);
    }

    @Override
    public int cuMemPoolDestroy(long pool) {
        return SoftwarePools.destroy(device, pool);
    }

    @Override
    public int cuMemAllocAsync(MemorySegment pointer, long bytes, long streamHandle) {
        int check = device.check(device.stream(streamHandle));
        return check != CUDA_SUCCESS ? check : cuMemAlloc_v2(pointer, bytes);
    }

    @Override
    public int cuMemAllocFromPoolAsync(MemorySegment pointer, long bytes, long pool, long streamHandle) {
        int check = SoftwarePools.check(device, pool);
        return check != CUDA_SUCCESS ? check : cuMemAllocAsync(pointer, bytes, streamHandle);
    }

    @Override
    public int cuMemFreeAsync(long pointer, long streamHandle) {
        Stream stream = device.stream(streamHandle);
        int check = device.check(stream);
        if (check != CUDA_SUCCESS) {
            return check;
        }
        if (device.graphMemory.at(pointer) != null) {
            return device.free(device.graphMemory.at(pointer)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        }
        if (device.memory.sizeOf(pointer) == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        device.disownAllocation(pointer);
        device.freeLater();
        stream.context.issue(stream, () -> device.freeNow(pointer), true);
        return CUDA_SUCCESS;
    }

    // Arrays.

    @Override
    public int cuArray3DCreate_v2(MemorySegment out, MemorySegment descriptor) {
        return arrays.create(out, descriptor);
    }

    @Override
    public int cuArrayDestroy(long array) {
        return arrays.destroy(array);
    }

    @Override
    public int cuMipmappedArrayCreate(MemorySegment out, MemorySegment descriptor, int levels) {
        return arrays.createMipmapped(out, descriptor, levels);
    }

    @Override
    public int cuMipmappedArrayDestroy(long mipmappedArray) {
        return arrays.destroyMipmapped(mipmappedArray);
    }

    @Override
    public int cuMipmappedArrayGetLevel(MemorySegment out, long mipmappedArray, int level) {
        return arrays.level(out, mipmappedArray, level);
    }

    @Override
    public int cuTexObjectDestroy(long texObject) {
        return arrays.destroyObject(texObject);
    }

    @Override
    public int cuSurfObjectDestroy(long surfObject) {
        return arrays.destroyObject(surfObject);
    }

    // Copies and fills.

    /** Issues an access to a range of device memory by the host, in stream order. */
    int issueCopy(long streamHandle, long address, long bytes, boolean inline, Consumer<MemorySegment> access) {
        Stream stream = device.stream(streamHandle);
        int check = device.check(stream);
        if (check != CUDA_SUCCESS) {
            return check;
        }
        if (!device.memory.arena().isAllocated(address, bytes)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (bytes == 0) {
            return CUDA_SUCCESS;
        }
        MemorySegment range = device.memory.arena().slice(address, bytes);
        Context context = stream.context;
        context.issue(stream, () -> {
            if (context.error() == 0) {
                access.accept(range);
            }
        }, inline);
        return CUDA_SUCCESS;
    }

    @Override
    public int cuMemcpyDtoDAsync_v2(long destination, long source, long bytes, long streamHandle) {
        if (bytes < 0 || !device.memory.arena().isAllocated(source, bytes)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        MemorySegment from = bytes == 0 ? MemorySegment.NULL : device.memory.arena().slice(source, bytes);
        return issueCopy(streamHandle, destination, bytes, bytes <= INLINE_FILL_BYTES, to -> to.copyFrom(from));
    }

    @Override
    public int cuMemsetD8Async(long address, byte value, long count, long streamHandle) {
        return fill(address, count, 1, value, streamHandle);
    }

    @Override
    public int cuMemsetD16Async(long address, short value, long count, long streamHandle) {
        return fill(address, count, 2, value, streamHandle);
    }

    @Override
    public int cuMemsetD32Async(long address, int value, long count, long streamHandle) {
        return fill(address, count, 4, value, streamHandle);
    }

    @Override
    public int cuMemsetD2D8Async(long address, long pitch, byte value, long width, long height, long streamHandle) {
        return fillRows(address, pitch, width, height, 1, value, streamHandle);
    }

    @Override
    public int cuMemsetD2D16Async(long address, long pitch, short value, long width, long height, long streamHandle) {
        return fillRows(address, pitch, width, height, 2, value, streamHandle);
    }

    @Override
    public int cuMemsetD2D32Async(long address, long pitch, int value, long width, long height, long streamHandle) {
        return fillRows(address, pitch, width, height, 4, value, streamHandle);
    }

    private int fill(long address, long count, int unit, int value, long streamHandle) {
        if (count < 0 || count > Long.MAX_VALUE / unit || address % unit != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        long bytes = count * unit;
        return issueCopy(streamHandle, address, bytes, bytes <= INLINE_FILL_BYTES, to -> Fill.fill(to, unit, value));
    }

    private int fillRows(long address, long pitch, long width, long height, int unit, int value, long streamHandle) {
        if (width < 0 || height < 0 || width > Long.MAX_VALUE / unit || address % unit != 0 || pitch % unit != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        long rowBytes = width * unit;
        if (rowBytes == 0 || height == 0) {
            return device.check(device.stream(streamHandle));
        }
        if (height > 1 && pitch < rowBytes || height > 1 && pitch > (Long.MAX_VALUE - rowBytes) / (height - 1)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        long bytes = pitch * (height - 1) + rowBytes;
        return issueCopy(streamHandle, address, bytes, bytes <= INLINE_FILL_BYTES,
            to -> Fill.rows(to, pitch, rowBytes, height, unit, value));
    }

    // Streams and events.

    @Override
    public int cuStreamCreateWithPriority(MemorySegment out, int flags, int priority) {
        int check = device.check();
        if (check != CUDA_SUCCESS) {
            return check;
        }
        if ((flags & ~NON_BLOCKING) != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        Stream stream = new Stream(device.handles.peek(), device.current(), flags, 0, (flags & NON_BLOCKING) == 0);
        device.handles.add(stream);
        device.current().add(stream);
        out.set(LONG, 0, stream.id);
        return CUDA_SUCCESS;
    }

    @Override
    public int cuStreamDestroy_v2(long handle) {
        Stream stream = device.handles.get(handle, Stream.class);
        if (stream == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        device.handles.remove(handle);
        stream.context.retire(stream);
        return CUDA_SUCCESS;
    }

    @Override
    public int cuStreamWaitEvent(long streamHandle, long eventHandle, int flags) {
        Stream stream = device.stream(streamHandle);
        Event event = device.handles.get(eventHandle, Event.class);
        int check = event == null ? CUDA_ERROR_INVALID_HANDLE : device.check(stream);
        if (check == CUDA_SUCCESS && event.recorded() != null) {
            stream.context.await(stream, event.recorded());
        }
        return check;
    }

    @Override
    public int cuStreamQuery(long handle) {
        Stream stream = device.stream(handle);
        int check = device.check(stream);
        return check != CUDA_SUCCESS ? check : stream.context.isIdle(stream) ? stream.context.error()
            : CUDA_ERROR_NOT_READY;
    }

    @Override
    public int cuStreamGetPriority(long handle, MemorySegment priority) {
        Stream stream = device.stream(handle);
        priority.set(INT, 0, stream == null ? 0 : stream.priority);
        return device.check(stream);
    }

    @Override
    public int cuStreamGetFlags(long handle, MemorySegment flags) {
        Stream stream = device.stream(handle);
        flags.set(INT, 0, stream == null ? 0 : stream.flags);
        return device.check(stream);
    }

    @Override
    public int cuStreamGetId(long handle, MemorySegment id) {
        Stream stream = device.stream(handle);
        id.set(LONG, 0, stream == null ? 0 : stream.id);
        return device.check(stream);
    }

    @Override
    public int cuEventCreate(MemorySegment out, int flags) {
        int check = device.check();
        if (check != CUDA_SUCCESS) {
            return check;
        }
        // Interprocess events need a second process: refused, as is the rest of IPC.
        if ((flags & ~(Event.BLOCKING_SYNC | Event.DISABLE_TIMING)) != 0) {
            return (flags & ~Event.ALL_FLAGS) != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
        }
        out.set(LONG, 0, device.handles.add(new Event(flags)));
        return CUDA_SUCCESS;
    }

    @Override
    public int cuEventDestroy_v2(long handle) {
        if (device.handles.get(handle, Event.class) == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        device.handles.remove(handle);
        return CUDA_SUCCESS;
    }

    @Override
    public int cuEventRecordWithFlags(long eventHandle, long streamHandle, int flags) {
        Stream stream = device.stream(streamHandle);
        Event event = device.handles.get(eventHandle, Event.class);
        int check = event == null ? CUDA_ERROR_INVALID_HANDLE : device.check(stream);
        if (check == CUDA_SUCCESS) {
            event.record(stream.context.mark(stream), stream.context);
        }
        return check;
    }

    @Override
    public int cuEventQuery(long handle) {
        Event event = device.handles.get(handle, Event.class);
        if (event == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        return !event.isDone() ? CUDA_ERROR_NOT_READY : event.context() == null ? CUDA_SUCCESS
            : event.context().error();
    }

    @Override
    public int cuEventElapsedTime_v2(MemorySegment milliseconds, long startHandle, long endHandle) {
        Event start = device.handles.get(startHandle, Event.class);
        Event end = device.handles.get(endHandle, Event.class);
        if (start == null || end == null || !start.hasTiming() || !end.hasTiming()
            || start.recorded() == null || end.recorded() == null) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        if (!start.isDone() || !end.isDone()) {
            return CUDA_ERROR_NOT_READY;
        }
        milliseconds.set(FLOAT, 0, (end.recorded().doneNs() - start.recorded().doneNs()) / 1e6f);
        return CUDA_SUCCESS;
    }
}
