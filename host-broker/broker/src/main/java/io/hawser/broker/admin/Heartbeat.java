package io.hawser.broker.admin;

import io.hawser.broker.model.VgpuException;
import io.hawser.broker.store.Notifications;
import java.sql.SQLException;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jboss.logging.Logger;

/** The thread that writes this broker's heartbeat and follows the changes of its pool. */
public final class Heartbeat implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Heartbeat.class);
    private static final long BEAT_NS = TimeUnit.SECONDS.toNanos(2);
    private static final long SETTLE_NS = TimeUnit.SECONDS.toNanos(5);
    /** Time for one look of a broker at the changes, so that all brokers together look 200 times a second at most. */
    private static final long LOOK_NS = TimeUnit.MILLISECONDS.toNanos(5);
    private static final long LEAST_PACE_NS = TimeUnit.MILLISECONDS.toNanos(50);
    /** Creations wait for looks, 2 s at most. */
    static final long MOST_PACE_NS = TimeUnit.SECONDS.toNanos(1);
    private static final int POLL_MS = 500; // also the time of a stop
    private static final long STOP_LIMIT_MS = 15_000;

    private final BrokerPool pool;
    private final PoolPlaces places;
    private final Acts acts;
    private final Errands errands;
    private final Notifications notifications;
    private final Thread thread = new Thread(this::run, "hawser-pool");
    private final AtomicBoolean isFollowing = new AtomicBoolean();
    private volatile boolean stopping;
    private long settledNs; // acts' thread only

    /** Starts the thread. The heartbeat before the first has been that of the registration. */
    Heartbeat(BrokerPool pool, PoolPlaces places, Acts acts, Errands errands, Notifications notifications) {
        this.pool = pool;
        this.places = places;
        this.acts = acts;
        this.errands = errands;
        this.notifications = notifications;
        thread.setDaemon(true);
        thread.start();
    }

    /** Least time from one look at the changes to the next; in a flood of changes one look serves several. */
    static long paceNs(int brokers) {
        return Math.clamp(brokers * LOOK_NS, LEAST_PACE_NS, MOST_PACE_NS);
    }

    private void run() {
        long nextNs = System.nanoTime();
        while (!stopping) {
            try {
                long now = System.nanoTime();
                if (now - nextNs >= 0) {
                    nextNs = now + BEAT_NS;
                    pool.beat();
                }
                if (isFollowing.compareAndSet(false, true)) {
                    acts.submit(this::follow).whenComplete((now2, failure) -> isFollowing.set(false));
                }
                errands.look();
            } catch (RuntimeException e) {
                LOG.error("the pool's thread has failed at a step, and goes on", e); // a silent broker loses its vGPUs
            }
            long lookedNs = System.nanoTime();
            notifications.await(POLL_MS);
            // Returns at once after a longer wait.
            LockSupport.parkNanos(lookedNs + paceNs(pool.brokers().size()) - System.nanoTime());
        }
    }

    private Void follow() throws VgpuException {
        try {
            pool.follow();
            long now = System.nanoTime();
            if (pool.needsPlaces() && (settledNs == 0 || now - settledNs > SETTLE_NS)) {
                settledNs = now;
                acts.write(Set.of(), connection -> null); // its begin places them
            }
            places.takeOver();
        } catch (SQLException e) {
            LOG.debugf("the pool's changes could not be read: %s", e.getMessage()); // the heartbeat reports it
        }
        return null;
    }

    @Override
    public void close() {
        stopping = true;
        try {
            thread.join(STOP_LIMIT_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (!thread.isAlive()) {
            notifications.close();
        }
    }
}
