package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.StreamState;
import io.hawser.worker.session.StreamWork;
import java.lang.foreign.MemorySegment;

/** Copies between the guest and the device, and copies of boxes within the device. */
final class CopyCalls {
    private final GpuBackend backend;
    private final BoxCopy boxes;
    private final StreamWork work;

    CopyCalls(GpuBackend backend, StreamWork work) {
        this.backend = backend;
        this.boxes = new BoxCopy(backend);
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
            call.fatal("a box's data must be as long as its rows: bytes=" + data.byteSize() + " box=" + box);
            return;
        }
        if (box.isEmpty()) {
            call.finish(0);
            return;
        }
        MemorySegment stable = work.stabilise(call, stream, data);
        call.finish(stable == null ? CudaResult.OUT_OF_MEMORY
            : boxes.write(box, stable, BoxCopy.Layout.packed(box), stream.stream()));
    }

    void hwsReadBox(Call call, Box box) {
        if (!check(call, box)) {
            return;
        }
        if (box.isEmpty()) { // an empty box has no piece
            call.finish(0);
            return;
        }
        work.read(call, call.lastStream(), box.bytes(), BoxCopy.pieceBytes(box),
            (destination, offset, through) -> boxes.readPiece(box, destination, offset, through));
    }

    void hwsCopyBox(Call call, Box destination, Box source) {
        if (check(call, destination) && check(call, source)) {
            call.finish(boxes.onDevice(destination, source, call.lastStream().stream()));
        }
    }

    /** Whether a box may be copied; if not, this fails the call. */
    static boolean check(Call call, Box box) {
        if (box == null || box.operations() > Box.MAX_ROWS) {
            call.fail(CudaResult.INVALID_VALUE);
            return false;
        }
        return call.checkDevice(box.start(), box.spanBytes());
    }
}
