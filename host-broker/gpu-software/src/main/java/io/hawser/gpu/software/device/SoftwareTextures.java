package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.generated.CUDA_RESOURCE_DESC;
import io.hawser.cuda.generated.CUDA_RESOURCE_VIEW_DESC;
import io.hawser.cuda.generated.CUDA_TEXTURE_DESC;
import io.hawser.cuda.generated.CUaddress_mode;
import io.hawser.cuda.generated.CUarray_format;
import io.hawser.cuda.generated.CUresourceViewFormat;
import io.hawser.cuda.generated.CUresourcetype;
import io.hawser.gpu.software.exec.KernelObjects;
import io.hawser.gpu.software.exec.Sampler;
import io.hawser.gpu.software.exec.Sampler.AddressMode;
import io.hawser.gpu.software.exec.Surface;
import io.hawser.gpu.software.exec.TexelFormat;
import io.hawser.gpu.software.exec.TexelLevel;
import io.hawser.gpu.software.exec.Texture;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Texture and surface objects of the software GPU. The worker has checked handles and ranges of memory; this checks
 * everything that a fetch relies on. Decoder's thread only.
 */
final class SoftwareTextures {
    private static final System.Logger LOG = System.getLogger(SoftwareTextures.class.getName());
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    // CUDA 13.0 cuda.h, CU_TRSF_...
    private static final int READ_AS_INTEGER = 0x01;
    private static final int NORMALIZED_COORDINATES = 0x02;
    private static final int SRGB = 0x10;
    private static final int SEAMLESS_CUBEMAP = 0x40;
    private static final int KNOWN_FLAGS = READ_AS_INTEGER | NORMALIZED_COORDINATES | SRGB | SEAMLESS_CUBEMAP
        | 0x20; // CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION: the device has no such optimisation

    private final Device device;

    /** Texels as a resource or view describes them. */
    private record Texels(Texture.Shape shape, TexelFormat format, int channels, boolean normalizedFormat,
        List<TexelLevel> levels) {}

    SoftwareTextures(Device device) {
        this.device = device;
    }

    /** Creates a texture; see ArrayBackend. */
    int create(MemorySegment out, MemorySegment resource, MemorySegment texture, MemorySegment view) {
        int check = device.check();
        if (check != CUDA_SUCCESS) {
            return check;
        }
        boolean hasView = view.address() != 0 || !view.isNative();
        if (hasView && view.get(INT, CUDA_RESOURCE_VIEW_DESC.FORMAT_OFFSET)
            >= CUresourceViewFormat.CU_RES_VIEW_FORMAT_UNSIGNED_BC1) {
            return unsupported("a view of block-compressed texels");
        }
        Texels texels = texels(resource);
        if (texels != null && hasView) {
            texels = isArray(resource) ? view(texels, arrayOf(resource), view) : null;
        }
        Sampler sampler = texels == null ? null : sampler(texels, texture);
        if (sampler == null) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        int flags = texture.get(INT, CUDA_TEXTURE_DESC.FLAGS_OFFSET);
        boolean fractions = texels.normalizedFormat
            || (flags & READ_AS_INTEGER) == 0 && !texels.format.isFloating() && !texels.format.isWide();
        boolean srgb = (flags & SRGB) != 0 && fractions && texels.format == TexelFormat.U8;
        if (sampler.linear() && !fractions && !texels.format.isFloating() && texels.shape != Texture.Shape.BUFFER) {
            return unsupported("linear filtering of integers");
        }
        return add(out, new Texture(texels.shape, texels.format, texels.channels, fractions, srgb, texels.levels,
            sampler));
    }

    /** Creates a surface; see ArrayBackend. */
    int createSurface(MemorySegment out, MemorySegment resource) {
        int check = device.check();
        if (check != CUDA_SUCCESS) {
            return check;
        }
        ArrayMemory array = resource.get(INT, CUDA_RESOURCE_DESC.RES_TYPE_OFFSET)
            == CUresourcetype.CU_RESOURCE_TYPE_ARRAY ? arrayOf(resource) : null;
        if (array == null) { // an array may lack CUDA_ARRAY3D_SURFACE_LDST, as with driver 580
            return CUDA_ERROR_INVALID_VALUE;
        }
        return add(out, new Surface(level(array), (int) array.rowBytes()));
    }

    private int add(MemorySegment out, KernelObjects.Entry object) {
        long number = device.memory.arena().objects().add(device.current().owner, object);
        out.set(LONG, 0, number);
        return number == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }

