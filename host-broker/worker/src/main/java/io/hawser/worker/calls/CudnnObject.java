package io.hawser.worker.calls;

import io.hawser.cuda.Sizes;
import io.hawser.cuda.backend.CudnnBackend.Content;
import io.hawser.cuda.backend.CudnnBackend.Kind;
import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeName_t;
import io.hawser.cuda.generated.cudnn.cudnnBackendDescriptorType_t;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * An object of the library that a guest's content has, or that a question has returned. It stays as long as the guest
 * or another object uses it: the library's objects may refer to each other without counting. Session thread.
 */
final class CudnnObject {
    private static final int MAX_DIMS = 8; // CUDNN_DIM_MAX; those of graphs have no more, either
    private static final int MAX_SPATIAL = 6;
    private static final int RNN_NUMBERS = 14;
    private static final int RNN_DATA_HEAD = 7;
    private static final int PACKED = 1; // CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED

    private final int kind;
    private final Kind older; // null for an object of graphs
    private final long made;
    private final List<CudnnObject> parts;
    private final CudnnObject graph; // of operations that it belongs to; null for none
    private final CudnnTensor tensor; // null for other objects
    private final Map<Long, CudnnTensor> tensors; // of a graph of operations
    private final MemorySegment segment;
    private final Content content; // of an older descriptor; null for an object of graphs
    private final Origin origin;
    private int users = 1; // the guest
    private long workspaceBytes = -1; // of a plan; not asked for yet

    /** The call that has made objects. The journal keeps it until the last of them is destroyed. */
    static final class Origin {
        private final long number; // of the journal
        private int objects;

        /** A call that gives the guest so many objects from this id on. */
        Origin(long firstId, int objects) {
            number = Long.MIN_VALUE + firstId; // ids of handles are positive, and places in a region far from this
            this.objects = objects;
        }

        /** The journal's number of the call. */
        long number() {
            return number;
        }

        /** Notes that an object is destroyed. Returns whether it was the last one. */
        boolean end() {
            return --objects == 0;
        }

        /** Whether none of its objects exists. */
        boolean isOver() {
            return objects == 0;
        }
    }

    /** Makes an object of graphs; {@code attributes} are empty for the result of a question. */
    CudnnObject(Origin origin, int kind, long made, List<CudnnObject> parts,
        List<CudnnContent.Attribute> attributes) {
        this.origin = origin;
        this.kind = kind;
        this.older = null;
        this.content = null;
        this.made = made;
        this.parts = parts;
        parts.forEach(p -> p.users++);
        boolean isGraph = kind == cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
        tensor = kind == cudnnBackendDescriptorType_t.CUDNN_BACKEND_TENSOR_DESCRIPTOR ? tensor(attributes) : null;
        tensors = isGraph ? new HashMap<>() : null;
        graph = isGraph ? this : parts.stream().map(p -> p.graph).filter(g -> g != null).findFirst().orElse(null);
        if (isGraph) {
            collect(this);
        }
        segment = MemorySegment.ofAddress(made);
    }

    /** Makes a descriptor of the older functions. */
    CudnnObject(Origin origin, Content content, long made, List<CudnnObject> parts) {
        this.origin = origin;
        kind = Kind.FIRST + content.kind().ordinal();
        older = content.kind();
        this.content = content;
        this.made = made;
        this.parts = parts;
        parts.forEach(p -> p.users++);
        graph = null;
        tensor = null;
        tensors = null;
        segment = MemorySegment.ofAddress(made).reinterpret(memory(content));
    }

    Origin origin() {
        return origin;
    }

    int kind() {
        return kind;
    }

    Kind older() {
        return older;
    }

    /** The content of an older descriptor. */
    Content content() {
        return content;
    }

    long made() {
        return made;
    }

    /** The address of the object; the length is the size of the memory that it describes. */
    MemorySegment segment() {
        return segment;
    }

    /** Tensors of the graph that a plan belongs to; null for a plan without a graph. */
    Map<Long, CudnnTensor> tensors() {
        return graph == null ? null : graph.tensors;
    }

