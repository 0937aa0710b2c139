package io.hawser.broker.admin;

import io.hawser.broker.store.TokenStore;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.token.Token;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.VgpuTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jboss.logging.Logger;

/**
 * Makes the database equal to the state that clients have seen. A commit can fail, because the disk is full or the
 * server's answer is lost, and still take effect. Without the repair a rejected change would appear after a restart.
 */
final class Reconciliation {
    private static final Logger LOG = Logger.getLogger(Reconciliation.class);

    private Reconciliation() {
    }

    /**
     * The state that the broker has acknowledged to its clients.
     *
     * @param vgpus with their places, the oldest first.
     */
    record Acknowledged(List<VgpuStore.Kept> vgpus, List<Token> tokens) {
        /** Reads the present state. Event loop only. */
        static Acknowledged of(VgpuTable vgpus, TokenTable tokens) {
            return new Acknowledged(vgpus.kept(), vgpus.list().stream()
                .flatMap(view -> tokens.of(view.vgpu().name()).stream()).toList());
        }
    }

    /** Runs in its caller's transaction. */
    static void apply(Connection connection, Acknowledged acknowledged) throws SQLException {
        int changes = 0;
        Map<String, VgpuStore.Kept> there = index(VgpuStore.all(connection), kept -> kept.vgpu().name());
        Map<String, VgpuStore.Kept> wanted = index(acknowledged.vgpus, kept -> kept.vgpu().name());
        for (String name : there.keySet()) {
            if (!wanted.containsKey(name)) {
                VgpuStore.delete(connection, name);
                changes++;
            }
        }
        for (VgpuStore.Kept kept : wanted.values()) {
            VgpuStore.Kept found = there.get(kept.vgpu().name());
            if (found == null) {
                VgpuStore.insert(connection, kept.vgpu(), kept.placed());
                changes++;
            } else if (!found.equals(kept)) {
                VgpuStore.update(connection, kept.vgpu(), kept.placed());
                changes++;
            }
        }
        Map<String, Token> thereTokens = index(TokenStore.all(connection), Token::keyId);
        Map<String, Token> wantedTokens = index(acknowledged.tokens, Token::keyId);
        for (String keyId : thereTokens.keySet()) {
            if (!wantedTokens.containsKey(keyId)) {
                TokenStore.delete(connection, keyId);
                changes++;
            }
        }
        for (Token token : wantedTokens.values()) {
            if (!thereTokens.containsKey(token.keyId())) { // each minute's note updates the times of last use
                TokenStore.insert(connection, token);
                changes++;
            }
        }
        if (changes > 0) {
            LOG.warnf("the database differed from the acknowledged state after a failed change and is now repaired: "
                + "rows=%d", changes);
        }
    }

    private static <T> Map<String, T> index(List<T> all, Function<T, String> key) {
        return all.stream().collect(Collectors.toMap(key, one -> one, (one, other) -> one, LinkedHashMap::new));
    }
}
