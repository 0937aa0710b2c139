package io.hawser.broker.token;

import java.time.Instant;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The tokens in memory, as the database has them, so that the front door checks guests without waiting. Only the event
 * loop changes the table; {@link #find}, {@link #of} and {@link #all} from any thread.
 */
public final class TokenTable {
    private final Map<String, Token> byKeyId = new ConcurrentHashMap<>();
    private final Map<String, Set<String>> byVgpu = new HashMap<>();
    private final Set<String> usedSince = new HashSet<>();

    /** The token of a key id. */
    public Optional<Token> find(String keyId) {
        return Optional.ofNullable(byKeyId.get(keyId));
    }

    /** Tokens of a vGPU, the oldest first. */
    public List<Token> of(String vgpu) {
        return byKeyId.values().stream().filter(token -> token.vgpu().equals(vgpu))
            .sorted(Comparator.comparing(Token::created).thenComparing(Token::keyId)).toList();
    }

    /** All tokens, by vGPU and age. */
    public List<Token> all() {
        return byKeyId.values().stream().sorted(Comparator.comparing(Token::vgpu).thenComparing(Token::created)
            .thenComparing(Token::keyId)).toList();
    }

    /** Notes that a guest has proved its token; {@code byOldProof} is whether it was an old guest package. */
    public void markUsed(String keyId, Instant now, boolean byOldProof) {
        byKeyId.computeIfPresent(keyId, (id, token) -> byOldProof ? token.afterOldProof(now) : token.afterUse(now));
        usedSince.add(keyId);
    }

    /**
     * Adds a token from the database, before the first guest.
     *
     * @return number of tokens of its vGPU.
     */
    public int load(Token token) {
        return add(token);
    }

    /**
     * Adds a new token.
     *
     * @return number of tokens of its vGPU.
     */
    public int add(Token token) {
        byKeyId.put(token.keyId(), token);
        Set<String> all = byVgpu.computeIfAbsent(token.vgpu(), name -> new HashSet<>());
        all.add(token.keyId());
        return all.size();
    }

    /** Number of tokens of a vGPU. */
    public int count(String vgpu) {
        return byVgpu.getOrDefault(vgpu, Set.of()).size();
    }

    /**
     * Removes a token.
     *
     * @return number of remaining tokens of its vGPU.
     */
    public int remove(Token token) {
        byKeyId.remove(token.keyId());
        usedSince.remove(token.keyId());
        Set<String> all = byVgpu.getOrDefault(token.vgpu(), new HashSet<>());
        all.remove(token.keyId());
        if (all.isEmpty()) {
            byVgpu.remove(token.vgpu());
        }
        return all.size();
    }

    /** Removes all tokens of a vGPU. */
    public void removeAll(String vgpu) {
        byVgpu.getOrDefault(vgpu, Set.of()).forEach(keyId -> {
            byKeyId.remove(keyId);
            usedSince.remove(keyId);
        });
        byVgpu.remove(vgpu);
    }

    /** Returns the tokens used since the last call. */
    public List<Token> takeUsed() {
        List<Token> used = usedSince.stream().map(byKeyId::get).toList();
        usedSince.clear();
        return used;
    }
}
