package io.hawser.hypervisor.tenant;

import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import java.time.Duration;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;

/**
 * hawserd's own state of a domain, in addition to libvirt's and the broker's; hawserd may lose all of it. Its parts
 * change independently. The events are methods, and each throws {@link IllegalStateException} outside of its states.
 *
 * <pre>
 *          from           event                                        to
 * arrival  any            migrationAnnounced                           ANNOUNCED
 *          any            startRequested                               STARTING
 *          any            observedRunning, startAbandoned              SETTLED
 *          STARTING       stopped                                      SETTLED
 * device   any but BUSY   takeUpWishChange, plugCommandBegan           WANTED
 *          any but BUSY   operationBegan, unplugCommandBegan           BUSY
 *          any but BUSY   plugRejected                                 FAILED
 *          any but BUSY   startRequested                               IDLE
 *          WANTED         deviceSeen                                   IDLE
 *          BUSY           operationSucceeded, unplugCommandEnded       IDLE
 *          BUSY           operationFailed                              FAILED
 * </pre>
 *
 * <p>A thread holds the tenant ({@link #hold}) during changes of the broker and of files for this domain. Each method
 * needs that, unless its comment permits any thread. No thread holds it during a call of libvirt for this domain:
 * libvirt may wait for a hook, and the hook waits for the tenant. {@link Feedback} has a lock of its own, because
 * commands wait and operations report without the tenant.
 */
public final class Tenant {
    /** How long a plug or unplug waits for the guest, unless a command names another time. */
    public static final Duration PLUG_TIMEOUT = Duration.ofSeconds(30);
    /** How long an announced migration stays valid before the domain starts. */
    static final Duration MIGRATION_LIMIT = Duration.ofMinutes(10);

    /** Whether the domain is about to run here. */
    private sealed interface Arrival {}

    /** No start and no migration is in progress, as far as hawserd knows. */
    private record Settled() implements Arrival {}

    /** A hook has announced a migration to this host. */
    private record Announced(long sinceNs) implements Arrival {}

    /** A hook has let the domain start, and no pass has found it running yet. */
    private record Starting(long sinceNs, Driver driver) implements Arrival {}

    /** The plan of hawserd for the device of the running domain. */
    private sealed interface Device {}

    /** Passes follow the metadata; they do not plug in a device that was removed. */
    private record Idle() implements Device {}

    /** The next pass plugs the device in, even if it was removed. */
    private record Wanted() implements Device {}

    /** A command or an operation works on the device; passes leave the domain alone. */
    private record Busy() implements Device {}

    /** The wish could not be plugged in; hawserd tries it again only on request. */
    private record Failed(Wish wish, String reason) implements Device {}

    private final ReentrantLock lock = new ReentrantLock();
    private final UUID uuid;
    private final Feedback feedback = new Feedback();
    /** System.nanoTime() of the last change of the metadata's wish that no pass has taken up; null for none. */
    private final AtomicReference<Long> wishChangedNs = new AtomicReference<>();
    private volatile String name;
    private boolean forgotten;
    private Arrival arrival = new Settled();
    private Device device = new Idle();
    private Duration plugTimeout = PLUG_TIMEOUT;
    private boolean changed;
    private long changedNs; // System.nanoTime(); valid if changed
    private Wish provided;
    private boolean fileKept;
    private long fileKeptSinceNs; // System.nanoTime(); valid if fileKept
    private VgpuStatus published;

    Tenant(UUID uuid, String name) {
        this.uuid = uuid;
        this.name = name;
    }

    /** The domain's UUID. Any thread. */
    public UUID uuid() {
        return uuid;
    }

    /** The domain's name; empty if hawserd does not know it. Any thread. */
    public String name() {
        return name;
    }

    /** The domain's name, or its UUID, for the log. Any thread. */
    public String label() {
        String known = name;
        return known.isEmpty() ? uuid.toString() : known;
    }

    /** The domain has this name. Any thread. */
    void named(String known) {
        name = known;
    }

    /** The reports to waiting commands. Any thread. */
    public Feedback feedback() {
        return feedback;
    }

    /** Waits for other threads, then holds the tenant. */
    public void hold() {
        lock.lock();
    }

    /** The same with a limit; false if another thread held the tenant for so long. */
    boolean hold(Duration limit) throws InterruptedException {
        return lock.tryLock(limit.toNanos(), TimeUnit.NANOSECONDS);
    }

