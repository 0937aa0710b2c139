package io.hawser.worker.calls;

import io.hawser.cuda.generated.HwsDevicePlace;
import io.hawser.cuda.generated.HwsExtent;
import io.hawser.cuda.generated.HwsPosition;

/**
 * The part of a device allocation that a 2D or 3D copy uses: {@code slices} times {@code rows} rows of {@code
 * widthBytes}. Its bytes are contiguous on the wire.
 *
 * @param start device address of the first byte.
 * @param widthBytes length of a row's part.
 * @param rows rows in each slice.
 * @param slices slices.
 * @param pitch bytes from one row to the next.
 * @param slicePitch bytes from one slice to the next.
 */
record Box(long start, long widthBytes, long rows, long slices, long pitch, long slicePitch) {
    /** Rows of one copy. Each can become an operation in a stream; stops a guest that asks for 2^64 of them. */
    static final long MAX_ROWS = 1L << 22;

    // More than any device has; the products below cannot overflow.
    private static final long MAX_EXTENT = (1L << 48) - 1;

    /** Copies a run of bytes that is contiguous on both sides. */
    @FunctionalInterface
    interface RowCopy {
        /**
         * Copies the run.
         *
         * @param address device address.
         * @param offsetBytes offset in the box's contiguous form.
         * @param bytes its length.
         * @return CUresult.
         */
        int copy(long address, long offsetBytes, long bytes);
    }

    /**
     * Makes a box from the numbers on the wire.
     *
     * @param place the allocation and the box's first byte there.
     * @param extent lengths.
     * @return the box, or null for invalid numbers: a row longer than its pitch, a slice higher than its height, or a
     *     number beyond any device.
     */
    static Box of(HwsDevicePlace place, HwsExtent extent) {
        HwsPosition origin = place.origin();
        long pitch = place.pitch();
        long height = place.height();
        long widthBytes = extent.widthBytes();
        long rows = extent.rows();
        long slices = extent.slices();
        // Negative numbers have the upper bits too.
        if (((pitch | height | origin.xBytes() | origin.y() | origin.z() | widthBytes | rows | slices) & ~MAX_EXTENT)
            != 0) {
            return null;
        }
        boolean rowFits = widthBytes <= pitch || rows <= 1 && slices <= 1;
        boolean sliceFits = rows <= height || slices <= 1;
        if (!rowFits || !sliceFits) {
            return null;
        }
        long slicePitch = product(pitch, height);
        long offset = sum(sum(product(origin.z(), slicePitch), product(origin.y(), pitch)), origin.xBytes());
        long span = sum(sum(product(Math.max(slices - 1, 0), slicePitch), product(Math.max(rows - 1, 0), pitch)),
            widthBytes);
        if (offset < 0 || span < 0 || product(rows, slices) < 0 || product(product(rows, slices), widthBytes) < 0) {
            return null;
        }
        return new Box(place.base() + offset, widthBytes, rows, slices, pitch, slicePitch);
    }

    /** Whether the box has no bytes. */
    boolean isEmpty() {
        return widthBytes == 0 || rows == 0 || slices == 0;
    }

    /** Length of the contiguous form, in bytes. */
    long bytes() {
        return widthBytes * rows * slices;
    }

    /** Bytes from the first to the last byte of the box in memory. */
    long spanBytes() {
        return isEmpty() ? 0 : (slices - 1) * slicePitch + (rows - 1) * pitch + widthBytes;
    }

    /** Whether the box is contiguous in device memory too. */
    boolean isContiguous() {
        return (rows <= 1 || pitch == widthBytes) && (slices <= 1 || slicePitch == widthBytes * rows);
    }

    /** Operations that a copy of the box needs. */
    long operations() {
        return isContiguous() ? 1 : rows * slices;
    }

    /** A part of the box that begins at an offset in its contiguous form: whole rows of one slice, or whole slices. */
    Box part(long offsetBytes, long partRows, long partSlices) {
        long row = offsetBytes / widthBytes;
        return new Box(start + row / rows * slicePitch + row % rows * pitch, widthBytes, partRows, partSlices, pitch,
            slicePitch);
    }

    /** Device address of a byte of the contiguous form. */
    long address(long offsetBytes) {
        if (isContiguous()) {
            return start + offsetBytes;
        }
        long row = offsetBytes / widthBytes;
        return start + row / rows * slicePitch + row % rows * pitch + offsetBytes % widthBytes;
    }

    /**
     * Copies a part of the contiguous form, in runs.
     *
     * @param offsetBytes offset of the part.
     * @param bytes its length.
     * @param copy copies a run.
     * @return 0, or the first other CUresult.
     */
    int copy(long offsetBytes, long bytes, RowCopy copy) {
        if (isContiguous()) {
            return copy.copy(start + offsetBytes, offsetBytes, bytes);
        }
        long at = offsetBytes;
        long end = offsetBytes + bytes;
        while (at < end) {
            long run = Math.min(widthBytes - at % widthBytes, end - at);
            int result = copy.copy(address(at), at, run);
            if (result != 0) {
                return result;
            }
            at += run;
        }
        return 0;
    }

    /** Product of two numbers below 2^62, or -1 when it is beyond any device. */
    private static long product(long a, long b) {
        if (a < 0 || b < 0) {
            return -1;
        }
        return Math.multiplyHigh(a, b) != 0 || a * b < 0 || a * b > MAX_EXTENT ? -1 : a * b;
    }

    private static long sum(long a, long b) {
        return a < 0 || b < 0 ? -1 : a + b;
    }
}
