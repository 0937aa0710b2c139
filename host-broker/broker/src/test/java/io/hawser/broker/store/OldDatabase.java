package io.hawser.broker.store;

import io.hawser.shm.wire.TokenKeys;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.HexFormat;
import javax.sql.DataSource;
import org.flywaydb.core.api.MigrationVersion;

/** A database of a broker before version 3 of the schema, with the digest of a token. */
final class OldDatabase {
    /** The last use of the token, by an old proof, the only kind at that time. */
    static final Instant LAST_USED = Instant.parse("2026-01-02T03:04:05Z");

    private OldDatabase() {
    }

    /** Makes a vGPU and a token of the same name. */
    static void fill(DataSource source, String name, String secret) throws SQLException {
        Migrations.apply(source, MigrationVersion.fromVersion("2"));
        try (Connection connection = source.getConnection()) {
            run(connection, "insert into vgpu (name, id, owner_kind, owner_id, memory_bytes, compute_share, sharing, "
                + "gpus, carriers, max_sessions, origin, created, changed, placed) values (?, "
                + "'00000000-0000-4000-8000-000000000001', 'none', '', 0, 100, 'shared', 'any', 'tcp,shm', 0, 'rest', "
                + "?, ?, '')", name, LAST_USED.atOffset(ZoneOffset.UTC), LAST_USED.atOffset(ZoneOffset.UTC));
            run(connection, "insert into token (key_id, vgpu, digest, note, created, last_used) values (?, ?, ?, '', "
                + "?, ?)", name, name, HexFormat.of().formatHex(TokenKeys.ofSecret(secret).digest()),
                LAST_USED.atOffset(ZoneOffset.UTC), LAST_USED.atOffset(ZoneOffset.UTC));
        }
    }

    private static void run(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                statement.setObject(i + 1, values[i]);
            }
            statement.executeUpdate();
        }
    }
}
