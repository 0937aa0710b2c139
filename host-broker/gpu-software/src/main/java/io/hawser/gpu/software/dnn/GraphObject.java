package io.hawser.gpu.software.dnn;

import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;

import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeName_t;
import io.hawser.cuda.generated.cudnn.cudnnDataType_t;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A descriptor of graphs: attributes, and what they mean once it is finalized. Session thread. */
final class GraphObject {
    private final int kind;
    private final Map<Integer, Object> attributes = new HashMap<>();
    private Object meaning; // null before it is finalized, which ends the attributes

    GraphObject(int kind) {
        this.kind = kind;
    }

    /** A cudnnBackendDescriptorType_t. */
    int kind() {
        return kind;
    }

    /**
     * Sets an attribute.
     *
     * @param values a {@code long[]}, {@code double[]} or {@code List<GraphObject>}.
     */
    void set(int name, Object values) {
        attributes.put(name, values);
    }

    /** Finalizes it. The guest keeps the attributes, and answers questions about them. */
    void mean(Object given) {
        meaning = given;
        attributes.clear();
    }

    /** What a finalized descriptor means. */
    <T> T as(Class<T> type) throws Refusal {
        if (meaning == null) {
            throw Refusal.of(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a descriptor is finalized first");
        }
        Refusal.require(type.isInstance(meaning), "an attribute has another kind of descriptor");
        return type.cast(meaning);
    }

    /** Checks that it has these attributes only: the meaning of others would be lost. */
    void allow(Integer... names) throws Refusal {
        Set<Integer> allowed = Set.of(names);
        for (int name : attributes.keySet()) {
            if (!allowed.contains(name)) {
                throw Refusal.unsupported(Names.of(cudnnBackendAttributeName_t.class, name));
            }
        }
    }

    boolean has(int name) {
        return attributes.containsKey(name);
    }

    long[] numbers(int name) throws Refusal {
        Refusal.require(attributes.get(name) instanceof long[], "a descriptor has attribute " + name);
        return ((long[]) attributes.get(name)).clone();
    }

    long number(int name) throws Refusal {
        long[] numbers = numbers(name);
        Refusal.require(numbers.length == 1, "an attribute has one value: " + name);
        return numbers[0];
    }

    long number(int name, long otherwise) throws Refusal {
        return has(name) ? number(name) : otherwise;
    }

    double real(int name, double otherwise) throws Refusal {
        if (!has(name)) {
            return otherwise;
        }
        Refusal.require(attributes.get(name) instanceof double[] reals && reals.length == 1,
            "an attribute is a number with a fraction: " + name);
        return ((double[]) attributes.get(name))[0];
    }

    /** The descriptors of an attribute. */
    List<GraphObject> parts(int name) throws Refusal {
        Refusal.require(attributes.get(name) instanceof List, "a descriptor has attribute " + name);
        return ((List<?>) attributes.get(name)).stream().map(GraphObject.class::cast).toList();
    }

    GraphObject part(int name) throws Refusal {
        List<GraphObject> parts = parts(name);
        Refusal.require(parts.size() == 1, "an attribute has one descriptor: " + name);
        return parts.getFirst();
    }

    /** Checks that computations have the type float. */
    void supportFloat(int name) throws Refusal {
        Refusal.support(number(name, cudnnDataType_t.CUDNN_DATA_FLOAT) == cudnnDataType_t.CUDNN_DATA_FLOAT,
            "computations in float");
    }
}
