package io.hawser.broker.store;

import io.hawser.broker.token.Token;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** Tokens in the database. Each method is a part of its caller's transaction. */
public final class TokenStore {
    private TokenStore() {
    }

    /** All, the oldest first. */
    public static List<Token> all(Connection connection) throws SQLException {
        List<Token> all = new ArrayList<>();
        try (PreparedStatement select = connection.prepareStatement("select key_id, vgpu, digest, note, created, "
            + "expires, last_used from token order by created, key_id"); ResultSet rows = select.executeQuery()) {
            while (rows.next()) {
                all.add(new Token(rows.getString("key_id"), rows.getString("vgpu"),
                    HexFormat.of().parseHex(rows.getString("digest")), rows.getString("note"),
                    VgpuStore.time(rows, "created"), VgpuStore.time(rows, "expires"),
                    VgpuStore.time(rows, "last_used")));
            }
        }
        return all;
    }

    /** A new one. */
    public static void insert(Connection connection, Token token) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("insert into token (key_id, vgpu, digest, note, "
            + "created, expires, last_used) values (?, ?, ?, ?, ?, ?, ?)")) {
            insert.setString(1, token.keyId());
            insert.setString(2, token.vgpu());
            insert.setString(3, HexFormat.of().formatHex(token.key()));
            insert.setString(4, token.note());
            insert.setObject(5, VgpuStore.at(token.created()));
            insert.setObject(6, VgpuStore.at(token.expires()));
            insert.setObject(7, VgpuStore.at(token.lastUsed()));
            insert.executeUpdate();
        }
    }

    /** It lets nobody in any more; nothing when it is not there. */
    public static void delete(Connection connection, String keyId) throws SQLException {
        try (PreparedStatement delete = connection.prepareStatement("delete from token where key_id = ?")) {
            delete.setString(1, keyId);
            delete.executeUpdate();
        }
    }

    /** When each was used last. */
    public static void used(Connection connection, List<Token> tokens) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement(
            "update token set last_used = ? where key_id = ?")) {
            for (Token token : tokens) {
                update.setObject(1, VgpuStore.at(token.lastUsed()));
                update.setString(2, token.keyId());
                update.addBatch();
            }
            update.executeBatch();
        }
    }
}
