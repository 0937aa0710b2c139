package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TenantFiguresTest {
    private static final String LINE = "{\"name\": \"tenant\", \"kernels\": 186772, \"longest_ms\": 50.125, "
        + "\"middle_ms\": 1.210, \"p99_ms\": 1.300}";

    @TempDir
    Path folder;

    private TenantFigures figures(int weight, String output) throws IOException {
        Path out = Files.writeString(folder.resolve("out"), output);
        return TenantFigures.of(weight, new Guests.Started(null, out, out, out));
    }

    @Test
    void shouldReadTheLineAfterReady() throws IOException {
        assertEquals(new TenantFigures(4, 186_772, 1.21, 1.3, 50.125), figures(4, "READY\n" + LINE + "\n"));
    }

    @Test
    void shouldFailWithoutTheLineOrANumber() {
        assertThrows(CheckException.class, () -> figures(1, "READY\n"));
        assertThrows(CheckException.class, () -> figures(1, LINE.replace("p99_ms", "p90_ms")));
        assertThrows(CheckException.class, () -> figures(1, "{\"name\": \"kernel\", \"ms\": 0.2}"));
    }

    @Test
    void shouldReadTheTimeOfAKernel() throws IOException {
        ObjectMapper json = new ObjectMapper();
        assertEquals(35.2367, TenantFigures.kernelMs(json.readTree("{\"name\": \"kernel\", \"ms\": 35.2367}")));
        assertThrows(CheckException.class, () -> TenantFigures.kernelMs(json.readTree(LINE)));
    }
}
