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

/** One connection to libvirt from when it is made until it is lost. Any thread. */
final class Link extends Connect {
    /** libvirtd is asked every so many seconds whether it is there. */
    private static final int KEEPALIVE_S = 5;
    /** So many questions without an answer end the connection. */
    private static final int KEEPALIVE_COUNT = 3;
    /** A connection that is in use for longer after its end stays open until the process ends. */
    private static final int CLOSE_LIMIT_S = 60;

    private final CompletableFuture<String> ended = new CompletableFuture<>();
    // libvirt does not hold a connection for a call that is going on: it may be closed only when there is none.
    private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();
    private final List<Integer> registrations = new ArrayList<>();
    private boolean closed;

    /** Connects. */
    Link(String uri) throws LibvirtException {
        super(uri, false);
    }

    /** Begins to tell of events and to watch whether libvirtd is there. Once. */
    void watch(Callbacks callbacks) throws LibvirtException {
        registerCloseListener((connection, reason) -> ended.complete(reasonOf(reason)));
        for (Map.Entry<Integer, Callback> callback : callbacks.byEvent().entrySet()) {
            int registration = LibvirtCalls.LIBVIRT.virConnectDomainEventRegisterAny(pointer(), null,
                callback.getKey(), callback.getValue(), null, null);
            if (registration < 0) {
                throw Failures.last("libvirt does not tell of its event " + callback.getKey(), false);
            }
            registrations.add(registration);
        }
        setKeepAlive(KEEPALIVE_S, KEEPALIVE_COUNT);
    }

    private static String reasonOf(ConnectionCloseReason reason) {
        return switch (reason) {
            case EOF -> "libvirtd has ended the connection";
            case KEEPALIVE -> "libvirtd has not answered for " + KEEPALIVE_S * KEEPALIVE_COUNT + " s";
            case CLIENT -> "the connection to libvirtd was closed";
            case ERROR, UNKNOWN -> "the connection to libvirtd broke";
        };
    }

    /** The native connection, for {@link LibvirtCalls}. */
    Pointer pointer() {
        return vcp.getPointer();
    }

    /** Waits for the connection's end; returns what ended it, in words. */
    String awaitEnd() {
        return ended.join();
    }

    /** Whether the connection is known to be at its end. */
    boolean hasEnded() {
        return ended.isDone();
    }

    /** Ends the waiting of {@link #awaitEnd}. */
    void end(String reason) {
        ended.complete(reason);
    }

    /** Begins a call; false when the connection is closed. Each true needs an {@link #endUse} by the same thread. */
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

    /** Closes it when the calls that are going on have ended; leaves it open when one of them does not. */
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
