package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.CUresult.CUDA_ERROR_INVALID_VALUE;

import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUDA_GRAPH_INSTANTIATE_PARAMS;
import io.hawser.cuda.generated.CUDA_MEM_ALLOC_NODE_PARAMS;
import io.hawser.cuda.generated.CUgraphExecUpdateResultInfo;
import io.hawser.cuda.generated.CUlaunchAttribute;
import io.hawser.cuda.generated.CUmemLocation;
import io.hawser.cuda.generated.CUmemPoolProps;
import io.hawser.cuda.generated.CUstreamCaptureMode;
import io.hawser.cuda.generated.CudaGraphNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;
import java.util.function.LongUnaryOperator;

/** Graphs of the driver. Session thread only, except for host nodes. */
final class Graphs implements GraphBackend {
    private static final int COOPERATIVE = 2; // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    private static final int COOPERATIVE_FLAG = 1;
    private static final int ALLOCATION_PINNED = 1; // CU_MEM_ALLOCATION_TYPE_PINNED
    private static final int LOCATION_DEVICE = 1; // CU_MEM_LOCATION_TYPE_DEVICE

    private final LongSupplier context;
    private final LongUnaryOperator functionHere;
    private final HostEntry entry;
    private volatile LongConsumer hostFunction = id -> {};

    /**
     * @param markers catch up before a host node runs.
     * @param context supplies the current context.
     * @param functionHere maps a library's kernel to its handle in the current context.
     */
    Graphs(Markers markers, LongSupplier context, LongUnaryOperator functionHere) {
        this.context = context;
        this.functionHere = functionHere;
        entry = new HostEntry(markers, "a graph's host node", id -> hostFunction.accept(id));
    }

    @Override
    public void hostFunctions(LongConsumer function) {
        hostFunction = function;
    }

    @Override
    public int create(MemorySegment out) {
        return CudaGraphNative.cuGraphCreate(out, 0);
    }

    @Override
    public int destroy(long graph) {
        return CudaGraphNative.cuGraphDestroy(graph);
    }

    private static MemorySegment list(Arena arena, long[] handles) {
        return handles.length == 0 ? MemorySegment.NULL : arena.allocateFrom(ValueLayout.JAVA_LONG, handles);
    }

