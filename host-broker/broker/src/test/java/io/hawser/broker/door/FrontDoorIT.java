package io.hawser.broker.door;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.TokenKeys;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Guests at the TCP port of a broker. The workers are fakes, each a process of its own. */
class FrontDoorIT {
    @TempDir
    static Path stateDir;
    private static TestBroker broker;
    private static String secret;

    @BeforeAll
    static void start() throws IOException {
        broker = TestBroker.start(stateDir, "normal", Map.of("hawser.listen.max-half-open", "6",
            "hawser.sessions.max", "1"));
        secret = TestGuest.secret(stateDir);
        TestBroker.await("a worker", () -> broker.broker().pools().state().ready() > 0);
    }

    @AfterAll
    static void stop() {
        broker.close();
    }

    /** A guest's end takes time, and each test counts only its own guests. */
    @BeforeEach
    void awaitNobody() {
        TestBroker.await("the end of the last test's guests",
            () -> sessions().isEmpty() && broker.broker().door().peers() == 0);
    }

    private static TestGuest connect() throws IOException {
        return new TestGuest(broker.broker());
    }

    private static void assertRefused(TestGuest guest, Refusal refusal, String reason) throws IOException {
        TestGuest.Answer answer = guest.receive();
        assertEquals(RecordLayout.CONTROL_REFUSED, answer.opcode());
        assertEquals(refusal.code(), answer.refusedCode());
        assertTrue(answer.refusedMessage().contains(reason), answer.refusedMessage());
        assertTrue(guest.closed(), "the broker must close after REFUSED");
    }

    private static List<SessionView> sessions() {
        return broker.broker().sessions().list();
    }

    @Test
    void shouldPassTheSocketToAWorkerAndFreeEverythingWhenTheGuestLeaves() throws Exception {
        long worker;
        long callsBefore = broker.broker().sessions().totals().calls();
        try (TestGuest guest = connect()) {
            guest.handshake("default", secret);
            TestGuest.Answer welcome = guest.receive();
            assertEquals(RecordLayout.CONTROL_WELCOME, welcome.opcode());
            SessionView session = sessions().getFirst();
            assertEquals(session.id(), welcome.words().getLong(8));
            assertEquals(SessionState.RUNNING, session.state());
            assertEquals("vector?add", session.guest().program());
            assertEquals("127.0.0.1:" + guest.socket().getLocalPort(), session.guest().peer());
            assertEquals(Carrier.TCP, session.guest().carrier());
            worker = session.workerPid();
            // The worker echoes these bytes after the broker has closed its own descriptor.
            byte[] sent = "some bytes".getBytes(StandardCharsets.US_ASCII);
            guest.send(sent);
            assertArrayEquals(sent, guest.bytes(sent.length));
            TestBroker.await("statistics", () -> sessions().getFirst().statistics().calls() == 10);

            try (TestGuest second = connect()) {
                second.handshake("default", secret);
                assertRefused(second, Refusal.CAPACITY, "max=1");
            }
        }
        TestBroker.await("the end of the session", () -> sessions().isEmpty());
        assertFalse(ProcessHandle.of(worker).map(ProcessHandle::isAlive).orElse(false),
            "the broker must have reaped the worker");
        assertEquals(callsBefore + 100, broker.broker().sessions().totals().calls(),
            "the totals must include the ended session");
        assertEquals(0, broker.broker().sessions().totals().deviceBytes());
        TestBroker.await("another worker", () -> broker.broker().pools().state().ready() == 1);
    }

    private static void join(TestGuest guest, String token, long sessionId, byte[] nonce) throws IOException {
        guest.send(guest.join(guest.challenge("default"), token, sessionId, nonce));
    }

    @Test
    void shouldRefuseOffersThatBreakTheHandshake() throws Exception {
        byte[] offer = new byte[RecordLayout.RDMA_END_BYTES];
        try (TestGuest guest = connect()) {
            guest.send(guest.open(guest.challenge("default"), secret, new byte[offer.length - 1]));
            assertRefused(guest, Refusal.PROTOCOL, "an end of RDMA must have 64 bytes: bytes=63");
        }
        try (TestGuest guest = connect()) {
            guest.send(guest.open(guest.challenge("default"), "another", offer));
            assertRefused(guest, Refusal.TOKEN, "not known");
        }
        try (TestGuest guest = connect()) {
            byte[] open = guest.open(guest.challenge("default"), secret, offer);
            byte[] twice = Arrays.copyOf(open, 2 * open.length);
            System.arraycopy(open, 0, twice, open.length, open.length);
            guest.send(twice);
            assertRefused(guest, Refusal.PROTOCOL, "between PROOF and WELCOME");
        }
    }

