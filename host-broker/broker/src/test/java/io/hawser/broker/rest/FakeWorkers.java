package io.hawser.broker.rest;

import io.hawser.broker.TestBroker;
import io.quarkus.test.common.QuarkusTestResourceLifecycleManager;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Gives the application of a test fake workers and a state folder of its own. */
public class FakeWorkers implements QuarkusTestResourceLifecycleManager {
    @Override
    public Map<String, String> start() {
        try {
            Path stateDir = Files.createTempDirectory("hawser-rest");
            return Map.of("hawser.state-dir", stateDir.toString(), "hawser.worker.command",
                TestBroker.workerCommand("normal"), "hawser.worker.pool-size", "1");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void stop() {
        // The broker frees the folder; what is in it is the test machine's to tidy.
    }
}
