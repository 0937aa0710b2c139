package io.hawser.hypervisor.libvirt;

import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import io.hawser.hypervisor.model.Driver;
import java.lang.System.Logger.Level;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.libvirt.LibvirtException;

/** A connection to one driver of libvirt, which is restored whenever it breaks. Any thread. */
final class Connection implements AutoCloseable {
    private static final System.Logger LOGGER = System.getLogger(Connection.class.getName());
    private static final long FIRST_PAUSE_MS = 100;
    private static final long LONGEST_PAUSE_MS = 5_000;
    private static final int STOP_LIMIT_MS = 5_000;
    /** Longer than a hook may hold a domain (25 s) and than libvirt waits for a domain that is in use (30 s). */
    private static final int CALL_LIMIT_S = 60;

    /** A call to libvirt. */
    interface Call<T> {
        /** Runs in a thread of the connection; the link stays open until it returns. */
        T on(Link link) throws LibvirtException;
    }

    /** Receives the connection's changes of state. */
    interface Watcher {
        /** The connection is up; runs in the connection's thread. */
        void connected();

        /** The connection is lost. */
        void disconnected(String reason);
    }

    private final String uri;
    private final Watcher watcher;
    private final Callbacks callbacks;
    // Platform threads: a native call of libvirt would block a virtual thread's carrier.
    private final ExecutorService calls;
    private final Object pause = new Object();
    private volatile Link link;
    private volatile String away;
    private volatile String hostUuid;
    private volatile boolean closed;
    private Thread thread;

    Connection(String uri, LinkEvents events, Watcher watcher) {
        this.uri = uri;
        this.watcher = watcher;
        this.callbacks = new Callbacks(events);
        this.away = "not connected to " + uri + " yet";
        this.calls = Executors.newCachedThreadPool(Thread.ofPlatform().name("libvirt-call-", 1).daemon().factory());
    }

    /** The driver: {@code xen:///system} is Xen, every other URI QEMU. */
    Driver driver() {
        return uri.startsWith("xen") ? Driver.XEN : Driver.QEMU;
    }

    void start() {
        thread = Thread.ofPlatform().name("libvirt-" + uri).daemon().start(this::run);
    }

    boolean isConnected() {
        Link current = link;
        return current != null && !current.hasEnded();
    }

    /** The host's UUID, after the first connection. */
    String hostUuid() {
        if (hostUuid == null) {
            throw new HypervisorException(Reason.DISCONNECTED, away);
        }
        return hostUuid;
    }

    /**
     * Runs a call and waits for its result.
     *
     * @param what the failure in words, for the message: "domain a cannot be read".
     * @throws HypervisorException also after a minute without an answer; the call may still take effect.
     */
    <T> T call(String what, Call<T> call) {
        Link current = link;
        if (current == null || current.hasEnded()) {
            throw new HypervisorException(Reason.DISCONNECTED, what + ": " + away);
        }
        Future<T> answer = calls.submit(() -> {
            if (!current.beginUse()) {
                throw new HypervisorException(Reason.DISCONNECTED, what + ": " + away);
            }
            try {
                return call.on(current);
            } catch (LibvirtException failed) {
                throw Failures.of(what, failed, current.hasEnded() || !isAlive(current));
            } finally {
                current.endUse();
            }
        });
        try {
            return answer.get(CALL_LIMIT_S, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            throw new HypervisorException(Reason.TIMEOUT, what + ": libvirt did not answer for " + CALL_LIMIT_S
                + " s", late);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new HypervisorException(Reason.DISCONNECTED, what + ": hawserd is stopping", interrupted);
        } catch (ExecutionException failed) {
            switch (failed.getCause()) {
                case HypervisorException known -> throw known;
                case RuntimeException bug -> throw bug;
                case Error bug -> throw bug;
                default -> throw new IllegalStateException(failed.getCause());
            }
        }
    }

    private static boolean isAlive(Link link) {
        try {
            return link.isAlive();
        } catch (LibvirtException dead) {
            return false;
        }
    }

    private void run() {
        long pauseMs = FIRST_PAUSE_MS;
        String logged = null;
        while (!closed) {
            Link made = null;
            try {
                made = new Link(uri);
                made.watch(callbacks);
                hostUuid = HostUuid.of(made.getCapabilities());
                link = made;
                LOGGER.log(Level.INFO, "connected to {0}", uri);
                watcher.connected();
                pauseMs = FIRST_PAUSE_MS;
                logged = null;
                if (closed) {
                    made.end("hawserd is stopping");
                }
                away = made.awaitEnd();
                if (!closed) {
                    LOGGER.log(Level.WARNING, "{0}: {1}; reconnecting", uri, away);
                }
            } catch (LibvirtException | HypervisorException failed) {
                away = "cannot connect to " + uri + ": " + failed.getMessage();
                if (!away.equals(logged)) {
                    LOGGER.log(Level.WARNING, away + "; trying again");
                }
                logged = away;
            } finally {
                boolean was = link != null;
                link = null;
                if (was) {
                    watcher.disconnected(away);
                }
                dispose(made);
            }
            pauseFor(pauseMs);
            pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
        }
    }

    private void dispose(Link made) {
        if (made == null) {
            return;
        }
        try {
            made.dispose();
        } catch (LibvirtException failed) {
            LOGGER.log(Level.DEBUG, "closing a connection that was already lost", failed);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void pauseFor(long ms) {
        long leftNs = TimeUnit.MILLISECONDS.toNanos(ms);
        long endNs = System.nanoTime() + leftNs;
        synchronized (pause) {
            try {
                while (!closed && leftNs > 0) {
                    TimeUnit.NANOSECONDS.timedWait(pause, leftNs);
                    leftNs = endNs - System.nanoTime();
                }
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                closed = true;
            }
        }
    }

    @Override
    public void close() {
        synchronized (pause) {
            closed = true;
            pause.notifyAll();
        }
        Link current = link;
        if (current != null) {
            current.end("hawserd is stopping");
        }
        try {
            if (thread != null) {
                thread.join(STOP_LIMIT_MS);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        calls.shutdown();
    }
}
