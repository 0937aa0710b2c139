package io.hawser.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The REST interface of the packaged broker over TLS. */
class TlsIT {
    @TempDir
    Path folder;

    private static HttpResponse<String> send(HttpClient client, HttpRequest.Builder request) throws Exception {
        return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    private static String commonName(SSLContext context, URI uri) throws IOException {
        try (SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(uri.getHost(), uri.getPort())) {
            socket.startHandshake();
            return ((X509Certificate) socket.getSession().getPeerCertificates()[0]).getSubjectX500Principal().getName();
        }
    }

    @Test
    void shouldSpeakTlsAloneAndTakeChangedCertificates() throws Exception {
        TestCertificates certificates = new TestCertificates(folder.resolve("certificates"));
        Path certificate = certificates.certificate("first", "IP:127.0.0.1", 30);
        Path stateDir = folder.resolve("state");
        try (RealProcess broker = new RealProcess(folder, "tls", stateDir, "-Dhawser.worker.command="
            + TestBroker.workerCommand("normal"), "-Dhawser.tls.certificate=" + certificate,
            "-Dhawser.tls.key="
                + certificates.key("first"),
            "-Dhawser.tls.reload-period=1s")) {
            URI http = URI.create(broker.awaitEndpoints().get("http").asText());
            assertEquals("https", http.getScheme());
            try (HttpClient client = HttpClient.newBuilder().sslContext(certificates.trusting()).build();
                HttpClient other = HttpClient.newHttpClient()) {
                String token = Files.readString(stateDir.resolve("admin.token")).strip();
                HttpResponse<String> login = send(client, HttpRequest.newBuilder(http.resolve("/api/v1/login"))
                    .header("Content-Type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofString("{\"token\":\"" + token + "\"}")));
                assertEquals(200, login.statusCode(), login.body());
                assertTrue(login.headers().firstValue("Set-Cookie").orElse("").contains("Secure"),
                    login.headers().toString());
                assertThrows(SSLException.class, () -> send(other, HttpRequest.newBuilder(http.resolve("/"))));
                URI clear = URI.create("http://127.0.0.1:" + http.getPort() + "/api/v1/me");
                assertThrows(IOException.class, () -> send(client, HttpRequest.newBuilder(clear)));
            }
            for (String old : new String[] {"TLSv1.1", "TLSv1"}) {
                try (SSLSocket socket = (SSLSocket) certificates.trusting().getSocketFactory()
                    .createSocket(http.getHost(), http.getPort())) {
                    SSLParameters parameters = socket.getSSLParameters();
                    parameters.setProtocols(new String[] {old});
                    socket.setSSLParameters(parameters);
                    assertThrows(SSLException.class, socket::startHandshake, old);
                }
            }
            assertEquals("CN=first", commonName(certificates.trusting(), http));
            Path renewed = certificates.certificate("second", "IP:127.0.0.1", 30);
            Files.copy(certificates.key("second"), certificates.key("first"), StandardCopyOption.REPLACE_EXISTING);
            Files.copy(renewed, certificate, StandardCopyOption.REPLACE_EXISTING);
            TestBroker.await("the changed certificate", () -> {
                try {
                    return commonName(certificates.trusting(), http).equals("CN=second");
                } catch (IOException e) {
                    // The broker has read the files between the two copies, and key and certificate do not match yet.
                    return false;
                } catch (GeneralSecurityException e) {
                    throw new AssertionError(e);
                }
            });
        }
    }

    private static TestClient over(SSLContext context, URI http, String source) throws IOException {
        return new TestClient(context.getSocketFactory().createSocket(InetAddress.ofLiteral(http.getHost()),
            http.getPort(), InetAddress.ofLiteral(source), 0));
    }

    @Test
    void shouldLimitHandshakesAndRequestsOfOnePeer() throws Exception {
        TestCertificates certificates = new TestCertificates(folder.resolve("certificates"));
        Path certificate = certificates.certificate("first", "IP:127.0.0.1", 30);
        try (RealProcess broker = new RealProcess(folder, "limits", folder.resolve("state"),
            "-Dhawser.worker.command=" + TestBroker.workerCommand("normal"), "-Dhawser.tls.certificate=" + certificate,
            "-Dhawser.tls.key=" + certificates.key("first"), "-Dhawser.http.request-timeout=3s",
            "-Dhawser.http.max-per-peer=5", "-Dhawser.http.max-head-fields=20")) {
            URI http = URI.create(broker.awaitEndpoints().get("http").asText());
            List<TestClient> halfOpen = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                // Sends only the first bytes of a ClientHello.
                halfOpen.add(new TestClient(http, "127.0.0.2").sendWhileOpen("\26\3\1\2\0\1"));
            }
            String request = "GET /q/health/live HTTP/1.1\r\nHost: broker\r\n";
            SSLContext context = certificates.trusting();
            try (TestClient other = over(context, http, "127.0.0.1")) {
                assertEquals(200, other.send(request + "\r\n").status());
            }
            for (TestClient client : halfOpen) {
                assertTrue(client.isRefused()); // the broker closes the sixth at once and the others after the timeout
                client.close();
            }
            assertTrue(broker.output().contains("reason=peer: "), broker.output());
            assertTrue(broker.output().contains("reason=timeout: "), broker.output());
            try (TestClient slow = over(context, http, "127.0.0.2")) {
                assertEquals("", slow.send(request).rest());
            }
            try (TestClient client = over(context, http, "127.0.0.2")) {
                assertEquals(431, client.send(request + "a:b\r\n".repeat(20)).status());
            }
            try (TestClient client = over(context, http, "127.0.0.2")) {
                assertEquals(400, client.send(request + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
                    .status());
            }
            try (HttpClient client = HttpClient.newBuilder().sslContext(context).build()) {
                assertEquals(HttpClient.Version.HTTP_1_1, send(client, HttpRequest.newBuilder(
                    http.resolve("/q/health/live")).version(HttpClient.Version.HTTP_2)).version());
            }
        }
    }

    @Test
    void shouldWarnOfWhatTheNetworkSeesInClear() throws Exception {
        Path stateDir = folder.resolve("state");
        try (RealProcess broker = new RealProcess(folder, "clear", stateDir, "-Dhawser.worker.command="
            + TestBroker.workerCommand("normal"), "-Dhawser.http.host=0.0.0.0", "-Dhawser.listen.host=0.0.0.0")) {
            broker.awaitEndpoints();
            String output = broker.output();
            assertTrue(output.contains("the REST interface is open to the network WITHOUT TLS"), output);
            assertTrue(output.contains("guests connect over the network WITHOUT TLS"), output);
        }
        try (RealProcess broker = new RealProcess(folder, "half", stateDir, "-Dhawser.tls.certificate=/none")) {
            assertEquals(1, broker.awaitExit());
            assertTrue(broker.output().contains("hawser.tls.certificate and hawser.tls.key must be set together"),
                broker.output());
        }
    }
}
