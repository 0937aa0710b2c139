package io.hawser.broker.admin;

import io.hawser.broker.model.PeerBroker;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;

/** The silences of the pool's brokers, by the clock of this process. One thread. */
final class Silences {
    private final Map<String, Seen> observations = new HashMap<>();

    /** The last heartbeat of a broker that this process has seen. */
    private record Seen(Instant heartbeat, long sinceNs) {}

    /** A broker is silent only as long as this process has seen no heartbeat of it, whatever the clocks say. */
    PeerBroker observed(PeerBroker one, long nowNs) {
        Seen last = observations.get(one.id());
        if (last == null || !last.heartbeat.equals(one.heartbeat())) {
            last = new Seen(one.heartbeat(), nowNs);
            observations.put(one.id(), last);
        }
        Duration observed = Duration.ofNanos(nowNs - last.sinceNs);
        return one.withSilence(observed.compareTo(one.silence()) < 0 ? observed : one.silence());
    }
}
