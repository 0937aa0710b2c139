package io.hawser.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.hawser.cuda.generated.HwsDevicePlace;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** A dispatcher passes argument records without allocating them. */
class ArgumentRecordTest {
    @Test
    void shouldReuseArgumentRecordsAndKeepThoseOfOneCallApart() throws Exception {
        Library library = new DescriptionReader(Source.classPath()).read().library("cuda");
        ApiFunction function = library.travelling().stream().filter(f -> f.symbol().equals("hwsCopyBox")).findFirst()
            .orElseThrow();
        List<Object[]> served = new ArrayList<>();
        List<Long> bases = new ArrayList<>();
        GeneratedJava java = new GeneratedJava(library, getClass().getClassLoader());
        Object dispatcher = java.dispatcher((proxy, method, given) -> {
            served.add(given);
            bases.add(((HwsDevicePlace) given[1]).base());
            bases.add(((HwsDevicePlace) given[2]).base());
            ((TestCall) given[0]).finish(0);
            return null;
        });
        List<Long> expected = new ArrayList<>();
        for (int seed = 0; seed < 2; seed++) {
            byte[] payload = new CallValues(function, new Random(seed)).requestPayload();
            ByteBuffer numbers = ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
            expected.add(numbers.getLong(0));
            expected.add(numbers.getLong(HwsDevicePlace.BYTES));
            try (Arena arena = Arena.ofConfined()) {
                byte[] record = InteropSuite.record(function, payload);
                GeneratedJava.dispatch(dispatcher, new TestCall(arena, record, () -> 0));
            }
        }
        assertEquals(expected, bases);
        assertNotSame(served.get(0)[1], served.get(0)[2]);
        for (int i = 1; i <= 3; i++) {
            assertSame(served.get(0)[i], served.get(1)[i]);
        }
    }
}
