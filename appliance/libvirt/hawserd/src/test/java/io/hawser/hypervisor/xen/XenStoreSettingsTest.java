package io.hawser.hypervisor.xen;

import static io.hawser.hypervisor.xen.ScriptedXenStored.answer;
import static io.hawser.hypervisor.xen.ScriptedXenStored.error;
import static io.hawser.hypervisor.xen.ScriptedXenStored.ok;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import io.hawser.hypervisor.model.GuestSettings;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(600)
class XenStoreSettingsTest {
    private static final Duration LONG = Duration.ofSeconds(300);
    private static final GuestSettings SETTINGS =
        new GuestSettings("rdma", "tls://10.0.0.1:7656", "id.secret", "PEM\n");

    @TempDir
    Path folder;

    private static List<String> requestsOf(ScriptedXenStored peer) throws Exception {
        return peer.requests().stream().map(m -> m.type() + " "
            + new String(m.payload(), StandardCharsets.UTF_8).replace('\0', '|')).toList();
    }

    private static List<Function<XenStoreMessage, byte[]>> willing() {
        List<Function<XenStoreMessage, byte[]>> answers = new ArrayList<>(List.of(answer("9\0"), answer("tenant")));
        for (int i = 0; i < 16; i++) {
            answers.add(ok());
        }
        return answers;
    }

    @Test
    void shouldPutSettingsInOneTransactionForOneDomainAlone() throws Exception {
        try (ScriptedXenStored peer = new ScriptedXenStored(folder, willing())) {
            new XenStoreSettings(peer.socket(), LONG).put(4, SETTINGS);
            String path = "/local/domain/4/vm-data/hawser";
            assertEquals(List.of("6 |", "2 /local/domain/4/name|", "13 " + path + "|", "11 " + path + "|",
                "14 " + path + "|n0|r4|",
                "11 " + path + "/carrier|", "14 " + path + "/carrier|n0|r4|",
                "11 " + path + "/carrier|rdma", "11 " + path + "/broker|", "14 " + path + "/broker|n0|r4|",
                "11 " + path + "/broker|tls://10.0.0.1:7656",
                "11 " + path + "/token|", "14 " + path + "/token|n0|r4|", "11 " + path + "/token|id.secret",
                "11 " + path + "/ca|", "14 " + path + "/ca|n0|r4|", "11 " + path + "/ca|PEM\n", "7 T|"),
                requestsOf(peer));
            assertTrue(peer.requests().subList(1, 18).stream().allMatch(m -> m.transaction() == 9));
        }
    }

    @Test
    void shouldWriteNothingForADomainThatHasEnded() throws Exception {
        try (ScriptedXenStored peer = new ScriptedXenStored(folder, List.of(answer("9\0"), error("ENOENT"), ok()))) {
            HypervisorException refused = assertThrows(HypervisorException.class,
                () -> new XenStoreSettings(peer.socket(), LONG).put(4, SETTINGS));
            assertEquals(Reason.NO_DOMAIN, refused.reason());
            assertEquals(List.of("6 |", "2 /local/domain/4/name|", "7 F|"), requestsOf(peer));
        }
    }

    @Test
    void shouldRejectDomainsWithoutSettings() {
        for (int id : new int[] {-1, 0}) {
            HypervisorException refused = assertThrows(HypervisorException.class,
                () -> new XenStoreSettings(folder.resolve("none"), LONG).put(id, SETTINGS));
            assertEquals(Reason.NOT_RUNNING, refused.reason());
            new XenStoreSettings(folder.resolve("none"), LONG).remove(id); // makes no connection
        }
    }

    @Test
    void shouldRejectATooLongCertificateWithoutPrintingSecrets() throws Exception {
        GuestSettings large = new GuestSettings("rdma", "tls://10.0.0.1:7656", "id.secret", "x".repeat(5000));
        try (ScriptedXenStored peer = new ScriptedXenStored(folder, willing())) {
            HypervisorException refused = assertThrows(HypervisorException.class,
                () -> new XenStoreSettings(peer.socket(), LONG).put(4, large));
            assertEquals(Reason.REFUSED, refused.reason());
            assertTrue(refused.getMessage().contains("/ca, 5034 bytes with the path; at most 4096"),
                refused.getMessage());
            assertFalse(refused.getMessage().contains("secret"));
            assertEquals("7 F|", requestsOf(peer).getLast());
        }
    }

    @Test
    void shouldRemoveSettingsAndAcceptMissingOnes() throws Exception {
        for (Function<XenStoreMessage, byte[]> answer : List.of(ok(), error("ENOENT"))) {
            try (ScriptedXenStored peer = new ScriptedXenStored(folder, List.of(answer))) {
                new XenStoreSettings(peer.socket(), LONG).remove(4);
                assertEquals(List.of("13 /local/domain/4/vm-data/hawser|"), requestsOf(peer));
            }
        }
    }

    @Test
    void shouldNameTheMissingSocketOfXenStore() {
        HypervisorException away = assertThrows(HypervisorException.class,
            () -> new XenStoreSettings(folder.resolve("none"), LONG).put(1, SETTINGS));
        assertEquals(Reason.DISCONNECTED, away.reason());
        assertTrue(away.getMessage().startsWith("XenStore is not available at " + folder.resolve("none") + ": "),
            away.getMessage());
    }
}
