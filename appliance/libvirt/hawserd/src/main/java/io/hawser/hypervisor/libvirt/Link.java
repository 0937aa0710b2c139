package io.hawser.hypervisor.libvirt;

import com.sun.jna.Callback;
import com.sun.jna.Pointer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.libvirt.Connect;
import org.libvirt.LibvirtException;
import org.libvirt.event.ConnectionCloseReason;

/** One connection to libvirt, until it breaks. Any thread. */
final class Link extends Connect {
    /** Interval of the keepalive messages to libvirtd. */
    private static final int KEEPALIVE_S = 5;
    /** The connection ends after so many unanswered keepalive messages. */
    private static final int KEEPALIVE_COUNT = 3;
    /** A call that lasts longer than this after the connection's end keeps it open until the process ends. */
    private static final int CLOSE_LIMIT_S = 60;

    private final CompletableFuture<String> ended = new CompletableFuture<>();
    // libvirt does not protect a connection that a call uses, so it may be closed only between calls.
    private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();
    private final List<Integer> registrations = new ArrayList<>();
    private boolean closed;

    Link(String uri) throws LibvirtException {
        super(uri, false);
    }

    /** Starts the events and the keepalive. Called once. */
    void watch(Callbacks callbacks) throws LibvirtException {
        registerCloseListener((connection, reason) -> ended.complete(reasonOf(reason)));
        for (Map.Entry<Integer, Callback> callback : callbacks.byEvent().entrySet()) {
            int registration = LibvirtCalls.LIBVIRT.virConnectDomainEventRegisterAny(pointer(), null,
                callback.getKey(), callback.getValue(), null, null);
            if (registration < 0) {
                throw Failures.last("libvirt cannot report its event " + callback.getKey(), false);
            }
            registrations.add(registration);
        }
        setKeepAlive(KEEPALIVE_S, KEEPALIVE_COUNT);
    }

    private static String reasonOf(ConnectionCloseReason reason) {
        return switch (reason) {
            case EOF -> "libvirtd closed the connection";
            case KEEPALIVE -> "libvirtd did not answer for " + KEEPALIVE_S * KEEPALIVE_COUNT + " s";
            case CLIENT -> "the connection to libvirtd was closed";
            case ERROR, UNKNOWN -> "the connection to libvirtd broke";
        };
    }

    /** The native connection, for {@link LibvirtCalls}. */
    Pointer pointer() {
        return vcp.getPointer();
    }

    /** Waits for the connection's end; returns the reason in words. */
    String awaitEnd() {
        return ended.join();
    }

    /** Whether the connection has ended. */
    boolean hasEnded() {
        return ended.isDone();
    }

    /** Makes {@link #awaitEnd} return. */
    void end(String reason) {
        ended.complete(reason);
    }

    /** Begins a call; false if the connection is closed. After true the same thread must call {@link #endUse}. */
    boolean beginUse() {
        use.readLock().lock();
        if (closed) {
            use.readLock().unlock();
            return false;
        }
        return true;
    }

    /** Ends a call. */
    void endUse() {
        use.readLock().unlock();
    }

    /** Closes the connection after its calls have ended; leaves it open if a call does not end. */
    void dispose() throws LibvirtException, InterruptedException {
        if (!use.writeLock().tryLock(CLOSE_LIMIT_S, TimeUnit.SECONDS)) {
            return;
        }
        try {
            closed = true;
            for (int registration : registrations) {
                LibvirtCalls.LIBVIRT.virConnectDomainEventDeregisterAny(pointer(), registration);
            }
            unregisterCloseListener();
            close();
        } finally {
            use.writeLock().unlock();
        }
    }
}