    @Test
    void shouldAdmitGuestWithOffer() throws Exception {
        try (TestGuest guest = connect()) {
            guest.send(guest.open(guest.challenge("default"), secret, new byte[RecordLayout.RDMA_END_BYTES]));
            guest.receive();
            assertEquals(1, sessions().size());
            assertEquals(Carrier.TCP, sessions().getFirst().guest().carrier());
        }
    }

    @Test
    void shouldPassAJoiningConnectionToTheWorkerOfItsSession() throws Exception {
        try (TestGuest guest = connect()) {
            guest.handshake("default", secret);
            long id = guest.receive().words().getLong(8);
            List<TestGuest> stripes = new ArrayList<>();
            for (int i = 0; i < RecordLayout.MAX_STRIPES; i++) {
                TestGuest stripe = connect();
                stripes.add(stripe);
                join(stripe, secret, id, TestGuest.NONCE);
                byte[] expected = "{\"type\":\"stripe\"}+\n".getBytes(StandardCharsets.US_ASCII);
                assertArrayEquals(expected, stripe.bytes(expected.length), "the worker must have the connection");
            }
            try (TestGuest oneTooMany = connect()) {
                join(oneTooMany, secret, id, TestGuest.NONCE);
                assertRefused(oneTooMany, Refusal.CAPACITY, "max=8");
            }
            assertEquals(1, sessions().size());
            for (TestGuest stripe : stripes) {
                stripe.close();
            }
            // The session is not over.
            byte[] sent = "still here".getBytes(StandardCharsets.US_ASCII);
            guest.send(sent);
            assertArrayEquals(sent, guest.bytes(sent.length));
        }
    }

    @Test
    void shouldRefuseConnectionsThatAreNotOfTheSessionsProcess() throws Exception {
        byte[] other = TestGuest.NONCE.clone();
        other[15]++;
        try (TestGuest nobody = connect()) {
            join(nobody, secret, 1, TestGuest.NONCE);
            assertRefused(nobody, Refusal.CAPACITY, "must join a running session of its own process");
        }
        try (TestGuest guest = connect()) {
            guest.handshake("default", secret);
            long id = guest.receive().words().getLong(8);
            try (TestGuest stranger = connect()) {
                join(stranger, secret, id, other);
                assertRefused(stranger, Refusal.CAPACITY, "must join a running session of its own process");
            }
            try (TestGuest stranger = connect()) {
                join(stranger, secret, id + 1, TestGuest.NONCE);
                assertRefused(stranger, Refusal.CAPACITY, "must join a running session of its own process");
            }
            try (TestGuest stranger = connect()) {
                join(stranger, "another", id, TestGuest.NONCE);
                assertRefused(stranger, Refusal.TOKEN, "not known");
            }
            try (TestGuest early = connect()) {
                byte[] record = early.join(early.challenge("default"), secret, id, TestGuest.NONCE);
                early.send(Arrays.copyOf(record, record.length + 8));
                assertRefused(early, Refusal.PROTOCOL, "between PROOF and WELCOME");
            }
            try (TestGuest old = connect(); TestGuest recent = connect()) {
                byte[] record = recent.join(recent.challenge("default"), secret, id, TestGuest.NONCE);
                old.send(TestGuest.hello(RecordLayout.OLD_HANDSHAKE_VERSION, TestBroker.DESCRIPTION_HASH, "default"));
                old.receive();
                old.send(record);
                assertRefused(old, Refusal.PROTOCOL, "version 2");
            }
        }
    }

    @Test
    void shouldRefuseAWrongSecretAndAnUnknownKeyAlike() throws Exception {
        for (String[] token : new String[][] {{"default", "wrong"}, {"nobody", secret}, {"", secret}}) {
            try (TestGuest guest = connect()) {
                guest.handshake(token[0], token[1]);
                assertRefused(guest, Refusal.TOKEN, "the token is not known to this broker");
            }
        }
    }

