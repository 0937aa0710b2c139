package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUdevice_attribute.*;

import io.hawser.cuda.generated.CUDA_ARRAY3D_DESCRIPTOR;
import io.hawser.cuda.generated.CUarray_format;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A CUDA array: rows without gaps, slice after slice, in device memory. Lengths are in elements; a height or depth of 0
 * means that the array lacks that dimension.
 */
record ArrayMemory(long address, long width, long height, long depth, int format, int channels, int flags) {
    // CUDA 13.0 cuda.h, CUDA_ARRAY3D_...
    static final int LAYERED = 0x01;
    static final int SURFACE_LDST = 0x02;
    static final int CUBEMAP = 0x04;
    static final int TEXTURE_GATHER = 0x08;
    /** Sparse arrays and deferred mapping: the device attributes state that this GPU has neither. */
    private static final int MAPPED_LATER = 0x40 | 0x80;
    private static final int KNOWN_FLAGS = LAYERED | SURFACE_LDST | CUBEMAP | TEXTURE_GATHER;

    // The limits of compute capability 7.5, CUDA programming guide.
    static final int MAX_1D = 131072;
    private static final int MAX_2D_HEIGHT = 65536;
    private static final int MAX_3D = 16384;
    private static final int MAX_LAYERED = 32768;
    private static final int MAX_LAYERS = 2048;
    private static final int MAX_CUBES = 2046;
    private static final int MAX_MIPMAPPED = 32768;
    /** Texels of linear memory. */
    static final int MAX_LINEAR = 1 << 27;
    static final int MAX_PITCHED_HEIGHT = 65000;
    static final int MAX_PITCH = 2097120;

    /** The shape that a descriptor requests, without memory; null when no array can have that shape. */
    static ArrayMemory of(MemorySegment descriptor) {
        ArrayMemory shape = new ArrayMemory(0,
            descriptor.get(ValueLayout.JAVA_LONG_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.WIDTH_OFFSET),
            descriptor.get(ValueLayout.JAVA_LONG_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.HEIGHT_OFFSET),
            descriptor.get(ValueLayout.JAVA_LONG_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.DEPTH_OFFSET),
            descriptor.get(ValueLayout.JAVA_INT_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.FORMAT_OFFSET),
            descriptor.get(ValueLayout.JAVA_INT_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.NUM_CHANNELS_OFFSET),
            descriptor.get(ValueLayout.JAVA_INT_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.FLAGS_OFFSET));
        return shape.elementBytes() != 0 && shape.isPossible() ? shape : null;
    }

    /** Whether a descriptor asks for an array whose memory the program maps later. */
    static boolean isMappedLater(MemorySegment descriptor) {
        return (descriptor.get(ValueLayout.JAVA_INT_UNALIGNED, CUDA_ARRAY3D_DESCRIPTOR.FLAGS_OFFSET)
            & MAPPED_LATER) != 0;
    }

    private boolean isPossible() {
        boolean isLayered = (flags & LAYERED) != 0;
        if (width < 1 || height < 0 || depth < 0 || (flags & ~KNOWN_FLAGS) != 0) {
            return false;
        }
        if ((flags & TEXTURE_GATHER) != 0 && (height == 0 || depth != 0 || width > MAX_LAYERED
            || height > MAX_LAYERED)) {
            return false;
        }
        if ((flags & CUBEMAP) != 0) {
            return width == height && width <= MAX_LAYERED
                && (isLayered ? depth > 0 && depth % 6 == 0 && depth <= MAX_CUBES : depth == 6);
        }
        if (isLayered) {
            return depth >= 1 && depth <= MAX_LAYERS && width <= MAX_LAYERED && height <= MAX_LAYERED;
        }
        if (depth != 0) {
            return height != 0 && width <= MAX_3D && height <= MAX_3D && depth <= MAX_3D;
        }
        return width <= MAX_1D && height <= MAX_2D_HEIGHT;
    }

