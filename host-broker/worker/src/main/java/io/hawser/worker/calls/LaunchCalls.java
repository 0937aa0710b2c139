package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HwsLaunchShape;
import io.hawser.cuda.generated.LaunchManualCalls;
import io.hawser.cuda.generated.OccupancyManualCalls;
import io.hawser.cuda.generated.OccupancyReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Kernels and host functions. Session thread. */
final class LaunchCalls implements LaunchManualCalls<Call>, OccupancyManualCalls<Call> {
    private final Session session;
    private final GpuBackend backend;

    LaunchCalls(Session session) {
        this.session = session;
        this.backend = session.backend();
    }

    @Override
    public void hwsLaunch(Call call, long function, long hStream, HwsLaunchShape shape, int launchFlags,
        int paramsBytes, MemorySegment params, int attributesBytes, MemorySegment attributes) {
        if (!check(call, attributes)) {
            return;
        }
        ModuleCalls.Parameters wanted = call.lastObject().info(ModuleCalls.Parameters.class);
        if (params.byteSize() < wanted.bytes()) {
            call.fail(CudaResult.INVALID_VALUE); // otherwise the backend would read beyond the parameters
            return;
        }
        if (wanted.stackBytes() > 0 && !session.objects().claimStack(wanted.stackBytes())) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        session.countKernel();
        call.finish(backend.launch(function, shape.gridDimX(), shape.gridDimY(), shape.gridDimZ(),
            shape.blockDimX(), shape.blockDimY(), shape.blockDimZ(), shape.sharedMemBytes(), hStream, launchFlags,
            params, attributes));
    }

    @Override
    public void hwsOccupancyClusters(Call call, long function, HwsLaunchShape shape, int attributesBytes,
        MemorySegment attributes) {
        if (!check(call, attributes)) {
            return;
        }
        MemorySegment out = call.scratch(2 * Integer.BYTES);
        int result = backend.clusters(function, shape.gridDimX(), shape.gridDimY(), shape.gridDimZ(), shape.blockDimX(),
            shape.blockDimY(), shape.blockDimZ(), shape.sharedMemBytes(), attributes, out);
        OccupancyReplies.hwsOccupancyClusters(call.reply(), out.get(ValueLayout.JAVA_INT, 0),
            out.get(ValueLayout.JAVA_INT, Integer.BYTES));
        call.finish(result);
    }

    private boolean check(Call call, MemorySegment attributes) {
        if (attributes.byteSize() % LaunchAttributes.BYTES != 0) {
            call.fatal("launch attributes must be complete: bytes=" + attributes.byteSize());
            return false;
        }
        int result = LaunchAttributes.check(attributes, session.objects().allocations());
        if (result != 0) {
            call.fail(result);
        }
        return result == 0;
    }

    @Override
    public void hwsHostFunction(Call call, long hStream, long callbackId) {
        int result = session.callbacks().issue(call.lastStream(), callbackId);
        if (result < 0) {
            call.fatal("a host function's id must not be in use: callbackId=" + callbackId);
            return;
        }
        call.finish(result);
    }
}
