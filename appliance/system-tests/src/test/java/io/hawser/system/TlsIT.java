package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Real guests over TLS: running programs, rejected certificates, and the messages for a peer without TLS. */
@EnabledIf(value = "hasOpenssl", disabledReason = "this machine has no libssl.so.3 or libssl.so.1.1")
class TlsIT {
    @TempDir
    private static Path folder;
    private static Certificates certificates;
    private static Path certificate;
    private static Path key;
    private static BrokerProcess broker;
    @RegisterExtension
    static final OwnBroker OWN = new OwnBroker();

    @BeforeAll
    static void startBroker() throws Exception {
        certificates = new Certificates(folder.resolve("certificates"));
        certificate = certificates.certificate("server", "IP:127.0.0.1,DNS:localhost", 30);
        key = certificates.key("server");
        broker = OWN.keep(BrokerProcess.start("tls", folder.resolve("tls"), settings(certificate), certificates));
    }

    private static Map<String, String> settings(Path certificate) {
        return BrokerProcess.withQuickWorkers(Map.of("hawser.listen.tls-port", "0", "hawser.tls.certificate",
            certificate.toString(), "hawser.tls.key", key.toString()));
    }

    /** Condition of the class: an assumption in {@link #startBroker} would report no test at all. */
    static boolean hasOpenssl() throws IOException, InterruptedException {
        Process cache = new ProcessBuilder("sh", "-c", "PATH=$PATH:/sbin:/usr/sbin ldconfig -p").start();
        String libraries = new String(cache.getInputStream().readAllBytes());
        return cache.waitFor() == 0 && Stream.of("libssl.so.3", "libssl.so.1.1").anyMatch(libraries::contains);
    }

    private static String port(String endpoint) {
        return endpoint.substring(endpoint.lastIndexOf(':') + 1);
    }

    private static Map<String, String> environment(String url, Path authority) {
        return environment(broker, url, authority);
    }

    private static Map<String, String> environment(BrokerProcess broker, String url, Path authority) {
        Map<String, String> environment = new HashMap<>(Map.of("HAWSER_CARRIER", "tcp", "HAWSER_BROKER", url,
            "HAWSER_TOKEN_FILE", broker.tokenFile().toString()));
        if (authority != null) {
            environment.put("HAWSER_CA_FILE", authority.toString());
        }
        return environment;
    }

    private static Map<String, String> trusting() {
        return environment("tls://" + broker.guestTls(), certificates.authority());
    }

    private static GuestProgram.Result run(Map<String, String> environment, String program) throws Exception {
        try (GuestProgram guest = GuestProgram.start(environment, program)) {
            return guest.await();
        }
    }

    private static void assertRefused(GuestProgram.Result result, String reason) {
        assertEquals(1, result.exit(), result::toString);
        assertTrue(result.out().contains("got 100 CUDA_ERROR_NO_DEVICE"), result::toString);
        assertEquals(1, result.hawserLines().size(), result::toString);
        assertTrue(result.hawserLines().getFirst().contains(reason), result::toString);
    }

    @ParameterizedTest
    @ValueSource(strings = {"drv_vector_add", "drv_large_copies", "drv_pageable_copies", "drv_threads",
        "drv_many_calls",
        "drv_callbacks", "drv_graphs", "drv_streams_events", "drv_fault", "drv_errors", "drv_large_image", "drv_link"})
    void shouldRunPrograms(String name) throws Exception {
        GuestProgram.Result result = run(trusting(), name).assertPassed();
        for (JsonNode connection : result.counters()) {
            assertEquals("tls", connection.path("carrier").asText(), connection::toString);
        }
        assertTrue(!result.counters().isEmpty(), "HAWSER_STATS wrote nothing");
    }

    @Test
    void shouldShareLongCopiesAmongConnections() throws Exception {
        int stripes = StripesIT.run(trusting(), "3", "drv_large_copies", "--size", "200");
        assertTrue(stripes > 0 && stripes <= 3, "stripes=" + stripes);
    }

