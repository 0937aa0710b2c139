package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUDA_MEMCPY3D;
import io.hawser.cuda.generated.CUDA_MEM_ALLOC_NODE_PARAMS;
import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.CUmemorytype;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaGraphNative;
import io.hawser.cuda.generated.CudaManagedNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Counts the nodes of a graph that a library's call has made, and refuses nodes that would use the host: the memory of
 * the call ends before the graph. Session thread.
 */
final class CapturedNodes {
    private static final Logger LOG = System.getLogger(CapturedNodes.class.getName());
    private static final int MEMORY_TYPE = 2; // CU_POINTER_ATTRIBUTE_MEMORY_TYPE

    private final boolean communicates;
    private long nodes;
    private long allocatedBytes;

    /** @param communicates whether NCCL has made the graph, which keeps what its functions use. */
    CapturedNodes(boolean communicates) {
        this.communicates = communicates;
    }

    /** The nodes, inner graphs included. */
    long nodes() {
        return nodes;
    }

    /** The bytes that allocating nodes allocate. */
    long allocatedBytes() {
        return allocatedBytes;
    }

    /** Adds the nodes of a graph; CUDA_ERROR_NOT_SUPPORTED for one that would use the host. */
    int count(long graph) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment number = arena.allocate(ValueLayout.JAVA_LONG);
            int result = CudaGraphNative.cuGraphGetNodes(graph, MemorySegment.NULL, number);
            long own = number.get(ValueLayout.JAVA_LONG, 0);
            if (result != 0 || own == 0) {
                return result;
            }
            MemorySegment handles = arena.allocate(ValueLayout.JAVA_LONG, own);
            result = CudaGraphNative.cuGraphGetNodes(graph, handles, number);
            nodes += own;
            for (long i = 0; result == 0 && i < own; i++) {
                result = add(arena, handles.getAtIndex(ValueLayout.JAVA_LONG, i));
            }
            return result;
        }
    }

    private int add(Arena arena, long node) {
        MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
        int result = CudaGraphNative.cuGraphNodeGetType(node, out);
        if (result != 0) {
            return result;
        }
        int type = out.get(ValueLayout.JAVA_INT, 0);
        return switch (type) {
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET,
                CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE -> 0;
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_ALLOC -> addAllocation(arena, node);
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY -> checkCopy(arena, node);
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH -> {
                result = CudaGraphNative.cuGraphChildGraphNodeGetGraph(node, out);
                yield result != 0 ? result : count(out.get(ValueLayout.JAVA_LONG, 0));
            }
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST, CUgraphNodeType.CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                CUgraphNodeType.CU_GRAPH_NODE_TYPE_EVENT_RECORD -> communicates ? 0 : refuse("a node of type " + type);
            default -> refuse("a node of type " + type);
        };
    }

    private int addAllocation(Arena arena, long node) {
        MemorySegment params = arena.allocate(CUDA_MEM_ALLOC_NODE_PARAMS.BYTES, Long.BYTES);
        int result = CudaGraphNative.cuGraphMemAllocNodeGetParams(node, params);
        allocatedBytes += params.get(ValueLayout.JAVA_LONG, CUDA_MEM_ALLOC_NODE_PARAMS.BYTESIZE_OFFSET);
        return result;
    }

    private static int checkCopy(Arena arena, long node) {
        MemorySegment copy = arena.allocate(CUDA_MEMCPY3D.BYTES, Long.BYTES);
        int result = CudaGraphNative.cuGraphMemcpyNodeGetParams(node, copy);
        if (result != 0) {
            return result;
        }
        return isOfDevice(arena, copy.get(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.SRC_MEMORY_TYPE_OFFSET),
            copy.get(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.SRC_DEVICE_OFFSET))
            && isOfDevice(arena, copy.get(ValueLayout.JAVA_INT, CUDA_MEMCPY3D.DST_MEMORY_TYPE_OFFSET),
                copy.get(ValueLayout.JAVA_LONG, CUDA_MEMCPY3D.DST_DEVICE_OFFSET)) ? 0 : refuse("a copy with the host");
    }

    private static boolean isOfDevice(Arena arena, int type, long address) {
        if (type != CUmemorytype.CU_MEMORYTYPE_UNIFIED) {
            return type == CUmemorytype.CU_MEMORYTYPE_DEVICE;
        }
        MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
        return CudaManagedNative.cuPointerGetAttribute(out, MEMORY_TYPE, address) == 0
            && out.get(ValueLayout.JAVA_INT, 0) == CUmemorytype.CU_MEMORYTYPE_DEVICE;
    }

    private static int refuse(String what) {
        LOG.log(Level.WARNING, "a captured call of a library is refused: it has made {0}", what);
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }
}