    /** Ends {@link #hold}. */
    public void release() {
        lock.unlock();
    }

    private void requireHeld() {
        require(lock.isHeldByCurrentThread(), "the thread must hold the tenant");
    }

    private void requireLive() {
        requireHeld();
        require(!forgotten, "a forgotten tenant must not change");
    }

    private void require(boolean holds, String rule) {
        if (!holds) {
            throw new IllegalStateException(rule + ": domain=" + label() + " arrival=" + arrival + " device=" + device);
        }
    }

    /**
     * Tenants removes this tenant; only while no operation works on the device. A thread that waited for this tenant
     * must get the domain's new one.
     */
    void forget() {
        requireLive();
        require(!isBusy(), "a tenant must not be forgotten during an operation");
        forgotten = true;
        feedback.end();
    }

    /** Whether Tenants has removed this tenant. */
    public boolean isForgotten() {
        requireHeld();
        return forgotten;
    }

    /** Earlier observations of the domain are out of date. */
    private void change(long nowNs) {
        changed = true;
        changedNs = nowNs;
    }

    /** Whether a hook, a command or an operation has changed anything since the tenant was made. */
    public boolean hasChanged() {
        requireHeld();
        return changed;
    }

    /** Whether an observation of the domain is newer than the last change. */
    public boolean isUpToDate(long seenNs) {
        requireHeld();
        return !changed || seenNs - changedNs > 0;
    }

    /** A hook announces a migration to this host: any state to ANNOUNCED. */
    public void migrationAnnounced(long nowNs) {
        requireLive();
        arrival = new Announced(nowNs);
        change(nowNs);
    }

    /**
     * A hook asks whether the domain may start: any state to STARTING. The device's state of an earlier run is void.
     * An operation that still works on it continues.
     *
     * @return whether the domain comes by an announced migration.
     */
    public boolean startRequested(Driver driver, long nowNs) {
        requireLive();
        boolean migrates = arrival instanceof Announced announced
            && nowNs - announced.sinceNs < MIGRATION_LIMIT.toNanos();
        arrival = new Starting(nowNs, driver);
        if (!isBusy()) {
            device = new Idle();
        }
        published = null;
        return migrates;
    }

    /** The hook of a start has its answer: STARTING, from now on. */
    public void startAnswered(long nowNs) {
        requireLive();
        require(arrival instanceof Starting, "a start must be requested before its answer");
        arrival = new Starting(nowNs, ((Starting) arrival).driver);
        change(nowNs);
    }

    /** A pass finds the domain running: any state to SETTLED. */
    public void observedRunning() {
        requireLive();
        arrival = new Settled();
    }

    /** A pass finds that the domain does not run, after the time for its start: any state to SETTLED. */
    public void startAbandoned() {
        requireLive();
        arrival = new Settled();
    }

    /** A hook reports the domain's end: STARTING to SETTLED. A migration that is announced is of a later start. */
    public void stopped(long nowNs) {
        requireLive();
        if (arrival instanceof Starting) {
            arrival = new Settled();
        }
        published = null;
        change(nowNs);
    }

    /**
     * Whether a domain that does not run may soon start.
     *
     * @param startLimit the longest time from a start's answer until libvirt shows the domain as running.
     */
    public boolean isExpected(long nowNs, Function<Driver, Duration> startLimit) {
        requireHeld();
        return switch (arrival) {
            case Settled settled -> false;
            case Announced announced -> nowNs - announced.sinceNs < MIGRATION_LIMIT.toNanos();
            case Starting starting -> nowNs - starting.sinceNs < startLimit.apply(starting.driver).toNanos();
        };
    }

    /** An event reports that the metadata's wish has changed. Any thread; does not wait. */
    public void wishChanged(long nowNs) {
        wishChangedNs.set(nowNs);
    }

    /** A pass takes up a change of the wish: any state but BUSY to WANTED. While BUSY the change stays noted. */
    public void takeUpWishChange() {
        requireLive();
        if (isBusy()) {
            return;
        }
        Long when = wishChangedNs.getAndSet(null);
        if (when != null) {
            device = new Wanted();
            if (isUpToDate(when)) {
                change(when);
            }
        }
    }

    /**
     * A command asks for the device: any state but BUSY to WANTED.
     *
     * @param timeout how long plugs and unplugs wait for the guest from now on.
     */
    public void plugCommandBegan(Duration timeout, long nowNs) {
        commandBegan(new Wanted(), timeout, nowNs);
    }

