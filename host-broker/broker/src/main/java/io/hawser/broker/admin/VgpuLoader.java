package io.hawser.broker.admin;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.machine.PrivateFile;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.store.Database;
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
import java.util.TreeMap;
import org.jboss.logging.Logger;

/** What there is at a start: vGPUs and tokens of the database, and what settings make of them. */
public final class VgpuLoader {
    private static final Logger LOG = Logger.getLogger(VgpuLoader.class);
    private static final String DEFAULT_MADE = "default vGPU and token";
    private static final String DEFAULT_KEY_ID = "default";

    private final Path clearToken;
    private final boolean oldProofs;
    private final Map<String, VgpuDraft> drafts = new TreeMap<>(); // placed in the same order at each start

    /**
     * Reads the settings.
     *
     * @param clearToken where the token of a first start is left for guests, in clear.
     */
    public VgpuLoader(BrokerConfig config, Path clearToken) {
        this.clearToken = clearToken;
        oldProofs = config.tokens().oldProofs();
        config.vgpus().forEach((name, settings) -> drafts.put(name, VgpuDraft.of(settings)));
    }

    /**
     * Brings database and settings together, and fills the tables, which nobody else must use yet.
     *
     * @throws SQLException when the database fails.
     * @throws IOException when the token of a first start cannot be left; nothing was changed then.
     * @throws IllegalArgumentException when settings cannot be; names which.
     */
    public void load(Database database, VgpuTable vgpus, TokenTable tokens) throws SQLException, IOException {
        List<VgpuStore.Kept> kept = new ArrayList<>();
        List<Token> keptTokens = new ArrayList<>();
        try {
            database.transact(connection -> {
                kept.addAll(withSettings(connection, VgpuStore.all(connection)));
                if (!oldProofs) {
                    int dropped = TokenStore.dropDigests(connection);
                    if (dropped > 0) {
                        LOG.infof("old guest packages can use no token any more: tokens=%d", dropped);
                    }
                }
                keptTokens.addAll(TokenStore.all(connection));
                if (VgpuStore.first(connection, DEFAULT_MADE)) {
                    makeDefault(connection, kept, keptTokens);
                }
                return null;
            });
        } catch (FailedException e) {
            throw e.file;
        }
        TokenStore.eraseDropped(database);
        warn(keptTokens);
        kept.forEach(vgpu -> vgpus.load(vgpu.vgpu(), vgpu.placed()));
        for (Token token : keptTokens) {
            vgpus.tokens(token.vgpu(), tokens.load(token));
        }
    }

    private static void warn(List<Token> tokens) {
        long old = tokens.stream().filter(Token::acceptsOldProof).count();
        if (old > 0) {
            LOG.warnf("a copy of the database opens the vGPUs of some tokens, whose digests are kept for old guest "
                + "packages: tokens=%d (hawserctl tokens list --old-proofs; hawser.tokens.old-proofs=false drops them)",
                old);
        }
    }

    private List<VgpuStore.Kept> withSettings(Connection connection, List<VgpuStore.Kept> all) throws SQLException {
        Map<String, VgpuDraft> left = new TreeMap<>(drafts);
        List<VgpuStore.Kept> result = new ArrayList<>();
        for (VgpuStore.Kept kept : all) {
            VgpuDraft draft = left.remove(kept.vgpu().name());
            VgpuStore.Kept now = draft == null ? released(kept) : changed(kept, draft);
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
                throw bad(entry.getKey(), e);
            }
        }
        return result;
    }

    /** A vGPU that settings name no more stays, with its tokens, and belongs to REST. */
    private static VgpuStore.Kept released(VgpuStore.Kept kept) {
        if (kept.vgpu().origin() == Origin.REST) {
            return kept;
        }
        LOG.infof("vGPU %s is not among the settings any more; it stays, and REST can change and delete it",
            kept.vgpu().name());
        return new VgpuStore.Kept(kept.vgpu().of(Origin.REST), kept.placed());
    }

    private static VgpuStore.Kept changed(VgpuStore.Kept kept, VgpuDraft draft) {
        Vgpu before = kept.vgpu();
        try {
            Vgpu same = draft.change(before, before.changed()).of(Origin.SETTINGS);
            if (same.equals(before)) {
                return kept;
            }
            Vgpu now = draft.change(before, Vgpu.now()).of(Origin.SETTINGS);
            // Where it was it was promised what it was then.
            boolean stays = now.gpus().equals(before.gpus()) && now.mode() == before.mode()
                && now.memoryBytes() <= before.memoryBytes();
            return new VgpuStore.Kept(now, stays ? kept.placed() : List.of());
        } catch (VgpuException e) {
            throw bad(before.name(), e);
        }
    }

    private static IllegalArgumentException bad(String name, VgpuException e) {
        return new IllegalArgumentException("hawser.vgpus." + name + ": " + e.getMessage(), e);
    }

    private void makeDefault(Connection connection, List<VgpuStore.Kept> kept, List<Token> tokens)
        throws SQLException {
        if (kept.stream().noneMatch(k -> k.vgpu().name().equals(Vgpu.DEFAULT_NAME))) {
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
            // Before the transaction ends: a token that is in the database but nowhere in clear is of no use.
            PrivateFile.write(clearToken, token.text() + "\n");
        } catch (IOException e) {
            throw new FailedException(e);
        }
        LOG.infof("a first token for the vGPU default was made: %s", clearToken);
    }

    /** Undoes the transaction. */
    private static final class FailedException extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final transient IOException file;

        FailedException(IOException file) {
            super(file);
            this.file = file;
        }
    }
}
