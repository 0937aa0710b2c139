package io.hawser.worker.calls;

import io.hawser.cuda.generated.CUarraySparseSubresourceType;
import io.hawser.cuda.generated.HwsArrayPart;
import io.hawser.worker.session.ArrayShape;
import java.util.ArrayList;
import java.util.List;

/**
 * A part of an array that memory is mapped onto: a box in elements, or bytes of a mip tail along x. Each end is behind
 * the last.
 *
 * @param level of a box; {@link #TAIL} for a mip tail, {@link #WHOLE} for an array with deferred mapping.
 */
record ArrayPart(int level, long layer, long x, long y, long z, long endX, long endY, long endZ) {
    static final int TAIL = -1;
    static final int WHOLE = -2;
    /** No array is longer, and no tail has more bytes; keeps sums within a long. */
    private static final long MAX = 1L << 40;

    /**
     * Reads a guest's part of an array.
     *
     * @return null when no array of this shape can have it. The driver checks alignments and lengths.
     */
    static ArrayPart of(ArrayShape shape, HwsArrayPart part) {
        if (shape.isMappedWhole()) {
            return new ArrayPart(WHOLE, 0, 0, 0, 0, 1, 1, 1);
        }
        if (!isShort(part.layer(), part.x(), part.y(), part.z(), part.memoryOffset())) {
            return null;
        }
        if (part.tail() == CUarraySparseSubresourceType.CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
            return part.width() < 1 || !isShort(part.width()) ? null
                : new ArrayPart(TAIL, part.layer(), part.x(), 0, 0, part.x() + part.width(), 1, 1);
        }
        boolean isBox = part.tail() == CUarraySparseSubresourceType.CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL
            && part.level() >= 0 && part.level() < shape.levels() && isShort(part.width(), part.height(), part.depth())
            && part.width() >= 1 && part.height() >= 1 && part.depth() >= 1;
        return !isBox ? null : new ArrayPart((int) part.level(), part.layer(), part.x(), part.y(), part.z(),
            part.x() + part.width(), part.y() + part.height(), part.z() + part.depth());
    }

    private static boolean isShort(long... numbers) {
        for (long number : numbers) {
            if (number < 0 || number > MAX) {
                return false;
            }
        }
        return true;
    }

    boolean overlaps(ArrayPart other) {
        return level == other.level && layer == other.layer && x < other.endX && other.x < endX && y < other.endY
            && other.y < endY && z < other.endZ && other.z < endZ;
    }

    /** The rest of this part without another that overlaps it: at most six parts, without overlaps. */
    List<ArrayPart> without(ArrayPart other) {
        List<ArrayPart> rest = new ArrayList<>();
        long fromZ = Math.max(z, other.z);
        long toZ = Math.min(endZ, other.endZ);
        long fromY = Math.max(y, other.y);
        long toY = Math.min(endY, other.endY);
        add(rest, x, y, z, endX, endY, fromZ);
        add(rest, x, y, toZ, endX, endY, endZ);
        add(rest, x, y, fromZ, endX, fromY, toZ);
        add(rest, x, toY, fromZ, endX, endY, toZ);
        add(rest, x, fromY, fromZ, Math.max(x, other.x), toY, toZ);
        add(rest, Math.min(endX, other.endX), fromY, fromZ, endX, toY, toZ);
        return rest;
    }

    private void add(List<ArrayPart> rest, long fromX, long fromY, long fromZ, long toX, long toY, long toZ) {
        if (fromX < toX && fromY < toY && fromZ < toZ) {
            rest.add(new ArrayPart(level, layer, fromX, fromY, fromZ, toX, toY, toZ));
        }
    }
}
