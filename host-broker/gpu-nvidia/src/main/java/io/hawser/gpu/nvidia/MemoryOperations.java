package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CUtensorMap;
import io.hawser.cuda.generated.HwsTensorMap;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Functions of the driver for stream memory operations, tensor maps and clusters. Session thread only. */
final class MemoryOperations {
    private static final NativeLibrary LIBRARY = NativeLibrary.open(NvidiaProvider.LIBRARY);
    private static final MethodHandle CU_STREAM_BATCH_MEM_OP_V2 = find("cuStreamBatchMemOp_v2", JAVA_LONG, JAVA_INT,
        ADDRESS, JAVA_INT);
    private static final MethodHandle CU_OCCUPANCY_MAX_ACTIVE_CLUSTERS = find("cuOccupancyMaxActiveClusters", ADDRESS,
        JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_OCCUPANCY_MAX_POTENTIAL_CLUSTER_SIZE =
        find("cuOccupancyMaxPotentialClusterSize", ADDRESS, JAVA_LONG, ADDRESS);
    private static final MethodHandle CU_TENSOR_MAP_ENCODE_TILED = find("cuTensorMapEncodeTiled", ADDRESS, JAVA_INT,
        JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
    private static final MethodHandle CU_TENSOR_MAP_ENCODE_IM2COL = find("cuTensorMapEncodeIm2col", ADDRESS, JAVA_INT,
        JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT,
        JAVA_INT, JAVA_INT);
    private static final MethodHandle CU_TENSOR_MAP_ENCODE_IM2COL_WIDE = find("cuTensorMapEncodeIm2colWide", ADDRESS,
        JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT,
        JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
    private static final MethodHandle CU_TENSOR_MAP_REPLACE_ADDRESS = find("cuTensorMapReplaceAddress", ADDRESS,
        JAVA_LONG);

    private MemoryOperations() {
    }

    private static MethodHandle find(String symbol, MemoryLayout... parameters) {
        return LIBRARY.find(symbol, CUresult.CUDA_ERROR_NOT_SUPPORTED, parameters);
    }

    static int cuStreamBatchMemOp(long stream, int count, MemorySegment params) {
        try {
            return (int) CU_STREAM_BATCH_MEM_OP_V2.invokeExact(stream, count, params, 0);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuOccupancyMaxActiveClusters(MemorySegment clusters, long function, MemorySegment config) {
        try {
            return (int) CU_OCCUPANCY_MAX_ACTIVE_CLUSTERS.invokeExact(clusters, function, config);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    static int cuOccupancyMaxPotentialClusterSize(MemorySegment size, long function, MemorySegment config) {
        try {
            return (int) CU_OCCUPANCY_MAX_POTENTIAL_CLUSTER_SIZE.invokeExact(size, function, config);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    /** Encodes the tensor map that an HwsTensorMap describes. */
    static int tensorMap(MemorySegment params, MemorySegment map) {
        int type = params.get(JAVA_INT, HwsTensorMap.DATA_TYPE_OFFSET);
        int rank = params.get(JAVA_INT, HwsTensorMap.RANK_OFFSET);
        long address = params.get(JAVA_LONG, HwsTensorMap.ADDRESS_OFFSET);
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
        try {
            return switch (params.get(JAVA_INT, HwsTensorMap.KIND_OFFSET)) {
                case 0 -> (int) CU_TENSOR_MAP_ENCODE_TILED.invokeExact(map, type, rank, address, dims, strides,
                    params.asSlice(HwsTensorMap.BOX_OFFSET), elements, interleave, swizzle, promotion, fill);
                case 1 -> (int) CU_TENSOR_MAP_ENCODE_IM2COL.invokeExact(map, type, rank, address, dims, strides, lower,
                    upper, channels, pixels, elements, interleave, swizzle, promotion, fill);
                case 2 -> (int) CU_TENSOR_MAP_ENCODE_IM2COL_WIDE.invokeExact(map, type, rank, address, dims, strides,
                    lower.get(JAVA_INT, 0), upper.get(JAVA_INT, 0), channels, pixels, elements, interleave,
                    params.get(JAVA_INT, HwsTensorMap.MODE_OFFSET), swizzle, promotion, fill);
                default -> {
                    map.copyFrom(params.asSlice(HwsTensorMap.MAP_OFFSET, CUtensorMap.BYTES));
                    yield (int) CU_TENSOR_MAP_REPLACE_ADDRESS.invokeExact(map, address);
                }
            };
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }
}
