package io.hawser.broker.door;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.TestCertificates;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.SessionView;
import io.hawser.shm.wire.RecordLayout;
import io.netty.buffer.PooledByteBufAllocator;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import org.jboss.logmanager.ExtLogRecord;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Guests at the TLS port of a broker. The workers are fakes, each a process of its own. */
class TlsDoorIT {
    @TempDir
    static Path folder;
    private static TestBroker broker;
    private static TestCertificates certificates;
    private static Path certificate;
    private static String secret;
    private static Set<Integer> othersPorts; // ports of earlier tests in this process

    @BeforeAll
    static void start() throws Exception {
        certificates = new TestCertificates(folder.resolve("certificates"));
        certificate = certificates.certificate("server", "IP:127.0.0.1", 30);
        Path stateDir = folder.resolve("state");
        othersPorts = listening();
        broker = TestBroker.start(stateDir, "normal", settings(Map.of("hawser.listen.max-half-open", "6")));
        secret = TestGuest.secret(stateDir);
        TestBroker.await("a worker", () -> broker.broker().pools().state().ready() > 0);
    }

    @AfterAll
    static void stop() {
        if (broker != null) {
            broker.close();
        }
    }

    private static Map<String, String> settings(Map<String, String> others) {
        Map<String, String> all = new HashMap<>(others);
        all.putAll(Map.of("hawser.listen.tls-port", "0", "hawser.tls.certificate", certificate.toString(),
            "hawser.tls.key", certificates.key("server").toString()));
        return all;
    }

    /** A guest's end takes time, and each test counts only its own guests. */
    @BeforeEach
    void awaitNobody() {
        TestBroker.await("the end of the last test's guests",
            () -> sessions().isEmpty() && broker.broker().door().peers() == 0);
    }

    private static SSLSocket tls() throws Exception {
        return (SSLSocket) TestGuest.socket(broker.broker().door().tlsEndpoint(),
            certificates.trusting().getSocketFactory());
    }

    private static TestGuest session() throws Exception {
        TestBroker.await("a worker", () -> broker.broker().pools().state().ready() > 0);
        TestGuest guest = new TestGuest(tls());
        guest.handshake("default", secret);
        assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
        return guest;
    }

    private static List<SessionView> sessions() {
        return broker.broker().sessions().list();
    }

    @Test
    void shouldRelayBothWaysAndFreeEverythingWhenTheGuestLeaves() throws Exception {
        try (TestGuest guest = session()) {
            SessionView session = sessions().getFirst();
            assertEquals("127.0.0.1:" + guest.socket().getLocalPort(), session.guest().peer(),
                "the peer must be the guest, not the relay");
            byte[] sent = "some bytes".getBytes(StandardCharsets.US_ASCII);
            guest.send(sent);
            assertArrayEquals(sent, guest.bytes(sent.length));
            assertEquals(0, broker.broker().door().halfOpen());
        }
        TestBroker.await("the end of the session", () -> sessions().isEmpty());
        TestBroker.await("the end of the relay", () -> broker.broker().door().peers() == 0);
    }

