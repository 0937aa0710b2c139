package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class HostEntryTest {
    /** No work is watched. */
    private static final class NoEvents implements Markers.Events {
        @Override
        public long create() {
            throw new IllegalStateException("no work is watched");
        }

        @Override
        public int query(long event) {
            throw new IllegalStateException("no work is watched");
        }

        @Override
        public void flush(long event) {
            throw new IllegalStateException("no work is watched");
        }
    }

    /** The test calls the native function, as the driver does. An exception that reached it would end the JVM. */
    @Test
    void shouldPassNumbersAndKeepExceptions() throws Throwable {
        List<Long> numbers = new ArrayList<>();
        try (Markers markers = new Markers(new NoEvents())) {
            HostEntry entry = new HostEntry(markers, "a function", number -> {
                numbers.add(number);
                if (number == 7) {
                    throw new IllegalStateException("the test's own");
                }
            });
            MethodHandle call = Linker.nativeLinker().downcallHandle(entry.address(),
                FunctionDescriptor.ofVoid(ValueLayout.ADDRESS));
            for (long number : new long[] {7, -1}) {
                call.invokeExact(MemorySegment.ofAddress(number));
            }
        }
        assertEquals(List.of(7L, -1L), numbers);
    }
}
