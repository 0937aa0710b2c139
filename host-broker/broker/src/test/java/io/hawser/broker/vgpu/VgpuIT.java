package io.hawser.broker.vgpu;

import static io.hawser.broker.TestBroker.done;
import static io.hawser.broker.TestBroker.draft;
import static io.hawser.broker.TestBroker.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.Broker;
import io.hawser.broker.TestBroker;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.admin.VgpuService;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Owner;
import io.hawser.broker.model.StartException;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.token.Token;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jboss.logmanager.ExtLogRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** vGPUs and tokens of a broker with two GPUs of 1000 bytes and fake workers. */
class VgpuIT {
    private static final String FIRST = "aaaaaaaa-0000-4000-8000-000000000001";
    private static final String SECOND = "bbbbbbbb-0000-4000-8000-000000000002";

    @TempDir
    Path stateDir;

    private TestBroker start(String mode, Map<String, String> settings) {
        TestBroker broker = TestBroker.start(stateDir, mode, settings);
        TestBroker.await("the report of the GPUs", () -> !broker.broker().vgpus().gpus().isEmpty());
        return broker;
    }

    private static VgpuView find(TestBroker broker, String name) {
        return broker.broker().vgpus().find(name).orElseThrow();
    }

    private static TestGuest guest(TestBroker broker, TokenService.Made token) throws IOException {
        TestGuest guest = new TestGuest(broker.broker());
        guest.handshake(token.token().keyId(), token.secret());
        return guest;
    }

    private static void assertWelcome(TestGuest guest) throws IOException {
        TestGuest.Answer answer = guest.receive();
        assertEquals(RecordLayout.CONTROL_WELCOME, answer.opcode(),
            () -> answer.opcode() == RecordLayout.CONTROL_REFUSED ? answer.refusedMessage() : "");
    }

    @Test
    void shouldHaveADefaultFromTheFirstStartOnlyOnce() throws IOException {
        String secret;
        try (TestBroker broker = start("normal", Map.of())) {
            assertEquals(VgpuState.READY, find(broker, "default").state());
            assertEquals(1, find(broker, "default").tokens());
            secret = TestGuest.secret(stateDir);
            done(broker.broker().vgpuService().delete("default", false));
            assertTrue(broker.broker().vgpus().list().isEmpty());
        }
        try (TestBroker broker = start("normal", Map.of())) {
            assertTrue(broker.broker().vgpus().list().isEmpty(), "a deleted vGPU must stay deleted");
            assertEquals(secret, TestGuest.secret(stateDir), "the second start must make no token");
        }
        assertEquals("rw-------", java.nio.file.attribute.PosixFilePermissions.toString(
            Files.getPosixFilePermissions(stateDir.resolve("broker.mv.db"))));
    }

    @Test
    void shouldKeepVgpusAndTokensOverARestart() throws IOException {
        List<VgpuView> before;
        List<Token> tokens;
        TokenService.Made made;
        try (TestBroker broker = start("gpus", Map.of())) {
            broker.vgpu("a", 600, "any");
            broker.vgpu("b", 600, "any");
            broker.vgpu("both", 100, "1,0");
            done(broker.broker().vgpuService().create("swaps", new VgpuDraft(null, null, 100L, null, null, null, null,
                null, null, true)));
            done(broker.broker().vgpuService().create("stays", new VgpuDraft(null, null, 100L, null, null, null, null,
                null, null, true)));
            done(broker.broker().vgpuService().change("stays", new VgpuDraft(null, null, null, null, null, null, null,
                null, null, false)));
            done(broker.broker().vgpuService().change("a", new VgpuDraft(Owner.Kind.DOMAIN, "a-uuid", null, 40, null,
                null, List.of("tcp"), 2)));
            made = done(broker.broker().tokenService().create("a", "for a test",
                Instant.parse("2100-01-01T00:00:00Z")));
            broker.token("b");
            assertNotEquals(find(broker, "a").placedGpus(), find(broker, "b").placedGpus());
            assertEquals(List.of(SECOND, FIRST), find(broker, "both").placedGpus());
            try (TestGuest guest = guest(broker, made)) {
                assertWelcome(guest);
                TestBroker.await("the session", () -> find(broker, "a").sessions() == 1);
            }
            TestBroker.await("the end of the session", () -> find(broker, "a").sessions() == 0);
            before = broker.broker().vgpus().list();
            tokens = List.of(made.token());
        }
        try (TestBroker broker = start("gpus", Map.of())) {
            assertEquals(before, broker.broker().vgpus().list());
            assertTrue(find(broker, "swaps").vgpu().swappable());
            assertFalse(find(broker, "stays").vgpu().swappable());
            Token after = tokens(broker, "a").getFirst();
            assertEquals(tokens.getFirst().afterUse(after.lastUsed()).toString(), after.toString());
            assertEquals("for a test", after.note());
            assertEquals(Instant.parse("2100-01-01T00:00:00Z"), after.expires());
            assertTrue(after.lastUsed() != null, "the broker must note the use before it ends");
            try (TestGuest guest = guest(broker, made)) {
                assertWelcome(guest);
            }
        }
    }

