package io.hawser.broker.door;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.TestCertificates;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.token.Token;
import io.hawser.broker.token.TokenTable;
import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.TokenKeys;
import io.netty.channel.epoll.EpollEventLoopGroup;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A front door whose broker holds none of the vGPUs. It has no sessions and no workers, which MOVED never needs. */
class ElsewhereIT {
    private static final String PLAIN = "gpu2.example:7654";
    private static final String TLS = "[fd00::2]:7656";
    private static final String SECRET = "secret";
    private static final long HANDSHAKE_TIMEOUT_S = 5;

    /** A question of the door: which vGPU, over TLS or not, and for a session or not. */
    private record Question(String vgpu, boolean overTls, boolean opens) {}

    /** What the listener has heard; {@code detailed}: as an event. */
    private record Heard(Refusal refusal, boolean detailed) {}

    @TempDir
    static Path folder;
    private static final BlockingQueue<Question> QUESTIONS = new LinkedBlockingQueue<>();
    private static final BlockingQueue<Heard> HEARD = new LinkedBlockingQueue<>();
    private static final TokenTable TOKENS = new TokenTable();
    private static TestCertificates certificates;
    private static EpollEventLoopGroup group;
    private static FrontDoor door;
    private static volatile CompletableFuture<String> answer; // null for one at once

    @BeforeAll
    static void open() throws Exception {
        certificates = new TestCertificates(folder.resolve("certificates"));
        Path certificate = certificates.certificate("server", "IP:127.0.0.1", 30);
        TOKENS.load(token("known", null));
        TOKENS.load(token("old", Instant.EPOCH.plusSeconds(1)));
        group = new EpollEventLoopGroup(1);
        door = new FrontDoor(group.next(), TestBroker.config(folder, "normal", Map.of("hawser.listen.tls-port", "0",
            "hawser.listen.handshake-timeout", HANDSHAKE_TIMEOUT_S + "s", "hawser.tls.certificate",
            certificate.toString(), "hawser.tls.key",
            certificates.key("server").toString())), TOKENS, null, null, null, listener(), TestBroker.DESCRIPTION_HASH,
            (vgpu, overTls, opens) -> {
                // First: the test changes the answer for the next guest as soon as it has the question.
                CompletableFuture<String> its = answer;
                QUESTIONS.add(new Question(vgpu, overTls, opens));
                return its == null ? CompletableFuture.completedFuture(overTls ? TLS : PLAIN) : its;
            }, null);
        door.open();
    }

    @AfterAll
    static void close() {
        if (door != null) {
            door.close();
            door.closeRelays();
        }
        if (group != null) {
            group.shutdownGracefully(0, 1, TimeUnit.SECONDS).syncUninterruptibly();
        }
    }

    @BeforeEach
    void forget() {
        QUESTIONS.clear();
        HEARD.clear();
        answer = null;
    }

    private static Token token(String keyId, Instant expires) {
        return new Token(keyId, "vgpu-of-" + keyId, Token.Keys.of(TokenKeys.ofSecret(SECRET)), "", Instant.EPOCH,
            expires, null);
    }

    private static DoorListener listener() {
        return new DoorListener() {
            @Override
            public void refused(Carrier carrier, Refusal refusal) {
                HEARD.add(new Heard(refusal, false));
            }

            @Override
            public void refused(Carrier carrier, Refusal refusal, String vgpu, String peer, String reason) {
                HEARD.add(new Heard(refusal, true));
            }

            @Override
            public void sessionStarted(Carrier carrier, Duration time) {
                throw new AssertionError("a session started over " + carrier);
            }
        };
    }

    private static TestGuest plain() throws Exception {
        return new TestGuest(door.endpoint());
    }

    private static TestGuest tls() throws Exception {
        return new TestGuest(TestGuest.socket(door.tlsEndpoint(), certificates.trusting().getSocketFactory()));
    }

    private static void assertMoved(TestGuest guest, String address) throws Exception {
        TestGuest.Answer answer = guest.receive();
        assertEquals(RecordLayout.CONTROL_REFUSED, answer.opcode());
        assertEquals(RecordLayout.REFUSED_MOVED, answer.refusedCode());
        assertEquals(address, answer.refusedMessage(), "the message must be the address and nothing else");
        assertTrue(guest.closed(), "the broker must close after REFUSED");
        assertEquals(new Heard(Refusal.MOVED, false), HEARD.take(), "it must count, and be no event");
    }

    @Test
    void shouldSendGuestWithProofToTheAddressOfItsKind() throws Exception {
        try (TestGuest guest = plain()) {
            guest.handshake("known", SECRET);
            assertMoved(guest, PLAIN);
        }
        try (TestGuest guest = tls()) {
            guest.handshake("known", SECRET);
            assertMoved(guest, TLS);
        }
        assertEquals(List.of(new Question("vgpu-of-known", false, true), new Question("vgpu-of-known", true, true)),
            List.copyOf(QUESTIONS));
    }

