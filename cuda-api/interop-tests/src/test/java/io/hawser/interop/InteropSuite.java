package io.hawser.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.ApiFunction.Reply;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import io.hawser.cuda.generator.model.Wire.Slot;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Random;

/** Compares the generated C and Java of a function with {@link CallValues}, and with each other. */
final class InteropSuite {
    private static final int ROUNDS = 12;

    private final GeneratedJava java;
    private final CProgram c;
    private final int lost;

    /** @param lost result of the library's calls after the loss of the session. */
    InteropSuite(GeneratedJava java, CProgram c, int lost) {
        this.java = java;
        this.c = c;
        this.lost = lost;
    }

    /** Java encodes, C decodes and encodes again, Java serves; the reply takes the same way back. */
    void shouldRoundTrip(ApiFunction function) throws Exception {
        Random random = new Random(function.opcode());
        for (int round = 0; round < ROUNDS; round++) {
            CallValues values = new CallValues(function, random);
            byte[] request = java.request(function, values);
            assertArrayEquals(values.requestPayload(), payload(request), "Java's request");
            CProgram.Answer mirrored = c.call(function.opcode(), payload(request), values.replyPayload());
            assertEquals(0, mirrored.result(), "C's result");
            assertEquals(function.opcode(), mirrored.opcode(), "C's opcode");
            assertEquals(flags(function), mirrored.flags(), "C's flags");
            assertArrayEquals(values.requestPayload(), mirrored.captured(), "C's request");
            assertArrayEquals(values.replyPayload(), mirrored.outputs(), "C's outputs");
            try (Arena arena = Arena.ofConfined()) {
                TestCall call = serve(arena, function, values, record(function, mirrored.captured()));
                assertNull(call.fatal());
                assertEquals(0, call.finished());
                assertEquals(1, call.ends());
                if (function.hasOutputs()) {
                    assertArrayEquals(values.replyPayload(), call.replyPayload(), "Java's reply");
                    checkReplyReader(function, values, mirrored.outputs());
                }
                checkHandles(function, values, call);
            }
        }
    }

    /** The dispatcher ends the session for a request that is cut at any length, or longer than its header's length. */
    void shouldRefuseEveryOtherLengthOfRequest(ApiFunction function) throws Exception {
        CallValues values = small(function);
        byte[] whole = record(function, values.requestPayload());
        for (int length = RecordLayout.HEADER_BYTES; length <= whole.length + 8; length++) {
            if (length != whole.length) {
                byte[] cut = Arrays.copyOf(whole, length);
                ByteBuffer.wrap(cut).order(ByteOrder.LITTLE_ENDIAN).putInt(RecordLayout.LENGTH_OFFSET, length);
                try (Arena arena = Arena.ofConfined()) {
                    TestCall call = serve(arena, function, values, cut);
                    assertNotNull(call.fatal(), "length=" + length);
                    assertEquals(1, call.ends(), "length=" + length);
                }
            }
        }
    }

    /** The dispatcher ends the session for a buffer whose length differs from the call's numbers. */
    void shouldRefuseBufferOfOtherLengthThanDescribed(ApiFunction function) throws Exception {
        for (Slot slot : function.request().buffers()) {
            Param param = slot.param();
            CallValues values = small(function);
            if (param.shape() != Shape.TEXT && values.get(param) != null) {
                values.lengthen(param);
                try (Arena arena = Arena.ofConfined()) {
                    TestCall call = serve(arena, function, values, record(function, values.requestPayload()));
                    assertNotNull(call.fatal(), param.name());
                    assertEquals(1, call.ends(), param.name());
                }
            }
        }
    }

    /** C ends the session for a reply that is cut at any length, or longer than its header's length. */
    void shouldRefuseEveryOtherLengthOfReply(ApiFunction function) throws Exception {
        if (function.reply() != Reply.SYNC && !function.hasOutputs()) {
            return;
        }
        CallValues values = small(function);
        byte[] whole = values.replyPayload();
        for (int length = 0; length <= whole.length + 8; length++) {
            if (length != whole.length) {
                CProgram.Answer answer = c.call(function.opcode(), values.requestPayload(),
                    Arrays.copyOf(whole, length));
                assertEquals(lost, answer.result(), "length=" + length);
                assertEquals(0, answer.outputs().length, "length=" + length);
                if (function.hasOutputs()) {
                    RecordReader in = new RecordReader().wrap(MemorySegment.ofArray(replyRecord(
                        Arrays.copyOf(whole, length))), 0, RecordLayout.HEADER_BYTES + length);
                    assertNull(java.readReply(function, in), "length=" + length);
                }
            }
        }
    }

