package io.hawser.hypervisor;

import io.netty.channel.Channel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Who is heard at the door: so many connections at a time, the others in the order in which they came, unread. A host
 * that boots starts all its domains at once. On the door's event loop.
 */
final class Places {
    private final int places;
    private final int maxWaiting;
    private final Duration patience;
    private final Consumer<Channel> hear;
    private final Deque<Channel> waiting = new ArrayDeque<>();
    private int taken;

    /**
     * All free.
     *
     * @param patience after which somebody is heard in any case, to be told that it has been too long.
     * @param hear begins to read from a connection.
     */
    Places(int places, int maxWaiting, Duration patience, Consumer<Channel> hear) {
        this.places = places;
        this.maxWaiting = maxWaiting;
        this.patience = patience;
        this.hear = hear;
    }

    /** Somebody has come; nothing is read of what it sends before it is heard. */
    void enter(Channel guest) {
        if (taken < places) {
            seat(guest);
        } else if (waiting.size() < maxWaiting) {
            waiting.add(guest);
            var over = guest.eventLoop().schedule(() -> {
                if (waiting.remove(guest)) {
                    hear.accept(guest);
                }
            }, patience.toNanos(), TimeUnit.NANOSECONDS);
            guest.closeFuture().addListener(closed -> {
                over.cancel(false);
                waiting.remove(guest);
            });
        } else {
            guest.close(); // a hook says then that nobody answers
        }
    }

    private void seat(Channel guest) {
        taken++;
        // Now or later: this runs when the connection has ended, which gives its place to the next.
        guest.closeFuture().addListener(closed -> {
            taken--;
            Channel next = waiting.poll();
            if (next != null) {
                seat(next);
            }
        });
        hear.accept(guest);
    }
}
