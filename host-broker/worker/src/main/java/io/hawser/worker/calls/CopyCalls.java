package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.shm.RecordLayout;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.StreamState;
import io.hawser.worker.session.StreamWork;
import java.lang.foreign.MemorySegment;

/** Copies between the guest and the device, and boxes within the device. */
final class CopyCalls {
    private final GpuBackend backend;
    private final CudaDriver driver;
    private final StreamWork work;

    CopyCalls(GpuBackend backend, StreamWork work) {
        this.backend = backend;
        this.driver = backend.driver();
        this.work = work;
    }

    void hwsCopyHtoD(Call call, long dstDevice, MemorySegment data) {
        call.finish(data.byteSize() == 0 ? 0 : work.write(call, call.lastStream(), dstDevice, data));
    }

    void hwsCopyDtoH(Call call, long srcDevice, long byteCount) {
        StreamState stream = call.lastStream();
        work.read(call, stream, byteCount, RecordLayout.MAX_BULK_BYTES,
            (destination, offset, through) -> backend.copyDtoH(destination, srcDevice + offset, through));
    }

    void hwsWriteBox(Call call, Box box, MemorySegment data) {
        if (!check(call, box)) {
            return;
        }
        StreamState stream = call.lastStream();
        if (data.byteSize() != box.bytes()) {
            call.fatal("a box's data must be its rows: bytes=" + data.byteSize() + " box=" + box);
            return;
        }
        if (box.isEmpty()) {
            call.finish(0);
            return;
        }
        MemorySegment stable = work.stabilise(call, stream, data);
        call.finish(stable == null ? CudaResult.OUT_OF_MEMORY : box.copy(0, box.bytes(), (address, offset, bytes) ->
            backend.copyHtoD(address, stable.asSlice(offset, bytes), stream.stream())));
    }

    void hwsReadBox(Call call, Box box) {
        if (!check(call, box)) {
            return;
        }
        StreamState stream = call.lastStream();
        work.read(call, stream, box.bytes(), RecordLayout.MAX_BULK_BYTES, (destination, pieceOffset, through) ->
            box.copy(pieceOffset, destination.byteSize(), (address, offset, bytes) -> backend.copyDtoH(
                destination.asSlice(offset - pieceOffset, bytes), address, through)));
    }

    void hwsCopyBox(Call call, Box destination, Box source) {
        if (!check(call, destination) || !check(call, source)) {
            return;
        }
        StreamState stream = call.lastStream();
        if (destination.isContiguous() && !source.isEmpty()) {
            call.finish(source.copy(0, source.bytes(), (address, offset, bytes) ->
                driver.cuMemcpyDtoDAsync_v2(destination.start() + offset, address, bytes, stream.stream())));
        } else {
            call.finish(destination.copy(0, destination.bytes(), (address, offset, bytes) ->
                driver.cuMemcpyDtoDAsync_v2(address, source.address(offset), bytes, stream.stream())));
        }
    }

    /** Whether a box may be copied; if not, the call has failed. */
    static boolean check(Call call, Box box) {
        if (box == null || box.operations() > Box.MAX_ROWS) {
            call.fail(CudaResult.INVALID_VALUE);
            return false;
        }
        return call.checkDevice(box.start(), box.spanBytes());
    }
}
