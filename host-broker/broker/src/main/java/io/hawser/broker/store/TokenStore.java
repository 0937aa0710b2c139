package io.hawser.broker.store;

import io.hawser.broker.token.Token;
import io.hawser.shm.wire.TokenKeys;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;

/** Tokens in the database. Each method runs in its caller's transaction. */
public final class TokenStore {
    private static final HexFormat HEX = HexFormat.of();
    private static final String COLUMNS = "key_id, vgpu, stored_key, server_key, digest, old_proof_used, note, "
        + "created, expires, last_used";
    /** Entry in the table of completed steps: a digest was dropped since the last rewrite of the files. */
    private static final String DROPPED = "digests of tokens dropped";

    private TokenStore() {
    }

    /** All tokens, the oldest first. */
    public static List<Token> all(Connection connection) throws SQLException {
        List<Token> all = new ArrayList<>();
        try (PreparedStatement select = connection.prepareStatement("select " + COLUMNS
            + " from token order by created, key_id"); ResultSet rows = select.executeQuery()) {
            while (rows.next()) {
                all.add(token(rows));
            }
        }
        return all;
    }

    /** A token by its key id. */
    public static Optional<Token> find(Connection connection, String keyId) throws SQLException {
        try (PreparedStatement select = connection.prepareStatement("select " + COLUMNS
            + " from token where key_id = ?")) {
            select.setString(1, keyId);
            try (ResultSet row = select.executeQuery()) {
                return row.next() ? Optional.of(token(row)) : Optional.empty();
            }
        }
    }

    private static Token token(ResultSet row) throws SQLException {
        return new Token(row.getString("key_id"), row.getString("vgpu"), keys(row), row.getString("note"),
            VgpuStore.time(row, "created"), VgpuStore.time(row, "expires"), VgpuStore.time(row, "last_used"));
    }

    private static Token.Keys keys(ResultSet row) throws SQLException {
        String digest = row.getString("digest");
        return new Token.Keys(new TokenKeys.Verifier(HEX.parseHex(row.getString("stored_key")),
            HEX.parseHex(row.getString("server_key"))), digest == null ? null : HEX.parseHex(digest),
            VgpuStore.time(row, "old_proof_used"));
    }

    private static String digest(Token token) {
        return token.acceptsOldProof() ? HEX.formatHex(token.keys().digest()) : null;
    }

    /** Inserts a new token. */
    public static void insert(Connection connection, Token token) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("insert into token (" + COLUMNS
            + ") values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            insert.setString(1, token.keyId());
            insert.setString(2, token.vgpu());
            insert.setString(3, HEX.formatHex(token.keys().verifier().storedKey()));
            insert.setString(4, HEX.formatHex(token.keys().verifier().serverKey()));
            insert.setString(5, digest(token));
            insert.setObject(6, VgpuStore.at(token.keys().oldProofUsed()));
            insert.setString(7, token.note());
            insert.setObject(8, VgpuStore.at(token.created()));
            insert.setObject(9, VgpuStore.at(token.expires()));
            insert.setObject(10, VgpuStore.at(token.lastUsed()));
            insert.executeUpdate();
        }
    }

    /** Deletes a token; does nothing when it does not exist. */
    public static void delete(Connection connection, String keyId) throws SQLException {
        try (PreparedStatement delete = connection.prepareStatement("delete from token where key_id = ?")) {
            delete.setString(1, keyId);
            delete.executeUpdate();
        }
    }

    /** Writes the last uses of tokens, and drops the digests that the tokens no longer have. */
    public static void updateUses(Connection connection, List<Token> tokens) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement(
            "update token set last_used = ?, old_proof_used = ? where key_id = ?")) {
            for (Token token : tokens) {
                update.setObject(1, VgpuStore.at(token.lastUsed()));
                update.setObject(2, VgpuStore.at(token.keys().oldProofUsed()));
                update.setString(3, token.keyId());
                update.addBatch();
            }
            update.executeBatch();
        }
        int dropped = 0;
        try (PreparedStatement update = connection.prepareStatement(
            "update token set digest = null where key_id = ? and digest is not null")) {
            for (Token token : tokens) {
                if (!token.acceptsOldProof()) {
                    update.setString(1, token.keyId());
                    dropped += update.executeUpdate();
                }
            }
        }
        if (dropped > 0) {
            VgpuStore.markDone(connection, DROPPED);
        }
    }

    /**
     * Drops all digests, so that no token accepts an old proof.
     *
     * @return number of dropped digests.
     */
    public static int dropDigests(Connection connection) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement(
            "update token set digest = null where digest is not null")) {
            int dropped = update.executeUpdate();
            if (dropped > 0) {
                VgpuStore.markDone(connection, DROPPED);
            }
            return dropped;
        }
    }

    /**
     * Removes dropped digests from the database's files, where deleted rows stay readable for a time. Does nothing when
     * no digest was dropped since the last run. The call must precede all other users of the database, and must not be
     * part of a transaction.
     */
    public static void eraseDropped(Database database) throws SQLException {
        if (database.read(connection -> VgpuStore.isDone(connection, DROPPED))) {
            database.rewrite("token");
            database.transact(connection -> {
                VgpuStore.unmarkDone(connection, DROPPED);
                return null;
            });
        }
    }
}