    @Override
    public int add(long graph, long[] dependencies, GraphNode node, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment before = list(arena, dependencies);
            int count = dependencies.length;
            return switch (node) {
                case GraphNode.Kernel kernel -> addKernel(arena, graph, before, count, kernel, out);
                case GraphNode.Copy copy -> CudaGraphNative.cuGraphAddMemcpyNode(out, graph, before, count,
                    GraphParams.copy(arena, copy), context.getAsLong());
                case GraphNode.Fill fill -> CudaGraphNative.cuGraphAddMemsetNode(out, graph, before, count,
                    GraphParams.fill(arena, fill), context.getAsLong());
                case GraphNode.Host host -> CudaGraphNative.cuGraphAddHostNode(out, graph, before, count,
                    GraphParams.host(arena, entry.address(), host));
                case GraphNode.Empty empty -> CudaGraphNative.cuGraphAddEmptyNode(out, graph, before, count);
                // Moved, not copied, so that the nodes of the child graph keep their handles.
                case GraphNode.Child child -> CudaGraphNative.cuGraphAddNode_v2(out, graph, before, MemorySegment.NULL,
                    count, GraphParams.movedChild(arena, child));
                case GraphNode.EventRecord record -> CudaGraphNative.cuGraphAddEventRecordNode(out, graph, before,
                    count, record.event());
                case GraphNode.EventWait wait -> CudaGraphNative.cuGraphAddEventWaitNode(out, graph, before, count,
                    wait.event());
                case GraphNode.MemoryOperations operations -> CudaGraphNative.cuGraphAddBatchMemOpNode(out, graph,
                    before, count, GraphParams.operations(arena, operations, context.getAsLong()));
                case GraphNode.Free free -> CudaGraphNative.cuGraphAddMemFreeNode(out, graph, before, count,
                    free.address());
            };
        }
    }

    private int addKernel(Arena arena, long graph, MemorySegment before, int count, GraphNode.Kernel kernel,
        MemorySegment out) {
        int result = CudaGraphNative.cuGraphAddKernelNode_v2(out, graph, before, count,
            kernel(arena, kernel));
        if (result != 0) {
            return result;
        }
        long node = out.get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
        result = setAttributes(arena, node, kernel);
        if (result != 0) {
            CudaGraphNative.cuGraphDestroyNode(node);
        }
        return result;
    }

    private MemorySegment kernel(Arena arena, GraphNode.Kernel kernel) {
        return GraphParams.kernel(arena, kernel, functionHere.applyAsLong(kernel.function()), context.getAsLong());
    }

    private static int setAttributes(Arena arena, long node, GraphNode.Kernel kernel) {
        MemorySegment attributes = kernel.attributes();
        for (long at = 0; at < attributes.byteSize(); at += CUlaunchAttribute.BYTES) {
            MemorySegment value = arena.allocate(CUlaunchAttribute.BYTES - CUlaunchAttribute.VALUE_OFFSET, Long.BYTES);
            value.copyFrom(attributes.asSlice(at + CUlaunchAttribute.VALUE_OFFSET, value.byteSize()));
            int id = attributes.get(ValueLayout.JAVA_INT_UNALIGNED, at + CUlaunchAttribute.ID_OFFSET);
            int result = id == 0 ? 0 : CudaGraphNative.cuGraphKernelNodeSetAttribute(node, id, value);
            if (result != 0) {
                return result;
            }
        }
        if ((kernel.flags() & COOPERATIVE_FLAG) == 0) {
            return 0;
        }
        MemorySegment one = arena.allocate(CUlaunchAttribute.BYTES - CUlaunchAttribute.VALUE_OFFSET, Long.BYTES);
        one.set(ValueLayout.JAVA_INT, 0, 1);
        return CudaGraphNative.cuGraphKernelNodeSetAttribute(node, COOPERATIVE, one);
    }

    @Override
    public int addAlloc(long graph, long[] dependencies, int device, long bytes, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = arena.allocate(CUDA_MEM_ALLOC_NODE_PARAMS.BYTES, Long.BYTES);
            MemorySegment props = params.asSlice(CUDA_MEM_ALLOC_NODE_PARAMS.POOL_PROPS_OFFSET);
            props.set(ValueLayout.JAVA_INT, CUmemPoolProps.ALLOC_TYPE_OFFSET, ALLOCATION_PINNED);
            props.set(ValueLayout.JAVA_INT, CUmemPoolProps.LOCATION_OFFSET + CUmemLocation.TYPE_OFFSET,
                LOCATION_DEVICE);
            props.set(ValueLayout.JAVA_INT, CUmemPoolProps.LOCATION_OFFSET + CUmemLocation.ID_OFFSET, device);
            params.set(ValueLayout.JAVA_LONG, CUDA_MEM_ALLOC_NODE_PARAMS.BYTESIZE_OFFSET, bytes);
            int result = CudaGraphNative.cuGraphAddMemAllocNode(out, graph, list(arena, dependencies),
                dependencies.length, params);
            if (result == 0) {
                out.set(ValueLayout.JAVA_LONG_UNALIGNED, Long.BYTES,
                    params.get(ValueLayout.JAVA_LONG, CUDA_MEM_ALLOC_NODE_PARAMS.DPTR_OFFSET));
            }
            return result;
        }
    }

    @Override
    public int addCondition(long graph, int defaultValue, int flags, MemorySegment out) {
        return CudaGraphNative.cuGraphConditionalHandleCreate(out, graph, context.getAsLong(), defaultValue, flags);
    }

    @Override
    public int addConditional(long graph, long[] dependencies, long condition, int type, MemorySegment out) {
        int bodies = (int) (out.byteSize() / Long.BYTES) - 1;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = GraphParams.conditional(arena, condition, type, bodies, context.getAsLong());
            int result = CudaGraphNative.cuGraphAddNode_v2(out, graph, list(arena, dependencies), MemorySegment.NULL,
                dependencies.length, params);
            if (result == 0) {
                out.asSlice(Long.BYTES).copyFrom(GraphParams.bodies(params, bodies));
            }
            return result;
        }
    }

    @Override
    public int set(long node, GraphNode parameters) {
        try (Arena arena = Arena.ofConfined()) {
            return switch (parameters) {
                case GraphNode.Kernel kernel -> {
                    int result = CudaGraphNative.cuGraphKernelNodeSetParams_v2(node,
                        kernel(arena, kernel));
                    yield result != 0 ? result : setAttributes(arena, node, kernel);
                }
                case GraphNode.Copy copy -> CudaGraphNative.cuGraphMemcpyNodeSetParams(node,
                    GraphParams.copy(arena, copy));
                case GraphNode.Fill fill -> CudaGraphNative.cuGraphMemsetNodeSetParams(node,
                    GraphParams.fill(arena, fill));
                case GraphNode.Host host -> CudaGraphNative.cuGraphHostNodeSetParams(node,
                    GraphParams.host(arena, entry.address(), host));
                case GraphNode.EventRecord record ->
                    CudaGraphNative.cuGraphEventRecordNodeSetEvent(node, record.event());
                case GraphNode.EventWait wait -> CudaGraphNative.cuGraphEventWaitNodeSetEvent(node, wait.event());
                case GraphNode.MemoryOperations operations -> CudaGraphNative.cuGraphBatchMemOpNodeSetParams(node,
                    GraphParams.operations(arena, operations, context.getAsLong()));
                case GraphNode.Empty empty -> 0;
                case GraphNode.Child child -> CUDA_ERROR_INVALID_VALUE;
                case GraphNode.Free free -> CUDA_ERROR_INVALID_VALUE;
            };
        }
    }

    @Override
    public int addEdges(long graph, long[] from, long[] to, MemorySegment edgeData) {
        try (Arena arena = Arena.ofConfined()) {
            return CudaGraphNative.cuGraphAddDependencies_v2(graph, list(arena, from), list(arena, to),
                GraphParams.owned(arena, edgeData), from.length);
        }
    }

    @Override
    public int removeEdges(long graph, long[] from, long[] to, MemorySegment edgeData) {
        try (Arena arena = Arena.ofConfined()) {
            return CudaGraphNative.cuGraphRemoveDependencies_v2(graph, list(arena, from), list(arena, to),
                GraphParams.owned(arena, edgeData), from.length);
        }
    }

    @Override
    public int removeNode(long node) {
        return CudaGraphNative.cuGraphDestroyNode(node);
    }

    @Override
    public int instantiate(long graph, long flags, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = arena.allocate(CUDA_GRAPH_INSTANTIATE_PARAMS.BYTES, Long.BYTES);
            params.set(ValueLayout.JAVA_LONG, CUDA_GRAPH_INSTANTIATE_PARAMS.FLAGS_OFFSET, flags);
            int result = CudaGraphNative.cuGraphInstantiateWithParams(out, graph, params);
            out.set(ValueLayout.JAVA_LONG_UNALIGNED, Long.BYTES,
                params.get(ValueLayout.JAVA_LONG, CUDA_GRAPH_INSTANTIATE_PARAMS.H_ERR_NODE_OUT_OFFSET));
            out.set(ValueLayout.JAVA_INT_UNALIGNED, 2L * Long.BYTES,
                params.get(ValueLayout.JAVA_INT, CUDA_GRAPH_INSTANTIATE_PARAMS.RESULT_OUT_OFFSET));
            return result;
        }
    }

    @Override
    public int destroyExec(long exec) {
        return CudaGraphNative.cuGraphExecDestroy(exec);
    }

    @Override
    public int setInExec(long exec, long node, GraphNode parameters) {
        try (Arena arena = Arena.ofConfined()) {
            return switch (parameters) {
                case GraphNode.Kernel kernel -> CudaGraphNative.cuGraphExecKernelNodeSetParams_v2(exec, node,
                    kernel(arena, kernel));
                case GraphNode.Copy copy -> CudaGraphNative.cuGraphExecMemcpyNodeSetParams(exec, node,
                    GraphParams.copy(arena, copy), context.getAsLong());
                case GraphNode.Fill fill -> CudaGraphNative.cuGraphExecMemsetNodeSetParams(exec, node,
                    GraphParams.fill(arena, fill), context.getAsLong());
                case GraphNode.Host host -> CudaGraphNative.cuGraphExecHostNodeSetParams(exec, node,
                    GraphParams.host(arena, entry.address(), host));
                case GraphNode.Child child -> CudaGraphNative.cuGraphExecChildGraphNodeSetParams(exec, node,
                    child.graph());
                case GraphNode.EventRecord record -> CudaGraphNative.cuGraphExecEventRecordNodeSetEvent(exec, node,
                    record.event());
                case GraphNode.EventWait wait -> CudaGraphNative.cuGraphExecEventWaitNodeSetEvent(exec, node,
                    wait.event());
                case GraphNode.MemoryOperations operations -> CudaGraphNative.cuGraphExecBatchMemOpNodeSetParams(exec,
                    node, GraphParams.operations(arena, operations, context.getAsLong()));
                case GraphNode.Empty empty -> 0;
                case GraphNode.Free free -> CUDA_ERROR_INVALID_VALUE;
            };
        }
    }

    @Override
    public int update(long exec, long graph, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment info = arena.allocate(CUgraphExecUpdateResultInfo.BYTES, Long.BYTES);
            int result = CudaGraphNative.cuGraphExecUpdate_v2(exec, graph, info);
            out.set(ValueLayout.JAVA_INT_UNALIGNED, 0,
                info.get(ValueLayout.JAVA_INT, CUgraphExecUpdateResultInfo.RESULT_OFFSET));
            out.set(ValueLayout.JAVA_LONG_UNALIGNED, Long.BYTES,
                info.get(ValueLayout.JAVA_LONG, CUgraphExecUpdateResultInfo.ERROR_NODE_OFFSET));
            out.set(ValueLayout.JAVA_LONG_UNALIGNED, 2L * Long.BYTES,
                info.get(ValueLayout.JAVA_LONG, CUgraphExecUpdateResultInfo.ERROR_FROM_NODE_OFFSET));
            return result;
        }
    }

    @Override
    public int enable(long exec, long node, boolean isEnabled) {
        return CudaGraphNative.cuGraphNodeSetEnabled(exec, node, isEnabled ? 1 : 0);
    }

    @Override
    public int launch(long exec, long stream) {
        return CudaGraphNative.cuGraphLaunch(exec, stream);
    }

    @Override
    public int upload(long exec, long stream) {
        return CudaGraphNative.cuGraphUpload(exec, stream);
    }

    @Override
    public int beginCapture(long stream) {
        return CudaGraphNative.cuStreamBeginCapture_v2(stream,
            CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED);
    }

    @Override
    public int endCapture(long stream, MemorySegment out, boolean communicates) {
        int result = CudaGraphNative.cuStreamEndCapture(stream, out);
        if (result != 0) {
            return result;
        }
        long graph = out.get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
        CapturedNodes nodes = new CapturedNodes(communicates);
        result = nodes.count(graph);
        if (result != 0) {
            CudaGraphNative.cuGraphDestroy(graph);
            return result;
        }
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, Long.BYTES, nodes.nodes());
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 2L * Long.BYTES, nodes.allocatedBytes());
        return 0;
    }

    @Override
    public int copy(long graph, MemorySegment out) {
        return CudaGraphNative.cuGraphClone(out, graph);
    }

    @Override
    public int trim(int device) {
        return CudaGraphNative.cuDeviceGraphMemTrim(device);
    }

    @Override
    public int memoryAttribute(int device, int attribute, MemorySegment out) {
        return CudaGraphNative.cuDeviceGetGraphMemAttribute(device, attribute, out);
    }

    @Override
    public int setMemoryAttribute(int device, int attribute, long value) {
        try (Arena arena = Arena.ofConfined()) {
            return CudaGraphNative.cuDeviceSetGraphMemAttribute(device, attribute,
                arena.allocateFrom(ValueLayout.JAVA_LONG, value));
        }
    }
}