    /** Sets the device attributes that state the limits. */
    static void describe(int[] attributes) {
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH] = MAX_1D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH] = MAX_1D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT] = MAX_2D_HEIGHT;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH] = MAX_3D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT] = MAX_3D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH] = MAX_3D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS] = MAX_LAYERS;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS] = MAX_LAYERS;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS] = MAX_CUBES;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH] = MAX_LINEAR;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH] = MAX_1D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT] = MAX_PITCHED_HEIGHT;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH] = MAX_PITCH;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH] = MAX_MIPMAPPED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH] = MAX_MIPMAPPED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT] = MAX_MIPMAPPED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH] = MAX_1D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT] = MAX_2D_HEIGHT;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH] = MAX_3D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT] = MAX_3D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH] = MAX_3D;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS] = MAX_LAYERS;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS] = MAX_LAYERS;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH] = MAX_LAYERED;
        attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS] = MAX_CUBES;
    }

    /** The same shape at an address. */
    ArrayMemory at(long newAddress) {
        return new ArrayMemory(newAddress, width, height, depth, format, channels, flags);
    }

    /** The shape of a level of a mipmapped array whose first level has this shape. */
    ArrayMemory level(int level) {
        boolean hasLayers = (flags & (LAYERED | CUBEMAP)) != 0;
        return new ArrayMemory(0, halved(width, level), halved(height, level),
            hasLayers ? depth : halved(depth, level), format, channels, flags);
    }

    /** The most levels that a mipmapped array of this shape has: CUDA clamps their number. */
    int levels() {
        boolean hasLayers = (flags & (LAYERED | CUBEMAP)) != 0;
        long longest = Math.max(Math.max(width, height), hasLayers ? 0 : depth);
        return Long.SIZE - Long.numberOfLeadingZeros(longest);
    }

    private static long halved(long length, int times) {
        return length == 0 ? 0 : Math.max(length >> times, 1);
    }

    /** Bytes of an element; 0 for an unsupported format. */
    int elementBytes() {
        int channelBytes = switch (format) {
            case CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8, CUarray_format.CU_AD_FORMAT_SIGNED_INT8 -> 1;
            case CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16, CUarray_format.CU_AD_FORMAT_SIGNED_INT16,
                CUarray_format.CU_AD_FORMAT_HALF -> 2;
            case CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32, CUarray_format.CU_AD_FORMAT_SIGNED_INT32,
                CUarray_format.CU_AD_FORMAT_FLOAT -> 4;
            case CUarray_format.CU_AD_FORMAT_UNORM_INT8X1, CUarray_format.CU_AD_FORMAT_SNORM_INT8X1 ->
                channels == 1 ? 1 : 0;
            case CUarray_format.CU_AD_FORMAT_UNORM_INT8X2, CUarray_format.CU_AD_FORMAT_SNORM_INT8X2 ->
                channels == 2 ? 1 : 0;
            case CUarray_format.CU_AD_FORMAT_UNORM_INT8X4, CUarray_format.CU_AD_FORMAT_SNORM_INT8X4 ->
                channels == 4 ? 1 : 0;
            case CUarray_format.CU_AD_FORMAT_UNORM_INT16X1, CUarray_format.CU_AD_FORMAT_SNORM_INT16X1 ->
                channels == 1 ? 2 : 0;
            case CUarray_format.CU_AD_FORMAT_UNORM_INT16X2, CUarray_format.CU_AD_FORMAT_SNORM_INT16X2 ->
                channels == 2 ? 2 : 0;
            case CUarray_format.CU_AD_FORMAT_UNORM_INT16X4, CUarray_format.CU_AD_FORMAT_SNORM_INT16X4 ->
                channels == 4 ? 2 : 0;
            default -> 0;
        };
        return channels == 1 || channels == 2 || channels == 4 ? channels * channelBytes : 0;
    }

    long rowBytes() {
        return width * elementBytes();
    }

    long rows() {
        return Math.max(height, 1);
    }

    long slices() {
        return Math.max(depth, 1);
    }

    /** Size of the whole array. */
    long bytes() {
        return rowBytes() * rows() * slices();
    }
}
