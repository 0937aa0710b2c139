package io.hawser.worker.calls;

import io.hawser.cuda.generated.HwsExtent;
import io.hawser.cuda.generated.HwsPosition;

/**
 * The part of an array that a copy uses: {@code slices} times {@code rows} rows of {@code widthBytes}. Its bytes are
 * contiguous on the wire.
 *
 * @param xBytes first byte in a row.
 * @param y first row.
 * @param z first slice.
 * @param widthBytes length of a row's part.
 * @param rows rows in each slice.
 * @param slices slices.
 */
record ArrayBox(long xBytes, long y, long z, long widthBytes, long rows, long slices) {
    /** Copies a box that lies within a larger box. */
    @FunctionalInterface
    interface PartCopy {
        /**
         * Copies the box.
         *
         * @param part the smaller box.
         * @param offsetBytes offset of its bytes in the contiguous form of the larger box; they are contiguous there.
         * @return CUresult.
         */
        int copy(ArrayBox part, long offsetBytes);
    }

    /** Makes a box from the numbers on the wire, which are not checked. */
    static ArrayBox of(HwsPosition origin, HwsExtent extent) {
        return new ArrayBox(origin.xBytes(), origin.y(), origin.z(), extent.widthBytes(), extent.rows(),
            extent.slices());
    }

    /** Whether the box has no bytes. */
    boolean isEmpty() {
        return widthBytes == 0 || rows == 0 || slices == 0;
    }

    /** Length of the contiguous form, in bytes. */
    long bytes() {
        return widthBytes * rows * slices;
    }

    /**
     * Copies a part of the contiguous form, as at most five boxes: whole slices, whole rows and parts of rows.
     *
     * @param offsetBytes offset of the part, a multiple of the array's element.
     * @param bytes its length, over 0.
     * @param copy copies one box.
     * @return 0, or the first other CUresult.
     */
    int copy(long offsetBytes, long bytes, PartCopy copy) {
        long at = offsetBytes;
        long end = offsetBytes + bytes;
        while (at < end) {
            long row = at / widthBytes;
            long column = at % widthBytes;
            long rowsLeft = (end - at) / widthBytes;
            ArrayBox part;
            if (column != 0 || rowsLeft == 0) {
                part = part(column, row % rows, row / rows, Math.min(widthBytes - column, end - at), 1, 1);
            } else if (row % rows != 0 || rowsLeft < rows) {
                part = part(0, row % rows, row / rows, widthBytes, Math.min(rows - row % rows, rowsLeft), 1);
            } else {
                part = part(0, 0, row / rows, widthBytes, rows, rowsLeft / rows);
            }
            int result = copy.copy(part, at);
            if (result != 0) {
                return result;
            }
            at += part.bytes();
        }
        return 0;
    }

    private ArrayBox part(long column, long row, long slice, long partBytes, long partRows, long partSlices) {
        return new ArrayBox(xBytes + column, y + row, z + slice, partBytes, partRows, partSlices);
    }
}
