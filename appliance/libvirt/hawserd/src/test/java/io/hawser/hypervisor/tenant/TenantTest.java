package io.hawser.hypervisor.tenant;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The states of a domain; this thread holds the tenant. Times are in ns. */
class TenantTest {
    private static final Duration TIMEOUT = Duration.ofSeconds(5);
    private static final Duration START_LIMIT = Duration.ofSeconds(15);
    private static final Duration XEN_LIMIT = Duration.ofMinutes(5);
    private static final Wish WISH = wish(100);
    private static final Wish OTHER_WISH = wish(30);

    private final Tenants tenants = new Tenants();
    private final UUID domain = UUID.randomUUID();
    private final Tenant tenant = tenants.hold(domain, "nomad", TIMEOUT);

    @AfterEach
    void release() {
        tenant.release();
    }

    private static Wish wish(int share) {
        return new Wish("", 0, share, Wish.Mode.SHARED, "any", false, 2, Wish.Transport.SHM, 4 << 20, true, false);
    }

    private boolean isExpected(Duration after) {
        return tenant.isExpected(after.toNanos(), driver -> driver == Driver.XEN ? XEN_LIMIT : START_LIMIT);
    }

    @Test
    void shouldBeIdleAndSettledAtFirst() {
        assertFalse(isExpected(Duration.ZERO));
        assertFalse(tenant.isBusy() || tenant.isPlugWanted() || tenant.hasChanged() || tenant.hasShare()
            || tenant.isFileKept());
        assertEquals(Optional.empty(), tenant.failure(WISH));
        assertEquals(Tenant.PLUG_TIMEOUT, tenant.plugTimeout());
        assertTrue(tenant.isUpToDate(0));
    }

    @Test
    void shouldExpectAStartForAsLongAsItsDriverNeeds() {
        tenant.startRequested(Driver.QEMU, 0);
        tenant.startAnswered(0);
        assertTrue(isExpected(START_LIMIT.minusNanos(1)));
        assertFalse(isExpected(START_LIMIT));
        tenant.startRequested(Driver.XEN, 0);
        assertTrue(isExpected(XEN_LIMIT.minusNanos(1)));
        assertFalse(isExpected(XEN_LIMIT));
    }

    @Test
    void shouldMeasureAStartFromItsAnswer() {
        tenant.startRequested(Driver.QEMU, 0);
        tenant.startAnswered(START_LIMIT.toNanos());
        assertTrue(isExpected(START_LIMIT.multipliedBy(2).minusNanos(1)));
        assertFalse(isExpected(START_LIMIT.multipliedBy(2)));
    }

    @Test
    void shouldAnswerOnlyAStartThatWasRequested() {
        assertThrows(IllegalStateException.class, () -> tenant.startAnswered(0));
        tenant.migrationAnnounced(0);
        assertThrows(IllegalStateException.class, () -> tenant.startAnswered(0));
    }

    @Test
    void shouldExpectAnAnnouncedMigrationUntilItExpires() {
        tenant.migrationAnnounced(0);
        assertTrue(isExpected(Tenant.MIGRATION_LIMIT.minusNanos(1)));
        assertFalse(isExpected(Tenant.MIGRATION_LIMIT));
    }

    @Test
    void shouldStartByMigrationOnceAfterEachAnnouncement() {
        tenant.migrationAnnounced(0);
        assertTrue(tenant.startRequested(Driver.QEMU, 1));
        assertFalse(tenant.startRequested(Driver.QEMU, 2));
        tenant.migrationAnnounced(3);
        assertTrue(tenant.startRequested(Driver.QEMU, 4));
    }

    @Test
    void shouldStartWithoutAMigrationThatExpiredOrSettled() {
        tenant.migrationAnnounced(0);
        assertFalse(tenant.startRequested(Driver.QEMU, Tenant.MIGRATION_LIMIT.toNanos()));
        for (Runnable settles : List.<Runnable>of(tenant::observedRunning, tenant::startAbandoned)) {
            tenant.migrationAnnounced(0);
            settles.run();
            assertFalse(isExpected(Duration.ZERO));
            assertFalse(tenant.startRequested(Driver.QEMU, 1));
        }
    }

    @Test
    void shouldNotExpectAStartThatWasSeenOrEnded() {
        for (Runnable settles : List.<Runnable>of(tenant::observedRunning, tenant::startAbandoned,
            () -> tenant.stopped(1))) {
            tenant.startRequested(Driver.QEMU, 0);
            settles.run();
            assertFalse(isExpected(Duration.ZERO));
        }
    }

    @Test
    void shouldKeepAnAnnouncedMigrationWhenAnEarlierRunStops() {
        tenant.migrationAnnounced(0);
        tenant.stopped(1);
        assertTrue(isExpected(Duration.ZERO));
        assertTrue(tenant.startRequested(Driver.QEMU, 2));
    }

