package io.hawser.worker.session;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.generated.CUDA_ARRAY3D_DESCRIPTOR;
import io.hawser.cuda.generated.CUarray_format;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The shape of an array or mipmapped array. Lengths are in elements; a height or depth of 0 means that the array does
 * not have that dimension.
 *
 * @param width from 1.
 * @param height rows.
 * @param depth slices or layers.
 * @param elementBytes bytes of all channels of an element.
 * @param flags CUDA_ARRAY3D_...
 * @param levels from 1; over 1 for a mipmapped array only.
 * @param chargedBytes its charge on the quota; 0 for a level, because the mipmapped array holds the charge.
 */
public record ArrayShape(long width, long height, long depth, int elementBytes, int flags, int levels,
    long chargedBytes) {
    /**
     * Longest side in elements: more than any device supports. The product of three sides and an element fits a long.
     */
    static final long MAX_LENGTH = 1L << 18;
    /** CUDA clamps the number of levels to this: 1 + log2 of the longest side. */
    static final int MAX_LEVELS = 18 + 1;

    // CUDA 13.0 cuda.h, CUDA_ARRAY3D_...
    private static final int LAYERED = 0x01;
    private static final int SURFACE_LDST = 0x02;
    private static final int CUBEMAP = 0x04;
    private static final int TEXTURE_GATHER = 0x08;
    private static final int COLOR_ATTACHMENT = 0x20;
    private static final int SPARSE = 0x40;
    private static final int DEFERRED_MAPPING = 0x80;
    private static final int KNOWN_FLAGS = LAYERED | SURFACE_LDST | CUBEMAP | TEXTURE_GATHER | COLOR_ATTACHMENT
        | SPARSE | DEFERRED_MAPPING;

    /*
     * The driver does not report the size of an array, so the quota computes it. Measured with NVIDIA's driver on an
     * H200: rows are stored in tiles of 64 bytes by 8 rows. Tiles form blocks of up to 16 tiles; low arrays have
     * smaller blocks. Larger arrays occupy pages of 2 MiB.
     */
    private static final long TILE_BYTES = 64;
    private static final long TILE_ROWS = 8;
    private static final long BLOCK_ROWS = 128;
    private static final long PAGE_BYTES = 64 << 10;
    private static final long LARGE_BYTES = 1 << 20;
    private static final long LARGE_PAGE_BYTES = 2 << 20;

    /**
     * Reads a guest's descriptor.
     *
     * @param descriptor the struct CUDA_ARRAY3D_DESCRIPTOR.
     * @param levels number of levels.
     * @return null when no array can have this shape.
     */
    public static ArrayShape of(MemorySegment descriptor, int levels) {
        long width = descriptor.get(ValueLayout.JAVA_LONG_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.WIDTH_OFFSET);
        long height = descriptor.get(ValueLayout.JAVA_LONG_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.HEIGHT_OFFSET);
        long depth = descriptor.get(ValueLayout.JAVA_LONG_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.DEPTH_OFFSET);
        int flags = descriptor.get(ValueLayout.JAVA_INT_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.FLAGS_OFFSET);
        int elementBytes = elementBytes(
            descriptor.get(ValueLayout.JAVA_INT_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.FORMAT_OFFSET),
            descriptor.get(ValueLayout.JAVA_INT_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.NUM_CHANNELS_OFFSET));
        boolean fits = width >= 1 && width <= MAX_LENGTH && height >= 0 && height <= MAX_LENGTH && depth >= 0
            && depth <= MAX_LENGTH && levels >= 1 && levels <= MAX_LEVELS;
        if (!fits || elementBytes == 0 || (flags & ~KNOWN_FLAGS) != 0) {
            return null;
        }
        ArrayShape shape = new ArrayShape(width, height, depth, elementBytes, flags, levels, 0);
        if (shape.isMappedLater()) {
            return shape; // the guest's own memory is mapped onto it
        }
        long bytes = 0;
        for (int level = 0; level < levels; level++) {
            bytes += shape.level(level).tiledBytes();
        }
        return new ArrayShape(width, height, depth, elementBytes, flags, levels,
            roundUp(bytes, bytes > LARGE_BYTES ? LARGE_PAGE_BYTES : PAGE_BYTES));
    }

    /**
     * Bytes of an element.
     *
     * @param format a CUarray_format of the guest's.
     * @param channels number of channels of the guest's.
     * @return 0 for formats that arrays and textures do not support here: planar, packed and block-compressed ones.
     */
    public static int elementBytes(int format, int channels) {
        if (channels != 1 && channels != 2 && channels != 4) {
            return 0;
        }
        return channels * switch (format) {
            case CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8, CUarray_format.CU_AD_FORMAT_SIGNED_INT8,
                CUarray_format.CU_AD_FORMAT_UNORM_INT8X1, CUarray_format.CU_AD_FORMAT_UNORM_INT8X2,
                CUarray_format.CU_AD_FORMAT_UNORM_INT8X4, CUarray_format.CU_AD_FORMAT_SNORM_INT8X1,
                CUarray_format.CU_AD_FORMAT_SNORM_INT8X2, CUarray_format.CU_AD_FORMAT_SNORM_INT8X4 -> 1;
            case CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16, CUarray_format.CU_AD_FORMAT_SIGNED_INT16,
                CUarray_format.CU_AD_FORMAT_HALF, CUarray_format.CU_AD_FORMAT_UNORM_INT16X1,
                CUarray_format.CU_AD_FORMAT_UNORM_INT16X2, CUarray_format.CU_AD_FORMAT_UNORM_INT16X4,
                CUarray_format.CU_AD_FORMAT_SNORM_INT16X1, CUarray_format.CU_AD_FORMAT_SNORM_INT16X2,
                CUarray_format.CU_AD_FORMAT_SNORM_INT16X4 -> 2;
            case CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32, CUarray_format.CU_AD_FORMAT_SIGNED_INT32,
                CUarray_format.CU_AD_FORMAT_FLOAT -> 4;
            default -> 0;
        };
    }

    /** Whether the array has no memory until the guest maps its own onto it. */
    public boolean isMappedLater() {
        return (flags & (SPARSE | DEFERRED_MAPPING)) != 0;
    }

    /** Whether memory is mapped onto the whole array, not onto its parts. */
    public boolean isMappedWhole() {
        return (flags & DEFERRED_MAPPING) != 0;
    }

    /**
     * The shape of a level.
     *
     * @param level below {@link #levels}.
     * @return the shape, with no charge.
     */
    public ArrayShape level(int level) {
        boolean hasLayers = (flags & (LAYERED | CUBEMAP)) != 0;
        return new ArrayShape(halved(width, level), halved(height, level), hasLayers ? depth : halved(depth, level),
            elementBytes, flags, 1, 0);
    }

    private static long halved(long length, int times) {
        return length == 0 ? 0 : Math.max(length >> times, 1);
    }

    /**
     * Whether a box lies in the array; it may begin and end inside elements.
     *
     * @param xBytes first byte in a row.
     * @param y first row.
     * @param z first slice.
     * @param widthBytes length of a row's part.
     * @param rows rows in each slice.
     * @param slices slices.
     * @return false for any other numbers, of every size and sign.
     */
    public boolean contains(long xBytes, long y, long z, long widthBytes, long rows, long slices) {
        return isWithin(xBytes, widthBytes, width * elementBytes) && isWithin(y, rows, Math.max(height, 1))
            && isWithin(z, slices, Math.max(depth, 1));
    }

    private static boolean isWithin(long first, long count, long limit) {
        return first >= 0 && count >= 0 && count <= limit && first <= limit - count;
    }

    private long tiledBytes() {
        long row = roundUp(width * elementBytes, TILE_BYTES);
        long rows = Math.max(height, 1);
        long blockRows = Math.clamp(Long.highestOneBit(2 * rows - 1), TILE_ROWS, BLOCK_ROWS);
        return Sizes.multiply(Sizes.multiply(row, roundUp(rows, blockRows)), Math.max(depth, 1));
    }

    private static long roundUp(long value, long unit) {
        return value + unit - 1 & -unit;
    }
}
