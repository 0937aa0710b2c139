package io.hawser.broker.model;

import java.time.Duration;
import java.time.Instant;
import java.util.List;

/**
 * A broker of the pool, as the database has it.
 *
 * @param id UUID of its state folder.
 * @param number from 1, unique in the pool; the ids of its sessions begin with it.
 * @param name unique in the pool, for people.
 * @param epoch counts its starts.
 * @param heartbeat its last one, by the clock of the database.
 * @param silence since then; negative after that clock was set back.
 * @param applied revision of the pool's log up to which it has applied all changes.
 * @param guest address for guests, {@code host:port}.
 * @param guestTls address for guests with TLS; empty without TLS.
 * @param http URL of its REST interface.
 * @param version of its program.
 * @param gpus that it can use.
 */
public record PeerBroker(String id, int number, String name, long epoch, Instant heartbeat, Duration silence,
    long applied, String guest, String guestTls, String http, String version, List<PeerGpu> gpus) {
    /** Silence after which other brokers may take the vGPUs that are not in use. */
    public static final Duration MAX_SILENCE = Duration.ofSeconds(15);
    /** Name of no broker. */
    public static final String NONE = "";

    /** The same broker with another silence. */
    public PeerBroker withSilence(Duration other) {
        return new PeerBroker(id, number, name, epoch, heartbeat, other, applied, guest, guestTls, http, version, gpus);
    }

    /** The same broker with other values to publish. */
    public PeerBroker with(long newApplied, Addresses addresses, List<PeerGpu> newGpus) {
        return new PeerBroker(id, number, name, epoch, heartbeat, silence, newApplied, addresses.guest,
            addresses.guestTls, addresses.http, version, newGpus);
    }

    /** The addresses of a broker, as its row has them. */
    public record Addresses(String guest, String guestTls, String http) {}

    /** Whether it has been silent for too long to be relied on. */
    public boolean isSilent() {
        return silence.compareTo(MAX_SILENCE) > 0;
    }
}
