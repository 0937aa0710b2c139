package io.hawser.broker.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.admin.PoolView;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.pool.FakeWorker;
import io.hawser.broker.view.VgpuInfo;
import io.hawser.broker.view.VgpuInventory;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The order in which guests of both carriers get workers. The test makes fake workers ready one by one and measures no
 * time.
 */
class StartOrderIT {
    private static final Path FILE = TestRegions.file("starts");

    @TempDir
    Path stateDir;
    @TempDir
    Path permits;
    private final List<AutoCloseable> guests = new ArrayList<>();
    private TestBroker broker;
    private int given;

    @BeforeEach
    void start() {
        guests.clear();
        given = 0;
    }

    @AfterEach
    void stop() throws Exception {
        for (AutoCloseable guest : guests) {
            guest.close();
        }
        if (broker != null) {
            broker.close();
        }
        Files.deleteIfExists(FILE);
    }

    /** Starts a broker that knows its GPU and has no ready worker. */
    private void start(Map<String, String> settings) throws IOException {
        Map<String, String> all = new HashMap<>(Map.of("hawser.worker.pool-size", "0",
            "hawser.worker.start-timeout", "1h", "hawser.vgpus.attacker.memory-bytes", "0",
            "hawser.vgpus.other.memory-bytes", "0"));
        all.putAll(settings);
        broker = TestBroker.start(stateDir, FakeWorker.GATED + permits, TestRegions.settings("r", FILE,
            Map.of("size", "16M", "slots", "4", "vgpu", "attacker"), all));
        permit();
        TestBroker.await("the report of the GPU", () -> !broker.broker().pools().state().devices().isEmpty());
        TestBroker.await("the end of the first worker", () -> broker.broker().pools().state().ready() == 0);
    }

    /** Lets one worker become ready. */
    private void permit() throws IOException {
        Files.createFile(permits.resolve("permit-" + given++));
    }

    private TestGuest overTcp(String vgpu) throws IOException {
        TokenService.Made token = broker.token(vgpu);
        TestGuest guest = new TestGuest(broker.broker());
        guests.add(guest);
        guest.handshake(token.token().keyId(), token.secret());
        return guest;
    }

    private TestRegionGuest overSharedMemory(int slot) throws IOException {
        TestRegionGuest guest = new TestRegionGuest(FILE, slot);
        guests.add(guest);
        assertTrue(guest.lock());
        guest.claim();
        guest.awaitHostState(RegionLayout.HOST_STARTING);
        return guest;
    }

    private void awaitWaiting(String vgpu, int count) {
        TestBroker.await(count + " starts of " + vgpu, () -> broker.broker().pools().state().waiting()
            .getOrDefault(vgpu, 0) == count);
    }

    private List<String> running() {
        return broker.broker().sessions().list().stream().filter(s -> s.state() == SessionState.RUNNING)
            .map(SessionView::guest).map(guest -> guest.vgpu()).sorted().toList();
    }

    private List<String> runningAfterAnotherPermit() throws IOException {
        int before = running().size();
        permit();
        TestBroker.await("one more session", () -> running().size() == before + 1);
        return running();
    }

    @Test
    void shouldServeVgpusInTurnOverBothCarriers() throws Exception {
        start(Map.of());
        overSharedMemory(0);
        overSharedMemory(1);
        awaitWaiting("attacker", 2);
        overTcp("attacker");
        overTcp("attacker");
        awaitWaiting("attacker", 4);
        TestGuest last = overTcp("other");
        awaitWaiting("other", 1);
        assertEquals(List.of("attacker"), runningAfterAnotherPermit(), "the attacker came first");
        assertEquals(List.of("attacker", "other"), runningAfterAnotherPermit(), "the vGPUs must take turns");
        assertEquals(RecordLayout.CONTROL_WELCOME, last.receive().opcode());
        assertEquals(Map.of("attacker", 3), broker.broker().pools().state().waiting());
    }

    @Test
    void shouldServeAClaimOfARegionBetweenTheStartsOfAnAttackOverTcp() throws Exception {
        start(Map.of());
        for (int i = 0; i < 4; i++) {
            overTcp("other");
        }
        awaitWaiting("other", 4);
        overSharedMemory(2);
        awaitWaiting("attacker", 1);
        assertEquals(List.of("other"), runningAfterAnotherPermit());
        assertEquals(List.of("attacker", "other"), runningAfterAnotherPermit());
    }

    @Test
    void shouldServeByComputeShare() throws Exception {
        start(Map.of("hawser.vgpus.attacker.compute-share", "10", "hawser.vgpus.other.compute-share", "30"));
        for (String vgpu : List.of("attacker", "other")) {
            for (int i = 0; i < 9; i++) {
                overTcp(vgpu);
            }
            awaitWaiting(vgpu, 9);
        }
        List<String> running = List.of();
        for (int i = 0; i < 9; i++) {
            running = runningAfterAnotherPermit();
        }
        assertEquals(3, running.stream().filter("attacker"::equals).count(),
            "a share of 10 of 40 must start 3 of 9: " + running);
    }

    @Test
    void shouldShowHowManyStartsOfAVgpuWait() throws Exception {
        start(Map.of());
        TestGuest first = overTcp("attacker");
        overTcp("attacker");
        awaitWaiting("attacker", 2);
        VgpuInventory vgpus = new VgpuInventory(broker.broker().vgpus(), broker.broker().pools(),
            broker.broker().ledgers(), broker.broker().swaps(), new PoolView(broker.broker().membership()));
        VgpuInfo shown = vgpus.list().stream().filter(v -> v.name().equals("attacker")).findFirst().orElseThrow();
        assertEquals(2, shown.startsWaiting());
        first.close();
        awaitWaiting("attacker", 1);
    }

    @Test
    void shouldRefuseAStartWithAReasonWhenTheLineOfItsVgpuIsFull() throws Exception {
        start(Map.of("hawser.sessions.max-waiting", "2"));
        overTcp("attacker");
        overSharedMemory(1);
        awaitWaiting("attacker", 2);
        String reason = overTcp("attacker").receive().refusedMessage();
        assertTrue(reason.contains("must be at most 2: vgpu=attacker"), reason);
        TestRegionGuest claim = new TestRegionGuest(FILE, 2);
        guests.add(claim);
        assertTrue(claim.lock());
        claim.claim();
        claim.awaitHostState(RegionLayout.HOST_REFUSED);
        assertTrue(claim.reason().contains("must be at most 2: vgpu=attacker"), claim.reason());
        overTcp("other");
        awaitWaiting("other", 1);
        assertEquals(Map.of("attacker", 2, "other", 1), broker.broker().pools().state().waiting());
    }

    @Test
    void shouldGiveTheLastSessionToAVgpuThatHasFewerStartsWaiting() throws Exception {
        start(Map.of("hawser.sessions.max", "3"));
        overSharedMemory(0);
        overTcp("attacker");
        awaitWaiting("attacker", 2);
        TestGuest newest = overTcp("attacker");
        awaitWaiting("attacker", 3);
        overTcp("other");
        String reason = newest.receive().refusedMessage();
        assertTrue(reason.contains("the broker's sessions are all in use, and most of those that wait for a worker are "
            + "this vGPU's: max=3 vgpu=attacker waiting=3"), reason);
        awaitWaiting("other", 1);
        assertEquals(Map.of("attacker", 2, "other", 1), broker.broker().pools().state().waiting());
        String own = overTcp("other").receive().refusedMessage();
        assertTrue(own.contains("the broker's sessions are all in use: max=3"), own);
    }
}
