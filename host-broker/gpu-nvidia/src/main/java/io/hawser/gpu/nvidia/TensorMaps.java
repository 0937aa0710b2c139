package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.generated.CUtensorMap;
import io.hawser.cuda.generated.CudaTensorMapNative;
import io.hawser.cuda.generated.HwsTensorMap;
import java.lang.foreign.MemorySegment;

/** Tensor maps by the driver. Session thread only. */
final class TensorMaps {
    private TensorMaps() {
    }

    /** Encodes the tensor map that an HwsTensorMap describes. */
    static int encode(MemorySegment params, MemorySegment map) {
        int type = params.get(JAVA_INT, HwsTensorMap.DATA_TYPE_OFFSET);
        int rank = params.get(JAVA_INT, HwsTensorMap.RANK_OFFSET);
        MemorySegment address = MemorySegment.ofAddress(params.get(JAVA_LONG, HwsTensorMap.ADDRESS_OFFSET));
        MemorySegment dims = params.asSlice(HwsTensorMap.DIMS_OFFSET);
        MemorySegment strides = params.asSlice(HwsTensorMap.STRIDES_OFFSET);
        MemorySegment elements = params.asSlice(HwsTensorMap.ELEMENT_STRIDES_OFFSET);
        MemorySegment lower = params.asSlice(HwsTensorMap.LOWER_OFFSET);
        MemorySegment upper = params.asSlice(HwsTensorMap.UPPER_OFFSET);
        int channels = params.get(JAVA_INT, HwsTensorMap.CHANNELS_PER_PIXEL_OFFSET);
        int pixels = params.get(JAVA_INT, HwsTensorMap.PIXELS_PER_COLUMN_OFFSET);
        int interleave = params.get(JAVA_INT, HwsTensorMap.INTERLEAVE_OFFSET);
        int swizzle = params.get(JAVA_INT, HwsTensorMap.SWIZZLE_OFFSET);
        int promotion = params.get(JAVA_INT, HwsTensorMap.L2_PROMOTION_OFFSET);
        int fill = params.get(JAVA_INT, HwsTensorMap.OOB_FILL_OFFSET);
        return switch (params.get(JAVA_INT, HwsTensorMap.KIND_OFFSET)) {
            case 0 -> CudaTensorMapNative.cuTensorMapEncodeTiled(map, type, rank, address, dims, strides,
                params.asSlice(HwsTensorMap.BOX_OFFSET), elements, interleave, swizzle, promotion, fill);
            case 1 -> CudaTensorMapNative.cuTensorMapEncodeIm2col(map, type, rank, address, dims, strides, lower, upper,
                channels, pixels, elements, interleave, swizzle, promotion, fill);
            case 2 -> CudaTensorMapNative.cuTensorMapEncodeIm2colWide(map, type, rank, address, dims, strides,
                lower.get(JAVA_INT, 0), upper.get(JAVA_INT, 0), channels, pixels, elements, interleave,
                params.get(JAVA_INT, HwsTensorMap.MODE_OFFSET), swizzle, promotion, fill);
            default -> {
                map.copyFrom(params.asSlice(HwsTensorMap.MAP_OFFSET, CUtensorMap.BYTES));
                yield CudaTensorMapNative.cuTensorMapReplaceAddress(map, address);
            }
        };
    }
}
