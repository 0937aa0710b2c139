package io.hawser.broker.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.broker.TestBroker;
import io.hawser.broker.config.BrokerConfig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Map;
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

    @Test
    void shouldDoAllOrNothing() throws Exception {
        try (Database database = open()) {
            assertEquals(Database.Kind.H2, database.kind());
            assertEquals(true, database.transact(connection -> VgpuStore.first(connection, "one")));
            assertEquals(false, database.transact(connection -> VgpuStore.first(connection, "one")));
            assertThrows(SQLException.class, () -> database.transact(connection -> {
                VgpuStore.first(connection, "two");
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
            database.transact(connection -> VgpuStore.first(connection, "one"));
            // As it would be found after a kill.
            Files.copy(folder.resolve("broker.mv.db"), copy.resolve("broker.mv.db"));
            BrokerConfig config = TestBroker.config(copy, "normal", Map.of());
            try (Database found = Database.open(config.database(), copy)) {
                assertEquals(1L, found.read(DatabaseTest::count));
            }
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
