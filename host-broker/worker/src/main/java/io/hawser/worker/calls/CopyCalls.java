package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CopyManualCalls;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HwsDevicePlace;
import io.hawser.cuda.generated.HwsExtent;
import io.hawser.cuda.generated.HwsRegionPlace;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.GuestMemory;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CopyWindow;
import io.hawser.worker.session.CopyWindow.Direction;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.DeviceWrite;
import io.hawser.worker.session.GuestPlace;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import io.hawser.worker.session.StreamWork;
import java.lang.foreign.MemorySegment;

/** Copies between the guest and the device, and copies of boxes within the device. Session thread. */
final class CopyCalls implements CopyManualCalls<Call> {
    private final GpuBackend backend;
    private final GuestMemory guestMemory; // null over other carriers than RDMA
    private final BoxCopy boxes;
    private final StreamWork work;
    private final RegionCopies region;
    private final CopyWindow rounds;

    CopyCalls(Session session, RegionCopies region) {
        this.backend = session.backend();
        this.guestMemory = session.work().guestMemory();
        this.boxes = new BoxCopy(backend);
        this.work = session.work();
        this.region = region;
        this.rounds = session.turns().copies();
    }

    /** Where a call of the driver copies between host and device. */
    static CopyWindow.Direction direction(int opcode) {
        return switch (opcode) {
            case CudaOpcodes.hwsCopyHtoD, CudaOpcodes.hwsCopyHtoDDirect, CudaOpcodes.hwsCopyHtoDShared,
                CudaOpcodes.hwsWriteBox,
                CudaOpcodes.hwsWriteBoxShared, CudaOpcodes.hwsWriteArray, CudaOpcodes.hwsWriteArrayShared ->
                Direction.TO_DEVICE;
            case CudaOpcodes.hwsCopyDtoH, CudaOpcodes.hwsCopyDtoHDirect, CudaOpcodes.hwsCopyDtoHShared,
                CudaOpcodes.hwsReadBox,
                CudaOpcodes.hwsReadBoxShared, CudaOpcodes.hwsReadArray, CudaOpcodes.hwsReadArrayShared ->
                Direction.TO_HOST;
            default -> Direction.NONE;
        };
    }

    @Override
    public void hwsCopyHtoD(Call call, long dstDevice, long hStream, long byteCount, MemorySegment data) {
        rounds.issued(Direction.TO_DEVICE, data.byteSize(), call.lastStream());
        call.finish(data.byteSize() == 0 ? 0 : work.write(call, call.lastStream(), dstDevice, data));
    }

    @Override
    public void hwsCopyDtoH(Call call, long srcDevice, long byteCount, long hStream) {
        rounds.issued(Direction.TO_HOST, byteCount, call.lastStream());
        work.read(call, call.lastStream(), byteCount, RecordLayout.MAX_BULK_BYTES,
            (destination, offset, through) -> backend.copyDtoH(destination, srcDevice + offset, through));
    }

    @Override
    public void hwsCopyDtoHDirect(Call call, long srcDevice, long byteCount, long hStream, long address, int key) {
        if (guestMemory == null) {
            call.fatal("a session must go by RDMA for copies to the guest's memory");
            return;
        }
        rounds.issued(Direction.TO_HOST, byteCount, call.lastStream());
        work.readInto(call, call.lastStream(), srcDevice, byteCount, new GuestPlace(address, key));
    }

    @Override
    public void hwsCopyHtoDDirect(Call call, long dstDevice, long byteCount, long hStream, long address,
        long areaOffset, long areaBytes, int key) {
        if (guestMemory == null) {
            call.fatal("a session must go by RDMA for copies from the guest's memory");
            return;
        }
        DeviceWrite.Slots slots = region.slots(call, areaOffset, areaBytes);
        if (slots == null) {
            return;
        }
        if (byteCount == 0) {
            call.finish(0);
            return;
        }
        if (!slots.serve(byteCount)) {
            call.fatal("the buffer of a copy must be long enough for its pieces: bytes="
                + Long.toUnsignedString(byteCount) + " areaBytes=" + areaBytes);
            return;
        }
        rounds.issued(Direction.TO_DEVICE, byteCount, call.lastStream());
        work.writeFrom(call, call.lastStream(), dstDevice, byteCount, new GuestPlace(address, key), slots);
        region.uses(call);
    }

    @Override
    public void hwsCopyAreaOpen(Call call) {
        if (guestMemory == null) {
            call.fatal("a session must go by RDMA to write the copy area");
            return;
        }
        region.openArea(call, guestMemory);
    }