    /**
     * Values with payloads short enough to be cut at every length, but with bytes in each buffer.
     */
    private static CallValues small(ApiFunction function) {
        CallValues values = null;
        for (int seed = 0; seed < 64; seed++) {
            CallValues next = new CallValues(function, new Random(seed));
            int length = next.requestPayload().length + next.replyPayload().length;
            int best = values == null ? 0 : values.requestPayload().length + values.replyPayload().length;
            if (values == null || best > 1 << 12 && length < best || length > best && length < 1 << 10) {
                values = next;
            }
        }
        return values;
    }

    private TestCall serve(Arena arena, ApiFunction function, CallValues values, byte[] record) throws Exception {
        TestCall call = new TestCall(arena, record, () -> 0);
        Object dispatcher = java.dispatcher((proxy, method, arguments) -> {
            assertEquals(function.manual() ? function.symbol() : function.method(), method.getName());
            return function.manual() ? manual(function, values, arguments) : driver(function, values, arguments);
        });
        GeneratedJava.dispatch(dispatcher, call);
        return call;
    }

    private Object manual(ApiFunction function, CallValues values, Object[] arguments)
        throws ReflectiveOperationException {
        Iterator<Object> given = Arrays.asList(arguments).iterator();
        TestCall call = (TestCall) given.next();
        for (Param param : function.params()) {
            if (param.shape() == Shape.NEW) {
                assertEquals(values.get(param), given.next(), param.name());
            } else if (param.inRequest()) {
                compare(param, values, given.next());
                if (param.shape() == Shape.DROP) {
                    assertEquals(values.get(param), given.next(), param.name());
                    call.drop(null, (Long) values.get(param));
                }
            }
        }
        if (function.hasOutputs()) {
            java.reply(function, values, call.reply());
        }
        call.finish(0);
        return null;
    }

    private Object driver(ApiFunction function, CallValues values, Object[] given)
        throws ReflectiveOperationException {
        Object[] arguments = given == null ? new Object[0] : given; // a proxy passes null for none
        int at = arguments.length - function.params().size(); // after the form and the width
        assertEquals(form(function), Arrays.stream(arguments).limit(at).map(Object::toString).toList());
        for (Param param : function.params()) {
            Object argument = narrow(param, arguments[at++]);
            if (param.shape() == Shape.NEW) {
                ((MemorySegment) argument).set(ValueLayout.JAVA_LONG, 0,
                    CallValues.nativeHandle((Long) values.get(param)));
            } else if (param.inRequest()) {
                compare(param, values, argument);
            }
            if (param.inReply()) {
                set((MemorySegment) argument, param, values);
            }
        }
        return 0;
    }

    /** The form and the width that the method of a function's family receives. */
    private static List<String> form(ApiFunction function) {
        List<String> form = new ArrayList<>();
        if (function.family() != null && function.family().form() != null) {
            form.add(function.family().constant());
        }
        if (function.family() != null && function.family().hasWide()) {
            form.add(Boolean.toString(function.family().isWide()));
        }
        return form;
    }

    /** A method of a family has 64-bit integers also for functions with shorter ones. */
    private static Object narrow(Param param, Object given) {
        return given instanceof Long number && param.shape() == Shape.NUMBER && param.value().size() == Integer.BYTES
            ? (Object) Math.toIntExact(number) : given;
    }

    private static void set(MemorySegment target, Param param, CallValues values) {
        Object value = param.shape() == Shape.INOUT ? values.answered(param) : values.get(param);
        if (value instanceof byte[] bytes) {
            MemorySegment.copy(bytes, 0, target, ValueLayout.JAVA_BYTE, 0, bytes.length);
        } else {
            byte[] bits = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong((Long) value).array();
            MemorySegment.copy(bits, 0, target, ValueLayout.JAVA_BYTE, 0, param.value().size());
        }
    }

