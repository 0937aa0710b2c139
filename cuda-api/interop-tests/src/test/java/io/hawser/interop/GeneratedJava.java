package io.hawser.interop;

import io.hawser.cuda.CallContext;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Wire;
import io.hawser.shm.wire.RecordReader;
import io.hawser.shm.wire.RecordWriter;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The generated Java of a library, accessed by the names of its functions. */
final class GeneratedJava {
    private final Library library;
    private final ClassLoader loader;

    GeneratedJava(Library library, ClassLoader loader) {
        this.library = library;
        this.loader = loader;
    }

    /** A dispatcher whose driver and manual calls all use one handler. */
    Object dispatcher(InvocationHandler served) throws ReflectiveOperationException {
        Class<?> type = load(library.javaName() + "Dispatcher");
        Constructor<?> constructor = type.getConstructors()[0];
        Object[] arguments = Arrays.stream(constructor.getParameterTypes())
            .map(wanted -> Proxy.newProxyInstance(loader, new Class<?>[] {wanted}, served)).toArray();
        return constructor.newInstance(arguments);
    }

    static void dispatch(Object dispatcher, CallContext call) throws ReflectiveOperationException {
        dispatcher.getClass().getMethod("dispatch", CallContext.class).invoke(dispatcher, call);
    }

    /** A whole request from the generated encoder. */
    byte[] request(ApiFunction function, CallValues values) throws ReflectiveOperationException {
        RecordWriter writer = new RecordWriter(64);
        List<Object> arguments = new ArrayList<>(List.of(writer, 7L, 8, 9));
        for (Wire.Slot slot : function.request().slots()) {
            Param param = slot.param();
            arguments.add(param.isRecord() ? record((CType.Structure) param.value(), (byte[]) values.get(param), 0)
                : argument(param, values.get(param)));
        }
        int length = (int) method("client." + group(function).javaName() + "Requests", function).invoke(null,
            arguments.toArray());
        return Arrays.copyOf(writer.array(), length);
    }

    /** Writes a function's outputs with the generated encoder. */
    void reply(ApiFunction function, CallValues values, RecordWriter reply) throws ReflectiveOperationException {
        List<Object> arguments = new ArrayList<>(List.of(reply));
        function.answer().slots().forEach(slot -> arguments.add(answer(slot.param(), values)));
        method(group(function).javaName() + "Replies", function).invoke(null, arguments.toArray());
    }

    /** A function's outputs from the generated decoder: a record; null when malformed. */
    Record readReply(ApiFunction function, RecordReader in) throws ReflectiveOperationException {
        return (Record) method("client." + group(function).javaName() + "ReplyReader", function).invoke(null, in);
    }

    /** A parameter's value in the reply, in the form of Java's generated signatures. */
    static Object answer(Param param, CallValues values) {
        if (param.shape() != Param.Shape.INOUT) {
            return argument(param, values.get(param));
        }
        byte[] bytes = values.answered(param);
        return param.value() instanceof CType.Structure ? MemorySegment.ofArray(bytes) : number(param.value(),
            ByteBuffer.wrap(Arrays.copyOf(bytes, 8)).order(ByteOrder.LITTLE_ENDIAN).getLong());
    }

    /** A parameter's value in the request, in the form of Java's generated signatures. */
    static Object argument(Param param, Object value) {
        if (value instanceof byte[] bytes) {
            if (param.shape() == Param.Shape.TEXT) {
                return new String(bytes, StandardCharsets.UTF_8);
            }
            return MemorySegment.ofArray(bytes);
        }
        return value == null || !(param.value() instanceof CType type) || type instanceof CType.Handle ? value
            : number(type, (Long) value);
    }

    /** The argument record whose bytes begin at an offset. */
    private Object record(CType.Structure type, byte[] bytes, int offset) throws ReflectiveOperationException {
        List<Object> numbers = new ArrayList<>();
        for (CType.Field field : type.fields()) {
            int at = offset + field.offset();
            numbers.add(field.type() instanceof CType.Structure inner ? record(inner, bytes, at)
                : number(field, bytes, at));
        }
        Constructor<?> constructor = Arrays.stream(load(type.name()).getConstructors())
            .filter(c -> c.getParameterCount() > 0).findFirst().orElseThrow();
        return constructor.newInstance(numbers.toArray());
    }

    /** The number of a structure's field at an offset, as Java's type of the same size. */
    static Object number(CType.Field field, byte[] bytes, int offset) {
        return number(field.type(), ByteBuffer.wrap(Arrays.copyOf(Arrays.copyOfRange(bytes, offset,
            offset + field.size()), 8)).order(ByteOrder.LITTLE_ENDIAN).getLong());
    }

    /** A number's raw bits as Java's type of the same size. */
    static Object number(CType type, long bits) {
        CType.Number number = type instanceof CType.Scalar scalar ? scalar.number() : CType.Number.I32;
        return switch (number) {
            case I8, U8 -> (byte) bits;
            case I16, U16 -> (short) bits;
            case I32, U32 -> (int) bits;
            case I64, U64 -> bits;
            case F32 -> Float.intBitsToFloat((int) bits);
            case F64 -> Double.longBitsToDouble(bits);
        };
    }

    private Group group(ApiFunction function) {
        return library.groups().stream().filter(g -> g.functions().contains(function)).findFirst().orElseThrow();
    }

    private Method method(String type, ApiFunction function) throws ReflectiveOperationException {
        return Arrays.stream(load(type).getMethods()).filter(m -> m.getName().equals(function.symbol())).findFirst()
            .orElseThrow();
    }

    private Class<?> load(String name) throws ReflectiveOperationException {
        return Class.forName(library.javaPackage() + "." + name, true, loader);
    }
}
