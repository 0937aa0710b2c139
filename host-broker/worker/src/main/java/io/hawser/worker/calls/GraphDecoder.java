package io.hawser.worker.calls;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsDevicePlace;
import io.hawser.cuda.generated.HwsExtent;
import io.hawser.cuda.generated.HwsGraphChild;
import io.hawser.cuda.generated.HwsGraphCopy;
import io.hawser.cuda.generated.HwsGraphEnd;
import io.hawser.cuda.generated.HwsGraphEvent;
import io.hawser.cuda.generated.HwsGraphFree;
import io.hawser.cuda.generated.HwsGraphHost;
import io.hawser.cuda.generated.HwsGraphKernel;
import io.hawser.cuda.generated.HwsGraphMemset;
import io.hawser.cuda.generated.HwsMemoryOp;
import io.hawser.cuda.generated.HwsPosition;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GraphCallbacks;
import io.hawser.worker.session.GraphParameters;
import io.hawser.worker.session.GraphParameters.Form;
import io.hawser.worker.session.GraphParameters.Range;
import io.hawser.worker.session.GraphState;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Decodes a guest's description of a graph node: resolves ids to handles, and checks device addresses and offsets in
 * the region. Session thread only.
 */
final class GraphDecoder {
    private static final int MAX_PARAMS_BYTES = 32764; // a kernel's parameter space, PTX ISA 8.1
    private static final int MAX_ATTRIBUTES = 64; // as for hwsLaunch
    private static final int PLACE_DEVICE = 0;
    private static final int PLACE_REGION = 1;
    private static final int PLACE_GUEST = 2;
    private static final int PLACE_ARRAY = 3;
    private static final long MAX_EXTENT = 1L << 40; // more than any array has; the sum of two cannot overflow

    private final GuestObjects objects;
    private final GraphCallbacks callbacks;
    private final SharedRegion region;

    /** The result of a description: parameters, or the reason why there are none. */
    static final class Result {
        private GraphParameters parameters;
        private GraphState child;
        private int error;
        private String malformed;

        /** Null with an {@link #error} or {@link #malformed}. */
        GraphParameters parameters() {
            return parameters;
        }

        /** The graph inside the node; null except for a child node. */
        GraphState child() {
            return child;
        }

        /** The result that CUDA would return; 0 for none. */
        int error() {
            return error;
        }

        /** The rule that the description breaks and its values; null for none. */
        String malformed() {
            return malformed;
        }

        private Result error(int cuResult) {
            error = cuResult;
            return this;
        }

        private Result malformed(String why) {
            malformed = why;
            return this;
        }

        private Result plain(int type, Handle context, GraphNode node, List<Range> ranges) {
            parameters = new GraphParameters(type, context, node, 0, Form.PLAIN, ranges);
            return this;
        }
    }

    /**
     * Makes a decoder for a session.
     *
     * @param objects the session's objects.
     * @param callbacks the session's callbacks.
     * @param region the guest's region; null over another carrier.
     */
    GraphDecoder(GuestObjects objects, GraphCallbacks callbacks, SharedRegion region) {
        this.objects = objects;
        this.callbacks = callbacks;
        this.region = region;
    }

    private static int i32(MemorySegment body, long offset) {
        return body.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }

    private static long i64(MemorySegment body, long offset) {
        return body.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }

    /**
     * Decodes a node. A node that calls the guest is a user of its callback's id afterwards.
     *
     * @param type CUgraphNodeType from the guest.
     * @param contextId CUcontext; 0 for the calling thread's.
     * @param body the bytes after the dependencies; must stay valid while the caller uses the result.
     * @return the result.
     */
    Result decode(int type, long contextId, MemorySegment body) {
        Result result = new Result();
        int wanted = lengthOf(type);
        boolean mayBeLonger = type == CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
            || type == CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
        if (wanted < 0 || mayBeLonger ? body.byteSize() < Math.max(wanted, 0) : body.byteSize() != wanted) {
            return result.malformed("a node's length must fit its type: type=" + type + " bytes=" + body.byteSize());
        }
        if (wanted < 0) {
            return result.malformed("a node must have a type that the wire supports: type=" + type);
        }
        Handle context = objects.currentContext();
        if (contextId != 0) {
            context = resolve(result, HandleKind.CONTEXT, contextId);
            if (context == null) {
                return result;
            }
        }
        return switch (type) {
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL -> kernel(result, context, body);
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY -> copy(result, context, body);
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET -> fill(result, context, body);
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST ->
                host(result, i64(body, HwsGraphHost.CALLBACK_ID_OFFSET));
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH -> child(result, i64(body, HwsGraphChild.GRAPH_OFFSET));
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_WAIT_EVENT, CUgraphNodeType.CU_GRAPH_NODE_TYPE_EVENT_RECORD ->
                event(result, type, i64(body, HwsGraphEvent.EVENT_OFFSET));
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE ->
                free(result, context, i64(body, HwsGraphFree.ADDRESS_OFFSET));
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP -> operations(result, context, body);
            default -> result.plain(type, null, new GraphNode.Empty(), List.of());
        };
    }

