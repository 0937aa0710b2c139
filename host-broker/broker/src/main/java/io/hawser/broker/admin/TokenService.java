package io.hawser.broker.admin;

import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.store.PoolLog;
import io.hawser.broker.store.TokenStore;
import io.hawser.broker.token.Secrets;
import io.hawser.broker.token.Token;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.VgpuTable;
import io.hawser.shm.wire.TokenKeys;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jboss.logging.Logger;

/** Creates and revokes the tokens of vGPUs. Thread-safe. */
public final class TokenService {
    private static final Logger LOG = Logger.getLogger(TokenService.class);
    private static final int MAX_TOKENS = 1000; // of one vGPU
    private static final int MAX_NOTE_CHARACTERS = 200; // width of the database's column

    private final Acts acts;
    private final VgpuTable vgpus;
    private final TokenTable tokens;
    private final SessionRegistry sessions;
    private BrokerPool pool; // null when the broker is alone
    private PoolPlaces places;

    /**
     * A new token.
     *
     * @param secret returned only here; the broker does not store it.
     */
    public record Made(Token token, String secret) {
        /** The token's text for a guest. */
        public String text() {
            return token.keyId() + "." + secret;
        }

        @Override
        public String toString() {
            return token.toString();
        }
    }

    /** Creates the service. */
    public TokenService(Acts acts, VgpuTable vgpus, TokenTable tokens, SessionRegistry sessions) {
        this.acts = acts;
        this.vgpus = vgpus;
        this.tokens = tokens;
        this.sessions = sessions;
    }

    /** Makes this broker's tokens those of a pool; the call precedes the first act. */
    void join(BrokerPool joined, PoolPlaces itsPlaces) {
        pool = joined;
        places = itsPlaces;
    }

    /** The tokens of a vGPU, the oldest first. */
    public List<Token> list(String vgpu) throws VgpuException {
        requireVgpu(vgpu);
        return tokens.of(vgpu);
    }

    /** The tokens of all vGPUs, by vGPU and age. */
    public List<Token> all() {
        return tokens.all();
    }

    /**
     * Creates a token.
     *
     * @param note the token's purpose; null for none.
     * @param expires null for never.
     * @return completes exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<Made> create(String vgpu, String note, Instant expires) {
        return create(vgpu, note, expires, false);
    }

    /**
     * Creates a token.
     *
     * @param replace whether the new token replaces the vGPU's tokens of the same note, in one transaction. A client
     * that never received its token's secret thus gets another one and leaves no second token.
     * @return completes when the sessions of the replaced tokens have ended; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<Made> create(String vgpu, String note, Instant expires, boolean replace) {
        List<Token> replaced = new ArrayList<>();
        CompletableFuture<CompletableFuture<Made>> created = acts.submit(() -> {
            String text = note == null ? "" : note;
            if (text.length() > MAX_NOTE_CHARACTERS || text.chars().anyMatch(Character::isISOControl)) {
                throw new VgpuException(VgpuException.Kind.INVALID, "a token's note must be at most "
                    + MAX_NOTE_CHARACTERS + " printable characters: characters=" + text.length());
            }
            Instant now = Vgpu.now();
            if (expires != null && !expires.isAfter(now)) {
                throw new VgpuException(VgpuException.Kind.INVALID, "a token must expire in the future: expires="
                    + expires + " now=" + now);
            }
            if (replace && text.isEmpty()) {
                throw VgpuException.invalid("a token that replaces others must have their note: note=");
            }
            Made made = make(Secrets.keyId(), vgpu, text, now,
                expires == null ? null : expires.truncatedTo(ChronoUnit.MICROS));
            Set<PoolLog.Key> keys = new HashSet<>(Set.of(PoolLog.Key.token(made.token.keyId())));
            acts.write(keys, connection -> {
                acts.onLoop(() -> {
                    requireVgpu(vgpu);
                    if (replace) {
                        tokens.of(vgpu).stream().filter(token -> token.note().equals(text)).forEach(replaced::add);
                    }
                    if (tokens.count(vgpu) - replaced.size() >= MAX_TOKENS) {
                        throw VgpuException.conflict("a vGPU must not exceed its limit of tokens: vgpu=" + vgpu
                            + " max=" + MAX_TOKENS);
                    }
                    return null;
                });
                for (Token token : replaced) {
                    TokenStore.delete(connection, token.keyId());
                    keys.add(PoolLog.Key.token(token.keyId()));
                }
                TokenStore.insert(connection, made.token);
                return null;
            });
            acts.onLoop(() -> {
                replaced.forEach(tokens::remove);
                vgpus.setTokenCount(vgpu, tokens.add(made.token));
                return null;
            });
            LOG.infof("token %s created: vgpu=%s expires=%s replaced=%s", made.token.keyId(), vgpu,
                expires == null ? "never" : expires, replaced.stream().map(Token::keyId).toList());
            return known().thenApply(known -> made);
        });
        return created.thenCompose(made -> made).thenCompose(made -> CompletableFuture.allOf(replaced.stream()
            .map(token -> sessions.endAllOfToken(token.keyId(), "the session's token has been replaced"))
            .toArray(CompletableFuture<?>[]::new)).thenApply(ended -> made));
    }

    /** Completes when the brokers of the pool know the tokens. Acts' thread only. */
    private CompletableFuture<Void> known() {
        return pool == null ? CompletableFuture.completedFuture(null) : places.applied();
    }

    /** Creates a token with a new secret. Guests can use it once the table holds it. */
    public static Made make(String keyId, String vgpu, String note, Instant created, Instant expires) {
        String secret = Secrets.text();
        Token.Keys keys = Token.Keys.of(TokenKeys.ofSecret(secret));
        return new Made(new Token(keyId, vgpu, keys, note, created, expires, null), secret);
    }

    /**
     * Revokes a token: the broker rejects it from then on and ends its sessions.
     *
     * @return completes when its sessions have ended completely; exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<Void> revoke(String vgpu, String keyId) {
        return acts.submit(() -> {
            Token token = acts.onLoop(() -> {
                requireVgpu(vgpu);
                return tokens.find(keyId).filter(found -> found.vgpu().equals(vgpu))
                    .orElseThrow(() -> new VgpuException(VgpuException.Kind.MISSING,
                        "the vGPU does not have the token: vgpu=" + vgpu));
            });
            acts.write(Set.of(PoolLog.Key.token(keyId)), connection -> {
                TokenStore.delete(connection, keyId);
                return null;
            });
            acts.onLoop(() -> {
                vgpus.setTokenCount(vgpu, tokens.remove(token));
                return null;
            });
            LOG.infof("token %s revoked: vgpu=%s", keyId, vgpu);
            return known();
        }).thenCompose(known -> known).thenCompose(
            revoked -> sessions.endAllOfToken(keyId, "the session's token has been revoked"));
    }

    /**
     * Writes the tokens' times of last use to the database, and drops the digests that no guest needs any more. After a
     * failure the token's next use writes its time again.
     */
    public CompletableFuture<Void> noteUses() {
        return acts.submit(() -> {
            List<Token> used = acts.onLoop(tokens::takeUsed);
            if (!used.isEmpty()) {
                acts.write(Set.of(), connection -> {
                    TokenStore.updateUses(connection, used);
                    return null;
                });
            }
            return null;
        });
    }

    private void requireVgpu(String name) throws VgpuException {
        if (vgpus.find(name).isEmpty() && (pool == null || !pool.has(name))) {
            throw VgpuException.missing(name);
        }
    }
}
