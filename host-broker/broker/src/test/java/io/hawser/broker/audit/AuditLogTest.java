package io.hawser.broker.audit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.store.Database;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AuditLogTest {
    private static final Instant NOW = Instant.now().truncatedTo(ChronoUnit.MICROS);

    @TempDir
    Path folder;

    private Database open() throws Exception {
        return Database.open(TestBroker.config(folder, "normal", Map.of()).database(), folder);
    }

    /** Has the time to write all: how much that is, is the machine's. */
    private static AuditLog log(Database database, long maxEntries) {
        return new AuditLog(database, maxEntries, Duration.ofMinutes(3));
    }

    private static AuditEntry entry(String name, String role, String target) {
        return new AuditEntry(0, NOW, name, role, "192.0.2.1", "endSession", target, "refused", "why");
    }

    @Test
    void shouldHaveWrittenAllWhenItIsClosedAndShowTheNewestFirst() throws Exception {
        try (Database database = open()) {
            AuditLog log = log(database, 1000);
            for (int i = 0; i < 300; i++) {
                log.add(entry("ann", "operator", "id=" + i));
            }
            log.close();
            List<AuditEntry> newest = log.newest(2, Long.MAX_VALUE);
            assertEquals(List.of("id=299", "id=298"), newest.stream().map(AuditEntry::target).toList());
            assertEquals(entry("ann", "operator", "id=298"), new AuditEntry(0, newest.get(1).time(),
                newest.get(1).name(), newest.get(1).role(), newest.get(1).peer(), newest.get(1).action(),
                newest.get(1).target(), newest.get(1).outcome(), newest.get(1).detail()));
            assertEquals("id=297", log.newest(1, newest.get(1).seq()).getFirst().target());
        }
        try (Database database = open(); AuditLog log = log(database, 1000)) {
            assertEquals(300, log.newest(1000, Long.MAX_VALUE).size(), "after a restart");
        }
    }

    @Test
    void shouldShowWhatWasAddedBefore() throws Exception {
        try (Database database = open(); AuditLog log = log(database, 1000)) {
            for (int i = 0; i < 30; i++) {
                log.add(entry("ann", "operator", "id=" + i));
                assertEquals("id=" + i, log.newest(1, Long.MAX_VALUE).getFirst().target());
            }
        }
    }

    @Test
    void shouldKeepTheNewestOnly() throws Exception {
        try (Database database = open()) {
            AuditLog log = log(database, 10);
            for (int i = 0; i < 1000; i++) {
                log.add(entry("ann", "operator", "id=" + i));
            }
            log.close();
            AuditLog again = log(database, 10);
            again.add(entry("ann", "operator", "last"));
            again.close();
            List<AuditEntry> kept = again.newest(1000, Long.MAX_VALUE);
            assertTrue(kept.size() <= 10, "kept " + kept.size());
            assertEquals("last", kept.getFirst().target());
        }
    }

    @Test
    void shouldNotLetStrangersPushOthersOut() throws Exception {
        try (Database database = open()) {
            AuditLog log = log(database, 1000);
            for (int i = 0; i < 20_000; i++) {
                log.add(entry("", "", "id=" + i));
            }
            log.add(entry("ann", "operator", "kept"));
            log.close();
            List<AuditEntry> kept = log.newest(1000, Long.MAX_VALUE);
            assertEquals("kept", kept.getFirst().target());
            assertTrue(kept.size() < 200, "written " + kept.size());
        }
    }

    @Test
    void shouldCutAndCleanWhatStrangersSay() throws Exception {
        try (Database database = open()) {
            AuditLog log = log(database, 1000);
            log.add(new AuditEntry(0, NOW, "a\nb".repeat(1000), "", "192.0.2.1", "DELETE /" + "x".repeat(5000),
                "t".repeat(5000), "refused", "d".repeat(5000)));
            log.close();
            AuditEntry kept = log.newest(1, Long.MAX_VALUE).getFirst();
            assertEquals(List.of(128, 256, 256, 512), List.of(kept.name().length(), kept.action().length(),
                kept.target().length(), kept.detail().length()));
            assertFalse(kept.name().contains("\n"));
        }
    }
}