    @Test
    void shouldPlugOnceAfterAChangeOfTheWish() {
        tenant.wishChanged(1);
        assertFalse(tenant.isPlugWanted(), "no pass has taken it up");
        tenant.takeUpWishChange();
        assertTrue(tenant.isPlugWanted());
        assertFalse(tenant.isUpToDate(1));
        tenant.deviceSeen();
        assertFalse(tenant.isPlugWanted());
        tenant.takeUpWishChange();
        assertFalse(tenant.isPlugWanted());
    }

    @Test
    void shouldNotMoveTheLastChangeBackInTime() {
        tenant.stopped(10);
        tenant.wishChanged(5);
        tenant.takeUpWishChange();
        assertFalse(tenant.isUpToDate(10));
        assertTrue(tenant.isUpToDate(11));
    }

    @Test
    void shouldTryAFailedWishOnlyOnRequest() {
        tenant.plugRejected(WISH, "no free port");
        assertEquals(Optional.of("no free port"), tenant.failure(WISH));
        assertEquals(Optional.empty(), tenant.failure(OTHER_WISH));
        tenant.deviceSeen();
        assertEquals(Optional.of("no free port"), tenant.failure(WISH));
        tenant.wishChanged(1);
        tenant.takeUpWishChange();
        assertEquals(Optional.empty(), tenant.failure(WISH));
        assertTrue(tenant.isPlugWanted());
        tenant.plugRejected(WISH, "no free port");
        assertFalse(tenant.isPlugWanted());
        tenant.plugCommandBegan(TIMEOUT, 2);
        assertEquals(Optional.empty(), tenant.failure(WISH));
        assertTrue(tenant.isPlugWanted());
        assertEquals(TIMEOUT, tenant.plugTimeout());
    }

    @Test
    void shouldForgetAFailureWhenTheDomainStarts() {
        tenant.plugRejected(WISH, "no free port");
        tenant.startRequested(Driver.QEMU, 0);
        assertEquals(Optional.empty(), tenant.failure(WISH));
        tenant.plugCommandBegan(TIMEOUT, 1);
        tenant.startRequested(Driver.QEMU, 2);
        assertFalse(tenant.isPlugWanted());
    }

    @Test
    void shouldEndAnOperationIdleOrFailed() {
        tenant.plugCommandBegan(TIMEOUT, 0);
        tenant.operationBegan();
        assertTrue(tenant.isBusy());
        assertFalse(tenant.isPlugWanted());
        tenant.operationSucceeded(7);
        assertFalse(tenant.isBusy() || tenant.isPlugWanted() || tenant.isUpToDate(7));
        tenant.operationBegan();
        tenant.operationFailed(WISH, "the guest hangs", 8);
        assertFalse(tenant.isBusy() || tenant.isUpToDate(8));
        assertEquals(Optional.of("the guest hangs"), tenant.failure(WISH));
    }

    @Test
    void shouldIncludeAChangeOfTheWishInAnOperation() {
        tenant.operationBegan();
        tenant.wishChanged(1);
        tenant.takeUpWishChange();
        assertTrue(tenant.isBusy());
        tenant.operationFailed(WISH, "the guest hangs", 2);
        tenant.takeUpWishChange();
        assertFalse(tenant.isPlugWanted());
        assertEquals(Optional.of("the guest hangs"), tenant.failure(WISH));
    }

    @Test
    void shouldTakeUpAChangeOfTheWishAfterACommandThatRemovesTheDevice() {
        tenant.unplugCommandBegan(TIMEOUT, 0);
        assertTrue(tenant.isBusy());
        tenant.wishChanged(1);
        tenant.takeUpWishChange();
        assertFalse(tenant.isPlugWanted());
        tenant.unplugCommandEnded(2);
        assertFalse(tenant.isBusy());
        tenant.takeUpWishChange();
        assertTrue(tenant.isPlugWanted());
    }

    @Test
    void shouldContinueAnOperationWhenTheDomainStarts() {
        tenant.operationBegan();
        tenant.startRequested(Driver.QEMU, 1);
        assertTrue(tenant.isBusy());
    }

    static Stream<Consumer<Tenant>> operations() {
        return Stream.of(Tenant::operationBegan, t -> t.plugCommandBegan(TIMEOUT, 0),
            t -> t.unplugCommandBegan(TIMEOUT, 0), t -> t.plugRejected(WISH, "no"), Tenant::forget);
    }

    @ParameterizedTest
    @MethodSource("operations")
    void shouldAllowNothingElseDuringAnOperation(Consumer<Tenant> operation) {
        tenant.operationBegan();
        assertThrows(IllegalStateException.class, () -> operation.accept(tenant));
        assertTrue(tenant.isBusy());
    }

