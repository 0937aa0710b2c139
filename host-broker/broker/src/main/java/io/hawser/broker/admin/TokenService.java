package io.hawser.broker.admin;

import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.store.TokenStore;
import io.hawser.broker.token.Secrets;
import io.hawser.broker.token.Token;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.VgpuTable;
import io.hawser.shm.wire.TokenKeys;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
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
        return acts.submit(() -> {
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
            acts.onLoop(() -> {
                requireVgpu(vgpu);
                if (tokens.count(vgpu) >= MAX_TOKENS) {
                    throw new VgpuException(VgpuException.Kind.CONFLICT, "a vGPU must not exceed its limit of tokens: "
                        + "vgpu=" + vgpu + " max=" + MAX_TOKENS);
                }
                return null;
            });
            Made made = make(Secrets.keyId(), vgpu, text, now,
                expires == null ? null : expires.truncatedTo(ChronoUnit.MICROS));
            acts.write(connection -> {
                TokenStore.insert(connection, made.token);
                return null;
            });
            acts.onLoop(() -> {
                vgpus.setTokenCount(vgpu, tokens.add(made.token));
                return null;
            });
            LOG.infof("token %s created: vgpu=%s expires=%s", made.token.keyId(), vgpu,
                expires == null ? "never" : expires);
            return made;
        });
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
        return acts.<Void>submit(() -> {
            Token token = acts.onLoop(() -> {
                requireVgpu(vgpu);
                return tokens.find(keyId).filter(found -> found.vgpu().equals(vgpu))
                    .orElseThrow(() -> new VgpuException(VgpuException.Kind.MISSING,
                        "the vGPU does not have the token: vgpu=" + vgpu));
            });
            acts.write(connection -> {
                TokenStore.delete(connection, keyId);
                return null;
            });
            acts.onLoop(() -> {
                vgpus.setTokenCount(vgpu, tokens.remove(token));
                return null;
            });
            LOG.infof("token %s revoked: vgpu=%s", keyId, vgpu);
            return null;
        }).thenCompose(revoked -> sessions.endAllOfToken(keyId, "the session's token has been revoked"));
    }

    /**
     * Writes the tokens' times of last use to the database, and drops the digests that no guest needs any more. After a
     * failure the token's next use writes its time again.
     */
    public CompletableFuture<Void> noteUses() {
        return acts.submit(() -> {
            List<Token> used = acts.onLoop(tokens::takeUsed);
            if (!used.isEmpty()) {
                acts.write(connection -> {
                    TokenStore.updateUses(connection, used);
                    return null;
                });
            }
            return null;
        });
    }

    private void requireVgpu(String name) throws VgpuException {
        if (vgpus.find(name).isEmpty()) {
            throw VgpuException.missing(name);
        }
    }
}
