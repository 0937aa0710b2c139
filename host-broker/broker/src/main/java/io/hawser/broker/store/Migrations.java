package io.hawser.broker.store;

import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Collection;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationVersion;
import org.flywaydb.core.api.ResourceProvider;
import org.flywaydb.core.api.resource.LoadableResource;

/**
 * Migrates the schema to the current version by the files of {@code db/migration} and {@link TokenVerifiers}. A
 * released migration never changes.
 */
final class Migrations {
    /** Listed by name, because the class loader of the packaged broker lists no folders. A test compares the list. */
    static final List<String> FILES = List.of("V1__vgpus_and_tokens.sql", "V2__audit.sql",
        "V4__audit_kinds.sql", "V5__communication.sql", "V6__swappable.sql", "V7__rdma.sql",
        "V8__expiry_and_labels.sql", "V9__pool.sql", "V10__arrivals.sql");
    /** The version of this broker's schema: that of the last file. */
    static final int VERSION = Integer.parseInt(FILES.getLast().substring(1, FILES.getLast().indexOf("__")));
    /** Folder of the files. */
    static final String FOLDER = "db/migration/";

    private Migrations() {
    }

    /**
     * Migrates the schema to the current version. A newer schema stays, if its rule permits this broker.
     *
     * @throws SQLException when a newer broker's schema does not; the message says so.
     */
    static void apply(DataSource source) throws SQLException {
        apply(source, MigrationVersion.LATEST);
        try (Connection connection = source.getConnection(); Statement statement = connection.createStatement();
            ResultSet row = statement.executeQuery("select max(least) from schema_rule")) {
            row.next();
            if (row.getInt(1) > VERSION) {
                throw new SQLException("a newer broker has migrated the database, which this one must not use any more:"
                    + " schema=" + VERSION + " leastSchema=" + row.getInt(1) + " (upgrade this broker)");
            }
        }
    }

    /** Migrates the schema to a version, as a broker of that version did. */
    static void apply(DataSource source, MigrationVersion target) {
        Flyway.configure(Migrations.class.getClassLoader()).dataSource(source).resourceProvider(new Files())
            .javaMigrationClassProvider(List::of).javaMigrations(new TokenVerifiers()).target(target)
            .locations("classpath:" + FOLDER).load().migrate();
    }

    /** Provides the files to Flyway. */
    private static final class Files implements ResourceProvider {
        @Override
        public LoadableResource getResource(String name) {
            return FILES.stream().filter(file -> (FOLDER + file).equals(name)).findFirst().map(File::new).orElse(null);
        }

        @Override
        public Collection<LoadableResource> getResources(String prefix, String[] suffixes) {
            return FILES.stream().filter(file -> file.startsWith(prefix) && Stream.of(suffixes).anyMatch(
                file::endsWith)).<LoadableResource>map(File::new).toList();
        }
    }

    /** A file of a migration. */
    private static final class File extends LoadableResource {
        private final String name;

        File(String name) {
            this.name = name;
        }

        @Override
        public Reader read() {
            InputStream stream = Migrations.class.getClassLoader().getResourceAsStream(getRelativePath());
            if (stream == null) {
                throw new UncheckedIOException(new IOException("the broker's jar must contain the migration: "
                    + getRelativePath()));
            }
            return new InputStreamReader(stream, StandardCharsets.UTF_8);
        }

        @Override
        public String getAbsolutePath() {
            return FOLDER + name;
        }

        @Override
        public String getAbsolutePathOnDisk() {
            return FOLDER + name;
        }

        @Override
        public String getFilename() {
            return name;
        }

        @Override
        public String getRelativePath() {
            return FOLDER + name;
        }
    }
}
