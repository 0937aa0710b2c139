package io.hawser.gpu.software.dnn;

import static io.hawser.cuda.generated.cudnn.cudnnBackendAttributeName_t.*;

import io.hawser.cuda.generated.cudnn.cudnnBackendDescriptorType_t;
import io.hawser.cuda.generated.cudnn.cudnnBackendTensorReordering_t;
import io.hawser.cuda.generated.cudnn.cudnnConvolutionMode_t;
import io.hawser.cuda.generated.cudnn.cudnnNanPropagation_t;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Gives descriptors of graphs their meaning when a program finalizes them. */
final class GraphBuilder {
    /** A product of matrices has no choices. */
    private enum Product { MATRICES }

    /** Addresses of an execution. */
    record Pack(Map<Long, Long> pointers, long workspace) {
    }

    private GraphBuilder() {
    }

    /** Finalizes a descriptor. */
    static void build(GraphObject object) throws Refusal {
        object.mean(switch (object.kind()) {
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_TENSOR_DESCRIPTOR -> tensor(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR -> convolution(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_POINTWISE_DESCRIPTOR -> pointwise(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_MATMUL_DESCRIPTOR -> product(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_REDUCTION_DESCRIPTOR -> reduction(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ->
                forward(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ->
                backwardData(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR ->
                backwardFilter(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ->
                operationPointwise(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR -> operationMatmul(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ->
                operationReduction(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR -> graph(object);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_ENGINE_DESCRIPTOR -> {
                object.allow(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                    CUDNN_ATTR_ENGINE_SM_COUNT_TARGET);
                Refusal.support(object.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == 0, "engine 0");
                yield object.part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH).as(OperationGraph.class);
            }
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_ENGINECFG_DESCRIPTOR -> {
                object.allow(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
                yield object.part(CUDNN_ATTR_ENGINECFG_ENGINE).as(OperationGraph.class);
            }
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR ->
                object.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).as(OperationGraph.class);
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR -> {
                object.allow(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
                yield object.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).as(OperationGraph.class);
            }
            case cudnnBackendDescriptorType_t.CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR -> pack(object);
            default -> throw Refusal.unsupported(Names.of(cudnnBackendDescriptorType_t.class, object.kind()));
        });
    }

    private static GraphTensor tensor(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS,
            CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_VECTOR_COUNT, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION,
            CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_ATTR_TENSOR_IS_BY_VALUE,
            CUDNN_ATTR_TENSOR_REORDERING_MODE);
        Refusal.support(object.number(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1) == 1, "elements that are no vectors");
        Refusal.support(object.number(CUDNN_ATTR_TENSOR_REORDERING_MODE,
            cudnnBackendTensorReordering_t.CUDNN_TENSOR_REORDERING_NONE) == 0, "tensors that are not reordered");
        Shape shape = new Shape((int) object.number(CUDNN_ATTR_TENSOR_DATA_TYPE),
            object.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS), object.numbers(CUDNN_ATTR_TENSOR_STRIDES));
        GraphTensor tensor = new GraphTensor(object.number(CUDNN_ATTR_TENSOR_UNIQUE_ID), shape,
            object.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0, object.number(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0);
        Refusal.require(!tensor.isByValue() || !tensor.isVirtual() && shape.extent() == 1,
            "a tensor by value is one number");
        return tensor;
    }

    private static Convolution.Content convolution(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
            CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
            CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
            CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
        object.supportFloat(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
        Convolution.Content content = new Convolution.Content(object.numbers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
            object.numbers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
            object.numbers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), object.numbers(CUDNN_ATTR_CONVOLUTION_DILATIONS),
            object.number(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == cudnnConvolutionMode_t.CUDNN_CONVOLUTION, 0);
        Refusal.require(object.number(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == content.stride().length,
            "each dimension has its numbers");
        return content;
    }

    private static Pointwise pointwise(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION,
            CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP,
            CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_ATTR_POINTWISE_ELU_ALPHA,
            CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, CUDNN_ATTR_POINTWISE_SWISH_BETA, CUDNN_ATTR_POINTWISE_AXIS);
        object.supportFloat(CUDNN_ATTR_POINTWISE_MATH_PREC);
        Pointwise pointwise = new Pointwise((int) object.number(CUDNN_ATTR_POINTWISE_MODE),
            (int) object.number(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, cudnnNanPropagation_t.CUDNN_NOT_PROPAGATE_NAN),
            object.real(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0),
            object.real(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, Float.MAX_VALUE),
            object.real(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0),
            object.real(CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1), object.real(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1));
        pointwise.check();
        return pointwise;
    }

    private static Product product(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_MATMUL_COMP_TYPE);
        object.supportFloat(CUDNN_ATTR_MATMUL_COMP_TYPE);
        return Product.MATRICES;
    }

    private static Reduction reduction(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_COMP_TYPE,
            CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC);
        object.supportFloat(CUDNN_ATTR_REDUCTION_COMP_TYPE);
        return new Reduction((int) object.number(CUDNN_ATTR_REDUCTION_OPERATOR),
            cudnnNanPropagation_t.CUDNN_PROPAGATE_NAN);
    }

    private static GraphTensor tensor(GraphObject object, int name) throws Refusal {
        return object.part(name).as(GraphTensor.class);
    }

    private static Operation forward(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
        GraphTensor x = tensor(object, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
        GraphTensor w = tensor(object, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
        GraphTensor y = tensor(object, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
        Convolution convolution = Convolution.of(object.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC)
            .as(Convolution.Content.class), x.shape(), w.shape(), y.shape());
        double alpha = object.real(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1);
        double beta = object.real(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0);
        return Operation.of(List.of(x, w), y, beta,
            (in, out) -> convolution.forward(in.get(0), in.get(1), out, alpha, beta));
    }

    private static Operation backwardData(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
        GraphTensor dx = tensor(object, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
        GraphTensor w = tensor(object, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
        GraphTensor dy = tensor(object, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
        Convolution convolution = Convolution.of(object.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC)
            .as(Convolution.Content.class), dx.shape(), w.shape(), dy.shape());
        double alpha = object.real(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1);
        double beta = object.real(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0);
        return Operation.of(List.of(w, dy), dx, beta,
            (in, out) -> convolution.backwardData(in.get(0), in.get(1), out, alpha, beta));
    }

    private static Operation backwardFilter(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
        GraphTensor x = tensor(object, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
        GraphTensor dw = tensor(object, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
        GraphTensor dy = tensor(object, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
        Convolution convolution = Convolution.of(object.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC)
            .as(Convolution.Content.class), x.shape(), dw.shape(), dy.shape());
        double alpha = object.real(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 1);
        double beta = object.real(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 0);
        return Operation.of(List.of(x, dy), dw, beta,
            (in, out) -> convolution.backwardFilter(in.get(0), in.get(1), out, alpha, beta));
    }

    private static Operation operationPointwise(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
            CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
            CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2);
        Pointwise pointwise = object.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR).as(Pointwise.class);
        GraphTensor x = tensor(object, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
        GraphTensor b = pointwise.isBinary() ? tensor(object, CUDNN_ATTR_OPERATION_POINTWISE_BDESC) : x;
        GraphTensor y = tensor(object, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
        Refusal.require(x.shape().isWithin(y.shape()) && b.shape().isWithin(y.shape()),
            "inputs have the sizes of the output, or 1");
        double alpha1 = object.real(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1);
        double alpha2 = object.real(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1);
        return Operation.pointwise(pointwise.isBinary() ? List.of(x, b) : List.of(x), y, (in, out) -> Elements.map(out,
            0, v -> pointwise.of(alpha1 * v[0], alpha2 * v[1]), in.getFirst(), in.getLast()));
    }

    private static Operation operationMatmul(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
            CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_ATTR_OPERATION_MATMUL_DESC);
        object.part(CUDNN_ATTR_OPERATION_MATMUL_DESC).as(Product.class);
        GraphTensor a = tensor(object, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
        GraphTensor b = tensor(object, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
        GraphTensor c = tensor(object, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
        Matrices.check(a.shape(), b.shape(), c.shape());
        return Operation.of(List.of(a, b), c, 0, (in, out) -> Matrices.multiply(in.get(0), in.get(1), out));
    }

    private static Operation operationReduction(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
            CUDNN_ATTR_OPERATION_REDUCTION_DESC);
        Reduction reduction = object.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC).as(Reduction.class);
        GraphTensor x = tensor(object, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
        GraphTensor y = tensor(object, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
        reduction.check(x.shape(), y.shape());
        return Operation.of(List.of(x), y, 0, (in, out) -> reduction.run(in.getFirst(), out, 1, 0));
    }

    private static OperationGraph graph(GraphObject object) throws Refusal {
        object.allow(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_OPS,
            CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED);
        Refusal.support(object.number(CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, 0) == 0, "fixed shapes");
        List<Operation> operations = new ArrayList<>();
        for (GraphObject part : object.parts(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
            operations.add(part.as(Operation.class));
        }
        return new OperationGraph(operations);
    }

    private static Pack pack(GraphObject object) throws Refusal {
        long[] uids = object.numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
        long[] pointers = object.numbers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
        Refusal.require(uids.length == pointers.length, "a tensor has one pointer");
        Map<Long, Long> all = new HashMap<>();
        for (int i = 0; i < uids.length; i++) {
            all.put(uids[i], pointers[i]);
        }
        return new Pack(all, object.number(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0));
    }
}
