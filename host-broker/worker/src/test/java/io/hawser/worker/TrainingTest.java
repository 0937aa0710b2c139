package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.worker.fixture.HeapGpu;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The calls of a training run, on the software GPU. */
@Timeout(300)
class TrainingTest {
    private static final BackendOptions OPTIONS = new BackendOptions(0, 1, 1, List.of());

    @Test
    void shouldMakeAllCallsOverBothCarriers() throws Exception {
        try (GpuBackend backend = Backends.open("software", OPTIONS)) {
            Training.run(backend, Duration.ZERO);
        }
    }

    @Test
    void shouldFailWithItsCalls() {
        // This GPU reads no PTX.
        assertThrows(IOException.class, () -> Training.run(new HeapGpu(), Duration.ZERO));
    }
}
