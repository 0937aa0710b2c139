package io.hawser.broker.admin;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.door.PeerLinks;
import io.hawser.broker.machine.PrivateFile;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.move.Moves;
import io.hawser.broker.move.Receptions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.PeerStore;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.VgpuTable;
import io.netty.channel.EventLoop;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/** Makes a broker a member of the pool of its database. */
public final class Membership implements AutoCloseable {
    private static final long SESSIONS_OF_A_BROKER = 1_000_000_000; // from one start to the next
    private static final int MAX_NAME_CHARACTERS = 63;
    private static final int MAX_ID_BYTES = 64;
    private static final long TICK_MS = 1000;

    private final BrokerPool pool;
    private final PoolPlaces places;
    private final Whereabouts whereabouts;
    private final Acts acts;
    private final Errands errands;
    private final Database database;
    private final Addressing addressing;
    private Heartbeat heartbeat;

    /** The parts of a broker that a pool concerns; each states its threads. */
    public record Parts(EventLoop loop, Acts acts, Database database, VgpuTable vgpus, TokenTable tokens,
        VgpuService service, TokenService tokenService, SessionRegistry sessions, Predicate<String> hasRegion,
        Moves moves, Receptions receptions, MoveService moveService) {}

    /** The host by which guests reach this broker. */
    private record Addressing(String host) {
        /** The address with a bound endpoint's port; empty for an empty endpoint. */
        String of(String endpoint) {
            return endpoint.isEmpty() ? "" : (host.indexOf(':') >= 0 ? "[" + host + "]" : host)
                + endpoint.substring(endpoint.lastIndexOf(':'));
        }
    }

    /**
     * Registers the broker's start.
     *
     * @param stateDir has the broker's id.
     * @return the broker; null with H2, whose broker is alone.
     * @throws IllegalArgumentException when a setting is invalid.
     */
    public static PeerBroker register(BrokerConfig config, Database database, Path stateDir)
        throws IOException, SQLException {
        if (database.kind() != Database.Kind.POSTGRESQL) {
            return null;
        }
        String name = config.broker().name().map(String::strip).filter(n -> !n.isEmpty())
            .orElseGet(Membership::hostName);
        if (name.length() > MAX_NAME_CHARACTERS || name.chars().anyMatch(c -> c <= ' ' || c > '~')) {
            throw new IllegalArgumentException("hawser.broker.name must be 1.." + MAX_NAME_CHARACTERS
                + " printable characters: characters=" + name.length());
        }
        PeerBroker me = new PeerBroker(id(stateDir.resolve("broker.id")), 0, name, 0, Instant.EPOCH, Duration.ZERO, 0,
            "", "", "", version(), List.of());
        return database.transact(connection -> {
            PeerStore.lock(connection);
            return PeerStore.register(connection, me);
        });
    }

    private static String version() {
        String version = Membership.class.getPackage().getImplementationVersion();
        return version == null ? "" : version; // in tests, which run from class files
    }

    private static String id(Path file) throws IOException {
        if (Files.notExists(file)) {
            PrivateFile.write(file, UUID.randomUUID() + "\n");
        }
        String text = PrivateFile.read(file, MAX_ID_BYTES).strip();
        try {
            return UUID.fromString(text).toString();
        } catch (IllegalArgumentException e) {
            throw new IOException("the broker's id must be a UUID: path=" + file, e);
        }
    }

    private static String hostName() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            throw new IllegalArgumentException("the machine has no host name, so hawser.broker.name must be set", e);
        }
    }

    /** Joins the parts of a registered broker to the pool; {@link #begin} begins its work. */
    public Membership(BrokerConfig config, PeerBroker me, Parts parts) {
        acts = parts.acts;
        database = parts.database;
        addressing = new Addressing(config.broker().address().map(String::strip).filter(a -> !a.isEmpty())
            .orElseGet(() -> isAny(config.listen().host()) ? hostName() : config.listen().host()));
        pool = new BrokerPool(parts.loop, acts, database, parts.vgpus, parts.tokens, parts.service,
            parts.hasRegion, parts.receptions, me);
        places = new PoolPlaces(pool, acts, new AppliedWaits(database), parts.vgpus);
        whereabouts = new Whereabouts(parts.loop, acts, pool);
        errands = new Errands(parts.loop, database, pool, parts.service, parts.sessions);
        parts.moveService.join(new Transfers(new Transfers.Parts(parts.loop, acts, database, parts.service, parts.moves,
            parts.receptions, new PeerLinks(parts.loop, config.tls().authorities()), parts.hasRegion), pool, errands,
            places));
        acts.share(pool);
        parts.service.join(pool, places, errands);
        parts.tokenService.join(pool, places);
        parts.sessions.join(pool, (me.number() - 1) * SESSIONS_OF_A_BROKER + 1);
        parts.loop.scheduleAtFixedRate(pool::tick, 0, TICK_MS, TimeUnit.MILLISECONDS);
    }

    private static boolean isAny(String address) {
        return address.equals("0.0.0.0") || address.equals("::");
    }

    /** The number of the broker to which a session belongs. */
    public static int brokerOfSession(long id) {
        return (int) ((id - 1) / SESSIONS_OF_A_BROKER) + 1;
    }

    /**
     * Reads the pool and starts the heartbeat, when the doors are open.
     *
     * @param guest bound address for guests.
     * @param guestTls bound address for guests with TLS; empty without TLS.
     */
    public void begin(String guest, String guestTls) {
        publish(guest, guestTls, "");
        pool.beat();
        acts.submit(() -> {
            pool.committed();
            return null;
        }).join();
        heartbeat = new Heartbeat(pool, places, acts, errands,
            database.notifications(PeerStore.CHANNEL));
    }

    /** Publishes the addresses with the next heartbeat. */
    public void publish(String guest, String guestTls, String http) {
        pool.setAddresses(new PeerBroker.Addresses(addressing.of(guest), addressing.of(guestTls), http));
    }

    /** The pool. */
    public BrokerPool pool() {
        return pool;
    }

    /** The removal of brokers from the pool. */
    public PoolPlaces places() {
        return places;
    }

    /** The other brokers' addresses for guests. */
    public Whereabouts whereabouts() {
        return whereabouts;
    }

    /** Acts on what other brokers have. */
    public Errands errands() {
        return errands;
    }

    /** Ends the heartbeat. The broker counts as silent after a while. */
    @Override
    public void close() {
        if (heartbeat != null) {
            heartbeat.close();
        }
    }

    /** Leaves the vGPUs to the other brokers, after the end of all sessions and before that of the acts. */
    public void leave() {
        close();
        pool.unmarkAll(); // the end of the acts waits for it
    }
}