    /** A command removes the device itself: any state but BUSY to BUSY. */
    public void unplugCommandBegan(Duration timeout, long nowNs) {
        commandBegan(new Busy(), timeout, nowNs);
    }

    private void commandBegan(Device next, Duration timeout, long nowNs) {
        requireLive();
        require(!isBusy(), "one command or operation must end before the next");
        device = next;
        plugTimeout = timeout;
        feedback.begin();
        change(nowNs);
    }

    /** The command that removes the device has ended: BUSY to IDLE. */
    public void unplugCommandEnded(long nowNs) {
        operationEnded(new Idle(), nowNs);
    }

    /** An operation that plugs the device in or out begins: any state but BUSY to BUSY. */
    public void operationBegan() {
        requireLive();
        require(!isBusy(), "one command or operation must end before the next");
        device = new Busy();
    }

    /** The operation has succeeded: BUSY to IDLE. It includes a change of the wish that arrived meanwhile. */
    public void operationSucceeded(long nowNs) {
        operationEnded(new Idle(), nowNs);
        wishChangedNs.set(null);
    }

    /** The operation has failed: BUSY to FAILED. It includes a change of the wish that arrived meanwhile. */
    public void operationFailed(Wish wish, String reason, long nowNs) {
        operationEnded(new Failed(wish, reason), nowNs);
        wishChangedNs.set(null);
    }

    private void operationEnded(Device next, long nowNs) {
        requireLive();
        require(isBusy(), "an operation must begin before its end");
        device = next;
        change(nowNs);
    }

    /** The running domain cannot take the device: any state but BUSY to FAILED. */
    public void plugRejected(Wish wish, String reason) {
        requireLive();
        require(!isBusy(), "one command or operation must end before the next");
        device = new Failed(wish, reason);
    }

    /** A pass finds the device in the domain, or a wish that needs none: WANTED to IDLE. */
    public void deviceSeen() {
        requireLive();
        if (device instanceof Wanted) {
            device = new Idle();
        }
    }

    /** Whether a command or an operation works on the device. */
    public boolean isBusy() {
        requireHeld();
        return device instanceof Busy;
    }

    /** Whether the next pass plugs the device in, even if it was removed. */
    public boolean isPlugWanted() {
        requireHeld();
        return device instanceof Wanted;
    }

    /** Why hawserd does not try a wish again; empty if it may. */
    public Optional<String> failure(Wish wish) {
        requireHeld();
        return device instanceof Failed failed && wish.equals(failed.wish) ? Optional.of(failed.reason)
            : Optional.empty();
    }

    /** How long a plug or unplug waits for the guest. */
    public Duration plugTimeout() {
        requireHeld();
        return plugTimeout;
    }

    /** The broker has applied a wish. */
    public void shareProvided(Wish wish) {
        requireLive();
        provided = wish;
    }

    /** The domain's share has ended, or ends when the broker answers. */
    public void shareReleased() {
        requireLive();
        provided = null;
    }

    /** Whether the broker has applied a wish that has not been released since. */
    public boolean hasShare() {
        requireHeld();
        return provided != null;
    }

    /** Whether the wish is the last that the broker applied. */
    public boolean isProvided(Wish wish) {
        requireHeld();
        return wish.equals(provided);
    }

    /** The region's file outlives the share, because the guest or a reader still has it. The first time counts. */
    public void fileKept(long nowNs) {
        requireLive();
        if (!fileKept) {
            fileKept = true;
            fileKeptSinceNs = nowNs;
        }
    }

    /** No file outlives the share. */
    public void fileGone() {
        requireLive();
        fileKept = false;
    }

    /** Whether the region's file outlives the share. */
    public boolean isFileKept() {
        requireHeld();
        return fileKept;
    }

    /** How long the file of the ended share has been kept. */
    public Duration fileKeptFor(long nowNs) {
        requireHeld();
        require(fileKept, "the file must be kept");
        return Duration.ofNanos(nowNs - fileKeptSinceNs);
    }

    /**
     * A pass publishes a status.
     *
     * @param status null for none.
     * @return whether it differs from the last one, so that the log has each status once.
     */
    public boolean statusPublished(VgpuStatus status) {
        requireLive();
        boolean differs = status == null ? published != null : !status.isSameAs(published);
        if (differs) {
            published = status;
        }
        return differs;
    }
}