    @Test
    void shouldRefuseAReplayedProof() throws Exception {
        byte[] recorded;
        try (TestGuest guest = connect()) {
            byte[] challenge = guest.challenge("default");
            // An eavesdropper could record this proof before the broker gets it, and use it on another connection.
            recorded = guest.proof(HandshakeProof.Purpose.SESSION, challenge, secret);
        }
        try (TestGuest guest = connect()) {
            guest.challenge("default");
            guest.send(recorded);
            assertRefused(guest, Refusal.TOKEN, "not known");
        }
    }

    @Test
    void shouldProveThatItIsTheTokensBroker() throws Exception {
        try (TestGuest guest = connect()) {
            byte[] challenge = guest.challenge("default");
            byte[] proof = Arrays.copyOfRange(challenge, RecordLayout.CHALLENGE_SERVER_PROOF_OFFSET,
                challenge.length);
            assertTrue(guest.proofs(challenge).isOfBroker(TokenKeys.ofSecret(secret), proof));
            assertFalse(guest.proofs(challenge).isOfBroker(TokenKeys.ofSecret("another"), proof));
        }
    }

    @Test
    void shouldNotTellByItsProofWhichKeysExist() throws Exception {
        byte[] first;
        try (TestGuest guest = connect()) {
            first = guest.challenge("nobody");
        }
        try (TestGuest guest = connect()) {
            byte[] second = guest.challenge("nobody");
            assertEquals(first.length, second.length);
            assertFalse(Arrays.equals(first, RecordLayout.NONCE_SERVER_BYTES, first.length, second,
                RecordLayout.NONCE_SERVER_BYTES, second.length), "the rest must differ, as for a known key");
        }
    }

    @Test
    void shouldRefuseAnOldGuestWithANewTokenAsItRefusesAnUnknownKey() throws Exception {
        for (String[] token : new String[][] {{"default", secret}, {"default", "wrong"}, {"nobody", secret}}) {
            try (TestGuest guest = connect()) {
                guest.oldHandshake(token[0], token[1]);
                assertRefused(guest, Refusal.TOKEN, "the token is not known to this broker, or takes no proof of this "
                    + "old guest package, which must be updated: guest=1 broker=2");
            }
        }
    }

    @Test
    void shouldNameBothVersionsWhenTheyDiffer() throws Exception {
        try (TestGuest guest = connect()) {
            guest.send(TestGuest.hello(3, TestBroker.DESCRIPTION_HASH, "default"));
            assertRefused(guest, Refusal.VERSION, "guest=3 broker=2");
        }
        try (TestGuest guest = connect()) {
            guest.send(TestGuest.hello(2, 1, "default"));
            assertRefused(guest, Refusal.VERSION, "guest=0000000000000001 broker=123456789abcdef0");
        }
    }

    @Test
    void shouldRefuseBadLengthsAtOnce() throws Exception {
        for (int length : new int[] {0, -1, 31, 33, 4104, Integer.MAX_VALUE}) {
            try (TestGuest guest = connect()) {
                guest.send(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(length).array());
                assertRefused(guest, Refusal.PROTOCOL, "lengthBytes=" + length);
            }
        }
    }

    @Test
    void shouldTellWhyToAPeerThatKeepsSending() throws Exception {
        try (TestGuest guest = connect()) {
            byte[] garbage = new byte[256 * 1024];
            Arrays.fill(garbage, (byte) 'x');
            guest.send(garbage);
            TestGuest.Answer answer = guest.receive();
            assertEquals(Refusal.PROTOCOL.code(), answer.refusedCode());
        }
    }

    @Test
    void shouldRefuseProofBeforeHelloAndHelloTwice() throws Exception {
        try (TestGuest guest = connect()) {
            guest.send(TestGuest.proof(new byte[32]));
            assertRefused(guest, Refusal.PROTOCOL, "HELLO, then PROOF");
        }
        try (TestGuest guest = connect()) {
            guest.challenge("default");
            guest.send(TestGuest.hello(2, TestBroker.DESCRIPTION_HASH, "default"));
            assertRefused(guest, Refusal.PROTOCOL, "HELLO, then PROOF");
        }
    }

