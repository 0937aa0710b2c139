package io.hawser.broker.store;

import io.hawser.shm.wire.TokenKeys;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HexFormat;
import org.flywaydb.core.api.MigrationVersion;
import org.flywaydb.core.api.migration.Context;
import org.flywaydb.core.api.migration.JavaMigration;

/**
 * Adds a verifier to each token. The broker checks proofs with it, and it opens nothing. All keys derive from the
 * digest that the database already had, so existing tokens keep working. The digest stays for old guest packages, which
 * may have been the last to use the token; new tokens have none. H2 commits each change of the schema at once, so each
 * step does nothing when it was done before.
 */
final class TokenVerifiers implements JavaMigration {
    private static final HexFormat HEX = HexFormat.of();

    @Override
    public MigrationVersion getVersion() {
        return MigrationVersion.fromVersion("3");
    }

    @Override
    public String getDescription() {
        return "token verifiers";
    }

    @Override
    public Integer getChecksum() {
        return null;
    }

    @Override
    public boolean canExecuteInTransaction() {
        return true;
    }

    @Override
    public void migrate(Context context) throws SQLException {
        Connection connection = context.getConnection();
        try (Statement statement = connection.createStatement()) {
            statement.execute("alter table token add column if not exists stored_key varchar(64)");
            statement.execute("alter table token add column if not exists server_key varchar(64)");
            statement.execute("alter table token add column if not exists old_proof_used timestamp with time zone");
            statement.execute("alter table token alter column digest drop not null");
            fill(connection);
            statement.execute("alter table token alter column stored_key set not null");
            statement.execute("alter table token alter column server_key set not null");
        }
    }

    private static void fill(Connection connection) throws SQLException {
        try (PreparedStatement select = connection.prepareStatement(
            "select key_id, digest from token where stored_key is null"); ResultSet rows = select.executeQuery();
            PreparedStatement update = connection.prepareStatement("update token set stored_key = ?, server_key = ?, "
                + "old_proof_used = last_used where key_id = ?")) {
            while (rows.next()) {
                TokenKeys.Verifier verifier = TokenKeys.ofDigest(HEX.parseHex(rows.getString(2))).verifier();
                update.setString(1, HEX.formatHex(verifier.storedKey()));
                update.setString(2, HEX.formatHex(verifier.serverKey()));
                update.setString(3, rows.getString(1));
                update.addBatch();
            }
            update.executeBatch();
        }
    }
}
