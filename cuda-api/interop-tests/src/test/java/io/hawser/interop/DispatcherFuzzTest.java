package io.hawser.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import io.hawser.shm.wire.RecordLayout;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A dispatcher throws nothing for any bytes, and ends each call exactly once. */
class DispatcherFuzzTest {
    private static final int RECORDS = 30_000;

    private static Library library;
    private static GeneratedJava java;

    @BeforeAll
    static void read() throws Exception {
        library = new DescriptionReader(Source.classPath()).read().library("cuda");
        java = new GeneratedJava(library, DispatcherFuzzTest.class.getClassLoader());
    }

    @Test
    void shouldEndEveryMutatedRecordOnce() throws Exception {
        Random random = new Random(1);
        List<ApiFunction> functions = library.travelling();
        int accepted = 0;
        int refused = 0;
        for (int i = 0; i < RECORDS; i++) {
            ApiFunction function = functions.get(i % functions.size());
            byte[] record = InteropSuite.record(function, new CallValues(function, random).requestPayload());
            TestCall call = dispatch(random, mutate(random, record));
            refused += call.fatal() != null ? 1 : 0;
            accepted += call.fatal() == null ? 1 : 0;
        }
        // Both must happen often; otherwise the mutations are too weak or too strong for a meaningful test.
        assertTrue(accepted > RECORDS / 10 && refused > RECORDS / 10, accepted + " accepted, " + refused + " refused");
    }

    @Test
    void shouldEndEveryRandomRecordOnce() throws Exception {
        Random random = new Random(2);
        List<ApiFunction> functions = library.travelling();
        for (int i = 0; i < RECORDS; i++) {
            byte[] record = new byte[RecordLayout.HEADER_BYTES + 8 * random.nextInt(24)];
            random.nextBytes(record);
            ByteBuffer header = ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN);
            header.putInt(RecordLayout.LENGTH_OFFSET, record.length);
            if (i % 8 != 0) {
                header.putInt(RecordLayout.OPCODE_OFFSET, functions.get(random.nextInt(functions.size())).opcode());
                header.putInt(RecordLayout.FLAGS_OFFSET, random.nextInt(4));
            }
            dispatch(random, record);
        }
    }

    private static TestCall dispatch(Random random, byte[] record) throws Exception {
        try (Arena arena = Arena.ofConfined()) {
            TestCall call = new TestCall(arena, record, () -> random.nextInt(16) == 0 ? 1 + random.nextInt(2) : 0);
            Object dispatcher = java.dispatcher((proxy, method, arguments) -> {
                if (method.getReturnType() == int.class) {
                    return random.nextInt(3) == 0 ? 1 : 0;
                }
                ((TestCall) arguments[0]).finish(1);
                return null;
            });
            GeneratedJava.dispatch(dispatcher, call);
            assertEquals(1, call.ends(), () -> "record=" + Arrays.toString(record));
            return call;
        }
    }

    private static byte[] mutate(Random random, byte[] record) {
        byte[] mutated = random.nextInt(4) == 0 ? Arrays.copyOf(record, RecordLayout.HEADER_BYTES
            + 8 * random.nextInt(record.length / 8 + 1)) : record.clone();
        ByteBuffer view = ByteBuffer.wrap(mutated).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = random.nextInt(3); i > 0 && mutated.length > RecordLayout.HEADER_BYTES; i--) {
            int at = RecordLayout.HEADER_BYTES + random.nextInt(mutated.length - RecordLayout.HEADER_BYTES);
            switch (random.nextInt(3)) {
                case 0 -> mutated[at] ^= (byte) (1 << random.nextInt(8));
                case 1 -> view.putInt(at & ~3, random.nextInt(3) - 1);
                default -> view.putInt(at & ~3, random.nextInt());
            }
        }
        if (random.nextInt(4) != 0) {
            view.putInt(RecordLayout.LENGTH_OFFSET, mutated.length);
        }
        return mutated;
    }
}