    @Test
    void shouldGiveAVgpuToOneOfThoseThatTakeItAtOnce() throws Exception {
        try (TestBroker broker = start("normal", Map.of())) {
            VgpuService service = broker.broker().vgpuService();
            broker.vgpu("a", 0, "any");
            for (int round = 0; round < 20; round++) {
                String before = find(broker, "a").vgpu().owner().id();
                List<CompletableFuture<VgpuView>> takers = new ArrayList<>();
                for (int taker = 0; taker < 8; taker++) {
                    String id = "d@" + round + "." + taker;
                    takers.add(CompletableFuture.supplyAsync(() -> service.change("a", new VgpuDraft(Owner.Kind.DOMAIN,
                        id, null, null, null, null, null, null), before)).thenCompose(done -> done));
                }
                int given = 0;
                for (CompletableFuture<VgpuView> taker : takers) {
                    VgpuView view = taker.exceptionally(failure -> null).get(60, TimeUnit.SECONDS);
                    if (view == null) {
                        assertEquals(VgpuException.Kind.CHANGED, refused(taker).kind());
                    } else {
                        given++;
                        assertEquals(view.vgpu().owner(), find(broker, "a").vgpu().owner());
                    }
                }
                assertEquals(1, given);
            }
            assertEquals(VgpuException.Kind.CHANGED, refused(service.delete("a", true, "")).kind());
            done(service.delete("a", true, find(broker, "a").vgpu().owner().id()));
        }
    }