    @Test
    void shouldHoldLittleForAGuestThatSendsMoreThanItReads() throws Exception {
        int total = 64 << 20;
        int piece = 64 * 1024;
        try (TestGuest guest = session()) {
            CountDownLatch begun = new CountDownLatch(64);
            CompletableFuture<Void> sender = CompletableFuture.runAsync(() -> {
                Random random = new Random(7);
                byte[] bytes = new byte[piece];
                try {
                    OutputStream out = guest.socket().getOutputStream();
                    for (int sent = 0; sent < total; sent += piece) {
                        random.nextBytes(bytes);
                        out.write(bytes);
                        begun.countDown();
                    }
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            });
            assertTrue(begun.await(60, TimeUnit.SECONDS));
            Random random = new Random(7);
            byte[] expected = new byte[piece];
            InputStream in = guest.socket().getInputStream();
            for (int received = 0; received < total; received += piece) {
                random.nextBytes(expected);
                assertArrayEquals(expected, in.readNBytes(piece), "at " + received);
            }
            sender.get(60, TimeUnit.SECONDS);
        }
        long held = PooledByteBufAllocator.DEFAULT.metric().usedDirectMemory();
        assertTrue(held <= 24 << 20, "direct memory of the relay: " + held);
    }

    @Test
    void shouldEndWithTheWorkerAndWithTheSession() throws Exception {
        try (TestGuest guest = session()) {
            guest.send("die".getBytes(StandardCharsets.US_ASCII));
            assertTrue(guest.closed());
        }
        try (TestGuest guest = session()) {
            long id = sessions().getLast().id();
            assertTrue(broker.broker().sessions().end(id, "test").get(60, TimeUnit.SECONDS));
            assertTrue(guest.closed());
        }
        TestBroker.await("the end of the sessions", () -> sessions().isEmpty());
        TestBroker.await("the end of the relays", () -> broker.broker().door().peers() == 0);
    }

    @Test
    void shouldNotKeepThePlaceOfAGuestThatNeverCloses() throws Exception {
        try (TestGuest guest = session()) {
            assertTrue(broker.broker().sessions().end(sessions().getLast().id(), "test").get(60, TimeUnit.SECONDS));
            TestBroker.await("the end of the relay", () -> broker.broker().door().peers() == 0);
        }
    }

    @Test
    void shouldRefuseAWrongTokenThroughTls() throws Exception {
        try (TestGuest guest = new TestGuest(tls())) {
            guest.handshake("default", "wrong");
            TestGuest.Answer answer = guest.receive();
            assertEquals(RecordLayout.CONTROL_REFUSED, answer.opcode());
            assertTrue(answer.refusedMessage().contains("the token is not known"), answer.refusedMessage());
            assertTrue(guest.closed());
        }
    }

    @Test
    void shouldRefuseWhoeverDoesNotSpeakTls() throws Exception {
        int before = broker.refusals(Refusal.TLS);
        try (TestGuest guest = new TestGuest(broker.broker().door().tlsEndpoint())) {
            guest.send(TestGuest.hello(RecordLayout.HANDSHAKE_VERSION, TestBroker.DESCRIPTION_HASH, "default"));
            TestGuest.Answer answer = guest.receive();
            assertEquals(RecordLayout.CONTROL_REFUSED, answer.opcode());
            assertTrue(answer.refusedMessage().contains("this port speaks TLS"), answer.refusedMessage());
            assertTrue(guest.closed());
        }
        TestBroker.await("the refusal", () -> broker.refusals(Refusal.TLS) > before);
    }

    /** The lines that the TLS port logs while an OpenSSL client, like a guest, rejects the certificate. */
    private static List<String> logged(String options) throws Exception {
        List<String> lines = new CopyOnWriteArrayList<>();
        Logger logger = Logger.getLogger(TlsDoor.class.getName());
        Handler handler = new Handler() {
            @Override
            @SuppressWarnings("deprecation") // the message without a formatter's layout
            public void publish(LogRecord entry) {
                lines.add(((ExtLogRecord) entry).getFormattedMessage());
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
        logger.addHandler(handler);
        try {
            String endpoint = broker.broker().door().tlsEndpoint();
            Process client = new ProcessBuilder("sh", "-c", "exec openssl s_client -connect " + endpoint
                + " -verify_return_error " + options).redirectInput(new java.io.File("/dev/null"))
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
            assertTrue(client.waitFor(60, TimeUnit.SECONDS));
            TestBroker.await("a line in the log", () -> !lines.isEmpty());
        } finally {
            logger.removeHandler(handler);
        }
        return lines;
    }

    @Test
    void shouldSayThatAGuestHasNotAcceptedTheCertificate() throws Exception {
        String stranger = new TestCertificates(folder.resolve("stranger")).authority().toString();
        String known = certificates.authority().toString();
        Map<String, String> clients = Map.of("-tls1_3 -CAfile " + stranger, "unknown_ca",
            "-tls1_2 -CAfile " + stranger, "unknown_ca",
            "-tls1_3 -verify_hostname nowhere.example -CAfile " + known, "bad_certificate");
        for (Map.Entry<String, String> client : clients.entrySet()) {
            List<String> lines = logged(client.getKey());
            assertEquals(1, lines.size(), lines::toString);
            String line = lines.getFirst();
            assertTrue(line.startsWith("connection refused: peer=127.0.0.1:"), line);
            assertTrue(line.endsWith(" reason=tls: the guest has not accepted the certificate: TLS alert "
                + client.getValue()), client.getKey() + ": " + line);
        }
    }

    @Test
    void shouldTellAPlainPortFromTls() throws Exception {
        int before = broker.refusals(Refusal.PROTOCOL);
        SSLSocketFactory factory = certificates.trusting().getSocketFactory();
        try (SSLSocket socket = (SSLSocket) TestGuest.socket(broker.broker().door().endpoint(), factory)) {
            assertThrows(SSLException.class, socket::startHandshake);
        }
        TestBroker.await("the refusal", () -> broker.refusals(Refusal.PROTOCOL) > before);
    }

    @Test
    void shouldKeepTheNumberOfHalfOpenTlsConnections() throws Exception {
        Socket[] slow = new Socket[6];
        for (int i = 0; i < slow.length; i++) {
            slow[i] = TestGuest.socket(broker.broker().door().tlsEndpoint(), javax.net.SocketFactory.getDefault());
        }
        TestBroker.await("the half-open connections", () -> broker.broker().door().halfOpen() == slow.length);
        int before = broker.refusals(Refusal.CONNECTIONS);
        try (SSLSocket socket = tls()) {
            assertThrows(IOException.class, socket::startHandshake);
        }
        TestBroker.await("the refusal", () -> broker.refusals(Refusal.CONNECTIONS) > before);
        for (Socket socket : slow) {
            socket.close();
        }
        TestBroker.await("the end of the half-open connections", () -> broker.broker().door().halfOpen() == 0);
    }

    @Test
    void shouldEndASlowTlsHandshake(@TempDir Path own) throws Exception {
        try (TestBroker hasty = TestBroker.start(own, "silent", settings(Map.of("hawser.listen.handshake-timeout",
            "1s"))); TestGuest slow = new TestGuest(hasty.broker().door().tlsEndpoint())) {
            slow.socket().getInputStream().readAllBytes();
            assertEquals(1, hasty.refusals(Refusal.TLS));
            TestBroker.await("the end of the half-open connection", () -> hasty.broker().door().halfOpen() == 0);
        }
    }

    @Test
    void shouldExpectEachRelayOnceAndAtItsWholeAddress() {
        Arrivals arrivals = new Arrivals();
        InetSocketAddress relay = new InetSocketAddress("127.0.0.1", 4711);
        assertNull(arrivals.take(relay), "the inner port must reject an unexpected address");
        InetSocketAddress guest = new InetSocketAddress("192.0.2.1", 1);
        arrivals.expect(relay, guest);
        assertNull(arrivals.take(new InetSocketAddress("127.0.0.2", 4711)),
            "the inner port must reject another address with the relay's port");
        assertEquals(guest, arrivals.take(relay));
        assertNull(arrivals.take(relay));
    }

    /** TCP ports on which this process listens. Every user of the machine can read this list. */
    private static Set<Integer> listening() throws IOException {
        Set<String> own = new HashSet<>();
        try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
            for (Path descriptor : descriptors) {
                try {
                    own.add(Files.readSymbolicLink(descriptor).toString());
                } catch (NoSuchFileException e) {
                    // the descriptor was closed after the listing
                }
            }
        }
        Set<Integer> ports = new HashSet<>();
        for (String table : List.of("/proc/self/net/tcp", "/proc/self/net/tcp6")) {
            for (String line : Files.readAllLines(Path.of(table))) {
                String[] fields = line.strip().split(" +");
                if (fields.length > 9 && fields[3].equals("0A") && own.contains("socket:[" + fields[9] + "]")) {
                    ports.add(Integer.parseInt(fields[1].substring(fields[1].lastIndexOf(':') + 1), 16));
                }
            }
        }
        return ports;
    }

    @Test
    void shouldCloseStrangersAtTheInnerDoor() throws Exception {
        Set<Integer> inner = listening();
        inner.removeAll(othersPorts);
        for (String known : List.of(broker.broker().door().endpoint(), broker.broker().door().tlsEndpoint())) {
            assertTrue(inner.remove(Integer.parseInt(known.substring(known.lastIndexOf(':') + 1))), known);
        }
        assertEquals(1, inner.size(), inner::toString);
        for (String source : List.of("127.0.0.1", "127.0.0.2")) {
            Socket socket = new Socket();
            socket.bind(new InetSocketAddress(source, 0));
            socket.connect(new InetSocketAddress("127.0.0.1", inner.iterator().next()));
            try (TestGuest stranger = new TestGuest(socket)) {
                // Even with the right token: only relays may use the inner port, which has no TLS.
                assertThrows(IOException.class, () -> stranger.handshake("default", secret));
            }
        }
        try (TestGuest guest = session()) {
            assertEquals("127.0.0.1:" + guest.socket().getLocalPort(), sessions().getFirst().guest().peer());
        }
    }
}
