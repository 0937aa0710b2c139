package io.hawser.hypervisor.reconcile;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** When passes run. Each pass waits for the test, which therefore knows how many have begun. */
class PassesTest {
    private static final long LIMIT_S = 600;

    private final Semaphore begun = new Semaphore(0);
    private final Semaphore mayEnd = new Semaphore(0);
    private Passes passes = passes(Duration.ofHours(1));

    private Passes passes(Duration interval) {
        return new Passes(() -> {
            begun.release();
            mayEnd.acquireUninterruptibly();
            throw new IllegalStateException("a fault of a pass, on purpose");
        }, interval);
    }

    @AfterEach
    void close() {
        mayEnd.release(1000);
        passes.close();
    }

    private void awaitPass() throws InterruptedException {
        assertTrue(begun.tryAcquire(LIMIT_S, TimeUnit.SECONDS), "a pass must begin");
    }

    @Test
    void shouldRunAtItsStartAndAtEachRequestAlthoughPassesFail() throws Exception {
        passes.start();
        awaitPass();
        mayEnd.release();
        passes.request();
        awaitPass();
    }

    @Test
    void shouldRunAgainForARequestDuringAPass() throws Exception {
        passes.start();
        awaitPass();
        passes.request();
        passes.request();
        mayEnd.release();
        awaitPass();
        assertEquals(0, begun.availablePermits());
    }

    @Test
    void shouldRunEarlierOnRequestThanTheInterval() throws Exception {
        passes.start();
        awaitPass();
        passes.request(Duration.ofMillis(1));
        passes.request(Duration.ofHours(2)); // does not delay it
        mayEnd.release();
        awaitPass();
    }

    @Test
    void shouldRunAfterTheIntervalWithoutARequest() throws Exception {
        passes = passes(Duration.ofMillis(1));
        passes.start();
        awaitPass();
        mayEnd.release();
        awaitPass();
    }

    @Test
    void shouldRunNoPassAfterItsClose() throws Exception {
        passes.start();
        awaitPass();
        passes.request();
        mayEnd.release();
        awaitPass();
        Thread closer = Thread.ofPlatform().start(passes::close);
        while (!passes.isClosed()) {
            Thread.onSpinWait();
        }
        passes.request();
        mayEnd.release();
        closer.join();
        assertEquals(0, begun.availablePermits());
    }
}
