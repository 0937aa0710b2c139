package io.hawser.broker.stream;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** The clients of the stream. Thread-safe. */
final class Hub {
    /** Maximum duration of a stream; its client then opens a new one. */
    static final Duration LIFETIME = Duration.ofMinutes(30);
    /**
     * Interval of the comments, which detect dead connections, and of the checks whether clients are still authorized.
     */
    static final Duration ALIVE = Duration.ofSeconds(15);

    private record Entry(Client client, BooleanSupplier isAuthorized, long sinceNs) {}

    private final int maxClients;
    private final LongSupplier nowNs;
    private final Runnable wake;
    private final Set<Entry> clients = ConcurrentHashMap.newKeySet();
    private long aliveNs;

    /**
     * Makes a hub without clients.
     *
     * @param maxClients at a time.
     * @param wake runs when a client wants a picture.
     */
    Hub(int maxClients, LongSupplier nowNs, Runnable wake) {
        this.maxClients = maxClients;
        this.nowNs = nowNs;
        this.wake = wake;
        aliveNs = nowNs.getAsLong();
    }

    /** Whether the hub has its maximum of clients. */
    boolean isFull() {
        return clients.size() >= maxClients;
    }

    int size() {
        return clients.size();
    }

    /**
     * Opens a stream for a client, until its authorization ends. The executor runs the sending tasks, one after the
     * other.
     */
    Flow.Publisher<Frame> open(Executor executor, BooleanSupplier isAuthorized) {
        return subscriber -> {
            Entry[] entry = new Entry[1];
            Client client = new Client(subscriber, executor, wake, () -> clients.remove(entry[0]));
            entry[0] = new Entry(client, isAuthorized, nowNs.getAsLong());
            clients.add(entry[0]);
            subscriber.onSubscribe(client);
        };
    }

    /** Sends a frame to all clients that have a picture. */
    void send(Frame frame) {
        clients.forEach(entry -> entry.client.offer(frame));
    }

    /** Sends a picture to each client that waits for one; takes the picture only if such a client exists. */
    void sendPictures(Supplier<Frame> picture) {
        for (Entry entry : clients) {
            if (entry.client.canTakePicture()) {
                entry.client.offerPicture(picture.get());
            }
        }
    }

    /** Sends the comments, and ends streams without authorization or past their maximum duration. */
    void tick() {
        long now = nowNs.getAsLong();
        if (now - aliveNs >= ALIVE.toNanos()) {
            aliveNs = now;
            send(Frame.ALIVE);
            clients.stream().filter(entry -> !entry.isAuthorized.getAsBoolean())
                .forEach(entry -> entry.client.finish());
        }
        for (Entry entry : clients) {
            if (now - entry.sinceNs >= LIFETIME.toNanos()) {
                entry.client.finish();
            }
        }
    }

    /** Ends all streams. */
    void close() {
        clients.forEach(entry -> entry.client.finish());
    }
}
