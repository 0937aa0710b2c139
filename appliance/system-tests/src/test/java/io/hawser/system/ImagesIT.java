package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Device code that one session has sent is not sent again by the next session of the same vGPU. */
class ImagesIT {
    private static final int IMAGE_KIB = 2048;
    private static final long IMAGES_BYTES = (IMAGE_KIB + IMAGE_KIB / 2) * 1024L; // sizes of drv_large_image
    private static final long SMALL_BYTES = 64 * 1024;
    private static final int MAX_SESSIONS = 30;

    @TempDir
    private Path stateDir;

    private static long sentBy(BrokerProcess broker, Carrier carrier) throws IOException, InterruptedException {
        try (GuestProgram program = GuestProgram.start(broker, carrier, "drv_large_image", "--kib",
            Integer.toString(IMAGE_KIB))) {
            long bytes = program.await().assertPassed().assertOver(carrier).counters().stream()
                .mapToLong(counters -> counters.path("bytes_out").asLong()).sum();
            broker.awaitIdle();
            return bytes;
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldSendAnImageOnce(Carrier carrier) throws Exception {
        try (BrokerProcess broker = BrokerProcess.start("images", stateDir.resolve("broker"),
            BrokerProcess.withQuickWorkers(Map.of()))) {
            long first = sentBy(broker, carrier);
            assertTrue(first > IMAGES_BYTES, "bytes=" + first);
            // The broker receives an image independently of the session, whose end does not wait for it.
            long last = first;
            for (int i = 0; last >= SMALL_BYTES && i < MAX_SESSIONS; i++) {
                last = sentBy(broker, carrier);
            }
            assertTrue(last < SMALL_BYTES, "bytes=" + last);
        }
    }

    @ParameterizedTest
    @EnumSource
    void shouldKeepNoImagesWhenDisabled(Carrier carrier) throws Exception {
        try (BrokerProcess broker = BrokerProcess.start("images", stateDir.resolve("broker"),
            BrokerProcess.withQuickWorkers(Map.of("hawser.images.max-size", "0")))) {
            assertTrue(sentBy(broker, carrier) > IMAGES_BYTES);
            assertTrue(sentBy(broker, carrier) > IMAGES_BYTES);
        }
    }
}
