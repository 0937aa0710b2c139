package io.hawser.broker.audit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.store.Database;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationVersion;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AuditLogTest {
    private static final Instant NOW = Instant.now().truncatedTo(ChronoUnit.MICROS);

    @TempDir
    Path folder;
    private final AtomicLong nowNs = new AtomicLong();

    private Database open() throws Exception {
        return Database.open(TestBroker.config(folder, "normal", Map.of()).database(), folder);
    }

    /** A log with enough time to write all entries on close, also on a slow machine. */
    private AuditLog log(Database database, long maxEntries) {
        return new AuditLog(database, maxEntries, Duration.ofMinutes(3), nowNs::get);
    }

    private static AuditEntry entry(String name, String role, String target) {
        return new AuditEntry(0, NOW, name, role, "192.0.2.1", "endSession", target, "done", "");
    }

    private static AuditEntry refused(String name, String role, String target) {
        return new AuditEntry(0, NOW, name, role, "192.0.2.1", "endSession", target, "refused", "why");
    }

    private static List<String> targets(AuditLog log) throws SQLException {
        return log.newest(1000, Long.MAX_VALUE).stream().map(AuditEntry::target).toList();
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
            assertEquals(300, log.newest(1000, Long.MAX_VALUE).size(), "the entries must survive a restart");
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

    /** Each line is a kind of entry that a viewer or a client without a login can cause at will. */
    @ParameterizedTest
    @CsvSource({"eve,viewer,endSession,refused", "eve,viewer,login,done", "eve,viewer,endSession,failed",
        "eve,operator,readAudit,refused", "'','',login,refused", "'','',logout,done"})
    void shouldNotLetWhatIsNoActDisplaceActs(String name, String role, String action, String outcome)
        throws Exception {
        try (Database database = open()) {
            AuditLog log = log(database, 40);
            log.add(entry("ann", "operator", "kept"));
            for (int round = 0; round < 100; round++) {
                for (int i = 0; i < 30; i++) {
                    log.add(new AuditEntry(0, NOW, name, role, "192.0.2.1", action, "id=" + i, outcome, "why"));
                }
                nowNs.addAndGet(AuditLimits.BURST * AuditLimits.PACE.toNanos());
                log.newest(1, Long.MAX_VALUE); // waits until the log has written the queue
            }
            log.close();
            AuditLog after = log(database, 40);
            after.add(entry("ann", "operator", "last")); // the first write prunes
            after.close();
            List<String> kept = targets(after);
            assertEquals(List.of("last", "kept"), List.of(kept.getFirst(), kept.getLast()));
            assertEquals(2 + 10, kept.size(), "other entries must have a quarter of the room of acts: " + kept);
        }
    }

    @Test
    void shouldCountWhatAnIdentityIsRefusedTooOften() throws Exception {
        try (Database database = open()) {
            AuditLog log = log(database, 1000);
            for (int i = 0; i < 500; i++) {
                log.add(refused("eve", "viewer", "id=" + i));
            }
            log.add(refused("bob", "viewer", "of another"));
            log.add(entry("ann", "operator", "act"));
            assertEquals(AuditLimits.BURST + 2, targets(log).size());
            nowNs.addAndGet(AuditLimits.PACE.toNanos());
            TestBroker.await("the summary of refused attempts", () -> newest(log).target().equals("id=499"));
            assertEquals(500 - AuditLimits.BURST + " more refused since " + NOW.truncatedTo(ChronoUnit.SECONDS)
                + ", the last: why",
                newest(log).detail());
            assertEquals(List.of("eve", "viewer", "refused"), List.of(newest(log).name(), newest(log).role(),
                newest(log).outcome()));
            log.add(refused("eve", "viewer", "soon again"));
            log.add(entry("ann", "operator", "another act"));
            assertEquals("another act", newest(log).target());
            assertEquals(AuditLimits.BURST + 4, targets(log).size());
            log.close();
            assertEquals(AuditLimits.BURST + 5, targets(log).size(), "close must write the last summary");
            assertEquals("1 more refused since " + NOW.truncatedTo(ChronoUnit.SECONDS) + ", the last: why",
                newest(log).detail());
        }
    }

    @Test
    void shouldTellHowManyStrangersOfManyAddressesWereLeftOut() throws Exception {
        try (Database database = open()) {
            AuditLog log = log(database, 100_000);
            int count = 20_000;
            for (int i = 0; i < count; i++) {
                String peer = "10.0." + (i >> 8 & 255) + "." + (i & 255);
                log.add(new AuditEntry(0, NOW, "", "", peer, "login", "", "refused", "why"));
            }
            log.add(entry("ann", "operator", "act"));
            log.close();
            List<AuditEntry> kept = log.newest(1000, Long.MAX_VALUE);
            assertEquals(1 + 10 + 1, kept.size(),
                "the log must keep the act, ten refusals of one second and the sum of the others");
            assertEquals(count - 10 + " more refused since " + NOW.truncatedTo(ChronoUnit.SECONDS) + ", the last: why",
                kept.getFirst().detail());
        }
    }

    private static AuditEntry newest(AuditLog log) {
        try {
            return log.newest(1, Long.MAX_VALUE).getFirst();
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void shouldGiveTheEntriesOfAnOlderBrokerTheirKinds() throws Exception {
        JdbcDataSource source = new JdbcDataSource();
        source.setUrl("jdbc:h2:file:" + folder.resolve("broker"));
        source.setUser("sa");
        source.setPassword("");
        List<AuditEntry> old = List.of(entry("ann", "operator", "act"), refused("ann", "operator", "refused"),
            new AuditEntry(0, NOW, "", "", "192.0.2.1", "login", "stranger", "refused", "why"),
            new AuditEntry(0, NOW, "ann", "operator", "192.0.2.1", "login", "login", "done", ""),
            new AuditEntry(0, NOW, "ann", "operator", "192.0.2.1", "endSession", "failed", "failed", "why"),
            new AuditEntry(0, NOW, "eve", "viewer", "192.0.2.1", "endSession", "viewer", "failed", "why"));
        Flyway.configure().dataSource(source).locations("filesystem:src/main/resources/db/migration")
            .target(MigrationVersion.fromVersion("2")).load().migrate();
        try (Connection connection = source.getConnection(); PreparedStatement insert = connection.prepareStatement(
            "insert into audit (at, name, role, peer, action, target, outcome, detail) values (now(), ?, ?, '', ?, ?, "
                + "?, '')")) {
            for (AuditEntry entry : old) {
                insert.setString(1, entry.name());
                insert.setString(2, entry.role());
                insert.setString(3, entry.action());
                insert.setString(4, entry.target());
                insert.setString(5, entry.outcome());
                insert.executeUpdate();
            }
        }
        try (Database database = open(); AuditLog log = log(database, 1000)) {
            assertEquals(old.reversed().stream().map(AuditEntry::target).toList(), targets(log));
            for (AuditEntry entry : old) {
                assertEquals(AuditKind.of(entry).label(), database.read(connection -> {
                    try (PreparedStatement select = connection.prepareStatement(
                        "select kind from audit where target = ?")) {
                        select.setString(1, entry.target());
                        try (ResultSet row = select.executeQuery()) {
                            row.next();
                            return row.getString(1);
                        }
                    }
                }), entry.target());
            }
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
