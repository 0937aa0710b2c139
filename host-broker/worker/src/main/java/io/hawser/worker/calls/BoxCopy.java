package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CUDA_MEMCPY3D;
import io.hawser.cuda.generated.CUmemorytype;
import io.hawser.shm.wire.RecordLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Copies boxes of linear memory: in one operation if the backend can, else in one for each row. The boxes have been
 * checked. Session thread only.
 */
final class BoxCopy {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    /** CU_DEVICE_ATTRIBUTE_MAX_PITCH of every NVIDIA GPU so far. */
    private static final long MAX_PITCH = Integer.MAX_VALUE;

    private final GpuBackend backend;
    private final MemorySegment copy = Arena.ofAuto().allocate(CUDA_MEMCPY3D.BYTES, Long.BYTES);

    /**
     * The layout of a box's bytes on the other side.
     *
     * @param pitch bytes from one row to the next.
     * @param slicePitch bytes from one slice to the next.
     */
    record Layout(long pitch, long slicePitch) {
        /** Rows without gaps. */
        static Layout packed(Box box) {
            return new Layout(box.widthBytes(), box.widthBytes() * box.rows());
        }

        boolean isPacked(Box box) {
            return (box.rows() <= 1 || pitch == box.widthBytes())
                && (box.slices() <= 1 || slicePitch == box.widthBytes() * box.rows());
        }
    }

    BoxCopy(GpuBackend backend) {
        this.backend = backend;
    }

    /** Copies to the device; {@code source} begins with the box's first byte. */
    int write(Box box, MemorySegment source, Layout layout, long stream) {
        if (box.isEmpty()) {
            return 0;
        }
        if (box.isContiguous() && layout.isPacked(box)) {
            return backend.copyHtoD(box.start(), source.asSlice(0, box.bytes()), stream);
        }
        Side to = Side.of(box, box.pitch(), box.slicePitch());
        Side from = Side.of(box, layout.pitch, layout.slicePitch);
        if (!fitsOneOperation(to, from)) {
            return rows(box, layout,
                (address, offset) -> backend.copyHtoD(address, source.asSlice(offset, box.widthBytes()), stream));
        }
        begin(to);
        destination(CUmemorytype.CU_MEMORYTYPE_DEVICE, box.start(), to);
        source(CUmemorytype.CU_MEMORYTYPE_HOST, source.address(), from);
        return backend.copyBox(copy, stream);
    }

    /** Copies from the device; {@code destination} begins with the box's first byte. */
    int read(Box box, MemorySegment destination, Layout layout, long stream) {
        if (box.isEmpty()) {
            return 0;
        }
        if (box.isContiguous() && layout.isPacked(box)) {
            return backend.copyDtoH(destination.asSlice(0, box.bytes()), box.start(), stream);
        }
        Side to = Side.of(box, layout.pitch, layout.slicePitch);
        Side from = Side.of(box, box.pitch(), box.slicePitch());
        if (!fitsOneOperation(to, from)) {
            return rows(box, layout,
                (address, offset) -> backend.copyDtoH(destination.asSlice(offset, box.widthBytes()), address, stream));
        }
        begin(to);
        destination(CUmemorytype.CU_MEMORYTYPE_HOST, destination.address(), to);
        source(CUmemorytype.CU_MEMORYTYPE_DEVICE, box.start(), from);
        return backend.copyBox(copy, stream);
    }

    /** Copies from device to device; both boxes have the same size. */
    int onDevice(Box destination, Box source, long stream) {
        if (destination.isEmpty()) {
            return 0;
        }
        Side to = Side.of(destination, destination.pitch(), destination.slicePitch());
        Side from = Side.of(source, source.pitch(), source.slicePitch());
        if (destination.isContiguous() && source.isContiguous() || !fitsOneOperation(to, from)) {
            return runs(destination, source, stream);
        }
        begin(to);
        destination(CUmemorytype.CU_MEMORYTYPE_DEVICE, destination.start(), to);
        source(CUmemorytype.CU_MEMORYTYPE_DEVICE, source.start(), from);
        return backend.copyBox(copy, stream);
    }

    private int runs(Box destination, Box source, long stream) {
        return destination.isContiguous()
            ? source.copy(0, source.bytes(),
                (address, offset, bytes) -> backend.driver().cuMemcpyDtoDAsync_v2(destination.start() + offset, address,
                    bytes, stream))
            : destination.copy(0, destination.bytes(), (address, offset, bytes) -> backend.driver()
                .cuMemcpyDtoDAsync_v2(address, source.address(offset), bytes, stream));
    }

