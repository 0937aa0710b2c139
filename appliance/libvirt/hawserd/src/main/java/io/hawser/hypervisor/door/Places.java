package io.hawser.hypervisor.door;

import io.netty.channel.Channel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Limits how many connections are served at a time. Others wait unread, in order of arrival: a booting host starts all
 * its domains at once. Runs on the door's event loop.
 */
final class Places {
    private final int places;
    private final int maxWaiting;
    private final Duration patience;
    private final Consumer<Channel> serve;
    private final Deque<Channel> waiting = new ArrayDeque<>();
    private int taken;

    /**
     * @param patience the longest wait. A connection that has waited that long is read anyway, so that it gets an
     *     error as answer.
     * @param serve begins to read from a connection.
     */
    Places(int places, int maxWaiting, Duration patience, Consumer<Channel> serve) {
        this.places = places;
        this.maxWaiting = maxWaiting;
        this.patience = patience;
        this.serve = serve;
    }

    /** Takes a new connection. Nothing is read from it before {@code serve}. */
    void enter(Channel guest) {
        if (taken < places) {
            seat(guest);
        } else if (waiting.size() < maxWaiting) {
            waiting.add(guest);
            var over = guest.eventLoop().schedule(() -> {
                if (waiting.remove(guest)) {
                    serve.accept(guest);
                }
            }, patience.toNanos(), TimeUnit.NANOSECONDS);
            guest.closeFuture().addListener(closed -> {
                over.cancel(false);
                waiting.remove(guest);
            });
        } else {
            guest.close(); // the hook then reports that nobody answers
        }
    }

    private void seat(Channel guest) {
        taken++;
        // The listener runs at once if the connection has ended already. It gives the place to the next connection.
        guest.closeFuture().addListener(closed -> {
            taken--;
            Channel next = waiting.poll();
            if (next != null) {
                seat(next);
            }
        });
        serve.accept(guest);
    }
}