    @Test
    void shouldEndOnlyAnOperationThatBegan() {
        for (Executable end : List.<Executable>of(() -> tenant.operationSucceeded(0),
            () -> tenant.operationFailed(WISH, "no", 0), () -> tenant.unplugCommandEnded(0))) {
            assertThrows(IllegalStateException.class, end);
        }
    }

    @Test
    void shouldOutdateObservationsByEachEventOfAHookOrCommand() {
        List<Consumer<Long>> events = List.of(tenant::migrationAnnounced, now -> {
            tenant.startRequested(Driver.QEMU, now);
            tenant.startAnswered(now);
        }, tenant::stopped, now -> tenant.plugCommandBegan(TIMEOUT, now),
            now -> tenant.unplugCommandBegan(TIMEOUT, now), tenant::unplugCommandEnded);
        for (int i = 0; i < events.size(); i++) {
            long now = 10L * i;
            events.get(i).accept(now);
            assertTrue(tenant.hasChanged());
            assertFalse(tenant.isUpToDate(now), "event " + i);
            assertTrue(tenant.isUpToDate(now + 1), "event " + i);
        }
    }

    @Test
    void shouldCompareTimesAcrossAnOverflow() {
        tenant.stopped(Long.MAX_VALUE);
        assertTrue(tenant.isUpToDate(Long.MIN_VALUE));
        tenant.migrationAnnounced(Long.MAX_VALUE);
        assertTrue(tenant.isExpected(Long.MIN_VALUE, driver -> START_LIMIT));
    }

    @Test
    void shouldKnowTheLastWishThatTheBrokerApplied() {
        tenant.shareProvided(WISH);
        assertTrue(tenant.hasShare() && tenant.isProvided(WISH));
        assertFalse(tenant.isProvided(OTHER_WISH));
        tenant.shareReleased();
        assertFalse(tenant.hasShare() || tenant.isProvided(WISH));
    }

    @Test
    void shouldMeasureAKeptFileFromTheFirstTime() {
        tenant.fileKept(10);
        tenant.fileKept(20);
        assertEquals(Duration.ofNanos(20), tenant.fileKeptFor(30));
        tenant.fileGone();
        assertFalse(tenant.isFileKept());
        assertThrows(IllegalStateException.class, () -> tenant.fileKeptFor(30));
        tenant.fileKept(40);
        assertEquals(Duration.ZERO, tenant.fileKeptFor(40));
    }

    @Test
    void shouldReportEachStatusOnce() {
        assertFalse(tenant.statusPublished(null));
        assertTrue(tenant.statusPublished(status("a", 0)));
        assertFalse(tenant.statusPublished(status("a", 9)), "the time does not count");
        assertTrue(tenant.statusPublished(status("b", 9)));
        assertTrue(tenant.statusPublished(null));
        assertFalse(tenant.statusPublished(null));
        tenant.statusPublished(status("a", 0));
        tenant.startRequested(Driver.QEMU, 0);
        assertTrue(tenant.statusPublished(status("a", 0)), "a new run");
        tenant.stopped(1);
        assertTrue(tenant.statusPublished(status("a", 0)), "a run after the stop");
    }

    private static VgpuStatus status(String vgpu, long second) {
        return new VgpuStatus(VgpuStatus.State.READY, vgpu, "shm", Instant.ofEpochSecond(second), "", "metadata");
    }

    @Test
    void shouldBeReplacedOnceForgotten() {
        tenants.forget(tenant);
        assertTrue(tenant.isForgotten());
        assertThrows(IllegalStateException.class, () -> tenant.stopped(0));
        Tenant next = tenants.hold(domain, "", TIMEOUT);
        assertFalse(next.isForgotten());
        assertTrue(next != tenant && tenants.has(domain));
        next.release();
    }

    @Test
    void shouldChangeOnlyWhileTheThreadHoldsIt() throws Exception {
        try (ExecutorService other = Executors.newSingleThreadExecutor()) {
            for (Runnable event : List.<Runnable>of(() -> tenant.stopped(0), tenant::takeUpWishChange, tenant::forget,
                tenant::isBusy)) {
                Throwable refused = assertThrows(ExecutionException.class, () -> other.submit(event).get()).getCause();
                assertTrue(refused instanceof IllegalStateException
                    && refused.getMessage().startsWith("the thread must hold the tenant"), refused.toString());
            }
            other.submit(() -> tenant.wishChanged(0)).get(); // any thread may
            assertEquals(null, other.submit(() -> tenants.hold(domain, "", Duration.ofNanos(1))).get());
        }
    }
}