    /** Length of the pieces in which a box is read: whole rows, and whole slices if they fit. */
    static long pieceBytes(Box box) {
        long most = RecordLayout.MAX_BULK_BYTES;
        if (box.isContiguous() || box.widthBytes() > most) {
            return most;
        }
        long rows = most / box.widthBytes();
        return (rows >= box.rows() ? rows / box.rows() * box.rows() : rows) * box.widthBytes();
    }

    /**
     * Copies a piece of a box from the device.
     *
     * @param destination receives bytes of the box's contiguous form, beginning at {@code offset}.
     * @param offset a multiple of {@link #pieceBytes}.
     */
    int readPiece(Box box, MemorySegment destination, long offset, long stream) {
        long width = box.widthBytes();
        if (box.isContiguous() || offset % width != 0 || destination.byteSize() % width != 0) {
            return box.copy(offset, destination.byteSize(),
                (address, at, bytes) -> backend.copyDtoH(destination.asSlice(at - offset, bytes), address, stream));
        }
        long end = (offset + destination.byteSize()) / width;
        for (long row = offset / width; row < end;) {
            long inSlice = row % box.rows();
            long slices = inSlice == 0 ? (end - row) / box.rows() : 0;
            Box part = slices > 0 ? box.part(row * width, box.rows(), slices)
                : box.part(row * width, Math.min(box.rows() - inSlice, end - row), 1);
            int result = read(part, destination.asSlice(row * width - offset, part.bytes()), Layout.packed(part),
                stream);
            if (result != 0) {
                return result;
            }
            row += part.rows() * part.slices();
        }
        return 0;
    }

    /** Copies a row of the box between an address and an offset on the other side. */
    @FunctionalInterface
    private interface Row {
        int copy(long address, long offset);
    }

    private static int rows(Box box, Layout layout, Row row) {
        for (long slice = 0; slice < box.slices(); slice++) {
            for (long at = 0; at < box.rows(); at++) {
                int result = row.copy(box.address((slice * box.rows() + at) * box.widthBytes()),
                    slice * layout.slicePitch + at * layout.pitch);
                if (result != 0) {
                    return result;
                }
            }
        }
        return 0;
    }

    /** One side of a copy in CUDA's form: the height is the number of rows from one slice to the next. */
    private record Side(long widthBytes, long rows, long slices, long pitch, long height) {
        static Side of(Box box, long pitch, long slicePitch) {
            if (box.slices() == 1) {
                return new Side(box.widthBytes(), box.rows(), 1, pitch, box.rows());
            }
            if (box.rows() == 1) { // slices of one row are rows
                return new Side(box.widthBytes(), box.slices(), 1, slicePitch, box.slices());
            }
            return new Side(box.widthBytes(), box.rows(), box.slices(), pitch,
                pitch > 0 && slicePitch % pitch == 0 ? slicePitch / pitch : 0);
        }

        boolean isSound() {
            return pitch >= widthBytes && pitch <= MAX_PITCH && height >= rows;
        }
    }

    private boolean fitsOneOperation(Side to, Side from) {
        return backend.canCopyBoxes() && to.isSound() && from.isSound();
    }

    private void begin(Side shape) {
        copy.fill((byte) 0);
        copy.set(LONG, CUDA_MEMCPY3D.WIDTH_IN_BYTES_OFFSET, shape.widthBytes);
        copy.set(LONG, CUDA_MEMCPY3D.HEIGHT_OFFSET, shape.rows);
        copy.set(LONG, CUDA_MEMCPY3D.DEPTH_OFFSET, shape.slices);
    }

    private void destination(int memoryType, long address, Side shape) {
        copy.set(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.DST_MEMORY_TYPE_OFFSET, memoryType);
        copy.set(LONG, CUDA_MEMCPY3D.DST_HOST_OFFSET, address);
        copy.set(LONG, CUDA_MEMCPY3D.DST_DEVICE_OFFSET, address);
        copy.set(LONG, CUDA_MEMCPY3D.DST_PITCH_OFFSET, shape.pitch);
        copy.set(LONG, CUDA_MEMCPY3D.DST_HEIGHT_OFFSET, shape.height);
    }

    private void source(int memoryType, long address, Side shape) {
        copy.set(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.SRC_MEMORY_TYPE_OFFSET, memoryType);
        copy.set(LONG, CUDA_MEMCPY3D.SRC_HOST_OFFSET, address);
        copy.set(LONG, CUDA_MEMCPY3D.SRC_DEVICE_OFFSET, address);
        copy.set(LONG, CUDA_MEMCPY3D.SRC_PITCH_OFFSET, shape.pitch);
        copy.set(LONG, CUDA_MEMCPY3D.SRC_HEIGHT_OFFSET, shape.height);
    }
}
