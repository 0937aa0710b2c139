package io.hawser.broker.admin;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.machine.PrivateFile;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.PeerStore;
import io.hawser.broker.store.PoolLog;
import io.hawser.broker.store.TokenStore;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.token.Token;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.broker.vgpu.VgpuTable;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jboss.logging.Logger;

/** Loads vGPUs and tokens at the broker's start: it applies the settings to the content of the database. */
public final class VgpuLoader {
    private static final Logger LOG = Logger.getLogger(VgpuLoader.class);
    private static final String DEFAULT_MADE = "default vGPU and token";
    private static final String DEFAULT_KEY_ID = "default";

    private final Path clearToken;
    private final PeerBroker me; // null when the broker is alone
    private final boolean oldProofs;
    private final Map<String, VgpuDraft> drafts = new TreeMap<>(); // placed in the same order at each start

    /**
     * Reads the settings.
     *
     * @param clearToken file that receives the first start's token in clear, for guests.
     * @param me the broker, registered in its pool; null when it is alone.
     */
    public VgpuLoader(BrokerConfig config, Path clearToken, PeerBroker me) {
        this.clearToken = clearToken;
        this.me = me;
        oldProofs = config.tokens().oldProofs();
        config.vgpus().forEach((name, settings) -> drafts.put(name, VgpuDraft.of(settings)));
    }

    /**
     * Applies the settings to the database and fills the tables. The tables must not be in use yet.
     *
     * @throws SQLException when the database fails.
     * @throws IOException when the first start's token cannot be written; the database is then unchanged.
     * @throws IllegalArgumentException when a setting is invalid; the message names it.
     */
    public void load(Database database, VgpuTable vgpus, TokenTable tokens) throws SQLException, IOException {
        List<VgpuStore.Kept> kept = new ArrayList<>();
        List<Token> keptTokens = new ArrayList<>();
        try {
            database.transact(connection -> {
                if (me != null) {
                    PeerStore.lock(connection);
                }
                kept.addAll(withSettings(connection, mine(connection)));
                if (!oldProofs) {
                    int dropped = TokenStore.dropDigests(connection);
                    if (dropped > 0) {
                        LOG.infof("old guest packages can no longer use tokens: tokens=%d", dropped);
                    }
                }
                keptTokens.addAll(TokenStore.all(connection));
                if (VgpuStore.markDone(connection, DEFAULT_MADE)) {
                    makeDefault(connection, kept, keptTokens);
                }
                if (me != null) {
                    for (VgpuStore.Kept one : kept) {
                        VgpuStore.own(connection, one.vgpu().name(), me.id());
                    }
                    Set<PoolLog.Key> changed = kept.stream().map(one -> PoolLog.Key.vgpu(one.vgpu().name()))
                        .collect(Collectors.toSet());
                    keptTokens.forEach(token -> changed.add(PoolLog.Key.token(token.keyId())));
                    PoolLog.add(connection, changed);
                }
                return null;
            });
        } catch (FailedException e) {
            throw e.file;
        }
        TokenStore.eraseDropped(database);
        warnOfOldProofs(keptTokens);
        kept.forEach(vgpu -> vgpus.load(vgpu.vgpu(), vgpu.placed()));
        for (Token token : keptTokens) {
            vgpus.setTokenCount(token.vgpu(), tokens.load(token));
        }
    }

    /** The broker's vGPUs; of a pool's first broker also those that have none. */
    private List<VgpuStore.Kept> mine(Connection connection) throws SQLException {
        List<VgpuStore.Kept> all = VgpuStore.all(connection);
        if (me == null) {
            return all;
        }
        boolean isFirst = PeerStore.all(connection).size() == 1;
        List<VgpuStore.Kept> mine = new ArrayList<>();
        for (VgpuStore.Kept one : all) {
            boolean isNamed = drafts.containsKey(one.vgpu().name());
            if (one.broker().equals(me.id()) || one.broker().isEmpty() && (isFirst || isNamed)) {
                mine.add(one);
            } else if (isNamed) {
                throw settingsError(one.vgpu().name(), VgpuException.conflict(
                    "another broker of the pool has a vGPU of this name"));
            }
        }
        return mine;
    }