    @Test
    void shouldShareLongAsynchronousCopiesAmongConnections() throws Exception {
        int stripes = StripesIT.run(trusting(), "3", "drv_asynchronous_reads");
        assertTrue(stripes >= 3 && stripes <= 6, "stripes=" + stripes);
    }

    @Test
    void shouldCheckTheNameThatTheUserHasGiven() throws Exception {
        run(environment("tls://localhost:" + port(broker.guestTls()), certificates.authority()), "drv_vector_add")
            .assertPassed();
        try (BrokerProcess wrong = BrokerProcess.start("tls-name", folder.resolve("tls-name"),
            Map.of("hawser.listen.tls-port", "0", "hawser.tls.certificate",
                certificates.certificate("both", "IP:127.0.0.1", 30).toString(), "hawser.tls.key",
                certificates.key("both").toString()),
            certificates)) {
            assertRefused(run(environment(wrong, "tls://localhost:" + port(wrong.guestTls()),
                certificates.authority()), "drv_vector_add"), "is not for localhost");
        }
    }

    @Test
    void shouldTrustNoOtherAuthority() throws Exception {
        Certificates stranger = new Certificates(folder.resolve("stranger"));
        assertRefused(run(environment("tls://" + broker.guestTls(), stranger.authority()), "drv_vector_add"),
            "is not trusted");
        assertRefused(run(environment("tls://" + broker.guestTls(), null), "drv_vector_add"), "is not trusted");
        assertRefused(run(environment("tls://" + broker.guestTls(), folder.resolve("none.pem")), "drv_vector_add"),
            "no authorities can be read");
    }

    @Test
    void shouldRefuseACertificateThatIsOverAndTakeItsSuccessor() throws Exception {
        Path expired = certificates.certificate("renewed", "IP:127.0.0.1", -1);
        Path used = Files.copy(expired, folder.resolve("used.pem"));
        Path usedKey = Files.copy(certificates.key("renewed"), folder.resolve("used.key"));
        // The REST interface uses the same certificate, so the test uses only the guest port.
        try (BrokerProcess old = BrokerProcess.startUnasked("tls-expired", folder.resolve("tls-expired"),
            Map.of("hawser.listen.tls-port", "0", "hawser.tls.certificate", used.toString(), "hawser.tls.key",
                usedKey.toString(), "hawser.tls.reload-period", "1s"))) {
            assertRefused(run(environment(old, "tls://" + old.guestTls(), certificates.authority()), "drv_vector_add"),
                "certificate has expired");
            Path good = certificates.certificate("renewed-again", "IP:127.0.0.1", 30);
            Files.copy(certificates.key("renewed-again"), usedKey, StandardCopyOption.REPLACE_EXISTING);
            Files.copy(good, used, StandardCopyOption.REPLACE_EXISTING);
            Await.until("the new certificate to be used", () -> {
                GuestProgram.Result result = run(environment(old, "tls://" + old.guestTls(),
                    certificates.authority()), "drv_vector_add");
                return result.exit() == 0 ? "" : result.toString();
            });
        }
    }

    @Test
    void shouldReportAPeerWithoutTls() throws Exception {
        assertRefused(run(environment(broker.guestTls(), null), "drv_vector_add"), "speaks TLS");
        assertRefused(run(environment("tls://" + broker.guest(), certificates.authority()), "drv_vector_add"),
            "does this port speak TLS?");
        run(environment(broker.guest(), null), "drv_vector_add").assertPassed();
    }

    @Test
    void shouldFreeEverythingOfAKilledGuest() throws Exception {
        try (GuestProgram held = GuestProgram.start(trusting(), "hold")) {
            held.awaitLine("READY");
            assertEquals(1, broker.sessions().size());
            held.kill();
        }
    }
}