    /** Destroys a texture or surface when the work that may use it has ended. */
    int destroy(long number) {
        int check = device.check();
        KernelObjects objects = device.memory.arena().objects();
        if (check == CUDA_SUCCESS && !objects.contains(number)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (check == CUDA_SUCCESS) {
            device.current().owner.issueAfterAll(() -> objects.remove(number));
        }
        return check;
    }

    private static int unsupported(String what) {
        LOG.log(System.Logger.Level.WARNING, "a texture is refused: not supported by the software GPU: " + what);
        return CUDA_ERROR_NOT_SUPPORTED;
    }

    private static boolean isArray(MemorySegment resource) {
        int type = resource.get(INT, CUDA_RESOURCE_DESC.RES_TYPE_OFFSET);
        return type == CUresourcetype.CU_RESOURCE_TYPE_ARRAY || type == CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    }

    /** The array of a resource, or the first level of its mipmapped array; null if there is none. */
    private ArrayMemory arrayOf(MemorySegment resource) {
        long handle = resource.get(LONG, CUDA_RESOURCE_DESC.RES_ARRAY_H_ARRAY_OFFSET);
        SoftwareArrays.Mipmap mipmap = device.handles.get(handle, SoftwareArrays.Mipmap.class);
        return device.handles.get(mipmap == null ? handle : mipmap.levels().get(0), ArrayMemory.class);
    }

    /** The texels of a resource; null if it is invalid. */
    private Texels texels(MemorySegment resource) {
        return switch (resource.get(INT, CUDA_RESOURCE_DESC.RES_TYPE_OFFSET)) {
            case CUresourcetype.CU_RESOURCE_TYPE_ARRAY, CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY ->
                ofArrays(resource);
            case CUresourcetype.CU_RESOURCE_TYPE_LINEAR -> {
                ArrayMemory element = element(resource.get(INT, CUDA_RESOURCE_DESC.RES_LINEAR_FORMAT_OFFSET),
                    resource.get(INT, CUDA_RESOURCE_DESC.RES_LINEAR_NUM_CHANNELS_OFFSET));
                long bytes = resource.get(LONG, CUDA_RESOURCE_DESC.RES_LINEAR_SIZE_IN_BYTES_OFFSET);
                long width = element == null ? 0 : bytes / element.elementBytes();
                if (width > ArrayMemory.MAX_LINEAR) {
                    yield null;
                }
                yield ofMemory(Texture.Shape.BUFFER, element,
                    resource.get(LONG, CUDA_RESOURCE_DESC.RES_LINEAR_DEV_PTR_OFFSET), width, 1, bytes);
            }
            case CUresourcetype.CU_RESOURCE_TYPE_PITCH2D -> {
                ArrayMemory element = element(resource.get(INT, CUDA_RESOURCE_DESC.RES_PITCH2_D_FORMAT_OFFSET),
                    resource.get(INT, CUDA_RESOURCE_DESC.RES_PITCH2_D_NUM_CHANNELS_OFFSET));
                long width = resource.get(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_WIDTH_OFFSET);
                long height = resource.get(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_HEIGHT_OFFSET);
                long pitch = resource.get(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_PITCH_IN_BYTES_OFFSET);
                boolean fits = element != null && width >= 1 && width <= ArrayMemory.MAX_1D && height >= 1
                    && height <= ArrayMemory.MAX_PITCHED_HEIGHT && pitch <= ArrayMemory.MAX_PITCH
                    && pitch % Properties.TEXTURE_PITCH_BYTES == 0 && width * element.elementBytes() <= pitch;
                if (!fits) {
                    yield null;
                }
                yield ofMemory(Texture.Shape.FLAT, element,
                    resource.get(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_DEV_PTR_OFFSET), width, (int) height, pitch);
            }
            default -> null;
        };
    }

    /** One element of a format; null for an unknown format. */
    private static ArrayMemory element(int format, int channels) {
        ArrayMemory element = new ArrayMemory(0, 1, 0, 0, format, channels, 0);
        return element.elementBytes() == 0 ? null : element;
    }

    private Texels ofMemory(Texture.Shape shape, ArrayMemory element, long address, long width, int height,
        long pitch) {
        if (element == null || width < 1 || address % Properties.TEXTURE_BYTES != 0
            || !device.memory.arena().isAllocated(address, pitch * (height - 1L) + width * element.elementBytes())) {
            return null;
        }
        return new Texels(shape, format(element.format()), element.channels(), isNormalized(element.format()),
            List.of(new TexelLevel(address, (int) width, height, 1, pitch)));
    }

    private Texels ofArrays(MemorySegment resource) {
        ArrayMemory first = arrayOf(resource);
        if (first == null) {
            return null;
        }
        boolean isLayered = (first.flags() & ArrayMemory.LAYERED) != 0;
        Texture.Shape shape = (first.flags() & ArrayMemory.CUBEMAP) != 0
            ? isLayered ? Texture.Shape.LAYERED_CUBE : Texture.Shape.CUBE
            : isLayered ? Texture.Shape.LAYERED : first.depth() > 0 ? Texture.Shape.VOLUME : Texture.Shape.FLAT;
        List<TexelLevel> levels = new ArrayList<>();
        SoftwareArrays.Mipmap mipmap = device.handles.get(
            resource.get(LONG, CUDA_RESOURCE_DESC.RES_ARRAY_H_ARRAY_OFFSET), SoftwareArrays.Mipmap.class);
        if (mipmap == null) {
            levels.add(level(first));
        } else {
            mipmap.levels().forEach(handle -> levels.add(level(device.handles.get(handle, ArrayMemory.class))));
        }
        return new Texels(shape, format(first.format()), first.channels(), isNormalized(first.format()),
            List.copyOf(levels));
    }

    private static TexelLevel level(ArrayMemory array) {
        return new TexelLevel(array.address(), (int) array.width(), (int) array.rows(), (int) array.slices(),
            array.rowBytes());
    }

    private static TexelFormat format(int format) {
        return switch (format) {
            case CUarray_format.CU_AD_FORMAT_SIGNED_INT8, CUarray_format.CU_AD_FORMAT_SNORM_INT8X1,
                CUarray_format.CU_AD_FORMAT_SNORM_INT8X2, CUarray_format.CU_AD_FORMAT_SNORM_INT8X4 -> TexelFormat.S8;
            case CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16, CUarray_format.CU_AD_FORMAT_UNORM_INT16X1,
                CUarray_format.CU_AD_FORMAT_UNORM_INT16X2, CUarray_format.CU_AD_FORMAT_UNORM_INT16X4 ->
                TexelFormat.U16;
            case CUarray_format.CU_AD_FORMAT_SIGNED_INT16, CUarray_format.CU_AD_FORMAT_SNORM_INT16X1,
                CUarray_format.CU_AD_FORMAT_SNORM_INT16X2, CUarray_format.CU_AD_FORMAT_SNORM_INT16X4 ->
                TexelFormat.S16;
            case CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32 -> TexelFormat.U32;
            case CUarray_format.CU_AD_FORMAT_SIGNED_INT32 -> TexelFormat.S32;
            case CUarray_format.CU_AD_FORMAT_HALF -> TexelFormat.F16;
            case CUarray_format.CU_AD_FORMAT_FLOAT -> TexelFormat.F32;
            default -> TexelFormat.U8;
        };
    }

    /** Whether a format itself makes fractions of integers. */
    private static boolean isNormalized(int format) {
        return format >= CUarray_format.CU_AD_FORMAT_UNORM_INT8X1
            && format <= CUarray_format.CU_AD_FORMAT_SNORM_INT16X4;
    }

    /** The part of an array's texels that a view selects, in its format; null if the view is invalid. */
    private static Texels view(Texels texels, ArrayMemory array, MemorySegment view) {
        int firstLevel = view.get(INT, CUDA_RESOURCE_VIEW_DESC.FIRST_MIPMAP_LEVEL_OFFSET);
        int lastLevel = view.get(INT, CUDA_RESOURCE_VIEW_DESC.LAST_MIPMAP_LEVEL_OFFSET);
        int firstLayer = view.get(INT, CUDA_RESOURCE_VIEW_DESC.FIRST_LAYER_OFFSET);
        int lastLayer = view.get(INT, CUDA_RESOURCE_VIEW_DESC.LAST_LAYER_OFFSET);
        boolean isLayered = (array.flags() & ArrayMemory.LAYERED) != 0;
        boolean isPossible = view.get(LONG, CUDA_RESOURCE_VIEW_DESC.WIDTH_OFFSET) == array.width()
            && view.get(LONG, CUDA_RESOURCE_VIEW_DESC.HEIGHT_OFFSET) == array.height()
            && view.get(LONG, CUDA_RESOURCE_VIEW_DESC.DEPTH_OFFSET) == array.depth()
            && firstLevel >= 0 && firstLevel <= lastLevel && lastLevel < texels.levels.size()
            && firstLayer >= 0 && firstLayer <= lastLayer && lastLayer < (isLayered ? array.depth() : 1);
        int format = view.get(INT, CUDA_RESOURCE_VIEW_DESC.FORMAT_OFFSET);
        if (!isPossible || format < 0) {
            return null;
        }
        // Formats from 1 on: unsigned, signed integers of 8, 16, 32 bits and floats of 16, 32 bits, with 1, 2, 4
        // channels each.
        TexelFormat[] formats = {TexelFormat.U8, TexelFormat.S8, TexelFormat.U16, TexelFormat.S16, TexelFormat.U32,
            TexelFormat.S32, TexelFormat.F16, TexelFormat.F32};
        boolean isSame = format == CUresourceViewFormat.CU_RES_VIEW_FORMAT_NONE;
        TexelFormat seen = isSame ? texels.format : formats[(format - 1) / 3];
        int channels = isSame ? texels.channels : 1 << (format - 1) % 3;
        if (seen.bytes() * channels != array.elementBytes()) {
            return null;
        }
        List<TexelLevel> levels = texels.levels.subList(firstLevel, lastLevel + 1);
        if (isLayered) {
            levels = levels.stream().map(level -> layers(level, firstLayer, lastLayer)).toList();
        }
        return texels.shape == Texture.Shape.LAYERED_CUBE && levels.get(0).depth() % 6 != 0 ? null
            : new Texels(texels.shape, seen, channels, isSame && texels.normalizedFormat, List.copyOf(levels));
    }

    private static TexelLevel layers(TexelLevel level, int first, int last) {
        return new TexelLevel(level.address() + first * (long) level.height() * level.pitch(), level.width(),
            level.height(), last - first + 1, level.pitch());
    }

    /** The rules of a texture descriptor; null if it is invalid. */
    private static Sampler sampler(Texels texels, MemorySegment texture) {
        int flags = texture.get(INT, CUDA_TEXTURE_DESC.FLAGS_OFFSET);
        int filter = texture.get(INT, CUDA_TEXTURE_DESC.FILTER_MODE_OFFSET);
        int levelFilter = texture.get(INT, CUDA_TEXTURE_DESC.MIPMAP_FILTER_MODE_OFFSET);
        boolean isCube = texels.shape == Texture.Shape.CUBE || texels.shape == Texture.Shape.LAYERED_CUBE;
        boolean isNormalized = (flags & NORMALIZED_COORDINATES) != 0 || isCube;
        AddressMode[] modes = new AddressMode[3];
        for (int i = 0; i < modes.length; i++) {
            int mode = texture.get(INT, CUDA_TEXTURE_DESC.ADDRESS_MODE_OFFSET + 4L * i);
            modes[i] = switch (mode) {
                // As CUDA documents: these two need normalised coordinates.
                case CUaddress_mode.CU_TR_ADDRESS_MODE_WRAP -> isNormalized ? AddressMode.WRAP : AddressMode.CLAMP;
                case CUaddress_mode.CU_TR_ADDRESS_MODE_MIRROR -> isNormalized ? AddressMode.MIRROR : AddressMode.CLAMP;
                case CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP -> AddressMode.CLAMP;
                case CUaddress_mode.CU_TR_ADDRESS_MODE_BORDER -> AddressMode.BORDER;
                default -> null;
            };
        }
        boolean isKnown = modes[0] != null && modes[1] != null && modes[2] != null && (flags & ~KNOWN_FLAGS) == 0
            && (filter & ~1) == 0 && (levelFilter & ~1) == 0;
        if (!isKnown || texels.levels.size() > 1 && !isNormalized) {
            return null;
        }
        return new Sampler(modes[0], modes[1], modes[2], filter == 1, isNormalized, levelFilter == 1,
            texture.get(FLOAT, CUDA_TEXTURE_DESC.MIPMAP_LEVEL_BIAS_OFFSET),
            texture.get(FLOAT, CUDA_TEXTURE_DESC.MIN_MIPMAP_LEVEL_CLAMP_OFFSET),
            texture.get(FLOAT, CUDA_TEXTURE_DESC.MAX_MIPMAP_LEVEL_CLAMP_OFFSET),
            new Sampler.Border(border(texture, 0), border(texture, 1), border(texture, 2), border(texture, 3)),
            (flags & SEAMLESS_CUBEMAP) != 0, texture.get(INT, CUDA_TEXTURE_DESC.MAX_ANISOTROPY_OFFSET));
    }

    /** A channel of the border: integers are stored as the bits of floats. */
    private static int border(MemorySegment texture, int channel) {
        return texture.get(INT, CUDA_TEXTURE_DESC.BORDER_COLOR_OFFSET + 4L * channel);
    }
}
