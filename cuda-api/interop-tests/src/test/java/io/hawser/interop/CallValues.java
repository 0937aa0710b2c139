package io.hawser.interop;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import io.hawser.cuda.generator.model.SizeExpression;
import io.hawser.cuda.generator.model.Wire;
import io.hawser.cuda.generator.model.Wire.Slot;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/**
 * Random values for one call of a described function, and the payloads for them. The tests compare the generated code
 * of both languages with this independent encoder, which follows the rules of the architecture page.
 */
final class CallValues {
    /** A number as Long (raw bits), a handle as Long, bytes and texts as byte[], NULL as null. */
    private final Map<String, Object> values = new HashMap<>();
    private final ApiFunction function;
    private final Random random;

    CallValues(ApiFunction function, Random random) {
        this.function = function;
        this.random = random;
        Set<String> sizes = new HashSet<>();
        for (Param param : function.params()) {
            if (param.bytes() != null) {
                sizes.addAll(param.bytes().references());
            }
        }
        function.params().forEach(param -> values.put(param.name(), fixedValue(param, sizes.contains(param.name()))));
        sizes.stream().filter(name -> name.contains(".")).forEach(name -> field(name).putLong(random.nextInt(6)));
        function.params().stream().filter(Param::isBuffer).forEach(p -> values.put(p.name(), bufferValue(p)));
    }

    /** The bytes of {@code parameter.field}, a number of 64 bits. */
    private ByteBuffer field(String name) {
        String[] names = name.split("\\.");
        Param param = function.params().stream().filter(p -> p.name().equals(names[0])).findFirst().orElseThrow();
        CType.Field field = ((CType.Structure) param.value()).field(names[1]);
        return ByteBuffer.wrap((byte[]) values.get(names[0]), field.offset(), field.size())
            .order(ByteOrder.LITTLE_ENDIAN);
    }

    Object get(Param param) {
        return values.get(param.name());
    }

    /** Makes a buffer one byte longer than its described size. */
    void lengthen(Param param) {
        byte[] bytes = (byte[]) values.get(param.name());
        values.put(param.name(), bytes(bytes.length + 1));
    }

    /** The reply's value of a parameter. An inout parameter has another value in the request. */
    byte[] answered(Param param) {
        return (byte[]) values.get(param.name() + "/answer");
    }

    byte[] requestPayload() {
        return payload(function.request(), false);
    }

    byte[] replyPayload() {
        return payload(function.answer(), true);
    }

    static long nativeHandle(long id) {
        return id ^ 0x5A5A_0000_0000_0000L;
    }

    private Object fixedValue(Param param, boolean isSize) {
        return switch (param.shape()) {
            case NUMBER -> isSize ? (Object) (long) random.nextInt(6) : number(param.value());
            case OUT_NUMBER -> number(param.value());
            case HANDLE -> param.nullable() && random.nextInt(4) == 0 ? 0L : handle(param);
            case NEW, DROP -> handle(param);
            case STRUCT, OUT_STRUCT -> bytes(param.value().size());
            case INOUT -> {
                values.put(param.name() + "/answer", bytes(param.value().size()));
                byte[] request = bytes(param.value().size());
                if (param.scalar() != null) {
                    Arrays.fill(request, 0, Integer.BYTES, (byte) 0); // a number on the host, which the reply carries
                }
                yield request;
            }
            default -> null;
        };
    }

    private byte[] bufferValue(Param param) {
        if (param.nullable() && param.inRequest() && random.nextInt(4) == 0) {
            return null;
        }
        if (param.shape() == Shape.TEXT) {
            byte[] text = new byte[random.nextInt(24)];
            for (int i = 0; i < text.length; i++) {
                text[i] = (byte) ('a' + random.nextInt(26));
            }
            return text;
        }
        // Sometimes a buffer of the maximum length; its size must then be a single number that no other parameter uses.
        if (param.bytes() instanceof SizeExpression.Reference size && random.nextInt(8) == 0) {
            values.put(size.name(), (long) param.max());
        }
        int length = (int) param.bytes().evaluate(name -> name.contains(".") ? (Long) field(name).getLong()
            : (Long) values.get(name));
        if (param.shape() == Shape.HANDLES) {
            ByteBuffer ids = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
            while (ids.hasRemaining()) {
                ids.putLong(handle(param));
            }
            return ids.array();
        }
        return bytes(param.variable() ? random.nextInt(length + 1) : length);
    }

    private Long number(CType type) {
        if (type instanceof CType.Scalar scalar && scalar.number() == CType.Number.F32) {
            return (long) Float.floatToRawIntBits(random.nextFloat());
        }
        if (type instanceof CType.Scalar scalar && scalar.number() == CType.Number.F64) {
            return Double.doubleToRawLongBits(random.nextDouble());
        }
        long mask = type.size() == 8 ? -1 : (1L << 8 * type.size()) - 1;
        return random.nextLong() & mask;
    }

    private Long handle(Param param) {
        return (long) param.kind().number() << 40 | 1 + random.nextInt(1 << 30);
    }

    private byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    private byte[] payload(Wire wire, boolean answer) {
        ByteBuffer fixed = ByteBuffer.allocate(wire.fixedBytes()).order(ByteOrder.LITTLE_ENDIAN);
        ByteArrayOutputStream buffers = new ByteArrayOutputStream();
        for (Slot slot : wire.slots()) {
            Param param = slot.param();
            Object value = answer && param.shape() == Shape.INOUT ? answered(param) : get(param);
            fixed.position(slot.offset());
            if (param.isBuffer()) {
                byte[] bytes = (byte[]) value;
                fixed.putInt(bytes == null ? -1 : bytes.length);
                if (bytes != null) {
                    buffers.writeBytes(bytes);
                    buffers.writeBytes(new byte[-bytes.length & 7]);
                }
            } else if (value instanceof byte[] struct) {
                fixed.put(struct);
            } else {
                number(fixed, (Long) value, param.value().size());
            }
        }
        byte[] whole = new byte[fixed.capacity() + buffers.size()];
        System.arraycopy(fixed.array(), 0, whole, 0, fixed.capacity());
        System.arraycopy(buffers.toByteArray(), 0, whole, fixed.capacity(), buffers.size());
        return whole;
    }

    private static void number(ByteBuffer fixed, long value, int size) {
        switch (size) {
            case 1 -> fixed.put((byte) value);
            case 2 -> fixed.putShort((short) value);
            case 4 -> fixed.putInt((int) value);
            default -> fixed.putLong(value);
        }
    }
}