    long workspaceBytes() {
        return workspaceBytes;
    }

    void workspaceBytes(long bytes) {
        workspaceBytes = bytes;
    }

    /** Ends a use. Returns whether it was the last one, so that the caller destroys the object and ends its uses. */
    boolean release() {
        return --users == 0;
    }

    List<CudnnObject> parts() {
        return parts;
    }

    private void collect(CudnnObject object) {
        if (object.tensor != null) {
            tensors.put(object.tensor.uid(), object.tensor);
        }
        for (CudnnObject part : object.parts) {
            if (part.graph == null) {
                collect(part);
            }
        }
    }

    private static CudnnTensor tensor(List<CudnnContent.Attribute> attributes) {
        return new CudnnTensor(
            CudnnContent.number(attributes, cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_UNIQUE_ID, 0),
            (int) CudnnContent.number(attributes, cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_DATA_TYPE, 0),
            numbers(attributes, cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_DIMENSIONS),
            numbers(attributes, cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_STRIDES),
            CudnnContent.number(attributes, cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1),
            CudnnContent.number(attributes, cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0,
            CudnnContent.find(attributes, cudnnBackendAttributeName_t.CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC) != null);
    }

    private static long[] numbers(List<CudnnContent.Attribute> attributes, int name) {
        CudnnContent.Attribute found = CudnnContent.find(attributes, name);
        return found == null || CudnnContent.typeBytes(found.type()) > Long.BYTES ? new long[0] : found.numbers();
    }

    /** Whether a content of the older functions has the numbers that its kind needs. */
    static boolean isWhole(Content content) {
        int count = content.numbers().length;
        int reals = content.reals().length;
        return switch (content.kind()) {
            case TENSOR -> count > 1 && has(content.number(1), MAX_DIMS) && count == 2 + 2 * content.number(1);
            case FILTER, SPATIAL -> count > 2 && has(content.number(2), MAX_DIMS) && count == 3 + content.number(2);
            case CONVOLUTION -> count > 0 && has(content.number(0), MAX_SPATIAL)
                && count == 6 + 3 * content.number(0);
            case ACTIVATION -> count == 2 && reals == 2;
            case POOLING -> count > 2 && has(content.number(2), MAX_SPATIAL) && count == 3 + 3 * content.number(2);
            case DROPOUT -> count == 2 && reals == 1 && content.handle() != 0;
            case RNN -> count == RNN_NUMBERS && reals == 2;
            case RNN_DATA -> count > RNN_DATA_HEAD && count == (long) RNN_DATA_HEAD + content.number(3);
            case CTC, REDUCE -> count == 5;
            case OP_TENSOR -> count == 3;
            case LRN -> count == 1 && reals == 3;
        };
    }

    private static boolean has(int dims, int most) {
        return dims > 0 && dims <= most;
    }

    /** Bytes of the memory that a content describes; 0 for one that describes none. */
    static long memory(Content content) {
        long[] numbers = content.numbers();
        return switch (content.kind()) {
            case TENSOR -> {
                int dims = content.number(1);
                yield new CudnnTensor(0, content.number(0), Arrays.copyOfRange(numbers, 2, 2 + dims),
                    Arrays.copyOfRange(numbers, 2 + dims, 2 + 2 * dims), 1, false, false).bytes();
            }
            case FILTER -> new CudnnTensor(0, content.number(0),
                Arrays.copyOfRange(numbers, 3, numbers.length), new long[0], 1, false, false).bytes();
            case RNN_DATA -> {
                long vectors = Sizes.multiply(numbers[2], numbers[3]);
                if (content.number(1) == PACKED) {
                    vectors = 0;
                    for (int i = RNN_DATA_HEAD; i < numbers.length; i++) {
                        vectors = Sizes.add(vectors, numbers[i]);
                    }
                }
                int bits = CudnnTensor.elementBits(content.number(0));
                yield bits == 0 ? Sizes.MOST
                    : Sizes.multiply(Sizes.multiply(vectors, numbers[4]), bits / Byte.SIZE);
            }
            default -> 0;
        };
    }
}
