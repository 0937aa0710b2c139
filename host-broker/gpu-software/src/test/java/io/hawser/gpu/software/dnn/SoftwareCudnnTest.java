package io.hawser.gpu.software.dnn;

import static io.hawser.cuda.generated.cudnn.cudnnBackendAttributeName_t.*;
import static io.hawser.cuda.generated.cudnn.cudnnBackendAttributeType_t.*;
import static io.hawser.cuda.generated.cudnn.cudnnBackendDescriptorType_t.*;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.CudnnBackend.Content;
import io.hawser.cuda.backend.CudnnBackend.Kind;
import io.hawser.cuda.generated.cudnn.cudnnConvolutionBwdDataAlgoPerf_t;
import io.hawser.cuda.generated.cudnn.cudnnPointwiseMode_t;
import io.hawser.gpu.software.device.SoftwareBackend;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The library as the worker calls it, on a software GPU. */
class SoftwareCudnnTest {
    private static final int ELEMENTS = 4;
    private static final long TIMEOUT_S = 60;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64);
    private SoftwareBackend backend;
    private SoftwareCudnn cudnn;
    private long handle;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(64 << 20, 2);
        assertEquals(0, backend.createContext(0, 0, true, out));
        assertEquals(0, backend.setCurrent(out.get(ValueLayout.JAVA_LONG, 0)));
        cudnn = new SoftwareCudnn(backend);
        assertEquals(CUDNN_STATUS_SUCCESS, cudnn.create(out));
        handle = out.get(ValueLayout.JAVA_LONG, 0);
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    private void synchronize() {
        CountDownLatch done = new CountDownLatch(1);
        assertEquals(0, backend.hostFunction(0, done::countDown));
        try {
            assertTrue(done.await(TIMEOUT_S, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private long descriptor(int kind) {
        assertEquals(CUDNN_STATUS_SUCCESS, cudnn.createDescriptor(kind, out));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private void set(long descriptor, int name, int type, long... values) {
        MemorySegment array = arena.allocate(ValueLayout.JAVA_LONG, Math.max(1, values.length));
        for (int i = 0; i < values.length; i++) {
            switch (type) {
                case CUDNN_TYPE_BOOLEAN -> array.set(ValueLayout.JAVA_BYTE, i, (byte) values[i]);
                case CUDNN_TYPE_INT64, CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_TYPE_HANDLE, CUDNN_TYPE_VOID_PTR ->
                    array.setAtIndex(ValueLayout.JAVA_LONG, i, values[i]);
                default -> array.setAtIndex(ValueLayout.JAVA_INT, i, (int) values[i]);
            }
        }
        assertEquals(CUDNN_STATUS_SUCCESS, cudnn.setAttribute(descriptor, name, type, values.length, array));
    }

    private long made(long descriptor) {
        assertEquals(CUDNN_STATUS_SUCCESS, cudnn.finalizeDescriptor(descriptor), this::lastError);
        return descriptor;
    }

    private String lastError() {
        MemorySegment text = arena.allocate(512);
        cudnn.lastError(text);
        return text.getString(0);
    }

    private long tensor(long uid, boolean isVirtual, long... sizes) {
        long made = descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        long[] strides = new long[sizes.length];
        long next = 1;
        for (int i = sizes.length - 1; i >= 0; i--) {
            strides[i] = next;
            next *= sizes[i];
        }
        set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 0);
        set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes);
        set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
        set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid);
        set(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, isVirtual ? 1 : 0);
        return made(made);
    }

    private long pointwise(int mode, long x, long b, long y) {
        long function = descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        set(function, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
        set(function, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 0);
        long operation = descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, made(function));
        set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, x);
        if (b != 0) {
            set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, b);
        }
        set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, y);
        return made(operation);
    }

    private long graph(long... operations) {
        long graph = descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations);
        set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
        return graph;
    }

    private long ask(long descriptor, int name, int type, long given) {
        MemorySegment count = arena.allocate(ValueLayout.JAVA_LONG);
        MemorySegment values = arena.allocate(ValueLayout.JAVA_LONG);
        values.set(ValueLayout.JAVA_LONG, 0, given);
        assertEquals(CUDNN_STATUS_SUCCESS, cudnn.getAttribute(descriptor, name, type, 1, count, values));
        assertEquals(1, count.get(ValueLayout.JAVA_LONG, 0));
        return values.get(ValueLayout.JAVA_LONG, 0);
    }

    private long plan(long graph) {
        long heuristics = descriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph);
        long config = descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        ask(made(heuristics), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, config);
        long plan = descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, config);
        return made(plan);
    }

    private MemorySegment floats(float... values) {
        return arena.allocateFrom(ValueLayout.JAVA_FLOAT, values);
    }

    private int execute(long plan, long workspace, long[] uids, long... pointers) {
        long pack = descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
        set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, uids);
        set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
        set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
        int status = cudnn.execute(handle, plan, made(pack));
        cudnn.destroyDescriptor(pack);
        synchronize();
        return status;
    }

    @Test
    void shouldExecuteAChainWithAVirtualTensorInAnyOrder() {
        long x = tensor(1, false, ELEMENTS, 1);
        long b = tensor(2, false, 1, 1);
        long sum = tensor(3, true, ELEMENTS, 1);
        long y = tensor(4, false, ELEMENTS, 1);
        long rectify = pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_RELU_FWD, sum, 0, y);
        long add = pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_ADD, x, b, sum);
        long plan = plan(made(graph(rectify, add)));
        long bytes = ask(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, -1);
        assertTrue(bytes >= ELEMENTS * Float.BYTES);
        MemorySegment in = floats(-3, -1, 0, 2);
        MemorySegment result = floats(new float[ELEMENTS]);
        assertEquals(CUDNN_STATUS_SUCCESS, execute(plan, arena.allocate(bytes).address(), new long[] {1, 2, 4},
            in.address(), floats(1).address(), result.address()));
        assertEquals(0, result.getAtIndex(ValueLayout.JAVA_FLOAT, 0));
        assertEquals(1, result.getAtIndex(ValueLayout.JAVA_FLOAT, 2));
        assertEquals(3, result.getAtIndex(ValueLayout.JAVA_FLOAT, 3));
        assertEquals(CUDNN_STATUS_BAD_PARAM, execute(plan, arena.allocate(bytes).address(), new long[] {1, 2},
            in.address(), in.address()));
        assertTrue(lastError().contains("uid=4"), this::lastError);
    }

    @Test
    void shouldWorkInPlaceOnlyWhereNothingReadsLater() {
        long x = tensor(1, false, ELEMENTS, 1);
        long y = tensor(2, false, ELEMENTS, 1);
        long z = tensor(3, false, ELEMENTS, 1);
        long negate = pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_NEG, x, 0, y);
        MemorySegment memory = floats(1, 2, 3, 4);
        assertEquals(CUDNN_STATUS_SUCCESS, execute(plan(made(graph(negate))), 0, new long[] {1, 2},
            memory.address(), memory.address()));
        assertEquals(-4, memory.getAtIndex(ValueLayout.JAVA_FLOAT, 3));
        long add = pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_ADD, x, y, z);
        MemorySegment result = floats(new float[ELEMENTS]);
        assertEquals(CUDNN_STATUS_NOT_SUPPORTED, execute(plan(made(graph(negate, add))), 0, new long[] {1, 2, 3},
            memory.address(), memory.address(), result.address()));
        assertEquals(-4, memory.getAtIndex(ValueLayout.JAVA_FLOAT, 3));
    }

    @Test
    void shouldRefuseGraphsThatTheWorkerCouldNotCheck() {
        long x = tensor(1, false, ELEMENTS, 1);
        long other = tensor(1, false, 2 * ELEMENTS, 1); // the worker checks the memory of one of both
        long y = tensor(2, false, ELEMENTS, 1);
        long z = tensor(3, false, 2 * ELEMENTS, 1);
        long first = pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_NEG, x, 0, y);
        long second = pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_NEG, other, 0, z);
        assertEquals(CUDNN_STATUS_BAD_PARAM, cudnn.finalizeDescriptor(graph(first, second)));
        long hidden = tensor(5, true, ELEMENTS, 1);
        assertEquals(CUDNN_STATUS_BAD_PARAM, cudnn.finalizeDescriptor(
            graph(pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_NEG, hidden, 0, y)))); // nothing computes it
        long back = pointwise(cudnnPointwiseMode_t.CUDNN_POINTWISE_NEG, y, 0, x);
        assertEquals(CUDNN_STATUS_BAD_PARAM, cudnn.finalizeDescriptor(graph(first, back))); // a cycle
        assertEquals(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
            cudnn.finalizeDescriptor(graph(descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR))));
    }

    @Test
    void shouldNameWhatIsNotServed() {
        assertEquals(CUDNN_STATUS_NOT_SUPPORTED,
            cudnn.finalizeDescriptor(descriptor(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR)));
        assertTrue(lastError().startsWith("cudnnBackendFinalize: not supported by the software GPU"),
            this::lastError);
        Content rnn = new Content(Kind.RNN, new long[14], new double[2], 0, 0, 0);
        assertEquals(CUDNN_STATUS_NOT_SUPPORTED, cudnn.make(rnn, out));
        assertTrue(lastError().contains("RNN"), this::lastError);
        long ragged = descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        set(ragged, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, tensor(1, false, 2, 1));
        assertEquals(CUDNN_STATUS_NOT_SUPPORTED, cudnn.finalizeDescriptor(ragged));
        MemorySegment shortText = arena.allocate(8);
        cudnn.lastError(shortText);
        assertEquals("cudnnBa", shortText.getString(0));
    }

    private MemorySegment legacy(Kind kind, double[] reals, long... numbers) {
        assertEquals(CUDNN_STATUS_SUCCESS, cudnn.make(new Content(kind, numbers, reals, 0, 0, 0), out));
        return MemorySegment.ofAddress(out.get(ValueLayout.JAVA_LONG, 0));
    }

    @Test
    void shouldAddWhatLiesInThePlaceOfTheOutput() {
        MemorySegment data = legacy(Kind.TENSOR, new double[0], 0, 4, 1, 1, 2, 2, 4, 4, 2, 1);
        MemorySegment one = legacy(Kind.TENSOR, new double[0], 0, 4, 1, 1, 1, 1, 1, 1, 1, 1);
        MemorySegment filter = legacy(Kind.FILTER, new double[0], 0, 0, 4, 1, 1, 1, 1);
        MemorySegment convolution = legacy(Kind.CONVOLUTION, new double[0], 2, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 0);
        MemorySegment rectified = legacy(Kind.ACTIVATION, new double[] {0, 1}, 1, 0);
        MemorySegment x = floats(1, -2, 3, -4);
        MemorySegment y = floats(10, 0, -10, 5);
        MemorySegment two = floats(2);
        assertEquals(CUDNN_STATUS_SUCCESS, cudnn.cudnnConvolutionBiasActivationForward(
            MemorySegment.ofAddress(handle), floats(1), data, x.address(), filter, two.address(), convolution, 0, 0, 0,
            floats(0.5f), data, y.address(), one, floats(1).address(), rectified, data, y.address()), this::lastError);
        synchronize();
        float[] expected = {8, 0, 2, 0};
        for (int i = 0; i < expected.length; i++) {
            assertEquals(expected[i], y.getAtIndex(ValueLayout.JAVA_FLOAT, i), "element " + i);
        }
    }

    @Test
    void shouldMeasureTheTimeOfASearch() {
        MemorySegment data = legacy(Kind.TENSOR, new double[0], 0, 4, 1, 1, 2, 2, 4, 4, 2, 1);
        MemorySegment filter = legacy(Kind.FILTER, new double[0], 0, 0, 4, 1, 1, 1, 1);
        MemorySegment convolution = legacy(Kind.CONVOLUTION, new double[0], 2, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 0);
        MemorySegment called = MemorySegment.ofAddress(handle);
        MemorySegment x = floats(1, -2, 3, -4);
        MemorySegment two = floats(2);
        MemorySegment results = arena.allocate(8L * cudnnConvolutionBwdDataAlgoPerf_t.BYTES, Long.BYTES);
        MemorySegment count = arena.allocate(ValueLayout.JAVA_INT);
        assertEquals(CUDNN_STATUS_SUCCESS, cudnn.cudnnGetConvolutionBackwardDataAlgorithmMaxCount(called, count));
        int most = count.get(ValueLayout.JAVA_INT, 0);
        for (int requested : new int[] {1, most, 8}) {
            MemorySegment dx = floats(0, 0, 0, 0);
            assertEquals(CUDNN_STATUS_SUCCESS, cudnn.cudnnFindConvolutionBackwardDataAlgorithmEx(called, filter,
                two.address(), data, x.address(), convolution, data, dx.address(), requested, count, results, 0, 0),
                this::lastError);
            assertEquals(Math.min(requested, most), count.get(ValueLayout.JAVA_INT, 0));
            for (int i = 0; i < Math.min(requested, most); i++) {
                long at = (long) i * cudnnConvolutionBwdDataAlgoPerf_t.BYTES;
                assertEquals(CUDNN_STATUS_SUCCESS, results.get(ValueLayout.JAVA_INT, at
                    + cudnnConvolutionBwdDataAlgoPerf_t.STATUS_OFFSET));
                assertTrue(results.get(ValueLayout.JAVA_FLOAT, at + cudnnConvolutionBwdDataAlgoPerf_t.TIME_OFFSET) > 0);
            }
            assertEquals(-8, dx.getAtIndex(ValueLayout.JAVA_FLOAT, 3)); // the search runs the convolution
        }
        assertEquals(CUDNN_STATUS_BAD_PARAM, cudnn.cudnnFindConvolutionBackwardDataAlgorithmEx(called, filter,
            two.address(), data, x.address(), convolution, data, x.address(), 0, count, results, 0, 0));
        assertEquals(1, x.getAtIndex(ValueLayout.JAVA_FLOAT, 0));
    }

    @Test
    void shouldRefuseOutputsThatOverlapAndTensorsWithoutAddress() {
        MemorySegment data = legacy(Kind.TENSOR, new double[0], 0, 2, 2, 2, 2, 1);
        MemorySegment repeated = legacy(Kind.TENSOR, new double[0], 0, 2, 2, 2, 0, 1);
        MemorySegment half = legacy(Kind.TENSOR, new double[0], 2, 2, 2, 2, 2, 1);
        MemorySegment x = floats(1, 2, 3, 4);
        MemorySegment number = floats(1);
        MemorySegment called = MemorySegment.ofAddress(handle);
        assertEquals(CUDNN_STATUS_NOT_SUPPORTED, cudnn.cudnnTransformTensor(called, number, data, x.address(), number,
            repeated, x.address()));
        MemorySegment turned = legacy(Kind.TENSOR, new double[0], 0, 2, 2, 2, 1, 2);
        assertEquals(CUDNN_STATUS_NOT_SUPPORTED, cudnn.cudnnTransformTensor(called, number, data, x.address(), number,
            turned, x.address()));
        assertEquals(CUDNN_STATUS_NOT_SUPPORTED, cudnn.cudnnScaleTensor(called, half, x.address(), number));
        assertEquals(CUDNN_STATUS_BAD_PARAM, cudnn.cudnnScaleTensor(called, data, 0, number));
        assertEquals(CUDNN_STATUS_BAD_PARAM, cudnn.cudnnScaleTensor(called, MemorySegment.NULL, x.address(), number));
    }
}
