package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUDA_BATCH_MEM_OP_NODE_PARAMS_v1;
import io.hawser.cuda.generated.CUDA_CHILD_GRAPH_NODE_PARAMS;
import io.hawser.cuda.generated.CUDA_CONDITIONAL_NODE_PARAMS;
import io.hawser.cuda.generated.CUDA_HOST_NODE_PARAMS;
import io.hawser.cuda.generated.CUDA_KERNEL_NODE_PARAMS_v2;
import io.hawser.cuda.generated.CUDA_MEMCPY3D;
import io.hawser.cuda.generated.CUDA_MEMSET_NODE_PARAMS;
import io.hawser.cuda.generated.CUgraphNodeParams;
import io.hawser.cuda.generated.CUstreamBatchMemOpParams;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The driver's structures for parameters of graph nodes. They live as long as the given arena. Any thread. */
final class GraphParams {
    // cuda.h: CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE
    private static final long BUFFER_POINTER = 1;
    private static final long BUFFER_SIZE = 2;
    // CUmemorytype
    private static final int HOST = 1;
    private static final int DEVICE = 2;
    private static final int ARRAY = 3;
    private static final int TYPE_GRAPH = 4; // CU_GRAPH_NODE_TYPE_GRAPH
    private static final int TYPE_CONDITIONAL = 13; // CU_GRAPH_NODE_TYPE_CONDITIONAL
    private static final long UNION_OFFSET = 4L * Integer.BYTES; // in CUgraphNodeParams: after type and reserved0[3]
    private static final int MOVE = 1; // CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE

    private GraphParams() {
    }

    /** An aligned copy in native memory; the null pointer for no bytes. */
    static MemorySegment owned(Arena arena, MemorySegment bytes) {
        return bytes.byteSize() == 0 ? MemorySegment.NULL
            : arena.allocate(bytes.byteSize(), Long.BYTES).copyFrom(bytes);
    }

    /** CUDA_KERNEL_NODE_PARAMS_v2, with packed parameters in {@code extra}. */
    static MemorySegment kernel(Arena arena, GraphNode.Kernel kernel, long function, long context) {
        MemorySegment params = arena.allocate(CUDA_KERNEL_NODE_PARAMS_v2.BYTES, Long.BYTES);
        params.set(ValueLayout.JAVA_LONG, CUDA_KERNEL_NODE_PARAMS_v2.FUNC_OFFSET, function);
        params.set(ValueLayout.JAVA_INT, CUDA_KERNEL_NODE_PARAMS_v2.GRID_DIM_X_OFFSET, kernel.gridX());
        params.set(ValueLayout.JAVA_INT, CUDA_KERNEL_NODE_PARAMS_v2.GRID_DIM_Y_OFFSET, kernel.gridY());
        params.set(ValueLayout.JAVA_INT, CUDA_KERNEL_NODE_PARAMS_v2.GRID_DIM_Z_OFFSET, kernel.gridZ());
        params.set(ValueLayout.JAVA_INT, CUDA_KERNEL_NODE_PARAMS_v2.BLOCK_DIM_X_OFFSET, kernel.blockX());
        params.set(ValueLayout.JAVA_INT, CUDA_KERNEL_NODE_PARAMS_v2.BLOCK_DIM_Y_OFFSET, kernel.blockY());
        params.set(ValueLayout.JAVA_INT, CUDA_KERNEL_NODE_PARAMS_v2.BLOCK_DIM_Z_OFFSET, kernel.blockZ());
        params.set(ValueLayout.JAVA_INT, CUDA_KERNEL_NODE_PARAMS_v2.SHARED_MEM_BYTES_OFFSET, kernel.sharedBytes());
        params.set(ValueLayout.JAVA_LONG, CUDA_KERNEL_NODE_PARAMS_v2.CTX_OFFSET, context);
        MemorySegment bytes = owned(arena, kernel.params());
        MemorySegment extra = arena.allocate(5L * Long.BYTES, Long.BYTES);
        extra.setAtIndex(ValueLayout.JAVA_LONG, 0, BUFFER_POINTER);
        extra.setAtIndex(ValueLayout.JAVA_LONG, 1, bytes.address());
        extra.setAtIndex(ValueLayout.JAVA_LONG, 2, BUFFER_SIZE);
        extra.setAtIndex(ValueLayout.JAVA_LONG, 3,
            arena.allocateFrom(ValueLayout.JAVA_LONG, kernel.params().byteSize()).address());
        if (kernel.params().byteSize() > 0) {
            params.set(ValueLayout.JAVA_LONG, CUDA_KERNEL_NODE_PARAMS_v2.EXTRA_OFFSET, extra.address());
        }
        return params;
    }

