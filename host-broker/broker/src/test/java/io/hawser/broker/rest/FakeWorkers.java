package io.hawser.broker.rest;

import io.hawser.broker.Broker;
import io.hawser.broker.TestBroker;
import io.quarkus.test.common.QuarkusTestResourceLifecycleManager;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Gives the application of the tests fake workers, a state folder of its own, and an issuer of tokens to trust. */
public class FakeWorkers implements QuarkusTestResourceLifecycleManager {
    private static TestIssuer issuer;

    /** The issuer that the application trusts. */
    static TestIssuer issuer() {
        return issuer;
    }

    /** Waits for a ready worker and for the end of other tests' guests. */
    public static void awaitIdle(Broker.Parts broker) {
        TestBroker.await("a ready worker, and the end of all sessions", () -> broker.pools().state().ready() > 0
            && broker.sessions().list().isEmpty());
    }

    @Override
    public Map<String, String> start() {
        try {
            Path stateDir = Files.createTempDirectory("hawser-rest");
            issuer = new TestIssuer();
            return Map.of("hawser.oidc.issuer", issuer.url(), "hawser.state-dir", stateDir.toString(),
                "hawser.worker.command", TestBroker.workerCommand("normal"), "hawser.worker.pool-size", "1",
                "hawser.listen.handshake-timeout", TestBroker.HANDSHAKE_TIMEOUT,
                "hawser.http.max-per-peer", "200"); // all tests are one peer, whose client keeps connections open
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void stop() {
        issuer.close();
        // The broker releases the folder. The test machine deletes the folder's content.
    }
}
