package io.hawser.gpu.software.device;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.backend.GpuBackend;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class WorkTest {
    private static final int ROUNDS = 2000;
    private static final long MEMORY_BYTES = 64L << 20;

    @Test
    void shouldReportWorkOfStreamInItsOrder() throws InterruptedException {
        try (GpuBackend gpu = new SoftwareBackend(MEMORY_BYTES, 2); Arena arena = Arena.ofShared()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            assertEquals(0, gpu.createContext(0, 0, true, out));
            long context = out.get(ValueLayout.JAVA_LONG, 0);
            assertEquals(0, gpu.setCurrent(context));
            assertEquals(0, gpu.driver().cuStreamCreateWithPriority(out, 1, 0));
            long stream = out.get(ValueLayout.JAVA_LONG, 0);
            assertEquals(0, gpu.driver().cuEventCreate(out, 0));
            long event = out.get(ValueLayout.JAVA_LONG, 0);
            for (int round = 0; round < ROUNDS; round++) {
                LinkedBlockingQueue<String> reported = new LinkedBlockingQueue<>();
                CountDownLatch begun = new CountDownLatch(round % 2);
                assertEquals(0, gpu.hostFunction(stream, begun::countDown));
                begun.await();
                assertEquals(0, gpu.whenStreamReached(context, stream, result -> reported.add("first")));
                assertEquals(0, gpu.hostFunction(stream, () -> {}));
                assertEquals(0, gpu.whenStreamReached(context, stream, result -> reported.add("second")));
                assertEquals(0, gpu.driver().cuEventRecordWithFlags(event, stream, 0));
                assertEquals(0, gpu.whenEventReached(event, result -> reported.add("event")));
                assertEquals(0, gpu.whenContextReached(context, result -> reported.add("context")));
                List<String> order = new ArrayList<>();
                for (int i = 0; i < 4; i++) {
                    order.add(reported.take());
                    if (order.getLast().equals("event")) {
                        assertEquals(0, gpu.driver().cuEventQuery(event), "round=" + round);
                    }
                }
                assertEquals(List.of("first", "second"), order.subList(0, 2), "round=" + round);
            }
        }
    }
}
