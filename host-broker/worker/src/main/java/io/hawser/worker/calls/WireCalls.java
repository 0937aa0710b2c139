package io.hawser.worker.calls;

import io.hawser.cuda.CallContext;
import io.hawser.cuda.generated.WireManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;

/** The functions that exist only on the wire; each is passed to the class that implements it. */
final class WireCalls implements WireManualCalls {
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
    public void hwsDeviceInfo(CallContext call, int ordinal) {
        contexts.hwsDeviceInfo(Call.of(call), ordinal);
    }

    @Override
    public void hwsContextCreate(CallContext call, long ctxId, int device, int flags, int primary) {
        contexts.hwsContextCreate(Call.of(call), ctxId, device, flags, primary);
    }

    @Override
    public void hwsContextDestroy(CallContext call, long ctx, long ctxId) {
        contexts.hwsContextDestroy(Call.of(call));
    }

    @Override
    public void hwsImageLoad(CallContext call, long modId, long blobId, int optionFlags, int logCapacity,
            int imageBytes, MemorySegment image) {
        images.hwsImageLoad(Call.of(call), modId, blobId, optionFlags, logCapacity, image);
    }

    @Override
    public void hwsImageUnload(CallContext call, long mod, long modId) {
        images.hwsImageUnload(Call.of(call));
    }

    @Override
    public void hwsFunctionGet(CallContext call, long mod, String name, long functionId) {
        images.hwsFunctionGet(Call.of(call), name, functionId);
    }

    @Override
    public void hwsGlobalGet(CallContext call, long mod, String name) {
        images.hwsGlobalGet(Call.of(call), name);
    }

    @Override
    public void hwsFunctionNames(CallContext call, long mod, int first) {
        images.hwsFunctionNames(Call.of(call), first);
    }

    @Override
    public void hwsLaunch(CallContext call, long function, long hStream, int gridDimX, int gridDimY, int gridDimZ,
            int blockDimX, int blockDimY, int blockDimZ, int sharedMemBytes, int launchFlags, int paramsBytes,
            MemorySegment params, int attributesBytes, MemorySegment attributes) {
        launches.hwsLaunch(Call.of(call), new LaunchCalls.Shape(gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
            blockDimZ, sharedMemBytes, launchFlags), params, attributes);
    }

    @Override
    public void hwsHostFunction(CallContext call, long hStream, long callbackId) {
        launches.hwsHostFunction(Call.of(call), callbackId);
    }

    @Override
    public void hwsOccupancyClusters(CallContext call, long function, int gridDimX, int gridDimY, int gridDimZ,
            int blockDimX, int blockDimY, int blockDimZ, int sharedMemBytes, int attributesBytes,
            MemorySegment attributes) {
        launches.hwsOccupancyClusters(Call.of(call), new LaunchCalls.Shape(gridDimX, gridDimY, gridDimZ, blockDimX,
            blockDimY, blockDimZ, sharedMemBytes, 0), attributes);
    }

    @Override
    public void hwsCopyHtoD(CallContext call, long dstDevice, long hStream, long byteCount, MemorySegment data) {
        copies.hwsCopyHtoD(Call.of(call), dstDevice, data);
    }

    @Override
    public void hwsCopyDtoH(CallContext call, long srcDevice, long byteCount, long hStream) {
        copies.hwsCopyDtoH(Call.of(call), srcDevice, byteCount);
    }

    @Override
    public void hwsWriteBox(CallContext call, long base, long pitch, long height, long xBytes, long y, long z,
            long widthBytes, long rows, long slices, long hStream, MemorySegment data) {
        copies.hwsWriteBox(Call.of(call), Box.of(base, pitch, height, xBytes, y, z, widthBytes, rows, slices), data);
    }

    @Override
    public void hwsReadBox(CallContext call, long base, long pitch, long height, long xBytes, long y, long z,
            long widthBytes, long rows, long slices, long hStream) {
        copies.hwsReadBox(Call.of(call), Box.of(base, pitch, height, xBytes, y, z, widthBytes, rows, slices));
    }

    @Override
    public void hwsCopyBox(CallContext call, long dstBase, long dstPitch, long dstHeight, long dstXBytes, long dstY,
            long dstZ, long srcBase, long srcPitch, long srcHeight, long srcXBytes, long srcY, long srcZ,
            long widthBytes, long rows, long slices, long hStream) {
        copies.hwsCopyBox(Call.of(call),
            Box.of(dstBase, dstPitch, dstHeight, dstXBytes, dstY, dstZ, widthBytes, rows, slices),
            Box.of(srcBase, srcPitch, srcHeight, srcXBytes, srcY, srcZ, widthBytes, rows, slices));
    }

    @Override
    public void hwsHostMap(CallContext call, long regionOffset, long byteCount) {
        region.hwsHostMap(Call.of(call), regionOffset, byteCount);
    }

    @Override
    public void hwsHostUnmap(CallContext call, long regionOffset) {
        region.hwsHostUnmap(Call.of(call), regionOffset);
    }

    @Override
    public void hwsCopyHtoDShared(CallContext call, long dstDevice, long regionOffset, long byteCount, long hStream,
            int chunk) {
        region.hwsCopyHtoDShared(Call.of(call), dstDevice, regionOffset, byteCount, chunk);
    }

    @Override
    public void hwsCopyDtoHShared(CallContext call, long srcDevice, long regionOffset, long byteCount, long hStream,
            int chunk) {
        region.hwsCopyDtoHShared(Call.of(call), srcDevice, regionOffset, byteCount, chunk);
    }

    @Override
    public void hwsWriteBoxShared(CallContext call, long base, long pitch, long height, long xBytes, long y, long z,
            long widthBytes, long rows, long slices, long hStream, long regionOffset, long hostPitch,
            long hostSlicePitch, int chunk) {
        region.hwsWriteBoxShared(Call.of(call), Box.of(base, pitch, height, xBytes, y, z, widthBytes, rows, slices),
            new RegionCalls.HostBox(regionOffset, hostPitch, hostSlicePitch, chunk));
    }

    @Override
    public void hwsReadBoxShared(CallContext call, long base, long pitch, long height, long xBytes, long y, long z,
            long widthBytes, long rows, long slices, long hStream, long regionOffset, long hostPitch,
            long hostSlicePitch, int chunk) {
        region.hwsReadBoxShared(Call.of(call), Box.of(base, pitch, height, xBytes, y, z, widthBytes, rows, slices),
            new RegionCalls.HostBox(regionOffset, hostPitch, hostSlicePitch, chunk));
    }

    @Override
    public void hwsMemPoolCreate(CallContext call, long poolId, int device, long maxSize) {
        pools.hwsMemPoolCreate(Call.of(call), poolId, device, maxSize);
    }

    @Override
    public void hwsMemPoolGetAttribute(CallContext call, long pool, int attr) {
        pools.hwsMemPoolGetAttribute(Call.of(call), pool, attr);
    }

    @Override
    public void hwsMemPoolSetAttribute(CallContext call, long pool, int attr, long value) {
        pools.hwsMemPoolSetAttribute(Call.of(call), pool, attr, value);
    }
}
