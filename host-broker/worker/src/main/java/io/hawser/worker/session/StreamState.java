package io.hawser.worker.session;

import io.hawser.worker.memory.StagingPool;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * A session's record of one stream: credit and staging memory of work that no marker covers yet, and launches. Session
 * thread only.
 */
public final class StreamState {
    /** Small copies share slabs, so that a million of them do not need a million buffers. */
    static final int SLAB_BYTES = 64 * 1024;
    /** The first slab: many streams live for one short copy. */
    private static final int FIRST_SLAB_BYTES = 4096;

    private static final int SLAB_ALIGNMENT = 16;

    final long context;
    final long stream;

    private long unmarkedBytes;
    private List<Staging> unmarkedStaging = new ArrayList<>();
    private Staging slab;
    private int slabUsed;
    private long launches; // launches of kernels and graphs; Turns defines this and the next three fields
    private long launchesDone; // launches that are known to be done
    private long launchesWatched; // launches that will be known to be done when the last marker is reached
    private long lastLaunch;
    private long entries; // entries behind an open gate that no marker covers

    /**
     * Describes a stream.
     *
     * @param context its native context.
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

    /** Adds the credit of the stream's last work. */
    void charge(long bytes) {
        unmarkedBytes += bytes;
    }

    /** Adds staging memory that the stream's last work reads or writes. */
    void hold(Staging staging) {
        unmarkedStaging.add(staging);
    }

    /** Copies a small piece to memory that stays until the next marker is reached; null when no memory is left. */
    MemorySegment pack(MemorySegment source, StagingPool pool) {
        int bytes = Math.toIntExact(source.byteSize());
        if (slab == null || slab.segment().byteSize() - slabUsed < bytes) {
            Staging fresh = pool.take(Math.max(bytes, slab == null ? FIRST_SLAB_BYTES : SLAB_BYTES));
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

    /** Counts a launch; {@code number} is its number in the session. */
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

    /** Whether some launches are not known to be done. */
    boolean isRunning() {
        return launchesDone < launches;
    }

    /** Whether a marker that is not reached yet covers some of these launches. */
    boolean isWatched() {
        return launchesWatched > launchesDone;
    }

    /** Launches that no marker covers. */
    long unwatched() {
        return launches - launchesWatched;
    }

    /** Records a marker behind all launches so far; returns their number. */
    long watch() {
        launchesWatched = launches;
        return launches;
    }

    /** Records that the first {@code count} launches are done; returns how many were not known to be done before. */
    long reach(long count) {
        long newlyDone = Math.max(0, count - launchesDone);
        launchesDone += newlyDone;
        launchesWatched = Math.max(launchesWatched, launchesDone);
        return newlyDone;
    }

    /** Counts entries of the stream's queue behind an open gate. */
    void enter(long count) {
        entries += count;
    }

    /** Takes the entries that no marker covers. */
    long takeEntries() {
        long taken = entries;
        entries = 0;
        return taken;
    }

    /** Takes the credit and memory that a new marker covers. */
    Covered cover() {
        Covered covered = new Covered(unmarkedBytes, unmarkedStaging);
        unmarkedBytes = 0;
        unmarkedStaging = new ArrayList<>();
        slab = null;
        return covered;
    }

    /**
     * Resources to give back when a marker is reached.
     *
     * @param bytes credit.
     * @param staging memory.
     */
    record Covered(long bytes, List<Staging> staging) {}
}