    @Test
    void shouldRefuseBytesThatFollowProof() throws Exception {
        try (TestGuest guest = connect()) {
            byte[] challenge = guest.challenge("default");
            byte[] proof = guest.proof(HandshakeProof.Purpose.SESSION, challenge, secret);
            byte[] early = Arrays.copyOf(proof, proof.length + 8);
            guest.send(early);
            assertRefused(guest, Refusal.PROTOCOL, "between PROOF and WELCOME");
        }
    }

    @Test
    void shouldKeepTheNumberOfHalfOpenConnections() throws Exception {
        TestGuest[] slow = new TestGuest[6];
        for (int i = 0; i < slow.length; i++) {
            slow[i] = connect();
            slow[i].send(new byte[1]);
        }
        TestBroker.await("the half-open connections", () -> halfOpen() == slow.length);
        try (TestGuest guest = connect()) {
            assertRefused(guest, Refusal.CONNECTIONS, "half-open connections must be at most 6");
        }
        for (TestGuest guest : slow) {
            guest.close();
        }
        TestBroker.await("the end of the half-open connections", () -> halfOpen() == 0);
    }

    @Test
    void shouldServeOthersWhileRefusedConnectionsOfOnePeerLinger(@TempDir Path own) throws Exception {
        try (TestBroker small = TestBroker.start(own, "normal", Map.of("hawser.listen.max-half-open", "4",
            "hawser.listen.max-per-peer", "2"))) {
            String endpoint = small.broker().door().endpoint();
            CountDownLatch held = new CountDownLatch(1);
            CountDownLatch goOn = new CountDownLatch(1);
            List<TestGuest> attack = new ArrayList<>();
            // The first refusal blocks the event loop until all others wait to be accepted, so all refusals linger.
            small.whenRefused(() -> {
                held.countDown();
                try {
                    goOn.await(30, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            try {
                for (int i = 0; i < 3; i++) {
                    attack.add(new TestGuest(from("127.0.0.2", endpoint)));
                }
                assertTrue(held.await(30, TimeUnit.SECONDS));
                for (int i = 0; i < 8; i++) {
                    attack.add(new TestGuest(from("127.0.0.2", endpoint)));
                }
                try (TestGuest other = new TestGuest(from("127.0.0.1", endpoint))) {
                    other.send(TestGuest.hello(RecordLayout.HANDSHAKE_VERSION, TestBroker.DESCRIPTION_HASH, "default"));
                    goOn.countDown();
                    assertEquals(RecordLayout.CONTROL_CHALLENGE, other.receive().opcode());
                }
            } finally {
                small.whenRefused(null);
                goOn.countDown();
                for (TestGuest guest : attack) {
                    guest.close();
                }
            }
        }
    }

    @Test
    void shouldRefuseAGuestThatThreeWorkersCannotReceive(@TempDir Path own) throws Exception {
        try (TestBroker broken = TestBroker.start(own, "unreachable", Map.of("hawser.sessions.end-timeout", "200ms"));
            TestGuest guest = new TestGuest(broken.broker())) {
            guest.handshake("default", TestGuest.secret(own));
            assertRefused(guest, Refusal.INTERNAL, "no worker took the session: tried=3");
            TestBroker.await("the end of the session", () -> broken.broker().sessions().list().isEmpty());
        }
    }

    private static Socket from(String source, String endpoint) throws IOException {
        int colon = endpoint.lastIndexOf(':');
        Socket socket = new Socket();
        socket.bind(new InetSocketAddress(source, 0));
        socket.connect(new InetSocketAddress(endpoint.substring(0, colon),
            Integer.parseInt(endpoint.substring(colon + 1))));
        return socket;
    }

    @Test
    void shouldEndASlowHandshake(@TempDir Path own) throws Exception {
        try (TestBroker hasty = TestBroker.start(own, "silent", Map.of("hawser.listen.handshake-timeout", "1s"));
            TestGuest slow = new TestGuest(hasty.broker())) {
            slow.send(new byte[1]);
            assertRefused(slow, Refusal.TIMEOUT, "timeoutMs=1000");
            slow.close();
            TestBroker.await("the end of the half-open connection", () -> hasty.broker().door().halfOpen() == 0);
        }
    }

    private static int halfOpen() {
        return broker.broker().door().halfOpen();
    }

    @Test
    void shouldEndASessionOnRequest() throws Exception {
        try (TestGuest guest = connect()) {
            guest.handshake("default", secret);
            guest.receive();
            long id = sessions().getFirst().id();
            assertTrue(broker.broker().sessions().end(id, "test").get(60, TimeUnit.SECONDS));
            assertTrue(broker.broker().sessions().find(id).isEmpty(),
                "the session must be gone when the request completes");
            assertTrue(guest.closed());
            assertFalse(broker.broker().sessions().end(id, "test").get(60, TimeUnit.SECONDS));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldForgetAGuestThatVanishesWithItsProof(boolean abruptly) throws Exception {
        TestBroker.await("a worker", () -> broker.broker().pools().state().ready() > 0);
        CountDownLatch held = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        try (TestGuest vanishing = connect(); TestGuest refused = connect()) {
            byte[] challenge = vanishing.challenge("default");
            byte[] proof = vanishing.proof(HandshakeProof.Purpose.SESSION, challenge, secret);
            // A refusal blocks the event loop until proof and end have arrived, so that the loop reads both at once.
            broker.whenRefused(() -> {
                held.countDown();
                try {
                    goOn.await(30, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            refused.send(new byte[RecordLayout.HEADER_BYTES]);
            assertTrue(held.await(30, TimeUnit.SECONDS));
            if (abruptly) {
                vanishing.socket().setSoLinger(true, 0);
            }
            vanishing.send(proof);
        } finally {
            broker.whenRefused(null);
            goOn.countDown();
        }
        TestBroker.await("the end of the handshake", () -> broker.broker().door().halfOpen() == 0);
        TestBroker.await("the end of the session", () -> sessions().isEmpty());
        try (TestGuest next = connect()) {
            next.handshake("default", secret);
            next.receive(); // WELCOME: the broker still serves guests
        }
        TestBroker.await("the end of the next session", () -> sessions().isEmpty());
    }

    @Test
    void shouldEndTheSessionOfAWorkerThatDies() throws Exception {
        try (TestGuest guest = connect()) {
            guest.handshake("default", secret);
            guest.receive();
            guest.send("die".getBytes(StandardCharsets.US_ASCII));
            assertTrue(guest.closed());
            TestBroker.await("the end of the session", () -> sessions().isEmpty());
        }
        assertEquals(0, broker.broker().pools().state().failures(),
            "the death of a worker in a session must not count as a failed start");
    }

    @Test
    void shouldTellTheStatusWithoutASession() throws IOException {
        try (TestGuest guest = connect()) {
            byte[] challenge = guest.challenge("default");
            guest.send(guest.proof(HandshakeProof.Purpose.STATUS, challenge, secret));
            TestGuest.Answer answer = guest.receive();
            assertEquals(RecordLayout.CONTROL_STATUS, answer.opcode());
            int length = ByteBuffer.wrap(answer.payload()).order(ByteOrder.LITTLE_ENDIAN)
                .getInt(RecordLayout.STATUS_TEXT_OFFSET);
            List<String> lines = new String(answer.payload(), RecordLayout.STATUS_FIXED_BYTES, length,
                StandardCharsets.UTF_8).lines().toList();
            assertEquals("status 1", lines.get(0));
            assertTrue(lines.stream().anyMatch(line -> line.startsWith("vgpu\tdefault\t")), lines::toString);
            assertTrue(lines.stream().anyMatch(line -> line.startsWith("gpu\t0\t")), lines::toString);
            assertTrue(guest.closed(), "the broker must close after STATUS");
            assertTrue(sessions().isEmpty());
        }
    }

    @Test
    void shouldNotTakeTheProofForASessionAsOneForTheStatus() throws IOException {
        try (TestGuest guest = connect()) {
            byte[] challenge = guest.challenge("default");
            guest.send(TestGuest.proof(RecordLayout.CONTROL_ASK_STATUS, guest.proofs(challenge).ofGuest(
                HandshakeProof.Purpose.SESSION, TokenKeys.ofSecret(secret))));
            assertRefused(guest, Refusal.TOKEN, "not known");
        }
    }
}
