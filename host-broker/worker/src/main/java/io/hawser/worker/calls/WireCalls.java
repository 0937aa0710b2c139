package io.hawser.worker.calls;

import io.hawser.cuda.generated.WireManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;

/** The functions that exist only on the wire; each is passed to the class that implements it. */
final class WireCalls implements WireManualCalls<Call> {
    private final ContextCalls contexts;
    private final ImageCalls images;
    private final LaunchCalls launches;
    private final CopyCalls copies;
    private final RegionCalls region;
    private final PoolCalls pools;

    WireCalls(Session session, ContextCalls contexts, RegionCalls region, PoolCalls pools) {
        this.contexts = contexts;
        this.pools = pools;
        this.region = region;
        images = new ImageCalls(session);
        launches = new LaunchCalls(session);
        copies = new CopyCalls(session.backend(), session.work());
    }

    @Override
    public void hwsDeviceInfo(Call call, int ordinal) {
        contexts.hwsDeviceInfo(call, ordinal);
    }

    @Override
    public void hwsContextCreate(Call call, long ctxId, int device, int flags, int primary) {
        contexts.hwsContextCreate(call, ctxId, device, flags, primary);
    }

    @Override
    public void hwsContextDestroy(Call call, long ctx, long ctxId) {
        contexts.hwsContextDestroy(call);
    }

    @Override
    public void hwsImageLoad(Call call, long modId, long blobId, int optionFlags, int logCapacity,
            int imageBytes, MemorySegment image) {
        images.hwsImageLoad(call, modId, blobId, optionFlags, logCapacity, image);
    }

    @Override
    public void hwsImageUnload(Call call, long mod, long modId) {
        images.hwsImageUnload(call);
    }

    @Override
    public void hwsFunctionGet(Call call, long mod, String name, long functionId) {
        images.hwsFunctionGet(call, name, functionId);
    }

    @Override
    public void hwsGlobalGet(Call call, long mod, String name) {
        images.hwsGlobalGet(call, name);
    }

    @Override
    public void hwsFunctionNames(Call call, long mod, int first) {
        images.hwsFunctionNames(call, first);
    }

    @Override
    public void hwsLaunch(Call call, long function, long hStream, int gridDimX, int gridDimY, int gridDimZ,
            int blockDimX, int blockDimY, int blockDimZ, int sharedMemBytes, int launchFlags, int paramsBytes,
            MemorySegment params, int attributesBytes, MemorySegment attributes) {
        launches.hwsLaunch(call, new LaunchCalls.Shape(gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
            blockDimZ, sharedMemBytes, launchFlags), params, attributes);
    }

    @Override
    public void hwsHostFunction(Call call, long hStream, long callbackId) {
        launches.hwsHostFunction(call, callbackId);
    }

    @Override
    public void hwsOccupancyClusters(Call call, long function, int gridDimX, int gridDimY, int gridDimZ,
            int blockDimX, int blockDimY, int blockDimZ, int sharedMemBytes, int attributesBytes,
            MemorySegment attributes) {
        launches.hwsOccupancyClusters(call, new LaunchCalls.Shape(gridDimX, gridDimY, gridDimZ, blockDimX,
            blockDimY, blockDimZ, sharedMemBytes, 0), attributes);
    }

    @Override
    public void hwsCopyHtoD(Call call, long dstDevice, long hStream, long byteCount, MemorySegment data) {
        copies.hwsCopyHtoD(call, dstDevice, data);
    }

    @Override
    public void hwsCopyDtoH(Call call, long srcDevice, long byteCount, long hStream) {
        copies.hwsCopyDtoH(call, srcDevice, byteCount);
    }

    @Override
    public void hwsWriteBox(Call call, long base, long pitch, long height, long xBytes, long y, long z,
            long widthBytes, long rows, long slices, long hStream, MemorySegment data) {
        copies.hwsWriteBox(call, Box.of(base, pitch, height, xBytes, y, z, widthBytes, rows, slices), data);
    }

    @Override
    public void hwsReadBox(Call call, long base, long pitch, long height, long xBytes, long y, long z,
            long widthBytes, long rows, long slices, long hStream) {
        copies.hwsReadBox(call, Box.of(base, pitch, height, xBytes, y, z, widthBytes, rows, slices));
    }

    @Override
    public void hwsCopyBox(Call call, long dstBase, long dstPitch, long dstHeight, long dstXBytes, long dstY,
            long dstZ, long srcBase, long srcPitch, long srcHeight, long srcXBytes, long srcY, long srcZ,
            long widthBytes, long rows, long slices, long hStream) {
        copies.hwsCopyBox(call,
            Box.of(dstBase, dstPitch, dstHeight, dstXBytes, dstY, dstZ, widthBytes, rows, slices),
            Box.of(srcBase, srcPitch, srcHeight, srcXBytes, srcY, srcZ, widthBytes, rows, slices));
    }

    @Override
    public void hwsHostMap(Call call, long regionOffset, long byteCount) {
        region.hwsHostMap(call, regionOffset, byteCount);
    }

    @Override
    public void hwsHostUnmap(Call call, long regionOffset) {
        region.hwsHostUnmap(call, regionOffset);
    }

    @Override
    public void hwsCopyHtoDShared(Call call, long dstDevice, long regionOffset, long byteCount, long hStream,
            int chunk) {
        region.hwsCopyHtoDShared(call, dstDevice, regionOffset, byteCount, chunk);
    }

    @Override
    public void hwsCopyDtoHShared(Call call, long srcDevice, long regionOffset, long byteCount, long hStream,
            int chunk) {
        region.hwsCopyDtoHShared(call, srcDevice, regionOffset, byteCount, chunk);
    }

    @Override
    public void hwsWriteBoxShared(Call call, long base, long pitch, long height, long xBytes, long y, long z,
            long widthBytes, long rows, long slices, long hStream, long regionOffset, long hostPitch,
            long hostSlicePitch, int chunk) {
        region.hwsWriteBoxShared(call, Box.of(base, pitch, height, xBytes, y, z, widthBytes, rows, slices),
            new RegionCalls.HostBox(regionOffset, hostPitch, hostSlicePitch, chunk));
    }

    @Override
    public void hwsReadBoxShared(Call call, long base, long pitch, long height, long xBytes, long y, long z,
            long widthBytes, long rows, long slices, long hStream, long regionOffset, long hostPitch,
            long hostSlicePitch, int chunk) {
        region.hwsReadBoxShared(call, Box.of(base, pitch, height, xBytes, y, z, widthBytes, rows, slices),
            new RegionCalls.HostBox(regionOffset, hostPitch, hostSlicePitch, chunk));
    }

    @Override
    public void hwsMemPoolCreate(Call call, long poolId, int device, long maxSize) {
        pools.hwsMemPoolCreate(call, poolId, device, maxSize);
    }

    @Override
    public void hwsMemPoolGetAttribute(Call call, long pool, int attr) {
        pools.hwsMemPoolGetAttribute(call, pool, attr);
    }

    @Override
    public void hwsMemPoolSetAttribute(Call call, long pool, int attr, long value) {
        pools.hwsMemPoolSetAttribute(call, pool, attr, value);
    }
}
