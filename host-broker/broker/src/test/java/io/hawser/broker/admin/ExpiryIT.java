package io.hawser.broker.admin;

import static io.hawser.broker.TestBroker.done;
import static io.hawser.broker.TestBroker.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.token.Token;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.shm.wire.RecordLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** vGPUs that expire, and creations that clients repeat. */
class ExpiryIT {
    private static final Duration SOON = Duration.ofMillis(500);
    private static final Duration NOT_YET = Duration.ofSeconds(4); // a broker stops in less time
    private static final Duration LATER = Duration.ofHours(1);

    @TempDir
    Path folder;

    private TestBroker start() {
        TestBroker broker = TestBroker.start(folder, "normal", Map.of());
        TestBroker.await("the GPU", () -> !broker.broker().vgpus().gpus().isEmpty());
        return broker;
    }

    private static VgpuDraft draft(Duration life) {
        return TestBroker.draft(1000L, "any").expiring(Vgpu.now().plus(life)).labelled(Map.of("job", "7"));
    }

    private static boolean exists(TestBroker broker, String name) {
        return broker.broker().vgpus().find(name).isPresent();
    }

    @Test
    void shouldDeleteAnExpiredVgpuAndEndItsSessions() throws Exception {
        try (TestBroker broker = start()) {
            VgpuService service = broker.broker().vgpuService();
            List<String> noted = Collections.synchronizedList(new ArrayList<>());
            broker.broker().expiries().setListener((name, failure) -> noted.add(name + ":" + failure));
            done(service.create("stays", draft(LATER)));
            done(service.create("kept", draft(SOON)));
            done(service.change("kept", TestBroker.draft(null, null).expiring(VgpuDraft.NEVER)));
            done(service.create("goes", draft(LATER)));
            TokenService.Made token = broker.token("goes");
            try (TestGuest guest = new TestGuest(broker.broker())) {
                guest.handshake(token.token().keyId(), token.secret(), TestBroker.DESCRIPTION_HASH);
                assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
                done(service.change("goes", TestBroker.draft(null, null).expiring(Vgpu.now().plus(SOON))));
                assertTrue(guest.closed(), "the session must end with its vGPU");
            }
            TestBroker.await("the deletion", () -> noted.contains("goes:"));
            assertFalse(exists(broker, "goes"));
            assertTrue(broker.broker().tokenService().all().stream().map(Token::vgpu).noneMatch("goes"::equals));
            assertTrue(exists(broker, "stays"));
            assertTrue(exists(broker, "kept"));
            assertEquals(List.of("goes:"), noted);
            assertEquals(2000, broker.broker().vgpus().gpus().get(0).reservedBytes(), "its memory must be free again");
        }
    }

    @Test
    void shouldKeepTheExpiryOverARestart() {
        Instant expires;
        Instant past;
        try (TestBroker broker = start()) {
            expires = done(broker.broker().vgpuService().create("later", draft(LATER))).vgpu().expires();
            past = done(broker.broker().vgpuService().create("past", draft(NOT_YET))).vgpu().expires();
        }
        TestBroker.await("the expiry while no broker runs", () -> Instant.now().isAfter(past));
        try (TestBroker broker = start()) {
            Vgpu later = broker.broker().vgpus().find("later").orElseThrow().vgpu();
            assertEquals(expires, later.expires());
            assertEquals(Map.of("job", "7"), later.labels().map());
            TestBroker.await("the deletion of the expired vGPU", () -> !exists(broker, "past"));
        }
    }

    @Test
    void shouldRefuseAnExpiryInThePast() {
        try (TestBroker broker = start()) {
            VgpuService service = broker.broker().vgpuService();
            for (Duration life : List.of(Duration.ofSeconds(-1), Duration.ofDays(40_000))) {
                VgpuException refused = refused(service.create("v", draft(life)));
                assertEquals(VgpuException.Kind.INVALID, refused.kind());
                assertTrue(refused.getMessage().contains("must expire in the future"), refused.getMessage());
            }
            assertFalse(exists(broker, "v"));
        }
    }

    @Test
    void shouldCreateOnceForClientsThatRepeat() {
        try (TestBroker broker = start()) {
            VgpuService service = broker.broker().vgpuService();
            List<CompletableFuture<VgpuService.Created>> all = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                all.add(service.create("v", draft(LATER), null, true));
            }
            assertEquals(1, all.stream().map(TestBroker::done).filter(VgpuService.Created::isNew).count());
            VgpuDraft longer = draft(LATER.plusHours(1));
            VgpuService.Created renewed = done(service.create("v", longer, null, true));
            assertFalse(renewed.isNew());
            assertEquals(longer.expires(), renewed.view().vgpu().expires(), "the repeated wish renews the expiry");
            assertNull(done(service.create("v", longer.expiring(null), null, true)).view().vgpu().expires());
            for (VgpuDraft other : List.of(draft(LATER).labelled(Map.of("job", "8")),
                TestBroker.draft(1001L, "any").labelled(Map.of("job", "7")))) {
                VgpuException refused = refused(service.create("v", other, null, true));
                assertEquals(VgpuException.Kind.CONFLICT, refused.kind());
                assertTrue(refused.getMessage().contains("with other properties or labels: vgpu=v"),
                    refused.getMessage());
            }
            assertEquals(VgpuException.Kind.CONFLICT, refused(service.create("v", draft(LATER))).kind());
            assertEquals(1000, broker.broker().vgpus().gpus().get(0).reservedBytes());
        }
    }

    @Test
    void shouldReplaceTheTokensOfANoteAtOnce() throws Exception {
        try (TestBroker broker = start()) {
            TokenService tokens = broker.broker().tokenService();
            done(tokens.create("default", "other", null));
            TokenService.Made lost = done(tokens.create("default", "job 7", null, true));
            try (TestGuest guest = new TestGuest(broker.broker())) {
                guest.handshake(lost.token().keyId(), lost.secret(), TestBroker.DESCRIPTION_HASH);
                assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
                TokenService.Made made = done(tokens.create("default", "job 7", null, true));
                assertTrue(guest.closed(), "the session of the replaced token must end");
                assertEquals(List.of(made.token().keyId()), tokens.list("default").stream()
                    .filter(token -> token.note().equals("job 7")).map(Token::keyId).toList());
            }
            assertEquals(3, tokens.list("default").size(), "tokens of other notes must stay");
            assertEquals(3, broker.broker().vgpus().find("default").orElseThrow().tokens());
            assertEquals(VgpuException.Kind.INVALID, refused(tokens.create("default", null, null, true)).kind());
        }
        try (TestBroker broker = start()) {
            assertEquals(3, broker.broker().tokenService().list("default").size(), "the database must agree");
        }
    }
}
