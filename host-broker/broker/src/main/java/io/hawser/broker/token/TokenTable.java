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
 * The tokens that let guests in, as the database has them: the front door asks here and waits for nothing. Changed on
 * the event loop only; {@link #find}, {@link #of} and {@link #all} from any thread.
 */
public final class TokenTable {
    private final Map<String, Token> byKeyId = new ConcurrentHashMap<>();
    private final Map<String, Set<String>> byVgpu = new HashMap<>();
    private final Set<String> usedSince = new HashSet<>();

    /** The token of a key id. */
    public Optional<Token> find(String keyId) {
        return Optional.ofNullable(byKeyId.get(keyId));
    }

    /** Those of a vGPU, the oldest first. */
    public List<Token> of(String vgpu) {
        return byKeyId.values().stream().filter(token -> token.vgpu().equals(vgpu))
            .sorted(Comparator.comparing(Token::created).thenComparing(Token::keyId)).toList();
    }

    /** All, by vGPU and age. */
    public List<Token> all() {
        return byKeyId.values().stream().sorted(Comparator.comparing(Token::vgpu).thenComparing(Token::created)
            .thenComparing(Token::keyId)).toList();
    }

    /** A guest has proved that it has this one; by an old proof or not. */
    public void used(String keyId, Instant now, boolean byOldProof) {
        byKeyId.computeIfPresent(keyId, (id, token) -> byOldProof ? token.usedByOldProof(now) : token.used(now));
        usedSince.add(keyId);
    }

    /** One of the database, before anybody asks; how many its vGPU has now. */
    public int load(Token token) {
        return add(token);
    }

    /** A new one; how many its vGPU has now. */
    public int add(Token token) {
        byKeyId.put(token.keyId(), token);
        Set<String> all = byVgpu.computeIfAbsent(token.vgpu(), name -> new HashSet<>());
        all.add(token.keyId());
        return all.size();
    }

    /** How many a vGPU has. */
    public int count(String vgpu) {
        return byVgpu.getOrDefault(vgpu, Set.of()).size();
    }

    /** One is no more; how many its vGPU has left. */
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

    /** Those of a vGPU are no more. */
    public void removeAll(String vgpu) {
        byVgpu.getOrDefault(vgpu, Set.of()).forEach(keyId -> {
            byKeyId.remove(keyId);
            usedSince.remove(keyId);
        });
        byVgpu.remove(vgpu);
    }

    /** Those that have been used since this was asked last. */
    public List<Token> takeUsed() {
        List<Token> used = usedSince.stream().map(byKeyId::get).toList();
        usedSince.clear();
        return used;
    }
}
