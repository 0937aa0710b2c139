package io.hawser.broker.health;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.store.Database;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DatabaseProbeTest {
    private static final int CONNECTIONS = 4; // the size of the database's connection pool
    private static final Duration PATIENT = Duration.ofMinutes(3); // on a slow machine, H2 takes long to open its file

    @TempDir
    Path folder;

    private Database open() throws Exception {
        return Database.open(TestBroker.config(folder, "normal", Map.of()).database(), folder);
    }

    private static Void closeFile(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SHUTDOWN IMMEDIATELY");
            statement.execute("select count(*) from done");
            return null;
        }
    }

    @Test
    void shouldFindNothingWrongWithADatabaseThatAnswers() throws Exception {
        try (Database database = open()) {
            DatabaseProbe probe = new DatabaseProbe(database, PATIENT);
            assertEquals("", probe.problem());
            assertEquals("", probe.refused());
        }
    }

    @Test
    void shouldTryAChangeAfterOneThatWasNotTaken() throws Exception {
        try (Database database = open()) {
            DatabaseProbe probe = new DatabaseProbe(database, PATIENT);
            assertThrows(SQLException.class, () -> database.transact(DatabaseProbeTest::closeFile));
            assertFalse(probe.refused().isEmpty());
            TestBroker.await("a successful change", () -> {
                assertEquals("", probe.problem(), "the database must stay readable");
                return probe.refused().isEmpty();
            });
        }
    }

    @Test
    void shouldTellOfADatabaseThatIsClosed() throws Exception {
        Database database = open();
        database.close();
        assertTrue(new DatabaseProbe(database, PATIENT).problem().startsWith("the database does not answer: "));
    }

    @Test
    void shouldTellOfADatabaseThatHangs() throws Exception {
        try (Database database = open()) {
            DatabaseProbe probe = new DatabaseProbe(database);
            CountDownLatch in = new CountDownLatch(CONNECTIONS);
            CountDownLatch hang = new CountDownLatch(1);
            for (int i = 0; i < CONNECTIONS; i++) {
                Thread.ofVirtual().start(() -> {
                    try {
                        database.read(connection -> {
                            in.countDown();
                            try {
                                hang.await();
                            } catch (InterruptedException e) {
                                Thread.currentThread().interrupt();
                            }
                            return null;
                        });
                    } catch (SQLException e) {
                        throw new AssertionError(e);
                    }
                });
            }
            in.await();
            try {
                assertTrue(probe.problem().startsWith("the database has not answered for "));
            } finally {
                hang.countDown();
            }
            TestBroker.await("an answer of the database", () -> probe.problem().isEmpty());
        }
    }
}
