package io.hawser.worker.session;

import io.hawser.worker.memory.StagingPool.Staging;
import io.hawser.worker.memory.StagingPool;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * What a session knows of one stream beside the backend: work whose credit and staging memory have not been put under a
 * marker yet. Session thread only.
 */
public final class StreamState {
    /** Small copies are packed into slabs, so that a million of them do not hold a million buffers. */
    static final int SLAB_BYTES = 64 * 1024;

    private static final int SLAB_ALIGNMENT = 16;

    final long context;
    final long stream;

    private long unmarkedBytes;
    private List<Staging> unmarkedStaging = new ArrayList<>();
    private Staging slab;
    private int slabUsed;
    private long launches; // of kernels and graphs; this and the next three as Turns has them
    private long launchesDone; // so many of them are known to be done
    private long launchesWatched; // so many are known to be done when the last marker is reached
    private long lastLaunch;

    /**
     * Describes a stream.
     *
     * @param context native context that it belongs to.
     * @param stream native stream; 0 is the context's legacy default stream.
     */
    StreamState(long context, long stream) {
        this.context = context;
        this.stream = stream;
    }

    /**
     * The backend's context.
     *
     * @return its handle.
     */
    public long context() {
        return context;
    }

    /**
     * The backend's stream.
     *
     * @return its handle; 0 for the context's legacy default stream.
     */
    public long stream() {
        return stream;
    }

    /** Adds credit that the stream's last work costs. */
    void charge(long bytes) {
        unmarkedBytes += bytes;
    }

    /** Adds staging memory that the stream's last work reads or writes. */
    void hold(Staging staging) {
        unmarkedStaging.add(staging);
    }

    /** Copies a small piece to memory that lives until the next marker has been reached; null when there is none. */
    MemorySegment pack(MemorySegment source, StagingPool pool) {
        int bytes = Math.toIntExact(source.byteSize());
        if (slab == null || SLAB_BYTES - slabUsed < bytes) {
            Staging fresh = pool.take(SLAB_BYTES);
            if (fresh == null) {
                return null;
            }
            slab = fresh;
            slabUsed = 0;
            unmarkedStaging.add(slab);
        }
        MemorySegment packed = slab.segment().asSlice(slabUsed, bytes).copyFrom(source);
        slabUsed += bytes + SLAB_ALIGNMENT - 1 & -SLAB_ALIGNMENT;
        return packed;
    }

    /** Bytes of credit that no marker covers. */
    long unmarkedBytes() {
        return unmarkedBytes;
    }

    boolean hasUnmarked() {
        return unmarkedBytes > 0 || !unmarkedStaging.isEmpty();
    }

    /** Counts a launch, by its number in the session. */
    void launch(long number) {
        launches++;
        lastLaunch = number;
    }

    /** Launches so far. */
    long launches() {
        return launches;
    }

    /** Number in the session of the last launch. */
    long lastLaunch() {
        return lastLaunch;
    }

    /** Whether there are launches that are not known to be done. */
    boolean isRunning() {
        return launchesDone < launches;
    }

    /** Whether a marker that is not reached is set behind some of them. */
    boolean isWatched() {
        return launchesWatched > launchesDone;
    }

    /** Launches that no marker covers. */
    long unwatched() {
        return launches - launchesWatched;
    }

    /** A marker is set behind all launches so far; answers their number. */
    long watch() {
        launchesWatched = launches;
        return launches;
    }

    /** The first {@code count} launches are done; answers how many of them were not known to be. */
    long reach(long count) {
        long news = Math.max(0, count - launchesDone);
        launchesDone += news;
        launchesWatched = Math.max(launchesWatched, launchesDone);
        return news;
    }

    /** Takes what a marker that is set now covers. */
    Covered cover() {
        Covered covered = new Covered(unmarkedBytes, unmarkedStaging);
        unmarkedBytes = 0;
        unmarkedStaging = new ArrayList<>();
        slab = null;
        return covered;
    }

    /**
     * What can be given back when a marker is reached.
     *
     * @param bytes credit.
     * @param staging memory.
     */
    record Covered(long bytes, List<Staging> staging) { }
}