    private static List<Token> tokens(TestBroker broker, String vgpu) {
        try {
            return broker.broker().tokenService().list(vgpu);
        } catch (VgpuException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void shouldRefuseWithTheRuleAndTheNumbers() {
        try (TestBroker broker = start("gpus", Map.of("hawser.vgpus.fixed.memory-bytes", "1"))) {
            VgpuService service = broker.broker().vgpuService();
            broker.vgpu("a", 900, "0");
            broker.vgpu("b", 900, "1");
            VgpuException full = refused(service.create("c", draft(101L, "any")));
            assertEquals(VgpuException.Kind.CONFLICT, full.kind());
            assertTrue(full.getMessage().contains("wantedBytes=101 freeBytes="), full.getMessage());
            assertTrue(broker.broker().vgpus().find("c").isEmpty());
            assertTrue(refused(service.create("a", draft(0L, "any"))).getMessage().contains("with this name"));
            assertEquals(VgpuException.Kind.INVALID, refused(service.create("d e", draft(0L, "any"))).kind());
            assertEquals(VgpuException.Kind.MISSING, refused(service.change("none", draft(0L, null))).kind());
            assertEquals(VgpuException.Kind.MISSING, refused(service.delete("none", true)).kind());
            assertTrue(refused(service.change("fixed", draft(2L, null))).getMessage().contains("hawser.vgpus.fixed"));
            assertTrue(refused(service.delete("fixed", true)).getMessage().contains("hawser.vgpus.fixed"));
            assertTrue(refused(service.change("a", draft(1001L, null))).getMessage().contains("wantedBytes=1001"));
            assertEquals(900, find(broker, "a").vgpu().memoryBytes(), "a refused change must change nothing");
            done(service.change("a", draft(950L, null)));
            done(service.delete("a", false));
            assertEquals(List.of(FIRST), broker.vgpu("c", 999, "any").placedGpus(),
                "the deleted vGPU must free its memory");
        }
    }

    @Test
    void shouldLetGuestsInByTheRulesOfTheirVgpu() throws IOException {
        try (TestBroker broker = start("normal", Map.of())) {
            VgpuService service = broker.broker().vgpuService();
            done(service.create("shm", new VgpuDraft(null, null, null, null, null, null, List.of("shm"), null)));
            try (TestGuest guest = guest(broker, broker.token("shm"))) {
                String reason = guest.receive().refusedMessage();
                assertTrue(reason.contains("vgpu=shm carrier=tcp carriers=[shm]"), reason);
            }
            done(service.create("one", new VgpuDraft(null, null, null, null, null, null, null, 1)));
            TokenService.Made token = broker.token("one");
            try (TestGuest guest = guest(broker, token)) {
                assertWelcome(guest);
                try (TestGuest second = guest(broker, token)) {
                    assertTrue(second.receive().refusedMessage().contains("vgpu=one max=1"));
                }
                done(service.change("one", new VgpuDraft(null, null, null, null, null, null, null, 2)));
                TestGuest second = guest(broker, token);
                assertWelcome(second);
                assertTrue(refused(service.change("one", draft(null, "all"))).getMessage().contains("must stay"));
                second.close();
            }
        }
    }

    @Test
    void shouldCountASessionForNoLongerThanItIsShown() throws IOException {
        try (TestBroker broker = start("normal", Map.of())) {
            List<Integer> shown = new CopyOnWriteArrayList<>();
            broker.onLoop(() -> broker.broker().vgpus().addListener((before, after) -> {
                if (after.sessions() < before.sessions()) {
                    shown.add(broker.broker().sessions().list().size());
                }
            }));
            try (TestGuest guest = guest(broker, broker.token("default"))) {
                assertWelcome(guest);
            }
            TestBroker.await("the session's end", () -> broker.broker().sessions().list().isEmpty());
            assertEquals(0, find(broker, "default").sessions());
            assertEquals(List.of(1), shown, "the broker must show a session while it counts it");
        }
    }

    @Test
    void shouldEndSessionsAndRegionsOnlyWhenForced() throws IOException {
        Path file = Path.of("/dev/shm/hawser-vgpu-it-" + ProcessHandle.current().pid());
        try (TestBroker broker = start("normal", Map.of("hawser.regions.r.path", file.toString(),
            "hawser.regions.r.size", "16M"))) {
            VgpuService service = broker.broker().vgpuService();
            TokenService.Made token = broker.token("default");
            try (TestGuest guest = guest(broker, token)) {
                assertWelcome(guest);
                String reason = refused(service.delete("default", false)).getMessage();
                assertTrue(reason.contains("vgpu=default sessions=1 regions=[r]"), reason);
                done(service.delete("default", true));
                assertTrue(guest.closed());
                assertTrue(broker.broker().sessions().list().isEmpty());
                assertTrue(broker.broker().regions().list().isEmpty());
                assertTrue(broker.broker().vgpus().list().isEmpty());
            }
            try (TestGuest guest = guest(broker, token)) {
                assertTrue(guest.receive().refusedMessage().contains("the token is not known"),
                    "the token must go with its vGPU");
            }
            VgpuView again = broker.vgpu("default", 0, "any");
            assertEquals(0, again.tokens(), "a new vGPU of the same name must have no token");
        }
    }

    @Test
    void shouldEndTheSessionsOfARevokedToken() throws IOException {
        try (TestBroker broker = start("normal", Map.of())) {
            TokenService.Made first = broker.token("default");
            TokenService.Made second = broker.token("default");
            try (TestGuest gone = guest(broker, first); TestGuest stays = guest(broker, second)) {
                assertWelcome(gone);
                assertWelcome(stays);
                done(broker.broker().tokenService().revoke("default", first.token().keyId()));
                assertTrue(gone.closed());
                assertEquals(1, broker.broker().sessions().list().size());
            }
            try (TestGuest guest = guest(broker, first)) {
                assertTrue(guest.receive().refusedMessage().contains("the token is not known"));
            }
            assertEquals(VgpuException.Kind.MISSING, refused(broker.broker().tokenService().revoke("default",
                first.token().keyId())).kind());
            assertEquals(2, find(broker, "default").tokens(), "the token of the first start and the second token");
        }
    }

    @Test
    void shouldRefuseATokenThatHasExpired() throws Exception {
        try (TestBroker broker = start("normal", Map.of())) {
            TokenService tokens = broker.broker().tokenService();
            assertEquals(VgpuException.Kind.INVALID, refused(tokens.create("default", null, Instant.now())).kind());
            assertEquals(VgpuException.Kind.INVALID, refused(tokens.create("default", "x".repeat(201), null)).kind());
            Instant expires = Instant.now().plusSeconds(5); // after the token's creation, also on a slow machine
            TokenService.Made token = done(tokens.create("default", null, expires));
            TestBroker.await("the token's expiry", () -> Instant.now().isAfter(expires));
            try (TestGuest guest = guest(broker, token)) {
                assertTrue(guest.receive().refusedMessage().contains("the token has expired"));
            }
        }
    }

    @Test
    void shouldDoWhatSettingsSay() {
        Map<String, String> settings = Map.of("hawser.vgpus.one.memory-bytes", "400", "hawser.vgpus.one.gpus", "1",
            "hawser.vgpus.one.compute-share", "30", "hawser.vgpus.default.max-sessions", "7");
        try (TestBroker broker = start("gpus", settings)) {
            assertEquals(Origin.SETTINGS, find(broker, "one").vgpu().origin());
            assertEquals(List.of(SECOND), find(broker, "one").placedGpus());
            assertEquals(7, find(broker, "default").vgpu().maxSessions());
            broker.token("one");
        }
        try (TestBroker broker = start("gpus", Map.of("hawser.vgpus.one.memory-bytes", "500",
            "hawser.vgpus.one.gpus", "0"))) {
            assertEquals(500, find(broker, "one").vgpu().memoryBytes());
            assertEquals(100, find(broker, "one").vgpu().computeShare(), "a missing setting must have its default");
            assertEquals(List.of(FIRST), find(broker, "one").placedGpus());
            assertEquals(1, find(broker, "one").tokens());
            assertEquals(Origin.REST, find(broker, "default").vgpu().origin(),
                "a vGPU without settings must belong to REST");
            assertEquals(7, find(broker, "default").vgpu().maxSessions());
            done(broker.broker().vgpuService().delete("default", false));
        }
    }

    @Test
    void shouldPlaceVgpusOfTheSettingsAnewWhenTheirMemoryMustNowFit() {
        Map<String, String> settings = new HashMap<>(Map.of("hawser.overcommit", "2.0"));
        for (String name : List.of("a", "b", "c", "d")) {
            settings.put("hawser.vgpus." + name + ".memory-bytes", "900");
            settings.put("hawser.vgpus." + name + ".swappable", "true");
        }
        try (TestBroker broker = start("gpus", settings)) {
            for (String name : List.of("a", "b", "c", "d")) {
                assertTrue(find(broker, name).vgpu().swappable());
                assertEquals(VgpuState.READY, find(broker, name).state());
            }
        }
        settings.put("hawser.vgpus.a.swappable", "false");
        try (TestBroker broker = start("gpus", settings)) {
            assertEquals(VgpuState.UNPLACED, find(broker, "a").state());
            assertTrue(find(broker, "a").problem().contains("largestSwappableBytes=900"), find(broker, "a").problem());
        }
        StartException refused = assertThrows(StartException.class, () -> TestBroker.start(stateDir, "gpus",
            Map.of("hawser.vgpus.a.swappable", "true", "hawser.vgpus.a.gpus", "all")).close());
        assertTrue(refused.getMessage().contains("hawser.vgpus.a: a swappable vGPU must"), refused.getMessage());
    }

    @Test
    void shouldLogWhatAnOvercommitCounts() {
        List<String> lines = new CopyOnWriteArrayList<>();
        Handler handler = new Handler() {
            @Override
            @SuppressWarnings("deprecation") // the message without a formatter's layout
            public void publish(LogRecord entry) {
                if (entry.getLevel().intValue() == Level.WARNING.intValue()) {
                    lines.add(((ExtLogRecord) entry).getFormattedMessage());
                }
            }

            @Override
            public void flush() {
                // publish() stores each line at once
            }

            @Override
            public void close() {
                // the handler has nothing to close
            }
        };
        Logger logger = Logger.getLogger(Broker.class.getName());
        logger.addHandler(handler);
        try {
            start("normal", Map.of()).close();
            assertEquals(List.of(), lines);
            start("normal", Map.of("hawser.overcommit", "1.25")).close();
            assertEquals(List.of("hawser.overcommit counts swappable vGPUs only: a GPU's other vGPUs, the workers' "
                + "contexts and its largest swappable vGPU must fit into its memory: overcommit=1.25"), lines);
        } finally {
            logger.removeHandler(handler);
        }
    }
}