    /** Length of a type's body, or its least length; -1 for a type that the wire does not support. */
    private static int lengthOf(int type) {
        return switch (type) {
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL -> HwsGraphKernel.BYTES;
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY -> HwsGraphCopy.BYTES;
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET -> HwsGraphMemset.BYTES;
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST -> HwsGraphHost.BYTES;
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH -> HwsGraphChild.BYTES;
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY -> 0;
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_WAIT_EVENT, CUgraphNodeType.CU_GRAPH_NODE_TYPE_EVENT_RECORD ->
                HwsGraphEvent.BYTES;
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE -> HwsGraphFree.BYTES;
            case CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP -> HwsMemoryOp.BYTES;
            default -> -1;
        };
    }

    /** The object of an id; null when there is none. The result then has the reason. */
    private Handle resolve(Result result, HandleKind kind, long id) {
        Handle handle = objects.handles().find(kind, id);
        if (handle == null && !objects.handles().wasCreated(kind, id)) {
            result.malformed("a handle must have been created with its kind: kind=" + kind + " id=0x"
                + Long.toHexString(id));
        } else if (handle == null || handle.isFailed()) {
            result.error(kind == HandleKind.CONTEXT ? CudaResult.INVALID_CONTEXT : CudaResult.INVALID_HANDLE);
            return null;
        }
        return handle;
    }

    private Result kernel(Result result, Handle context, MemorySegment body) {
        long paramsBytes = Integer.toUnsignedLong(i32(body, HwsGraphKernel.PARAMS_BYTES_OFFSET));
        long attributesBytes = Integer.toUnsignedLong(i32(body, HwsGraphKernel.ATTRIBUTES_BYTES_OFFSET));
        long attributesOffset = HwsGraphKernel.BYTES + (paramsBytes + 7 & -8L);
        if (paramsBytes > MAX_PARAMS_BYTES || attributesBytes > MAX_ATTRIBUTES * LaunchAttributes.BYTES
            || attributesBytes % LaunchAttributes.BYTES != 0
            || body.byteSize() != attributesOffset + attributesBytes) {
            return result.malformed("a kernel's parameters and attributes must fill its node: paramsBytes="
                + paramsBytes + " attributesBytes=" + attributesBytes + " bytes=" + body.byteSize());
        }
        Handle function = resolve(result, HandleKind.FUNCTION, i64(body, HwsGraphKernel.FUNCTION_OFFSET));
        if (function == null) {
            return result;
        }
        if (paramsBytes < function.info(ModuleCalls.Parameters.class).bytes()) {
            return result.error(CudaResult.INVALID_VALUE); // otherwise the backend would read beyond the parameters
        }
        MemorySegment attributes = body.asSlice(attributesOffset, attributesBytes);
        int check = LaunchAttributes.check(attributes, objects.allocations());
        if (check != 0) {
            return result.error(check);
        }
        return result.plain(CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL, context,
            new GraphNode.Kernel(function.nativeHandle(), i32(body, HwsGraphKernel.GRID_DIM_X_OFFSET),
                i32(body, HwsGraphKernel.GRID_DIM_Y_OFFSET), i32(body, HwsGraphKernel.GRID_DIM_Z_OFFSET),
                i32(body, HwsGraphKernel.BLOCK_DIM_X_OFFSET), i32(body, HwsGraphKernel.BLOCK_DIM_Y_OFFSET),
                i32(body, HwsGraphKernel.BLOCK_DIM_Z_OFFSET), i32(body, HwsGraphKernel.SHARED_MEM_BYTES_OFFSET),
                i32(body, HwsGraphKernel.LAUNCH_FLAGS_OFFSET), body.asSlice(HwsGraphKernel.BYTES, paramsBytes),
                attributes),
            List.of());
    }

