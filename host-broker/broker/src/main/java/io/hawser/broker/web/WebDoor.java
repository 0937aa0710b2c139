package io.hawser.broker.web;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.machine.LogLimiter;
import io.hawser.broker.model.PeerName;
import io.hawser.broker.model.StartException;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.posix.SocketOwner;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jboss.logging.Logger;

/**
 * The door of the REST interface and the page. It decides at accept whether a connection gets a place, and counts and
 * logs its refusals. {@link DoorTransport} installs the door in Vert.x's server. Thread-safe.
 */
@ApplicationScoped
public class WebDoor {
    private static final Logger LOG = Logger.getLogger(WebDoor.class);
    private static final int LOG_LINES_A_SECOND = 20;
    private static final int ROOT = 0;

    private final RequestLimits requestLimits;
    private final Places places;
    private final KnownPeers known;
    private final Map<WebRefusal, Counter> refusals = new EnumMap<>(WebRefusal.class);
    private final LogLimiter logLimiter = new LogLimiter(LOG_LINES_A_SECOND, System::nanoTime);
    private final AtomicBoolean usersUnknown = new AtomicBoolean();
    private final int ownUser = Posix.userId();

    /**
     * Reads the limits.
     *
     * @throws StartException when {@link HttpLimits} rejects a limit.
     */
    @Inject
    public WebDoor(BrokerConfig config, MeterRegistry registry) {
        BrokerConfig.Http http = config.http();
        HttpLimits.check(http);
        requestLimits = new RequestLimits(Math.toIntExact(http.maxHeadSize().asLongValue()), http.maxHeadFields(),
            http.maxPipelined(), http.requestTimeout());
        places = new Places(http.maxConnections(), http.reservedConnections(), http.maxPerPeer());
        known = new KnownPeers(http.knownPeerTime().toNanos(), System::nanoTime);
        for (WebRefusal refusal : WebRefusal.values()) {
            refusals.put(refusal, Counter.builder("hawser.http.refused.connections")
                .description("Connections to the REST interface that its door closed").tag("reason", refusal.label())
                .register(registry));
        }
        for (Standing standing : Standing.values()) {
            Gauge.builder("hawser.http.connections", places, p -> p.count(standing))
                .description("Connections to the REST interface")
                .tag("standing", standing.name().toLowerCase(Locale.ROOT)).register(registry);
        }
    }

    /** Limits of requests. */
    RequestLimits requestLimits() {
        return requestLimits;
    }

    /**
     * Requests a place for a connecting peer. The door logs and counts a refusal.
     *
     * @param here the broker's end of the connection.
     * @return null when the peer gets no place.
     */
    Places.Place enter(InetSocketAddress peer, InetSocketAddress here) {
        String name = PeerName.of(peer.getAddress());
        Standing standing = known.has(name) ? Standing.TRUSTED : Standing.STRANGER;
        if (peer.getAddress().isLoopbackAddress()) {
            OptionalInt user = user(peer, here);
            name = user.isEmpty() ? name : name + " uid=" + user.getAsInt();
            standing = user.isPresent() && (user.getAsInt() == ROOT || user.getAsInt() == ownUser)
                ? Standing.TRUSTED : Standing.LOCAL;
        }
        return switch (places.enter(name, standing)) {
            case Places.Place place -> place;
            case Places.Full full -> {
                recordRefusal(full.refusal(), peer, full.detail());
                yield null;
            }
        };
    }

    /**
     * The user of a local peer. All users of this machine share the loopback addresses, so the door treats each user as
     * a separate peer.
     */
    private OptionalInt user(InetSocketAddress peer, InetSocketAddress here) {
        try {
            return SocketOwner.of(peer, here);
        } catch (PosixException e) {
            if (!usersUnknown.getAndSet(true)) {
                LOG.warnf("users of this machine share their places at the REST interface, because the kernel does not "
                    + "report the users of sockets: %s", e.getMessage());
            }
            return OptionalInt.empty();
        }
    }

    /**
     * Notes that a request of this peer had a valid login.
     *
     * @param address the peer's IP address.
     */
    public void noteLogin(String address) {
        known.add(PeerName.of(InetAddress.ofLiteral(address)));
    }

    /** Whether this peer had a recent valid login. */
    public boolean isKnown(String address) {
        return known.has(PeerName.of(InetAddress.ofLiteral(address)));
    }

    /** Logs and counts a connection that the door closes. */
    void recordRefusal(WebRefusal refusal, InetSocketAddress peer, String detail) {
        synchronized (logLimiter) {
            if (logLimiter.allows()) {
                long dropped = logLimiter.takeDropped();
                LOG.warnf("REST connection refused: peer=%s:%d reason=%s: %s%s", peer.getAddress().getHostAddress(),
                    peer.getPort(), refusal.label(), detail, dropped == 0 ? "" : " (and " + dropped
                        + " more not logged)");
            }
        }
        refusals.get(refusal).increment(); // after the log line, so that a reader of the count finds the line
    }
}