    @Override
    public void hwsWriteBox(Call call, HwsDevicePlace place, HwsExtent extent, long hStream, MemorySegment data) {
        Box box = Box.of(place, extent);
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
        rounds.issued(Direction.TO_DEVICE, box.bytes(), stream);
        MemorySegment stable = work.stabilise(call, stream, data);
        call.finish(stable == null ? CudaResult.OUT_OF_MEMORY
            : boxes.write(box, stable, BoxCopy.Layout.packed(box), stream.stream()));
    }

    @Override
    public void hwsReadBox(Call call, HwsDevicePlace place, HwsExtent extent, long hStream) {
        Box box = Box.of(place, extent);
        if (!check(call, box)) {
            return;
        }
        if (box.isEmpty()) { // an empty box has no piece
            call.finish(0);
            return;
        }
        rounds.issued(Direction.TO_HOST, box.bytes(), call.lastStream());
        work.read(call, call.lastStream(), box.bytes(), BoxCopy.pieceBytes(box),
            (destination, offset, through) -> boxes.readPiece(box, destination, offset, through));
    }

    @Override
    public void hwsCopyBox(Call call, HwsDevicePlace dst, HwsDevicePlace src, HwsExtent extent, long hStream) {
        Box destination = Box.of(dst, extent);
        Box source = Box.of(src, extent);
        if (check(call, destination) && check(call, source)) {
            call.finish(boxes.onDevice(destination, source, hStream));
        }
    }

    @Override
    public void hwsCopyHtoDShared(Call call, long dstDevice, long regionOffset, long byteCount, long hStream,
        int chunk) {
        copyPlainly(call, Direction.TO_DEVICE, dstDevice, regionOffset, byteCount, hStream, chunk);
    }

    @Override
    public void hwsCopyDtoHShared(Call call, long srcDevice, long regionOffset, long byteCount, long hStream,
        int chunk) {
        copyPlainly(call, Direction.TO_HOST, srcDevice, regionOffset, byteCount, hStream, chunk);
    }

    /** Copies bytes without gaps; of a long copy as much as the session may have in flight. */
    private void copyPlainly(Call call, Direction direction, long device, long offset, long byteCount, long stream,
        int chunk) {
        if (!region.allows(call, offset, byteCount, chunk)) {
            return;
        }
        long done = rounds.issuedOf(call.sequence());
        long part = rounds.part(direction, byteCount - done);
        int result = 0;
        if (part != 0) {
            MemorySegment host = region.bytes(offset + done, part, chunk);
            result = direction == Direction.TO_DEVICE ? backend.copyHtoD(device + done, host, stream)
                : backend.copyDtoH(host, device + done, stream);
        }
        rounds.issued(direction, part, call.lastStream());
        if (result == 0 && done + part < byteCount) {
            rounds.interrupt(call.sequence(), done + part);
            call.interrupt();
        } else {
            region.settle(call, chunk, offset, direction == Direction.TO_DEVICE ? 0 : byteCount, result);
        }
    }

    @Override
    public void hwsCopyAreaWrite(Call call, long areaOffset, long byteCount, MemorySegment data) {
        region.writeArea(call, areaOffset, data);
    }

    @Override
    public void hwsWriteBoxShared(Call call, HwsDevicePlace place, HwsExtent extent, long hStream, HwsRegionPlace host,
        int chunk) {
        copyShared(call, true, place, extent, hStream, host, chunk);
    }

    @Override
    public void hwsReadBoxShared(Call call, HwsDevicePlace place, HwsExtent extent, long hStream, HwsRegionPlace host,
        int chunk) {
        copyShared(call, false, place, extent, hStream, host, chunk);
    }

    private void copyShared(Call call, boolean toDevice, HwsDevicePlace place, HwsExtent extent, long stream,
        HwsRegionPlace host, int chunk) {
        Box box = Box.of(place, extent);
        // The region is checked first. An invalid box has no length there.
        long span = box == null ? 0 : RegionCopies.spanBytes(host, extent);
        if (!region.allows(call, host.offset(), span, chunk) || !check(call, box)) {
            return;
        }
        BoxCopy.Layout layout = new BoxCopy.Layout(host.pitch(), host.slicePitch());
        if (!(box.isContiguous() && layout.isPacked(box)) && box.rows() * box.slices() > Box.MAX_ROWS) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        rounds.issued(Direction.of(toDevice), box.bytes(), call.lastStream());
        MemorySegment memory = region.bytes(host.offset(), span, chunk);
        region.settle(call, chunk, host.offset(), toDevice ? 0 : span,
            toDevice ? boxes.write(box, memory, layout, stream)
                : boxes.read(box, memory, layout, stream));
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
