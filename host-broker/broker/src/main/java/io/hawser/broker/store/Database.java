package io.hawser.broker.store;

import io.agroal.api.configuration.AgroalConnectionPoolConfiguration;
import io.agroal.api.configuration.AgroalDataSourceConfiguration;
import io.agroal.api.configuration.supplier.AgroalDataSourceConfigurationSupplier;
import io.agroal.api.security.NamePrincipal;
import io.agroal.api.security.SimplePassword;
import io.hawser.broker.config.BrokerConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.flywaydb.core.api.FlywayException;
import org.jboss.logging.Logger;

/**
 * The broker's database: H2 in a file of the state folder, or PostgreSQL. {@link #open} opens it and migrates its
 * schema. One pool of connections serves all stores. Thread-safe, and blocking: never on the event loop.
 */
public final class Database implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Database.class);
    private static final String H2_FILE = "broker"; // and .mv.db
    /**
     * WRITE_DELAY: no background writes, because {@link #transact} writes before it returns. TRACE_LEVEL_FILE: errors
     * go to the caller, not to a file. CACHE_SIZE: memory in KiB. RETENTION_TIME: milliseconds for which H2 keeps old
     * parts of its file. By default this is so long that 2,000 changes in a row fill 60 MB. The broker syncs each write
     * and needs no old parts.
     */
    private static final String H2_SETTINGS = ";WRITE_DELAY=0;DB_CLOSE_ON_EXIT=FALSE;DB_CLOSE_DELAY=-1"
        + ";TRACE_LEVEL_FILE=0;CACHE_SIZE=2048;RETENTION_TIME=1000";
    private static final String H2_PREFIX = "jdbc:h2:";
    private static final String POSTGRESQL_PREFIX = "jdbc:postgresql:";
    private static final String DEFAULT_USER = "hawser";
    private static final String TRIED = "a change that was tried";
    private static final Set<PosixFilePermission> PRIVATE = PosixFilePermissions.fromString("rw-------");
    private static final int MAX_CONNECTIONS = 4; // the queue of changes, the audit log, the heartbeat, and readers
    private static final Duration CONNECTION_TIMEOUT = Duration.ofSeconds(10);
    private static final Duration ANSWER_TIMEOUT = Duration.ofMinutes(2); // more than a rewrite of a table takes
    /**
     * Time after which PostgreSQL ends a transaction whose broker sends nothing. A broker that freezes, or loses its
     * network, in an act would otherwise keep the pool's lock, and no other broker could act.
     */
    private static final Duration IDLE_TRANSACTION_TIMEOUT = Duration.ofSeconds(10);

    private final Kind kind;
    private final Connections connections;
    private final Path file; // H2's file in the state folder; null for another database
    private final BrokerConfig.Database settings;

    /** Kind of a database. */
    public enum Kind {
        /** H2 in a file of the state folder, the default. */
        H2("org.h2.Driver"),
        /** A PostgreSQL server. */
        POSTGRESQL("org.postgresql.Driver");

        private final String driver;

        Kind(String driver) {
            this.driver = driver;
        }

        /** Name in REST. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }

        private Class<? extends Driver> driver() {
            try {
                // By name, so that an unused driver is not loaded.
                return Class.forName(driver, true, Database.class.getClassLoader()).asSubclass(Driver.class);
            } catch (ClassNotFoundException e) {
                throw new IllegalStateException("the driver must be among the broker's jars: " + driver, e);
            }
        }
    }

    /** Work in one transaction. */
    @FunctionalInterface
    public interface Work<T> {
        /** Does the work; commits nothing itself. */
        T with(Connection connection) throws SQLException;
    }

    private Database(Kind kind, Connections connections, Path file, BrokerConfig.Database settings) {
        this.kind = kind;
        this.connections = connections;
        this.file = file;
        this.settings = settings;
    }

    /**
     * Opens the database and migrates its schema to the current version.
     *
     * @param folder of H2's file when the settings name no other place.
     * @throws DatabaseException when the database is unusable, or a newer broker has written its schema.
     */
    public static Database open(BrokerConfig.Database settings, Path folder) throws DatabaseException {
        String url = settings.url().map(String::strip).filter(u -> !u.isEmpty()).orElseGet(() -> inFile(folder));
        Kind kind = url.startsWith(H2_PREFIX) ? Kind.H2 : url.startsWith(POSTGRESQL_PREFIX) ? Kind.POSTGRESQL : null;
        if (kind == null) {
            throw new DatabaseException("the database must be H2 or PostgreSQL: hawser.database.url=" + shown(url)
                + " (" + POSTGRESQL_PREFIX + "//host:5432/name)", null);
        }
        Connections connections = null;
        try {
            Path file = settings.url().isEmpty() ? folder.resolve(H2_FILE + ".mv.db") : null;
            if (file != null) {
                makePrivate(file);
            }
            connections = new Connections(pool(kind, url, settings), kind == Kind.H2);
            Migrations.apply(connections.source());
            return new Database(kind, connections, file, settings);
        } catch (SQLException | FlywayException | IOException e) {
            if (connections != null) {
                connections.close();
            }
            throw new DatabaseException("the database cannot be used: hawser.database.url=" + shown(url) + ": "
                + e.getMessage(), e);
        }
    }

    private static String inFile(Path folder) {
        String path = folder.resolve(H2_FILE).toAbsolutePath().toString();
        if (path.indexOf(';') >= 0) {
            throw new IllegalArgumentException("the state folder's path must have no semicolon, which ends a path for "
                + "H2: path=" + path);
        }
        return H2_PREFIX + "file:" + path + H2_SETTINGS;
    }

    /** Creates H2's file itself, because H2 would make it readable for other users. */
    private static void makePrivate(Path file) throws IOException {
        if (Files.notExists(file)) {
            Files.createFile(file, PosixFilePermissions.asFileAttribute(PRIVATE));
        }
    }

    private static AgroalDataSourceConfiguration pool(Kind kind, String url, BrokerConfig.Database settings) {
        AgroalDataSourceConfigurationSupplier all = new AgroalDataSourceConfigurationSupplier();
        all.connectionPoolConfiguration(pool -> pool.initialSize(1).minSize(1).maxSize(MAX_CONNECTIONS)
            .acquisitionTimeout(CONNECTION_TIMEOUT).validateOnBorrow(true) // the server may have been restarted
            .connectionValidator(AgroalConnectionPoolConfiguration.ConnectionValidator.defaultValidator())
            .connectionFactoryConfiguration(factory -> {
                factory.jdbcUrl(url).connectionProviderClass(kind.driver()).loginTimeout(CONNECTION_TIMEOUT)
                    .principal(new NamePrincipal(settings.username().orElse(kind == Kind.H2 ? "sa" : DEFAULT_USER)));
                if (kind == Kind.POSTGRESQL) {
                    // A server that is gone without a word must not hold the acts for the kernel's 15 minutes.
                    factory.jdbcProperty("socketTimeout", Long.toString(ANSWER_TIMEOUT.toSeconds()));
                    factory.initialSql("set idle_in_transaction_session_timeout = "
                        + IDLE_TRANSACTION_TIMEOUT.toMillis());
                }
                Optional<String> password = settings.password();
                if (password.isPresent() || kind == Kind.H2) {
                    factory.credential(new SimplePassword(password.orElse("")));
                }
                return factory;
            }));
        return all.get();
    }

    /** A URL without parts that may be secret: its parameters, and a password before an @. */
    static String shown(String url) {
        return url.replaceFirst("[?;].*", "").replaceFirst("//[^/@]*@", "//");
    }

    /** Waits for notifications on a channel. PostgreSQL only. */
    public Notifications notifications(String channel) {
        Properties properties = new Properties();
        properties.put("user", settings.username().orElse(DEFAULT_USER));
        settings.password().ifPresent(password -> properties.put("password", password));
        properties.put("loginTimeout", Long.toString(CONNECTION_TIMEOUT.toSeconds()));
        return new Notifications(settings.url().orElseThrow().strip(), properties, channel);
    }

    /** Kind of this database. */
    public Kind kind() {
        return kind;
    }

    /**
     * Why the last change of H2's file failed, for messages; empty after a success, and for a server. Reads still work,
     * and the next change reopens the file.
     */
    public String refusal() {
        return connections.refusal();
    }

    /** Makes a change and undoes it, so that {@link #refusal} gives the present state. */
    public void tryChange() throws SQLException {
        transact(connection -> {
            if (!VgpuStore.markDone(connection, TRIED)) {
                throw new SQLException("the database must not contain the trial entry: " + TRIED);
            }
            VgpuStore.unmarkDone(connection, TRIED);
            return null;
        });
    }

    /**
     * Runs a change in one transaction. The change is on the disk when this returns, so that it outlives the process.
     *
     * @throws SQLException when the change failed. If the disk or the network failed during the commit, the change may
     *     have succeeded: callers with a copy of the data must read the database again.
     */
    public <T> T transact(Work<T> work) throws SQLException {
        return connections.change(connection -> {
            connection.setAutoCommit(false);
            T result;
            try {
                result = work.with(connection);
                connection.commit();
            } catch (SQLException | RuntimeException e) {
                rollBack(connection);
                throw e;
            }
            connection.setAutoCommit(true);
            if (kind == Kind.H2) {
                // H2 commits in memory and writes its file later.
                try (Statement statement = connection.createStatement()) {
                    statement.execute("CHECKPOINT SYNC");
                }
            }
            return result;
        });
    }

    /**
     * Rewrites the files without deleted rows: all of H2's file, or a table of PostgreSQL. The call must precede all
     * other users of the database.
     */
    void rewrite(String table) throws SQLException {
        if (kind == Kind.POSTGRESQL) {
            connections.read(connection -> {
                try (Statement statement = connection.createStatement()) {
                    return statement.execute("VACUUM FULL " + table);
                }
            });
            return;
        }
        connections.reopenAfter("SHUTDOWN COMPACT");
        try {
            if (file != null) {
                Files.setPosixFilePermissions(file, PRIVATE);
            }
        } catch (IOException e) {
            throw new SQLException("the database's new file must be private: path=" + file, e);
        }
    }

    /** Runs a read. */
    public <T> T read(Work<T> work) throws SQLException {
        return connections.read(work);
    }

    private static void rollBack(Connection connection) {
        try {
            connection.rollback();
            connection.setAutoCommit(true);
        } catch (SQLException e) {
            // The pool drops a failed connection; the server then rolls back by itself.
            LOG.debugf("a rollback failed: %s", e.getMessage());
        }
    }

    /** Closes H2's file, or the connections to PostgreSQL. */
    @Override
    public void close() {
        if (kind == Kind.H2) {
            try {
                connections.read(connection -> {
                    try (Statement statement = connection.createStatement()) {
                        return statement.execute("SHUTDOWN");
                    }
                });
            } catch (SQLException e) {
                LOG.warnf("the database did not shut down cleanly: %s", e.getMessage());
            }
        }
        connections.close();
    }
}
