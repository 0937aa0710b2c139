package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The short form of {@code appliance/soak}: one round to warm up, one to compare; at the end the broker is killed. */
@LongTests
class SoakIT {
    private static final Path LAUNCHER = Path.of(System.getProperty("hawser.root", "../..")).toAbsolutePath()
        .normalize().resolve("appliance/check/src/main/sh/hawser-check");

    @Test
    @Timeout(1800)
    void shouldLeaveNothingBehind() throws IOException, InterruptedException {
        Process soak = new ProcessBuilder(LAUNCHER.toString(), "--soak", "--seconds", "1", "--backend", "software")
            .redirectErrorStream(true).start();
        soak.getOutputStream().close();
        String output = new String(soak.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, soak.waitFor(), output);
        assertTrue(output.contains("soak: nothing has leaked"), output);
    }
}
