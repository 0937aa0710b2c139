package io.hawser.broker.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.broker.TestBroker;
import java.nio.file.Path;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The log of a pool's changes in a real PostgreSQL. */
class PoolLogIT {
    @TempDir
    Path folder;
    private TestPostgres server;
    private Database database;

    @BeforeEach
    void start() throws Exception {
        Optional<Path> programs = TestPostgres.programs();
        assumeTrue(programs.isPresent(), "SKIPPED: PostgreSQL is not installed (Debian's package postgresql)");
        server = TestPostgres.start(programs.get());
        database = Database.open(TestBroker.config(folder, "normal", server.settings()).database(), folder);
    }

    @AfterEach
    void stop() throws Exception {
        if (database != null) {
            database.close();
        }
        if (server != null) {
            server.close();
        }
    }

    private void add(String... names) throws SQLException {
        Set<PoolLog.Key> keys = new LinkedHashSet<>();
        for (String name : names) {
            keys.add(PoolLog.Key.vgpu(name));
        }
        add(keys);
    }

    private void add(Set<PoolLog.Key> keys) throws SQLException {
        database.transact(connection -> {
            PeerStore.lock(connection);
            return PoolLog.add(connection, keys);
        });
    }

    private PoolLog.News since(PoolLog.Place place) throws SQLException {
        return database.read(connection -> PoolLog.since(connection, place));
    }

    private void execute(String sql) throws SQLException {
        database.transact(connection -> {
            try (Statement statement = connection.createStatement()) {
                return statement.execute(sql);
            }
        });
    }

    private static Set<String> names(PoolLog.News news) {
        return news.keys().stream().map(PoolLog.Key::name).collect(Collectors.toSet());
    }

    @Test
    void shouldGiveTheChangesSinceAPlace() throws Exception {
        assertEquals(new PoolLog.News(PoolLog.Place.START, true, Set.of()), since(PoolLog.Place.START));
        add("a", "b");
        PoolLog.News first = since(PoolLog.Place.START);
        assertTrue(first.isComplete());
        assertEquals(Set.of("a", "b"), names(first));
        assertEquals(2, first.last().revision());
        assertEquals(new PoolLog.News(first.last(), true, Set.of()), since(first.last()));
        add("c", "a");
        assertEquals(Set.of("c", "a"), names(since(first.last())));
        assertEquals(4, since(first.last()).last().revision());
    }

    @Test
    void shouldKnowThatItDoesNotReachBackSoFar() throws Exception {
        add("first");
        PoolLog.Place early = since(PoolLog.Place.START).last();
        for (int i = 0; i < 12; i++) {
            int begin = i * 1000;
            add(IntStream.range(0, 1000).mapToObj(n -> PoolLog.Key.vgpu("v" + (begin + n)))
                .collect(Collectors.toSet()));
        }
        PoolLog.News late = since(early);
        assertFalse(late.isComplete());
        assertEquals(12_001, late.last().revision());
        assertFalse(since(PoolLog.Place.START).isComplete(), "a broker that has read nothing reads everything");
        add("last");
        assertEquals(Set.of("last"), names(since(late.last())));
        long kept = database.read(connection -> {
            try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("select count(*) from pool_log where revision <= 12001")) {
                row.next();
                return row.getLong(1);
            }
        });
        assertEquals(PoolLog.KEPT, kept);
    }

    @Test
    void shouldKnowThatTheDatabaseHasFallenBack() throws Exception {
        add("a", "b", "c");
        PoolLog.Place seen = since(PoolLog.Place.START).last();
        execute("delete from pool_log where revision > 1");
        assertFalse(since(seen).isComplete(), "the log ends before the place");
        add("d", "e", "f"); // revisions 2 to 4: the place's revision again, with another change
        PoolLog.News news = since(seen);
        assertFalse(news.isComplete(), "the place's revision is another change now");
        assertEquals(4, news.last().revision());
    }
}
