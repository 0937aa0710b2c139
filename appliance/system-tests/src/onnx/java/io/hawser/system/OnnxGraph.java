package io.hawser.system;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.Random;
import java.util.stream.LongStream;

/**
 * Builds the bytes of an ONNX model. Names of a node's inputs and outputs are separated by commas; an empty name omits
 * an optional input. The field numbers are those of onnx.proto of ONNX 1.15.
 */
final class OnnxGraph {
    private static final int IR_VERSION = 9;
    private static final int OPERATOR_SET = 18;
    private static final long SEED = 5; // of the weights: each process must build the same model

    private final Message graph = new Message();
    private final Random random = new Random(SEED);

    /** The type of a tensor's elements, with its number in TensorProto.DataType. */
    enum Element {
        FLOAT(1),
        INT64(7),
        BOOL(9),
        FLOAT16(10),
        DOUBLE(11);

        private final int number;

        Element(int number) {
            this.number = number;
        }

        /** The number in an attribute, for example that of Cast. */
        long number() {
            return number;
        }
    }

    /** The fields of one message of Protocol Buffers. */
    private static final class Message {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        private interface Field {
            void write(CodedOutputStream out) throws IOException;
        }

        private Message put(Field field) {
            try {
                CodedOutputStream out = CodedOutputStream.newInstance(bytes);
                field.write(out);
                out.flush();
                return this;
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        Message number(int field, long value) {
            return put(out -> out.writeInt64(field, value));
        }

        Message numbers(int field, long... values) {
            LongStream.of(values).forEach(value -> number(field, value));
            return this;
        }

        Message real(int field, float value) {
            return put(out -> out.writeFloat(field, value));
        }

        Message text(int field, String value) {
            return put(out -> out.writeString(field, value));
        }

        Message raw(int field, ByteBuffer value) {
            return put(out -> out.writeBytes(field, ByteString.copyFrom(value)));
        }

        Message message(int field, Message value) {
            return put(out -> out.writeByteArray(field, value.bytes.toByteArray()));
        }
    }

    /** Numbers as an array: dimensions, or the value of an attribute. */
    static long[] list(long... values) {
        return values;
    }

    private static int count(long... dimensions) {
        return (int) LongStream.of(dimensions).reduce(1, (a, b) -> a * b);
    }

    /** Adds an input of floats. */
    OnnxGraph input(String name, long... dimensions) {
        return input(name, Element.FLOAT, dimensions);
    }

    /** Adds an input. */
    OnnxGraph input(String name, Element element, long... dimensions) {
        Message shape = new Message();
        for (long dimension : dimensions) {
            shape.message(1, new Message().number(1, dimension));
        }
        graph.message(11, value(name, new Message().number(1, element.number).message(2, shape)));
        return this;
    }

    /** Adds outputs of floats. */
    OnnxGraph outputs(String names) {
        return outputs(names, Element.FLOAT);
    }

    /** Adds outputs of one type, whose dimensions ONNX Runtime infers. */
    OnnxGraph outputs(String names, Element element) {
        for (String name : names.split(",")) {
            graph.message(12, value(name, new Message().number(1, element.number)));
        }
        return this;
    }

    private static Message value(String name, Message tensorType) {
        return new Message().text(1, name).message(2, new Message().message(1, tensorType));
    }

    /** Adds weights with a normal distribution. */
    OnnxGraph weights(String name, double deviation, long... dimensions) {
        float[] values = new float[count(dimensions)];
        for (int i = 0; i < values.length; i++) {
            values[i] = (float) (random.nextGaussian() * deviation);
        }
        return floats(name, dimensions, values);
    }

    /** Adds weights with a uniform distribution over 0.5 to 1.5, for a variance. */
    OnnxGraph positiveWeights(String name, long... dimensions) {
        float[] values = new float[count(dimensions)];
        for (int i = 0; i < values.length; i++) {
            values[i] = random.nextFloat() + 0.5f;
        }
        return floats(name, dimensions, values);
    }

    /** Adds a constant of floats. */
    OnnxGraph floats(String name, long[] dimensions, float... values) {
        ByteBuffer raw = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (float value : values) {
            raw.putFloat(value);
        }
        return constant(name, Element.FLOAT, dimensions, raw);
    }

    /** Adds a constant of integers. */
    OnnxGraph longs(String name, long[] dimensions, long... values) {
        ByteBuffer raw = ByteBuffer.allocate(values.length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (long value : values) {
            raw.putLong(value);
        }
        return constant(name, Element.INT64, dimensions, raw);
    }

    /** Adds a constant list of integers, for example of axes. */
    OnnxGraph longs(String name, long... values) {
        return longs(name, list(values.length), values);
    }

    private OnnxGraph constant(String name, Element element, long[] dimensions, ByteBuffer raw) {
        graph.message(5, new Message().numbers(1, dimensions).number(2, element.number).text(8, name)
            .raw(9, raw.flip()));
        return this;
    }

    /** Adds a node without attributes. */
    OnnxGraph node(String operator, String inputs, String outputs) {
        return node(operator, inputs, outputs, Map.of());
    }

    /** Adds a node. An attribute is a Long, a Float, a String, an array of longs, or a graph. */
    OnnxGraph node(String operator, String inputs, String outputs, Map<String, Object> attributes) {
        Message node = new Message();
        for (String input : inputs.split(",")) {
            node.text(1, input);
        }
        for (String output : outputs.split(",")) {
            node.text(2, output);
        }
        node.text(4, operator);
        attributes.forEach((name, value) -> node.message(5, attribute(new Message().text(1, name), value)));
        graph.message(1, node);
        return this;
    }

    // Field 20 is the type, by AttributeProto.AttributeType.
    private static Message attribute(Message attribute, Object value) {
        return switch (value) {
            case Float real -> attribute.real(2, real).number(20, 1);
            case Long number -> attribute.number(3, number).number(20, 2);
            case String text -> attribute.text(4, text).number(20, 3);
            case OnnxGraph body -> attribute.message(6, body.named()).number(20, 5);
            case long[] numbers -> attribute.numbers(8, numbers).number(20, 7);
            default -> throw new IllegalArgumentException("no type of attribute: " + value.getClass());
        };
    }

    private Message named() {
        return new Message().put(out -> out.writeRawBytes(graph.bytes.toByteArray())).text(2, "graph");
    }

    /** The model with this graph. */
    byte[] model() {
        Message operators = new Message().text(1, "").number(2, OPERATOR_SET);
        return new Message().number(1, IR_VERSION).message(7, named()).message(8, operators).bytes.toByteArray();
    }
}
