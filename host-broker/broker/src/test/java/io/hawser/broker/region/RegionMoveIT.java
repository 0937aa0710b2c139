package io.hawser.broker.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.Broker;
import io.hawser.broker.TestBroker;
import io.hawser.broker.admin.MoveService;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.shm.region.RegionLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A session in a region that moves to another GPU: its slot shows the guest nothing of the move. */
class RegionMoveIT {
    private static final Path FILE = TestRegions.file("moves");

    @TempDir
    Path folder;
    private TestBroker test;
    private Broker.Parts broker;

    @AfterEach
    void stop() throws Exception {
        if (test != null) {
            test.close();
        }
        Files.deleteIfExists(FILE);
    }

    private void start(String mode) {
        test = TestBroker.start(folder, mode, TestRegions.settings("r", FILE, Map.of("size", "16M", "slots", "2",
            "vgpu", "v"), Map.of("hawser.vgpus.v.memory-bytes", "400", "hawser.move.answer-timeout", "120s")));
        broker = test.broker();
        TestBroker.await("the GPUs", () -> broker.vgpus().gpus().size() == 2);
    }

    private SessionView session() {
        return broker.sessions().list().getFirst();
    }

    private String otherGpu() {
        return broker.vgpus().gpus().stream().map(load -> load.device().uuid())
            .filter(uuid -> !session().gpus().contains(uuid)).findFirst().orElseThrow();
    }

    private TestRegionGuest serve() throws Exception {
        TestRegionGuest guest = new TestRegionGuest(FILE, 0);
        assertTrue(guest.lock());
        guest.claim();
        guest.receive(); // WELCOME
        assertEquals(RegionLayout.HOST_SERVING, guest.hostState());
        return guest;
    }

    private void assertFreeAfterTheGuest(TestRegionGuest guest) {
        guest.say(RegionLayout.GUEST_LEFT);
        guest.awaitHostState(RegionLayout.HOST_FREE);
        TestBroker.await("the session's end", () -> broker.sessions().list().isEmpty());
        TestBroker.await("the end of the workers", () -> broker.pools().state().assigned() == 0);
        assertEquals(0, broker.regions().find("r").orElseThrow().sessions());
    }

    @Test
    void shouldKeepTheSlotOfASessionThatMoves() throws Exception {
        start("moves");
        try (TestRegionGuest guest = serve()) {
            SessionView before = session();
            String to = otherGpu();
            assertEquals(1, TestBroker.done(broker.moveService().move("v", new MoveService.Wish(to, null))).sessions());
            SessionView after = session();
            assertEquals(before.id(), after.id());
            assertEquals(List.of(to), after.gpus());
            assertEquals(Carrier.SHM, after.guest().carrier());
            assertEquals(SessionState.RUNNING, after.state());
            assertNotEquals(before.workerPid(), after.workerPid());
            TestBroker.await("the source's exit", () -> broker.pools().state().assigned() == 1);
            assertEquals(RegionLayout.HOST_SERVING, guest.hostState(), "the source's exit must not end the slot");
            assertEquals(1, broker.regions().find("r").orElseThrow().sessions());
            assertFreeAfterTheGuest(guest);
        }
    }

    @Test
    void shouldLetGuestsWaitForTheEndOfTheMove() throws Exception {
        start("moves-silent-target");
        try (TestRegionGuest guest = serve(); TestRegionGuest second = new TestRegionGuest(FILE, 1)) {
            String to = otherGpu();
            CompletableFuture<MoveOutcome> moving = broker.moveService().move("v",
                new MoveService.Wish(to, null));
            TestBroker.await("the memory of the target", () -> broker.ledgers().usedBytes("v", to) == 400);
            assertTrue(second.lock());
            second.claim();
            TestBroker.done(broker.sessions().end(session().id(), "the test ends it"));
            assertEquals(0, TestBroker.done(moving).sessions());
            second.receive(); // WELCOME
            assertEquals(RegionLayout.HOST_SERVING, second.hostState());
            assertEquals(List.of(to), session().gpus());
            assertFreeAfterTheGuest(second);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"die-target", "refuse-source"})
    void shouldKeepTheSlotOfASessionThatStays(String mode) throws Exception {
        start("moves-" + mode);
        try (TestRegionGuest guest = serve()) {
            SessionView before = session();
            TestBroker.refused(broker.moveService().move("v", new MoveService.Wish(otherGpu(), null)));
            assertEquals(before.workerPid(), session().workerPid());
            assertEquals(before.gpus(), session().gpus());
            assertEquals(RegionLayout.HOST_SERVING, guest.hostState());
            assertFreeAfterTheGuest(guest);
        }
    }
}