    @Test
    void shouldSendGuestThatAsksForTheStatusOrOffersRdma() throws Exception {
        try (TestGuest guest = tls()) {
            guest.send(guest.proof(HandshakeProof.Purpose.STATUS, guest.challenge("known"), SECRET));
            assertMoved(guest, TLS);
        }
        assertEquals(new Question("vgpu-of-known", true, false), QUESTIONS.take());
        try (TestGuest guest = plain()) {
            guest.send(guest.open(guest.challenge("known"), SECRET, new byte[RecordLayout.RDMA_END_BYTES]));
            assertMoved(guest, PLAIN);
        }
    }

    @Test
    void shouldTellNothingToGuestWithoutAValidToken() throws Exception {
        record Stranger(String keyId, String secret) {}
        for (Stranger stranger : List.of(new Stranger("known", "wrong"), new Stranger("unknown", SECRET),
            new Stranger("old", SECRET))) {
            for (boolean overTls : new boolean[] {false, true}) {
                for (HandshakeProof.Purpose purpose : List.of(HandshakeProof.Purpose.SESSION,
                    HandshakeProof.Purpose.STATUS)) {
                    try (TestGuest guest = overTls ? tls() : plain()) {
                        guest.send(guest.proof(purpose, guest.challenge(stranger.keyId()), stranger.secret()));
                        TestGuest.Answer answer = guest.receive();
                        assertEquals(RecordLayout.REFUSED_TOKEN, answer.refusedCode(), stranger.toString());
                        assertFalse(
                            answer.refusedMessage().contains("gpu2") || answer.refusedMessage().contains("fd00"),
                            answer.refusedMessage());
                        assertEquals(new Heard(Refusal.TOKEN, true), HEARD.take());
                    }
                }
            }
        }
        assertTrue(QUESTIONS.isEmpty(), "nobody may be asked for a stranger: " + QUESTIONS);
    }

    @Test
    void shouldLeaveTheUseOfTheTokenToTheOtherBroker() throws Exception {
        try (TestGuest guest = plain()) {
            guest.handshake("known", SECRET);
            assertMoved(guest, PLAIN);
        }
        assertEquals(List.of(), group.next().submit(TOKENS::takeUsed).get());
    }

    @Test
    void shouldSendGuestWhenTheAnswerComesLater() throws Exception {
        answer = new CompletableFuture<>();
        try (TestGuest guest = plain()) {
            guest.handshake("known", SECRET);
            QUESTIONS.take();
            group.next().execute(() -> answer.complete(PLAIN));
            assertMoved(guest, PLAIN);
        }
    }

    @Test
    void shouldLetGuestWithProofWaitLongerThanAHandshakeMayTake() throws Exception {
        answer = new CompletableFuture<>();
        try (TestGuest guest = plain()) {
            guest.handshake("known", SECRET);
            QUESTIONS.take();
            group.next().schedule(() -> answer.complete(PLAIN), HANDSHAKE_TIMEOUT_S * 1000 + 100,
                TimeUnit.MILLISECONDS);
            assertEquals(0, door.halfOpen(), "it may take no other guest's place");
            assertMoved(guest, PLAIN);
        }
    }

    @Test
    void shouldRefuseGuestThatSpeaksBeforeTheAnswer() throws Exception {
        answer = new CompletableFuture<>();
        try (TestGuest guest = plain()) {
            guest.handshake("known", SECRET);
            QUESTIONS.take();
            guest.send(TestGuest.hello(RecordLayout.HANDSHAKE_VERSION, TestBroker.DESCRIPTION_HASH, "known"));
            assertEquals(RecordLayout.REFUSED_PROTOCOL, guest.receive().refusedCode());
            assertEquals(new Heard(Refusal.PROTOCOL, true), HEARD.take());
            group.next().submit(() -> answer.complete(PLAIN)).get();
            assertTrue(guest.closed(), "a refused guest may get no second answer");
        }
        assertTrue(HEARD.isEmpty(), HEARD.toString());
    }

    @Test
    void shouldForgetGuestThatLeavesBeforeTheAnswer() throws Exception {
        CompletableFuture<String> late = new CompletableFuture<>();
        answer = late;
        try (TestGuest guest = plain()) {
            guest.handshake("known", SECRET);
            QUESTIONS.take();
        }
        answer = null;
        try (TestGuest next = plain()) { // the loop has seen the first one's end before it answers this one
            next.handshake("known", SECRET);
            assertMoved(next, PLAIN);
        }
        group.next().submit(() -> late.complete(PLAIN)).get();
        assertTrue(HEARD.isEmpty(), HEARD.toString());
    }

    @Test
    void shouldTellGuestOfAnAnswerThatFails() throws Exception {
        answer = CompletableFuture.failedFuture(new IllegalStateException("of the test"));
        try (TestGuest guest = plain()) {
            guest.handshake("known", SECRET);
            assertEquals(RecordLayout.REFUSED_INTERNAL, guest.receive().refusedCode());
        }
    }
}
