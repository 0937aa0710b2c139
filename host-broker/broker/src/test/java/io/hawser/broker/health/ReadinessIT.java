package io.hawser.broker.health;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.Broker;
import io.hawser.broker.BrokerListener;
import io.hawser.broker.TestBroker;
import io.hawser.broker.admin.PoolView;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Readiness of working and of failing brokers. */
class ReadinessIT {
    @TempDir
    Path folder;

    private static Readiness check(Broker.Parts broker) {
        return new ReadinessCheck(broker.pulse(), broker.pools(), broker.gpuMonitor(), broker.database(),
            new PoolView(broker.membership())).checkSnapshots();
    }

    @Test
    void shouldBeReadyOnceAWorkerHasTold() {
        try (TestBroker broker = TestBroker.start(folder, "normal", Map.of())) {
            TestBroker.await("readiness", () -> check(broker.broker()).isReady());
            assertTrue(check(broker.broker()).notes().isEmpty());
        }
    }

    @Test
    void shouldNotBeReadyBeforeAWorkerHasTold() {
        try (TestBroker broker = TestBroker.start(folder, "silent", Map.of())) {
            assertEquals("[no worker has reported a GPU yet]",
                check(broker.broker()).reasons().toString());
        }
    }

    @Test
    void shouldSayWhyWorkersDoNotStart() {
        try (TestBroker broker = TestBroker.start(folder, "crash", Map.of())) {
            TestBroker.await("a failure", () -> broker.broker().pools().state().failures() > 0);
            Readiness readiness = check(broker.broker());
            assertFalse(readiness.isReady());
            assertTrue(readiness.reasons().getFirst().startsWith("no worker can be started: worker "),
                readiness.reasons().toString());
        }
    }

    @Test
    void shouldSayThatTheEventLoopHangs() {
        CountDownLatch hang = new CountDownLatch(1);
        BrokerListener hanging = new BrokerListener() {
            @Override
            public void refused(Carrier carrier, Refusal refusal) {
                throw new AssertionError("this test has no guest");
            }

            @Override
            public void sessionStarted(Carrier carrier, Duration time) {
                throw new AssertionError("this test has no guest");
            }

            @Override
            public void workerStarted(Duration time) {
                try {
                    hang.await(); // blocks the event loop
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        };
        Broker broker = Broker.start(TestBroker.config(folder, "normal", Map.of()), System.getenv(), hanging,
            TestBroker.DESCRIPTION_HASH);
        try {
            TestBroker.await("the report of the blocked event loop", () -> check(broker.parts()).reasons().stream()
                .anyMatch(reason -> reason.startsWith("the event loop has not come round for ")));
            hang.countDown();
            TestBroker.await("readiness", () -> check(broker.parts()).isReady());
        } finally {
            hang.countDown();
            broker.stop("the test is over");
        }
    }
}
