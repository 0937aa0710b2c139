package io.hawser.broker.stream;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** Those who watch. Thread-safe. */
final class Hub {
    /** After this a stream ends, and who watches asks again. */
    static final Duration LIFETIME = Duration.ofMinutes(30);
    /** So often a comment, which finds connections that are dead, and a look whether who watches still may. */
    static final Duration ALIVE = Duration.ofSeconds(15);

    private record Entry(Client client, BooleanSupplier holds, long sinceNs) { }

    private final int maxClients;
    private final LongSupplier nowNs;
    private final Runnable wake;
    private final Set<Entry> clients = ConcurrentHashMap.newKeySet();
    private long aliveNs;

    /**
     * Makes a hub without clients.
     *
     * @param maxClients at a time.
     * @param wake told when a client wants a picture.
     */
    Hub(int maxClients, LongSupplier nowNs, Runnable wake) {
        this.maxClients = maxClients;
        this.nowNs = nowNs;
        this.wake = wake;
        aliveNs = nowNs.getAsLong();
    }

    /** Whether one more would be too many. */
    boolean isFull() {
        return clients.size() >= maxClients;
    }

    int size() {
        return clients.size();
    }

    /** A stream for one who watches while it may; sends by this executor, one frame after the other. */
    Flow.Publisher<Frame> open(Executor executor, BooleanSupplier holds) {
        return subscriber -> {
            Entry[] entry = new Entry[1];
            Client client = new Client(subscriber, executor, wake, () -> clients.remove(entry[0]));
            entry[0] = new Entry(client, holds, nowNs.getAsLong());
            clients.add(entry[0]);
            subscriber.onSubscribe(client);
        };
    }

    /** Gives all who are not behind a frame. */
    void give(Frame frame) {
        clients.forEach(entry -> entry.client.give(frame));
    }

    /** Gives those who wait for a picture one, which is made only when somebody does. */
    void givePictures(Supplier<Frame> picture) {
        for (Entry entry : clients) {
            if (entry.client.canTakePicture()) {
                entry.client.givePicture(picture.get());
            }
        }
    }

    /** Shows that the broker lives, and ends what has lasted long enough. */
    void tick() {
        long now = nowNs.getAsLong();
        if (now - aliveNs >= ALIVE.toNanos()) {
            aliveNs = now;
            give(Frame.ALIVE);
            clients.stream().filter(entry -> !entry.holds.getAsBoolean()).forEach(entry -> entry.client.finish());
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