    private Result copy(Result result, Handle context, MemorySegment body) {
        long width = i64(body, HwsGraphCopy.WIDTH_BYTES_OFFSET);
        long rows = i64(body, HwsGraphCopy.ROWS_OFFSET);
        long slices = i64(body, HwsGraphCopy.SLICES_OFFSET);
        MemorySegment to = body.asSlice(HwsGraphCopy.DST_OFFSET, HwsGraphEnd.BYTES);
        MemorySegment from = body.asSlice(HwsGraphCopy.SRC_OFFSET, HwsGraphEnd.BYTES);
        long toPlace = i64(to, HwsGraphEnd.PLACE_OFFSET);
        long fromPlace = i64(from, HwsGraphEnd.PLACE_OFFSET);
        if (width == 0 || rows == 0 || slices == 0 || !isPlace(toPlace) || !isPlace(fromPlace)
            || !isOfDevice(toPlace) && !isOfDevice(fromPlace)) {
            return result.malformed("a copy must have bytes and an end on the device: places=" + fromPlace + ","
                + toPlace + " widthBytes=" + width + " rows=" + rows + " slices=" + slices);
        }
        long bytes = Sizes.multiply(Sizes.multiply(width, rows), slices);
        boolean isWrite = fromPlace == PLACE_GUEST;
        boolean callsGuest = isWrite || toPlace == PLACE_GUEST;
        // The device's end is checked first, so that no user of a callback id must be removed after an error.
        Box[] boxes = new Box[2];
        GraphNode.End source = isWrite ? null : end(result, from, width, rows, slices, boxes, 0);
        GraphNode.End destination = toPlace == PLACE_GUEST ? null : end(result, to, width, rows, slices, boxes, 1);
        if (result.error != 0 || result.malformed != null) {
            return result;
        }
        long id = 0;
        if (callsGuest) {
            MemorySegment guest = isWrite ? from : to;
            id = i64(guest, HwsGraphEnd.BASE_OFFSET);
            if (!share(result, id, bytes, isWrite)) {
                return result;
            }
            GraphNode.End staging = new GraphNode.End(callbacks.staging(id).address(), true, width, rows);
            source = isWrite ? staging : source;
            destination = isWrite ? destination : staging;
        }
        List<Range> ranges = Arrays.stream(boxes).filter(Objects::nonNull)
            .map(box -> new Range(box.start(), box.spanBytes())).toList();
        result.parameters = new GraphParameters(CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY, context,
            new GraphNode.Copy(destination, source, width, rows, slices), id,
            !callsGuest ? Form.PLAIN : isWrite ? Form.WRITE : Form.READ, ranges);
        return result;
    }

    private static boolean isPlace(long place) {
        return place >= PLACE_DEVICE && place <= PLACE_ARRAY;
    }

    private static boolean isOfDevice(long place) {
        return place == PLACE_DEVICE || place == PLACE_ARRAY;
    }

    /** A part of an array, whose bounds the backend checks. */
    private GraphNode.End array(Result result, MemorySegment end) {
        Handle array = resolve(result, HandleKind.ARRAY, i64(end, HwsGraphEnd.BASE_OFFSET));
        if (array == null) {
            return null;
        }
        long x = i64(end, HwsGraphEnd.X_BYTES_OFFSET);
        long y = i64(end, HwsGraphEnd.Y_OFFSET);
        long z = i64(end, HwsGraphEnd.Z_OFFSET);
        if ((x | y | z) < 0 || x > MAX_EXTENT || y > MAX_EXTENT || z > MAX_EXTENT) {
            result.error(CudaResult.INVALID_VALUE);
            return null;
        }
        return new GraphNode.End(GraphNode.Place.ARRAY, array.nativeHandle(), 0, 0, x, y, z);
    }

    private boolean share(Result result, long id, long bytes, boolean isWrite) {
        int shared = bytes < 0 ? CudaResult.INVALID_VALUE : callbacks.share(id, bytes, isWrite);
        if (shared < 0) {
            result.malformed("a callback's id must keep its kind and length: callbackId=" + id + " bytes=" + bytes);
        } else if (shared != 0) {
            result.error(shared);
        }
        return shared == 0;
    }

