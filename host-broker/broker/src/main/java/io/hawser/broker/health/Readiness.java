package io.hawser.broker.health;

import io.hawser.broker.model.PoolState;
import java.util.List;

/**
 * Whether a new guest can expect a session, and the reasons when it cannot.
 *
 * @param reasons empty when it can.
 * @param notes problems that do not prevent sessions.
 */
public record Readiness(List<String> reasons, List<String> notes, PoolState pool) {
    /** Whether a new guest can expect a session. */
    public boolean isReady() {
        return reasons.isEmpty();
    }
}
