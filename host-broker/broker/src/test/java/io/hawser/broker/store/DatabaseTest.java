package io.hawser.broker.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.model.Labels;
import io.hawser.broker.model.Vgpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DatabaseTest {
    @TempDir
    Path folder;

    private Database open() throws DatabaseException {
        BrokerConfig config = TestBroker.config(folder, "normal", Map.of());
        return Database.open(config.database(), folder);
    }

    private static long count(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
            ResultSet row = statement.executeQuery("select count(*) from done")) {
            row.next();
            return row.getLong(1);
        }
    }

    @Test
    void shouldNameEachMigration() throws Exception {
        try (Stream<Path> files = Files.list(Path.of("src/main/resources", Migrations.FOLDER))) {
            assertEquals(files.map(file -> file.getFileName().toString()).sorted().toList(),
                Migrations.FILES.stream().sorted().toList());
        }
    }

    /** While two versions share a server's database, the previous one inserts rows without the newest columns. */
    @Test
    void shouldShareTheDatabaseWithTheNextVersionUnlessItsRuleForbids() throws Exception {
        try (Database database = open()) {
            database.transact(connection -> {
                try (Statement statement = connection.createStatement()) {
                    // As the next version's migration leaves it.
                    statement.execute("alter table vgpu add column of_next_version varchar(8)");
                    return statement.executeUpdate("insert into \"flyway_schema_history\" "
                        + "select \"installed_rank\" + 1, '" + (Migrations.VERSION + 1)
                        + "', 'next', 'SQL', 'next.sql', 1, \"installed_by\", "
                        + "\"installed_on\", 1, true from \"flyway_schema_history\" where \"version\" = '"
                        + Migrations.VERSION + "'");
                }
            });
        }
        try (Database database = open()) {
            database.transact(connection -> {
                try (Statement statement = connection.createStatement()) {
                    return statement.executeUpdate("update schema_rule set least = " + (Migrations.VERSION + 1));
                }
            });
        }
        DatabaseException refused = assertThrows(DatabaseException.class, this::open);
        assertTrue(refused.getMessage().contains("a newer broker has migrated the database"), refused.getMessage());
    }

    @Test
    void shouldReadAVgpuOfThePreviousVersion() throws Exception {
        try (Database database = open()) {
            database.transact(connection -> {
                try (Statement statement = connection.createStatement()) {
                    return statement.executeUpdate("insert into vgpu (id, owner_kind, owner_id, memory_bytes, "
                        + "compute_share, sharing, gpus, carriers, max_sessions, origin, created, changed, placed, "
                        + "communication, swappable, rdma, name) values (random_uuid(), 'none', '', 0, 100, 'shared', "
                        + "'any', 'tcp', 0, 'rest', now(), now(), '', 'none', false, false, 'old')");
                }
            });
            Vgpu old = database.read(VgpuStore::all).get(0).vgpu();
            assertNull(old.expires());
            assertEquals(Labels.NONE, old.labels());
        }
    }

    @Test
    void shouldDoAllOrNothing() throws Exception {
        try (Database database = open()) {
            assertEquals(Database.Kind.H2, database.kind());
            assertEquals(true, database.transact(connection -> VgpuStore.markDone(connection, "one")));
            assertEquals(false, database.transact(connection -> VgpuStore.markDone(connection, "one")));
            assertThrows(SQLException.class, () -> database.transact(connection -> {
                VgpuStore.markDone(connection, "two");
                throw new SQLException("in the middle");
            }));
            assertEquals(1L, database.read(DatabaseTest::count));
        }
        try (Database database = open()) {
            assertEquals(1L, database.read(DatabaseTest::count));
            assertEquals(List.of(), database.read(VgpuStore::all));
        }
    }

    @Test
    void shouldHaveACommitInItsFileWhenItReturns() throws Exception {
        Path copy = Files.createDirectory(folder.resolve("copy"));
        try (Database database = open()) {
            database.transact(connection -> VgpuStore.markDone(connection, "one"));
            // The copy is the file that a kill would leave.
            Files.copy(folder.resolve("broker.mv.db"), copy.resolve("broker.mv.db"));
            BrokerConfig config = TestBroker.config(copy, "normal", Map.of());
            try (Database found = Database.open(config.database(), copy)) {
                assertEquals(1L, found.read(DatabaseTest::count));
            }
        }
    }

    @Test
    void shouldOpenItsFileAnewWhenItHasBeenClosed() throws Exception {
        try (Database database = open()) {
            database.transact(connection -> VgpuStore.markDone(connection, "one"));
            for (int i = 0; i < 3; i++) {
                int round = i;
                assertThrows(SQLException.class, () -> database.transact(connection -> {
                    VgpuStore.markDone(connection, "lost");
                    closeFile(connection);
                    return VgpuStore.markDone(connection, "never");
                }));
                assertEquals(1L + round, database.read(DatabaseTest::count), "the database must be readable at once");
                assertFalse(database.refusal().isEmpty());
                TestBroker.await("a successful change", () -> {
                    try {
                        return database.transact(connection -> VgpuStore.markDone(connection, "round " + round));
                    } catch (SQLException e) {
                        assertTrue(e.getMessage().contains("the next attempt is in"), e.getMessage());
                        return false;
                    }
                });
                assertEquals("", database.refusal());
            }
        }
        try (Database database = open()) {
            assertEquals(4L, database.read(DatabaseTest::count));
        }
    }

    @Test
    void shouldGiveEachRejectedChangeTheReason() throws Exception {
        try (Database database = open()) {
            for (int i = 0; i < 3; i++) { // the later ones meet the delay after repeated failures
                ClosedFileException rejected = assertThrows(ClosedFileException.class, () -> database.transact(
                    connection -> {
                        closeFile(connection);
                        return VgpuStore.markDone(connection, "never");
                    }));
                assertFalse(rejected.reason().isEmpty());
                assertEquals(rejected.reason(), database.refusal());
            }
        }
    }

    @Test
    void shouldGiveTheReasonWhileH2StillAnswers() throws Exception {
        try (Database database = open()) {
            ClosedFileException rejected = assertThrows(ClosedFileException.class, () -> database.transact(
                connection -> {
                    throw new SQLException("General error", new IOException("No space left on device"));
                }));
            assertEquals("No space left on device", rejected.reason());
            boolean done = database.transact(connection -> VgpuStore.markDone(connection, "next"));
            assertTrue(done);
        }
    }

    @Test
    void shouldGiveTheReasonWhenTheFileCannotBeOpened() throws Exception {
        try (Database database = open()) {
            database.transact(connection -> VgpuStore.markDone(connection, "one"));
            // A read closes the file, so that no change has failed before the next one.
            assertThrows(SQLException.class, () -> database.read(connection -> {
                closeFile(connection);
                return count(connection);
            }));
            Files.move(folder.resolve("broker.mv.db"), folder.resolve("moved"));
            Files.createDirectory(folder.resolve("broker.mv.db"));
            ClosedFileException rejected = assertThrows(ClosedFileException.class,
                () -> database.transact(connection -> VgpuStore.markDone(connection, "two")));
            assertFalse(rejected.reason().isEmpty());
            assertEquals(rejected.reason(), database.refusal());
            Files.delete(folder.resolve("broker.mv.db"));
            Files.move(folder.resolve("moved"), folder.resolve("broker.mv.db"));
            TestBroker.await("a successful change", () -> {
                try {
                    return database.transact(connection -> VgpuStore.markDone(connection, "two"));
                } catch (SQLException e) {
                    return false; // the delay after the failure
                }
            });
            assertEquals("", database.refusal());
        }
    }

    @Test
    void shouldOpenItsFileAnewForManyAtOnce() throws Exception {
        int threads = 8;
        try (Database database = open(); ExecutorService all = Executors.newFixedThreadPool(threads)) {
            List<Future<Integer>> done = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                int me = thread;
                done.add(all.submit(() -> {
                    int made = 0;
                    for (int i = 0; i < 50; i++) {
                        String what = me + "." + i;
                        try {
                            if (me == 0 && i % 10 == 5) {
                                database.read(connection -> {
                                    closeFile(connection);
                                    return count(connection);
                                });
                            }
                            made += database.transact(connection -> VgpuStore.markDone(connection, what)) ? 1 : 0;
                        } catch (SQLException e) {
                            TimeUnit.MILLISECONDS.sleep(5); // thread 0 has closed the file, or the back-off runs
                        }
                    }
                    return made;
                }));
            }
            int made = 0;
            for (Future<Integer> one : done) {
                made += one.get(60, TimeUnit.SECONDS);
            }
            int answered = made;
            assertTrue(answered > 0);
            TestBroker.await("a read after the last close", () -> {
                try {
                    // The table may have more rows, of changes that failed after their commit.
                    assertTrue(database.read(DatabaseTest::count) >= answered);
                    return true;
                } catch (SQLException e) {
                    return false;
                }
            });
        }
    }

    private static void closeFile(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SHUTDOWN IMMEDIATELY");
        }
    }

    @ParameterizedTest
    @CsvSource({"jdbc:postgresql://host:5432/name?user=u&password=p, jdbc:postgresql://host:5432/name",
        "jdbc:postgresql://u:p@host/name, jdbc:postgresql://host/name",
        "jdbc:h2:file:/a/b;PASSWORD=p, jdbc:h2:file:/a/b"})
    void shouldShowNoPassword(String url, String shown) {
        assertEquals(shown, Database.shown(url));
    }
}