    /** CUDA_MEMCPY3D. */
    static MemorySegment copy(Arena arena, GraphNode.Copy copy) {
        MemorySegment params = arena.allocate(CUDA_MEMCPY3D.BYTES, Long.BYTES);
        // The fields of source and destination have the same order.
        end(params, 0, copy.source());
        end(params, CUDA_MEMCPY3D.DST_XIN_BYTES_OFFSET - CUDA_MEMCPY3D.SRC_XIN_BYTES_OFFSET, copy.destination());
        params.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.WIDTH_IN_BYTES_OFFSET, copy.widthBytes());
        params.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.HEIGHT_OFFSET, copy.rows());
        params.set(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.DEPTH_OFFSET, copy.slices());
        return params;
    }

    private static void end(MemorySegment params, long side, GraphNode.End end) {
        params.set(ValueLayout.JAVA_LONG, side + CUDA_MEMCPY3D.SRC_XIN_BYTES_OFFSET, end.xBytes());
        params.set(ValueLayout.JAVA_LONG, side + CUDA_MEMCPY3D.SRC_Y_OFFSET, end.y());
        params.set(ValueLayout.JAVA_LONG, side + CUDA_MEMCPY3D.SRC_Z_OFFSET, end.z());
        params.set(ValueLayout.JAVA_LONG, side + CUDA_MEMCPY3D.SRC_PITCH_OFFSET, end.pitch());
        params.set(ValueLayout.JAVA_LONG, side + CUDA_MEMCPY3D.SRC_HEIGHT_OFFSET, end.height());
        params.set(ValueLayout.JAVA_INT, side + CUDA_MEMCPY3D.SRC_MEMORY_TYPE_OFFSET, switch (end.place()) {
            case DEVICE -> DEVICE;
            case HOST -> HOST;
            case ARRAY -> ARRAY;
        });
        params.set(ValueLayout.JAVA_LONG, side + switch (end.place()) {
            case DEVICE -> CUDA_MEMCPY3D.SRC_DEVICE_OFFSET;
            case HOST -> CUDA_MEMCPY3D.SRC_HOST_OFFSET;
            case ARRAY -> CUDA_MEMCPY3D.SRC_ARRAY_OFFSET;
        }, end.address());
    }

    /** CUDA_MEMSET_NODE_PARAMS. */
    static MemorySegment fill(Arena arena, GraphNode.Fill fill) {
        MemorySegment params = arena.allocate(CUDA_MEMSET_NODE_PARAMS.BYTES, Long.BYTES);
        params.set(ValueLayout.JAVA_LONG, CUDA_MEMSET_NODE_PARAMS.DST_OFFSET, fill.address());
        params.set(ValueLayout.JAVA_LONG, CUDA_MEMSET_NODE_PARAMS.PITCH_OFFSET, fill.pitch());
        params.set(ValueLayout.JAVA_INT, CUDA_MEMSET_NODE_PARAMS.VALUE_OFFSET, fill.value());
        params.set(ValueLayout.JAVA_INT, CUDA_MEMSET_NODE_PARAMS.ELEMENT_SIZE_OFFSET, fill.elementBytes());
        params.set(ValueLayout.JAVA_LONG, CUDA_MEMSET_NODE_PARAMS.WIDTH_OFFSET, fill.width());
        params.set(ValueLayout.JAVA_LONG, CUDA_MEMSET_NODE_PARAMS.HEIGHT_OFFSET, fill.rows());
        return params;
    }

    /** CUDA_HOST_NODE_PARAMS: the worker's entry function, and the node's number as its argument. */
    static MemorySegment host(Arena arena, MemorySegment entry, GraphNode.Host host) {
        MemorySegment params = arena.allocate(CUDA_HOST_NODE_PARAMS.BYTES, Long.BYTES);
        params.set(ValueLayout.JAVA_LONG, CUDA_HOST_NODE_PARAMS.FN_OFFSET, entry.address());
        params.set(ValueLayout.JAVA_LONG, CUDA_HOST_NODE_PARAMS.USER_DATA_OFFSET, host.id());
        return params;
    }

    /** CUDA_BATCH_MEM_OP_NODE_PARAMS. */
    static MemorySegment operations(Arena arena, GraphNode.MemoryOperations node, long context) {
        MemorySegment params = arena.allocate(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1.BYTES, Long.BYTES);
        params.set(ValueLayout.JAVA_LONG, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1.CTX_OFFSET, context);
        params.set(ValueLayout.JAVA_INT, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1.COUNT_OFFSET,
            (int) (node.operations().byteSize() / CUstreamBatchMemOpParams.BYTES));
        params.set(ValueLayout.JAVA_LONG, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1.PARAM_ARRAY_OFFSET,
            owned(arena, node.operations()).address());
        return params;
    }

    /** CUgraphNodeParams of a conditional node. */
    static MemorySegment conditional(Arena arena, long condition, int type, int bodies, long context) {
        MemorySegment params = arena.allocate(CUgraphNodeParams.BYTES, Long.BYTES);
        params.set(ValueLayout.JAVA_INT, CUgraphNodeParams.TYPE_OFFSET, TYPE_CONDITIONAL);
        MemorySegment own = params.asSlice(UNION_OFFSET);
        own.set(ValueLayout.JAVA_LONG, CUDA_CONDITIONAL_NODE_PARAMS.HANDLE_OFFSET, condition);
        own.set(ValueLayout.JAVA_INT, CUDA_CONDITIONAL_NODE_PARAMS.TYPE_OFFSET, type);
        own.set(ValueLayout.JAVA_INT, CUDA_CONDITIONAL_NODE_PARAMS.SIZE_OFFSET, bodies);
        own.set(ValueLayout.JAVA_LONG, CUDA_CONDITIONAL_NODE_PARAMS.CTX_OFFSET, context);
        return params;
    }

    /** The driver's array of bodies, after it has added a node with {@link #conditional}. */
    static MemorySegment bodies(MemorySegment params, int count) {
        return MemorySegment.ofAddress(params.get(ValueLayout.JAVA_LONG,
            UNION_OFFSET + CUDA_CONDITIONAL_NODE_PARAMS.PH_GRAPH_OUT_OFFSET)).reinterpret((long) count * Long.BYTES);
    }

    /** CUgraphNodeParams of a child graph whose ownership moves to the node. */
    static MemorySegment movedChild(Arena arena, GraphNode.Child child) {
        MemorySegment params = arena.allocate(CUgraphNodeParams.BYTES, Long.BYTES);
        params.set(ValueLayout.JAVA_INT, CUgraphNodeParams.TYPE_OFFSET, TYPE_GRAPH);
        MemorySegment own = params.asSlice(UNION_OFFSET);
        own.set(ValueLayout.JAVA_LONG, CUDA_CHILD_GRAPH_NODE_PARAMS.GRAPH_OFFSET, child.graph());
        own.set(ValueLayout.JAVA_INT, CUDA_CHILD_GRAPH_NODE_PARAMS.OWNERSHIP_OFFSET, MOVE);
        return params;
    }
}
