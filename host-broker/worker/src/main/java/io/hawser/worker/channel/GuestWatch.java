package io.hawser.worker.channel;

import io.hawser.shm.os.EventPoll;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** Watches a guest's connection on a thread of its own, because the session thread may be blocked in the driver. */
public final class GuestWatch {
    /** Seconds before the first probe of an idle connection: a vanished machine is noticed within half a minute. */
    public static final int KEEPALIVE_IDLE_S = 10;
    /** Seconds between two probes. */
    public static final int KEEPALIVE_INTERVAL_S = 5;
    /** Unanswered probes that end the connection. */
    public static final int KEEPALIVE_PROBES = 4;

    private static final Logger LOG = System.getLogger(GuestWatch.class.getName());
    private static final long INTERVAL_MS = 500;
    private static final long HANG_LIMIT_MS = 2000; // as the broker's default for a worker that must end

    private GuestWatch() {}

    /**
     * Starts the thread.
     *
     * @param socket the guest's connection.
     * @param isOpen whether the socket is still open in this process.
     * @param session the session thread.
     * @param hung called once if the guest has gone and the session thread has done nothing for 2 seconds since.
     */
    public static void start(int socket, BooleanSupplier isOpen, Executor session, Runnable hung) {
        Thread watch = new Thread(() -> watch(socket, isOpen, session, hung), "guest-watch");
        watch.setDaemon(true);
        watch.start();
    }

    private static void watch(int socket, BooleanSupplier isOpen, Executor session, Runnable hung) {
        try {
            while (isOpen.getAsBoolean()) {
                Thread.sleep(INTERVAL_MS);
                if (isOpen.getAsBoolean() && EventPoll.isHungUp(socket)) {
                    CountDownLatch alive = new CountDownLatch(1);
                    session.execute(alive::countDown);
                    if (!alive.await(HANG_LIMIT_MS, TimeUnit.MILLISECONDS)) {
                        hung.run();
                    }
                    return; // a session thread that runs sees the end of the connection itself
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends
        } catch (RejectedExecutionException e) {
            LOG.log(Level.DEBUG, "the session thread has ended", e);
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the guest cannot be watched: {0}", e.getMessage());
        }
    }
}