    /** An end in the device or the region; null when it is invalid. The result then has the reason. */
    private GraphNode.End end(Result result, MemorySegment end, long width, long rows, long slices, Box[] boxes,
        int at) {
        if (i64(end, HwsGraphEnd.PLACE_OFFSET) == PLACE_ARRAY) {
            return array(result, end);
        }
        long base = i64(end, HwsGraphEnd.BASE_OFFSET);
        long pitch = i64(end, HwsGraphEnd.PITCH_OFFSET);
        long height = i64(end, HwsGraphEnd.HEIGHT_OFFSET);
        long x = i64(end, HwsGraphEnd.X_BYTES_OFFSET);
        long y = i64(end, HwsGraphEnd.Y_OFFSET);
        long z = i64(end, HwsGraphEnd.Z_OFFSET);
        Box box = Box.of(new HwsDevicePlace(base, pitch, height, new HwsPosition(x, y, z)),
            new HwsExtent(width, rows, slices));
        boolean isRegion = i64(end, HwsGraphEnd.PLACE_OFFSET) == PLACE_REGION;
        if (isRegion && (region == null || (x | y | z) != 0
            || box != null && !region.allows(base, box.spanBytes(), 0))) {
            result.malformed("a copy's bytes must lie in the region's heap: regionOffset=" + Long.toUnsignedString(base)
                + " x,y,z=" + x + "," + y + "," + z);
            return null;
        }
        if (box == null || box.operations() > Box.MAX_ROWS
            || !isRegion && !objects.allocations().contains(box.start(), box.spanBytes())) {
            result.error(CudaResult.INVALID_VALUE);
            return null;
        }
        if (!isRegion) {
            boxes[at] = box;
        }
        // CUDA demands a valid pitch and height even where they have no meaning.
        boolean isRow = rows == 1 && slices == 1;
        return new GraphNode.End(isRegion ? region.memory().address() + base : box.start(), isRegion,
            isRow ? width : pitch, slices == 1 ? rows : height);
    }

    private Result fill(Result result, Handle context, MemorySegment body) {
        long address = i64(body, HwsGraphMemset.DST_OFFSET);
        long width = i64(body, HwsGraphMemset.WIDTH_OFFSET);
        long rows = i64(body, HwsGraphMemset.HEIGHT_OFFSET);
        int element = i32(body, HwsGraphMemset.ELEMENT_SIZE_OFFSET);
        if (width <= 0 || rows <= 0 || element != 1 && element != 2 && element != 4) {
            return result.error(CudaResult.INVALID_VALUE);
        }
        long rowBytes = Sizes.multiply(width, element);
        long pitch = rows == 1 ? rowBytes : i64(body, HwsGraphMemset.PITCH_OFFSET);
        Box box = rowBytes < 0 ? null : Box.of(
            new HwsDevicePlace(address, pitch, rows, new HwsPosition(0, 0, 0)), new HwsExtent(rowBytes, rows, 1));
        if (box == null || address % element != 0 || pitch % element != 0
            || !objects.allocations().contains(box.start(), box.spanBytes())) {
            return result.error(CudaResult.INVALID_VALUE);
        }
        return result.plain(CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET, context,
            new GraphNode.Fill(address, pitch, i32(body, HwsGraphMemset.VALUE_OFFSET), element, width, rows),
            List.of(new Range(address, box.spanBytes())));
    }

    private Result host(Result result, long id) {
        if (share(result, id, 0, false)) {
            result.parameters = new GraphParameters(CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST, null,
                new GraphNode.Host(id), id, Form.HOST, List.of());
        }
        return result;
    }

    private Result child(Result result, long id) {
        Handle graph = resolve(result, HandleKind.GRAPH, id);
        if (graph == null) {
            return result;
        }
        result.child = graph.info(GraphState.class);
        return result.child.isGone() ? result.error(CudaResult.INVALID_VALUE)
            : result.plain(CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH, null,
                new GraphNode.Child(graph.nativeHandle()),
                result.child.captured() == null ? List.of() : result.child.captured().ranges());
    }

    private Result event(Result result, int type, long id) {
        Handle event = resolve(result, HandleKind.EVENT, id);
        if (event != null && event.info(InterprocessEvent.class) != null) {
            return result.error(CudaResult.NOT_SUPPORTED); // a graph's nodes know only the driver's event
        }
        return event == null ? result : result.plain(type, null,
            type == CUgraphNodeType.CU_GRAPH_NODE_TYPE_EVENT_RECORD ? new GraphNode.EventRecord(event.nativeHandle())
                : new GraphNode.EventWait(event.nativeHandle()),
            List.of());
    }

    private Result operations(Result result, Handle context, MemorySegment body) {
        MemoryOperations operations = new MemoryOperations(body, Arena.ofAuto());
        if (operations.malformed() != null) {
            return result.malformed(operations.malformed());
        }
        for (Range range : operations.ranges()) {
            if (!objects.allocations().contains(range.address(), range.bytes())) {
                return result.error(CudaResult.INVALID_VALUE);
            }
        }
        return result.plain(CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, context,
            new GraphNode.MemoryOperations(operations.params()), operations.ranges());
    }

    private Result free(Result result, Handle context, long address) {
        return objects.graphMemory().at(address) == null ? result.error(CudaResult.INVALID_VALUE)
            : result.plain(CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE, context, new GraphNode.Free(address),
                List.of());
    }
}
