package io.hawser.gpu.software.dnn;

import static io.hawser.cuda.generated.cudnn.cudnnBackendAttributeName_t.*;

import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeName_t;
import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeType_t;
import io.hawser.cuda.generated.cudnn.cudnnBackendDescriptorType_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/** Sets attributes of graphs, and answers a program's questions about them. Each graph has one engine. */
final class DnnGraphs {
    private static final int ENGINE = cudnnBackendDescriptorType_t.CUDNN_BACKEND_ENGINE_DESCRIPTOR;
    private static final int CONFIG = cudnnBackendDescriptorType_t.CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;

    private final DnnState state;

    DnnGraphs(DnnState state) {
        this.state = state;
    }

    void set(long descriptor, int name, int type, long count, MemorySegment values) throws Refusal {
        GraphObject object = state.find(descriptor, GraphObject.class);
        int elements = Math.toIntExact(count);
        object.set(name, switch (type) {
            case cudnnBackendAttributeType_t.CUDNN_TYPE_BACKEND_DESCRIPTOR -> parts(values, elements);
            case cudnnBackendAttributeType_t.CUDNN_TYPE_FLOAT, cudnnBackendAttributeType_t.CUDNN_TYPE_DOUBLE ->
                reals(values, elements, type == cudnnBackendAttributeType_t.CUDNN_TYPE_FLOAT);
            case cudnnBackendAttributeType_t.CUDNN_TYPE_CHAR, cudnnBackendAttributeType_t.CUDNN_TYPE_FRACTION ->
                throw Refusal.unsupported("texts and fractions");
            default -> numbers(values, elements, type);
        });
    }

    private List<GraphObject> parts(MemorySegment values, int count) throws Refusal {
        List<GraphObject> parts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            parts.add(state.find(values.getAtIndex(ValueLayout.JAVA_LONG, i), GraphObject.class));
        }
        return parts;
    }

    private static double[] reals(MemorySegment values, int count, boolean isFloat) {
        double[] reals = new double[count];
        for (int i = 0; i < count; i++) {
            reals[i] = isFloat ? values.getAtIndex(ValueLayout.JAVA_FLOAT, i)
                : values.getAtIndex(ValueLayout.JAVA_DOUBLE, i);
        }
        return reals;
    }

    private static long[] numbers(MemorySegment values, int count, int type) {
        long[] numbers = new long[count];
        for (int i = 0; i < count; i++) {
            numbers[i] = switch (type) {
                case cudnnBackendAttributeType_t.CUDNN_TYPE_BOOLEAN -> values.get(ValueLayout.JAVA_BYTE, i);
                case cudnnBackendAttributeType_t.CUDNN_TYPE_HANDLE, cudnnBackendAttributeType_t.CUDNN_TYPE_INT64,
                    cudnnBackendAttributeType_t.CUDNN_TYPE_VOID_PTR -> values.getAtIndex(ValueLayout.JAVA_LONG, i);
                default -> values.getAtIndex(ValueLayout.JAVA_INT, i); // enumerations
            };
        }
        return numbers;
    }

    /** As cudnnBackendGetAttribute; {@code values} is NULL where the program asks for the number of values only. */
    void get(long descriptor, int name, int type, long requested, MemorySegment count, MemorySegment values)
        throws Refusal {
        GraphObject object = state.find(descriptor, GraphObject.class);
        OperationGraph graph = object.as(OperationGraph.class);
        boolean isWanted = requested > 0 && values.address() != 0;
        switch (name) {
            case CUDNN_ATTR_ENGINEHEUR_RESULTS -> fill(object, type, isWanted, CONFIG, count, values);
            case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG -> fill(object, type, isWanted, CONFIG, count, values);
            case CUDNN_ATTR_ENGINECFG_ENGINE -> fill(object, type, isWanted, ENGINE, count, values);
            case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT -> give(1, type, isWanted, count, values);
            case CUDNN_ATTR_ENGINE_GLOBAL_INDEX -> give(0, type, isWanted, count, values);
            case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE ->
                give(graph.workspaceBytes(), type, isWanted, count, values);
            case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_ATTR_ENGINE_KNOB_INFO,
                CUDNN_ATTR_ENGINE_LAYOUT_INFO, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO -> count.set(ValueLayout.JAVA_LONG, 0, 0);
            default -> throw Refusal.unsupported(Names.of(cudnnBackendAttributeName_t.class, name));
        }
    }

    private static void give(long number, int type, boolean isWanted, MemorySegment count, MemorySegment values)
        throws Refusal {
        Refusal.require(type == cudnnBackendAttributeType_t.CUDNN_TYPE_INT64, "the answer is a 64-bit number");
        count.set(ValueLayout.JAVA_LONG, 0, 1);
        if (isWanted) {
            values.set(ValueLayout.JAVA_LONG, 0, number);
        }
    }

    /** Gives the program's descriptor the meaning of the one engine, or of its one configuration. */
    private void fill(GraphObject from, int type, boolean isWanted, int kind, MemorySegment count,
        MemorySegment values) throws Refusal {
        Refusal.require(type == cudnnBackendAttributeType_t.CUDNN_TYPE_BACKEND_DESCRIPTOR,
            "the answer is a descriptor");
        count.set(ValueLayout.JAVA_LONG, 0, 1);
        if (isWanted) {
            GraphObject result = state.find(values.get(ValueLayout.JAVA_LONG, 0), GraphObject.class);
            Refusal.require(result.kind() == kind, "the answer has the kind of the program's descriptor");
            result.mean(from.as(OperationGraph.class));
        }
    }
}
