package io.hawser.hypervisor;

import java.util.UUID;
import java.util.concurrent.locks.ReentrantLock;

/**
 * What hawserd remembers of a domain beside what libvirt and the broker have; all of it can be forgotten. Fields are
 * read and written with {@link #steps} held, unless they say otherwise.
 */
final class Tenant {
    /**
     * Held while the broker and files are changed for this domain, never during a call of libvirt: that may wait for a
     * hook, which waits for this.
     */
    final ReentrantLock steps = new ReentrantLock();
    final UUID uuid;
    /** For the log. */
    volatile String name;
    /** Nothing is remembered here any more: who has waited for the steps must find the domain's new one. */
    volatile boolean forgotten;
    /** When a hook was last answered, by System.nanoTime(): what was seen of the domain before is out of date. */
    long touchedNs;
    boolean touched;
    /** Between the hook that lets a domain start and the first look that finds it running. */
    boolean starting;
    long startingSinceNs;
    /** Whether Xen runs it. */
    boolean xen;
    /** A hook has told that it comes from another host, and when. */
    boolean incoming;
    long incomingSinceNs;
    /** What the broker was last told to have. */
    Wish applied;
    /** The region's file is left of a share that has ended: the guest has not given the device back. */
    boolean fileKept;
    long fileKeptSinceNs;
    /** A command, or a plug that takes its time, has this domain's device in hand. */
    boolean busy;
    /** The device shall be put in, even if it was taken out. */
    boolean plugWanted;
    /** What was tried and failed, and is not tried again before somebody asks. */
    Wish plugFailed;
    String plugFailure = "";
    /** How long a plug waits for the guest; as the last command said. */
    java.time.Duration plugTimeout;
    /** What the log has said last, so that it says a thing once. */
    VgpuStatus logged;
    /** What is to be written to the domain's metadata; guarded by this object. */
    VgpuStatus wanted;
    boolean writing;
    /** What came of the last look since a command began; guarded by this object, which is notified. */
    Outcome outcome;
    /** When somebody last wrote what the domain wants, until a step heeds it; guarded by this object. */
    private Long askedNs;
    /** What somebody who waits is told; guarded by this object, which is notified. */
    String progress = "";

    /**
     * What came of a look.
     *
     * @param wish null when there was none, or it cannot be.
     * @param busy whether something goes on whose end will bring another look.
     */
    record Outcome(Wish wish, VgpuStatus status, boolean busy) { }

    Tenant(UUID uuid, String name) {
        this.uuid = uuid;
        this.name = name;
    }

    /** Notes what came of a look, for those who wait. */
    synchronized void conclude(Wish wish, VgpuStatus status, boolean nowBusy) {
        outcome = new Outcome(wish, status, nowBusy);
        notifyAll();
    }

    /** Tells those who wait what is being waited for. */
    synchronized void say(String text) {
        progress = text;
        notifyAll();
    }

    /** Somebody has written what the domain wants. Any thread; waits for no step. */
    synchronized void ask(long nowNs) {
        askedNs = nowNs;
    }

    private synchronized Long takeAsked() {
        Long when = askedNs;
        askedNs = null;
        return when;
    }

    /** Heeds what somebody has written: the device shall be put in, whatever came of it before. */
    void heed() {
        Long when = takeAsked();
        if (when != null) {
            plugWanted = true;
            plugFailed = null;
            if (isSeenAfterHooks(when)) {
                touch(when); // what a look saw before is out of date
            }
        }
    }

    /** Whether the file of a share that has ended is still there. */
    void keepsFile(boolean kept, long nowNs) {
        if (kept && !fileKept) {
            fileKeptSinceNs = nowNs;
        }
        fileKept = kept;
    }

    /** What is remembered begins anew; who waits is told. */
    synchronized void forget() {
        forgotten = true;
        notifyAll();
    }

    /** A hook has changed what is known. */
    void touch(long nowNs) {
        touched = true;
        touchedNs = nowNs;
    }

    /** Whether something that was seen of the domain at that time still counts. */
    boolean isSeenAfterHooks(long seenNs) {
        return !touched || seenNs - touchedNs > 0;
    }
}