    private static void warnOfOldProofs(List<Token> tokens) {
        long old = tokens.stream().filter(Token::acceptsOldProof).count();
        if (old > 0) {
            LOG.warnf("the database keeps the digests of some tokens for old guest packages; a copy of the database "
                + "opens their vGPUs: tokens=%d (hawserctl tokens list --old-proofs; hawser.tokens.old-proofs=false "
                + "drops the digests)", old);
        }
    }

    private List<VgpuStore.Kept> withSettings(Connection connection, List<VgpuStore.Kept> all) throws SQLException {
        Map<String, VgpuDraft> left = new TreeMap<>(drafts);
        List<VgpuStore.Kept> result = new ArrayList<>();
        for (VgpuStore.Kept kept : all) {
            VgpuDraft draft = left.remove(kept.vgpu().name());
            VgpuStore.Kept now = draft == null ? release(kept) : applyDraft(kept, draft);
            if (!now.equals(kept)) {
                VgpuStore.update(connection, now.vgpu(), now.placed());
            }
            result.add(now);
        }
        for (Map.Entry<String, VgpuDraft> entry : left.entrySet()) {
            try {
                Vgpu made = entry.getValue().create(entry.getKey(), Origin.SETTINGS, Vgpu.now());
                VgpuStore.insert(connection, made, List.of());
                result.add(new VgpuStore.Kept(made, List.of()));
            } catch (VgpuException e) {
                throw settingsError(entry.getKey(), e);
            }
        }
        return result;
    }

    /** Keeps a vGPU, with its tokens, that the settings no longer name; REST can then change and delete it. */
    private static VgpuStore.Kept release(VgpuStore.Kept kept) {
        if (kept.vgpu().origin() == Origin.REST) {
            return kept;
        }
        LOG.infof("the settings no longer name vGPU %s; it stays, and REST can change and delete it",
            kept.vgpu().name());
        return new VgpuStore.Kept(kept.vgpu().withOrigin(Origin.REST), kept.placed());
    }

    private static VgpuStore.Kept applyDraft(VgpuStore.Kept kept, VgpuDraft draft) {
        Vgpu before = kept.vgpu();
        try {
            Vgpu same = draft.change(before, before.changed()).withOrigin(Origin.SETTINGS);
            if (same.equals(before)) {
                return kept;
            }
            Vgpu now = draft.change(before, Vgpu.now()).withOrigin(Origin.SETTINGS);
            // The vGPU stays at its place only if that place fulfils its new settings: same GPUs, same mode, no more
            // memory, and no memory that had not to fit before.
            boolean stays = now.gpus().equals(before.gpus()) && now.mode() == before.mode()
                && now.memoryBytes() <= before.memoryBytes() && (now.swappable() || !before.swappable());
            return new VgpuStore.Kept(now, stays ? kept.placed() : List.of());
        } catch (VgpuException e) {
            throw settingsError(before.name(), e);
        }
    }

    private static IllegalArgumentException settingsError(String name, VgpuException e) {
        return new IllegalArgumentException("hawser.vgpus." + name + ": " + e.getMessage(), e);
    }

    private void makeDefault(Connection connection, List<VgpuStore.Kept> kept, List<Token> tokens)
        throws SQLException {
        if (VgpuStore.find(connection, Vgpu.DEFAULT_NAME).isEmpty()) {
            Vgpu made;
            try {
                made = new VgpuDraft(null, null, null, null, null, null, null, null).create(Vgpu.DEFAULT_NAME,
                    Origin.REST, Vgpu.now());
            } catch (VgpuException e) {
                throw new IllegalStateException(e);
            }
            VgpuStore.insert(connection, made, List.of());
            kept.add(new VgpuStore.Kept(made, List.of()));
        }
        TokenService.Made token = TokenService.make(DEFAULT_KEY_ID, Vgpu.DEFAULT_NAME, "made at the first start",
            Vgpu.now(), null);
        TokenStore.insert(connection, token.token());
        tokens.add(token.token());
        try {
            // Before the commit: a token in the database without its file is of no use.
            PrivateFile.write(clearToken, token.text() + "\n");
        } catch (IOException e) {
            throw new FailedException(e);
        }
        LOG.infof("the first token of the vGPU default is in: %s", clearToken);
    }

    /** Rolls the transaction back. */
    private static final class FailedException extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final transient IOException file;

        FailedException(IOException file) {
            super(file);
            this.file = file;
        }
    }
}