    private static void compare(Structure type, byte[] expected, int offset, Object given)
        throws ReflectiveOperationException {
        for (Field field : type.fields()) {
            Object part = given.getClass().getMethod(field.name()).invoke(given);
            if (field.type() instanceof Structure inner) {
                compare(inner, expected, offset + field.offset(), part);
            } else {
                assertEquals(GeneratedJava.number(field, expected, offset + field.offset()), part, field.name());
            }
        }
    }

    private static void compare(Param param, CallValues values, Object given) throws ReflectiveOperationException {
        Object expected = values.get(param);
        if (param.isRecord()) {
            compare((Structure) param.value(), (byte[]) expected, 0, given);
            return;
        }
        switch (param.shape()) {
            case HANDLE, DROP -> {
                long id = (Long) expected;
                assertEquals(id == 0 ? 0 : CallValues.nativeHandle(id), given, param.name());
            }
            case HANDLES -> {
                long[] natives = MemorySegment.ofArray((byte[]) expected).toArray(ValueLayout.JAVA_LONG_UNALIGNED);
                Arrays.setAll(natives, i -> CallValues.nativeHandle(natives[i]));
                assertArrayEquals(natives, ((MemorySegment) given).toArray(ValueLayout.JAVA_LONG), param.name());
            }
            case STRUCT, BYTES, INOUT -> assertArrayEquals((byte[]) expected,
                given == null ? null : ((MemorySegment) given).toArray(ValueLayout.JAVA_BYTE), param.name());
            default -> assertEquals(GeneratedJava.argument(param, expected), given, param.name());
        }
    }

    private static void checkHandles(ApiFunction function, CallValues values, TestCall call) {
        for (Param param : function.params()) {
            if (param.shape() == Shape.NEW && !function.manual()) {
                long id = (Long) values.get(param);
                assertEquals(CallValues.nativeHandle(id), call.registered().get(id));
            } else if (param.shape() == Shape.DROP) {
                assertEquals(values.get(param), call.dropped());
            }
        }
    }

    private void checkReplyReader(ApiFunction function, CallValues values, byte[] payload) throws Exception {
        RecordReader in = new RecordReader().wrap(MemorySegment.ofArray(replyRecord(payload)), 0,
            RecordLayout.HEADER_BYTES + payload.length);
        Record reply = java.readReply(function, in);
        assertNotNull(reply, in.reason());
        for (Slot slot : function.answer().slots()) {
            Object given = reply.getClass().getMethod(slot.param().name()).invoke(reply);
            Object expected = GeneratedJava.answer(slot.param(), values);
            if (given instanceof MemorySegment bytes) {
                assertArrayEquals(((MemorySegment) expected).toArray(ValueLayout.JAVA_BYTE),
                    bytes.toArray(ValueLayout.JAVA_BYTE), slot.param().name());
            } else {
                assertEquals(expected, given, slot.param().name());
            }
        }
    }

    private static int flags(ApiFunction function) {
        return (function.reply() == Reply.ASYNC ? 0 : RecordLayout.FLAG_REPLY)
            | (function.credited() ? RecordLayout.FLAG_CREDITED : 0);
    }

    private static byte[] payload(byte[] record) {
        return Arrays.copyOfRange(record, RecordLayout.HEADER_BYTES, record.length);
    }

    static byte[] record(ApiFunction function, byte[] payload) {
        ByteBuffer record = ByteBuffer.allocate(RecordLayout.HEADER_BYTES + payload.length)
            .order(ByteOrder.LITTLE_ENDIAN);
        record.putInt(record.capacity()).putInt(function.opcode()).putLong(7).putInt(8).putInt(9)
            .putInt(flags(function)).putInt(0).put(payload);
        return record.array();
    }

    private static byte[] replyRecord(byte[] payload) {
        ByteBuffer record = ByteBuffer.allocate(RecordLayout.HEADER_BYTES + payload.length)
            .order(ByteOrder.LITTLE_ENDIAN);
        record.putInt(record.capacity()).position(RecordLayout.HEADER_BYTES).put(payload);
        return record.array();
    }
}
