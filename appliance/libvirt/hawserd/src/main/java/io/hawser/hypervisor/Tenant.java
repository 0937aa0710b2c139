package io.hawser.hypervisor;

import java.util.UUID;
import java.util.concurrent.locks.ReentrantLock;

/**
 * hawserd's own state of a domain, in addition to libvirt's and the broker's; hawserd may lose all of it. Fields are
 * read and written with {@link #steps} held, unless their comment names another lock.
 */
final class Tenant {
    /**
     * Held during changes of the broker and of files for this domain. Never held during a call of libvirt: libvirt may
     * wait for a hook, and the hook waits for this lock.
     */
    final ReentrantLock steps = new ReentrantLock();
    final UUID uuid;
    /** For the log. */
    volatile String name;
    /** This tenant has been removed. A thread that waited for the steps must get the domain's new tenant. */
    volatile boolean forgotten;
    /** System.nanoTime() of the last hook's answer; earlier observations of the domain are out of date. */
    long touchedNs;
    boolean touched;
    /** From the hook that lets a domain start until a pass finds it running. */
    boolean starting;
    long startingSinceNs;
    /** Whether Xen runs it. */
    boolean xen;
    /** A hook has announced a migration to this host, at that time. */
    boolean incoming;
    long incomingSinceNs;
    /** The wish that the broker last applied. */
    Wish applied;
    /** The region's file outlives its share, because the guest has not given the device back. */
    boolean fileKept;
    long fileKeptSinceNs;
    /** A command or a long operation is working on this domain's device. */
    boolean busy;
    /** The next pass puts the device in, even if it was removed. */
    boolean plugWanted;
    /** The wish that failed. hawserd tries it again only on request. */
    Wish plugFailed;
    String plugFailure = "";
    /** How long a plug waits for the guest, from the last command. */
    java.time.Duration plugTimeout;
    /** The status that was last logged, so that the log has each status once. */
    VgpuStatus logged;
    /** The outcome of the last pass since a command began; guarded by this object, which is notified. */
    Outcome outcome;
    /** When the metadata's wish last changed, until a step takes it up; guarded by this object. */
    private Long askedNs;
    /** The sentence for waiting commands; guarded by this object, which is notified. */
    String progress = "";

    /**
     * The outcome of a pass.
     *
     * @param wish null if there is none, or it is invalid.
     * @param busy whether an operation is in progress whose end brings another pass.
     */
    record Outcome(Wish wish, VgpuStatus status, boolean busy) { }

    Tenant(UUID uuid, String name) {
        this.uuid = uuid;
        this.name = name;
    }

    /** Stores the outcome of a pass for waiting commands. */
    synchronized void conclude(Wish wish, VgpuStatus status, boolean nowBusy) {
        outcome = new Outcome(wish, status, nowBusy);
        notifyAll();
    }

    /** Stores the sentence that waiting commands show. */
    synchronized void setProgress(String text) {
        progress = text;
        notifyAll();
    }

    /** Notes that the metadata's wish has changed. Any thread; does not wait for a step. */
    synchronized void noteRequest(long nowNs) {
        askedNs = nowNs;
    }

    private synchronized Long takeRequest() {
        Long when = askedNs;
        askedNs = null;
        return when;
    }

    /** Takes up a change of the metadata's wish: the next pass puts the device in, whatever the result before. */
    void takeUpRequest() {
        Long when = takeRequest();
        if (when != null) {
            plugWanted = true;
            plugFailed = null;
            if (isUpToDate(when)) {
                touch(when); // earlier observations are out of date
            }
        }
    }

    /** Notes whether the file of an ended share still exists. */
    void setFileKept(boolean kept, long nowNs) {
        if (kept && !fileKept) {
            fileKeptSinceNs = nowNs;
        }
        fileKept = kept;
    }

    /** Marks this tenant as removed, and wakes waiting commands. */
    synchronized void forget() {
        forgotten = true;
        notifyAll();
    }

    /** Notes a change: earlier observations of the domain are out of date. */
    void touch(long nowNs) {
        touched = true;
        touchedNs = nowNs;
    }

    /** Whether an observation of the domain is newer than the last change. */
    boolean isUpToDate(long seenNs) {
        return !touched || seenNs - touchedNs > 0;
    }
}
