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
 * Makes the database what the broker has answered. A change that failed at its very end, when the disk was full or the
 * server's answer was lost, may be in the database all the same: what was refused would be there after a restart.
 */
final class Reconciliation {
    private static final Logger LOG = Logger.getLogger(Reconciliation.class);

    private Reconciliation() {
    }

    /**
     * What the broker goes by.
     *
     * @param vgpus with their places, the oldest first.
     */
    record Answered(List<VgpuStore.Kept> vgpus, List<Token> tokens) {
        /** As it is now. Event loop only. */
        static Answered of(VgpuTable vgpus, TokenTable tokens) {
            return new Answered(vgpus.kept(), vgpus.list().stream()
                .flatMap(view -> tokens.of(view.vgpu().name()).stream()).toList());
        }
    }

    /** Part of its caller's transaction. */
    static void apply(Connection connection, Answered answered) throws SQLException {
        int changes = 0;
        Map<String, VgpuStore.Kept> there = by(VgpuStore.all(connection), kept -> kept.vgpu().name());
        Map<String, VgpuStore.Kept> wanted = by(answered.vgpus, kept -> kept.vgpu().name());
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
        Map<String, Token> thereTokens = by(TokenStore.all(connection), Token::keyId);
        Map<String, Token> wantedTokens = by(answered.tokens, Token::keyId);
        for (String keyId : thereTokens.keySet()) {
            if (!wantedTokens.containsKey(keyId)) {
                TokenStore.delete(connection, keyId);
                changes++;
            }
        }
        for (Token token : wantedTokens.values()) {
            if (!thereTokens.containsKey(token.keyId())) { // when one was used last is noted each minute
                TokenStore.insert(connection, token);
                changes++;
            }
        }
        if (changes > 0) {
            LOG.warnf("the database was not what the broker had answered, after a change that failed; it is now: "
                + "rows=%d", changes);
        }
    }

    private static <T> Map<String, T> by(List<T> all, Function<T, String> key) {
        return all.stream().collect(Collectors.toMap(key, one -> one, (one, other) -> one, LinkedHashMap::new));
    }
}
