package io.hawser.gpu.software.dnn;

import io.hawser.cuda.backend.CudnnBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.cudnn.CudnnDriver;
import io.hawser.cuda.generated.cudnn.CudnnMacros;
import io.hawser.cuda.generated.cudnn.cudnnConvolutionMode_t;
import io.hawser.cuda.generated.cudnn.cudnnDataType_t;
import io.hawser.cuda.generated.cudnn.cudnnReduceTensorIndices_t;
import io.hawser.cuda.generated.cudnn.cudnnStatus_t;
import io.hawser.cuda.generated.cudnn.cudnnTensorFormat_t;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * cuDNN on the software GPU: convolutions, pooling, normalization, softmax and functions of elements, in float and in
 * stream order. Everything else returns "not supported", and {@link #lastError} names it. Session thread; the work runs
 * on the device's threads.
 */
public final class SoftwareCudnn
    implements CudnnBackend, ConvolutionFunctions, NormFunctions, TensorFunctions {
    private static final long CUDART_VERSION = 13000; // of the interface, as CUDA 13.0 has it

    private final DnnState state;
    private final DnnGraphs graphs;

    /** Puts work into the streams of a GPU. */
    public SoftwareCudnn(GpuBackend gpu) {
        state = new DnnState(gpu);
        graphs = new DnnGraphs(state);
    }

    @Override
    public DnnState state() {
        return state;
    }

    @Override
    public CudnnDriver driver() {
        return this;
    }

    @Override
    public int create(MemorySegment out) {
        return state.createHandle(out);
    }

    @Override
    public int destroy(long handle) {
        return state.destroyHandle(handle);
    }

    @Override
    public long handleBytes() {
        return 0;
    }

    @Override
    public int setStream(long handle, long stream) {
        return state.setStream(handle, stream);
    }

    @Override
    public long[] versions() {
        return new long[] {CudnnMacros.CUDNN_VERSION, CUDART_VERSION, CudnnMacros.CUDNN_MAX_DEVICE_VERSION};
    }

    @Override
    public void lastError(MemorySegment message) {
        state.lastError(message);
    }

    @Override
    public int createDescriptor(int kind, MemorySegment out) {
        return state.add(new GraphObject(kind), out);
    }

    @Override
    public int setAttribute(long descriptor, int name, int type, long count, MemorySegment values) {
        return state.answer("cudnnBackendSetAttribute", () -> graphs.set(descriptor, name, type, count, values));
    }

    @Override
    public int finalizeDescriptor(long descriptor) {
        return state.answer("cudnnBackendFinalize", () -> GraphBuilder.build(state.find(descriptor,
            GraphObject.class)));
    }

    @Override
    public int getAttribute(long descriptor, int name, int type, long requested, MemorySegment count,
        MemorySegment values) {
        return state.answer("cudnnBackendGetAttribute",
            () -> graphs.get(descriptor, name, type, requested, count, values));
    }

    @Override
    public void destroyDescriptor(long descriptor) {
        state.remove(descriptor);
    }

    @Override
    public int execute(long handle, long plan, long variantPack) {
        return state.issue("cudnnBackendExecute", handle, () -> {
            GraphBuilder.Pack pack = state.find(variantPack, GraphObject.class).as(GraphBuilder.Pack.class);
            return state.find(plan, GraphObject.class).as(OperationGraph.class).bind(pack.pointers(),
                pack.workspace());
        });
    }

    @Override
    public int make(Content content, MemorySegment out) {
        return state.answer("a descriptor", () -> state.add(object(content), out));
    }

    @Override
    public void destroy(Kind kind, long descriptor) {
        state.remove(descriptor);
    }

    private static Object object(Content content) throws Refusal {
        long[] numbers = content.numbers();
        return switch (content.kind()) {
            case TENSOR -> {
                int dims = content.number(1);
                yield new Shape(content.number(0), Arrays.copyOfRange(numbers, 2, 2 + dims),
                    Arrays.copyOfRange(numbers, 2 + dims, 2 + 2 * dims));
            }
            case FILTER -> filter(content, Arrays.copyOfRange(numbers, 3, numbers.length));
            case CONVOLUTION -> convolution(content);
            case ACTIVATION -> new Activation(content.number(0), content.number(1), content.reals()[0],
                content.reals()[1]);
            case POOLING -> {
                int dims = content.number(2);
                yield new Pooling.Content(content.number(0), content.number(1), part(content, 3, dims),
                    part(content, 3 + dims, dims), part(content, 3 + 2 * dims, dims));
            }
            case OP_TENSOR -> {
                supportFloat(content.number(1));
                Operator operator = new Operator(content.number(0), content.number(2));
                operator.check();
                yield operator;
            }
            case REDUCE -> {
                supportFloat(content.number(1));
                Refusal.support(content.number(3) == cudnnReduceTensorIndices_t.CUDNN_REDUCE_TENSOR_NO_INDICES,
                    "reductions without indices");
                yield new Reduction(content.number(0), content.number(2));
            }
            case LRN -> {
                LocalResponse response = new LocalResponse(content.number(0), content.reals()[0], content.reals()[1],
                    content.reals()[2]);
                response.check();
                yield response;
            }
            case DROPOUT, RNN, RNN_DATA, CTC, SPATIAL -> throw Refusal.unsupported(content.kind().toString());
        };
    }

    private static void supportFloat(int type) throws Refusal {
        Refusal.support(type == cudnnDataType_t.CUDNN_DATA_FLOAT, "computations in float");
    }

    private static Shape filter(Content content, long[] sizes) throws Refusal {
        int format = content.number(1);
        Refusal.support(format == cudnnTensorFormat_t.CUDNN_TENSOR_NCHW
            || format == cudnnTensorFormat_t.CUDNN_TENSOR_NHWC, "filters in NCHW or NHWC");
        return format == cudnnTensorFormat_t.CUDNN_TENSOR_NCHW ? Shape.packed(content.number(0), sizes)
            : Shape.channelsLast(content.number(0), sizes);
    }

    private static long[] part(Content content, int from, int count) {
        return Arrays.copyOfRange(content.numbers(), from, from + count);
    }

    private static Convolution.Content convolution(Content content) throws Refusal {
        int dims = content.number(0);
        int rest = 1 + 3 * dims; // mode, type, groups
        supportFloat(content.number(rest + 1));
        Refusal.require(content.number(rest + 2) > 0, "a convolution has groups");
        long[] pad = part(content, 1, dims);
        return new Convolution.Content(pad, pad, part(content, 1 + dims, dims), part(content, 1 + 2 * dims, dims),
            content.number(rest) == cudnnConvolutionMode_t.CUDNN_CONVOLUTION, content.number(rest + 2));
    }

    @Override
    public int fillDropout(long handle, float dropout, long states, long bytes, long seed) {
        return state.refuse("cudnnSetDropoutDescriptor", Refusal.unsupported("random numbers"));
    }

    @Override
    public int weights(long handle, long rnn, int pseudoLayer, long weightBytes, int linLayer, MemorySegment matrix,
        MemorySegment bias) {
        return cudnnStatus_t.CUDNN_STATUS_NOT_SUPPORTED; // no recurrent network has been made
    }
}
