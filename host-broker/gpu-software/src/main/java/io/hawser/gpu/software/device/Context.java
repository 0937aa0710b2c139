package io.hawser.gpu.software.device;

import io.hawser.cuda.generated.CUlimit;
import io.hawser.cuda.generated.CUresult;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * A context: its streams and, after a failure, its error. A green context shares all but its streams with its primary
 * context, whose synchronisations cover it. Only the decoder's thread calls the issuing methods; any
 * thread may call {@link #error}.
 */
final class Context {
    private static final System.Logger LOG = System.getLogger(Context.class.getName());

    /**
     * By CUlimit, with CUDA's defaults. Those from the fifth to the seventh have no effect here; the fourth does not
     * exist. A program cannot set the last two: shared memory of a block, and compute in graphics.
     */
    final long[] limits;

    final long id;
    final int ordinal; // of its device
    final int flags;
    final boolean primary;
    /** Of a green context its primary context, which owns what is created in it; otherwise the context itself. */
    final Context owner;
    /** Processors that one kernel may use. */
    final int processors;
    final Stream legacy;
    private final Scheduler scheduler;
    private final Set<Stream> streams = new LinkedHashSet<>();
    private final List<Work> retired = new ArrayList<>();
    private final List<Work> retiredBlocking = new ArrayList<>();
    /** Contexts with enabled peer access. Access needs no further action, because all devices share one memory. */
    private final Set<Context> peers;
    private final Set<Context> greens = new LinkedHashSet<>();
    private volatile int error;

    Context(long id, int ordinal, int flags, boolean primary, Scheduler scheduler) {
        this.id = id;
        this.ordinal = ordinal;
        this.flags = flags;
        this.primary = primary;
        this.scheduler = scheduler;
        owner = this;
        processors = scheduler.processors();
        limits = new long[] {1024, 1 << 20, 8 << 20, 0, 2048, 64, 0, Properties.SHARED_BYTES_OPT_IN, 0};
        peers = new HashSet<>();
        legacy = new Stream(0, this, 0, 0, false);
    }

    /** Makes a green context. */
    Context(long id, Context owner, int processors) {
        this.id = id;
        this.owner = owner;
        this.processors = processors;
        ordinal = owner.ordinal;
        flags = owner.flags;
        primary = false;
        scheduler = owner.scheduler;
        limits = owner.limits;
        peers = owner.peers;
        legacy = new Stream(0, this, 0, 0, false);
        owner.greens.add(this);
    }

    boolean isGreen() {
        return owner != this;
    }

    /** The green contexts of a primary context. */
    Set<Context> greens() {
        return greens;
    }

    void add(Stream stream) {
        streams.add(stream);
    }

    /**
     * Removes a destroyed stream. Its unfinished work continues, and a synchronisation of the context still waits for
     * that work.
     */
    void retire(Stream stream) {
        streams.remove(stream);
        Work last = stream.last();
        if (last != null) {
            retired.removeIf(Work::isDone);
            retired.add(last);
            if (stream.blocking) {
                retiredBlocking.removeIf(Work::isDone);
                retiredBlocking.add(last);
            }
        }
    }

    Set<Context> peers() {
        return peers;
    }

    Set<Stream> streams() {
        return streams;
    }

    /** The CUresult that every call in this context returns after a kernel fault; 0 without a fault. */
    int error() {
        return owner.error;
    }

    /** CUDA's result for a limit that does not exist here; 0 for one that does. */
    int checkLimit(int limit) {
        if (limit < 0 || limit >= CUlimit.CU_LIMIT_MAX) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        return limit < limits.length && limit != CUlimit.CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH
            ? 0 : CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT;
    }

    /** The same for a limit that a program sets. */
    int checkNewLimit(int limit) {
        int known = checkLimit(limit);
        return known == 0 && limit >= CUlimit.CU_LIMIT_SHMEM_SIZE ? CUresult.CUDA_ERROR_NOT_PERMITTED : known;
    }

    void poison(int cuResult) {
        if (owner.error == 0) {
            owner.error = cuResult;
        }
    }

    /**
     * Issues work to a stream. The work follows the stream's earlier work. By CUDA's rule of the legacy default stream,
     * a blocking stream's work also follows the default stream's work. The default stream's work follows that of all
     * blocking streams.
     */
    void issue(Stream stream, Work.Body body, boolean inline) {
        if (inline && isClear(stream)) {
            runGuarded(body);
            return;
        }
        Work work = prepare(stream, body);
        if (inline) {
            work.issueInline();
        } else {
            work.issue();
        }
    }

    /** Issues a point that marks the end of a stream's work so far. */
    Work mark(Stream stream) {
        if (isClear(stream)) {
            return Work.finished(scheduler);
        }
        Work work = Work.marker(scheduler);
        order(stream, work);
        work.issue();
        return work;
    }

    /** Issues short work that follows everything issued to any stream of the context so far. */
    Work issueAfterAll(Work.Body body) {
        if (isClear()) {
            runGuarded(body);
            return Work.finished(scheduler);
        }
        Work work = Work.report(scheduler, guarded(body));
        followAll(work);
        work.issueInline();
        return work;
    }

    private void followAll(Work work) {
        work.follow(legacy.last());
        for (Stream stream : streams) {
            work.follow(stream.last());
        }
        retired.forEach(work::follow);
        greens.forEach(green -> green.followAll(work));
    }

    /** Issues short work that follows a stream's work so far and that no later work waits for. */
    void afterStream(Stream stream, Work.Body body) {
        if (isClear(stream)) {
            runGuarded(body);
            return;
        }
        Work work = Work.report(scheduler, guarded(body));
        followStream(stream, work);
        work.issueInline();
    }

    /** Begins a group of work in a stream with a point that follows the stream's work so far. */
    Work beginGroup(Stream stream) {
        Work work = Work.marker(scheduler);
        followStream(stream, work);
        return work;
    }

    /** Ends a group: later work of the stream follows the group's end, which the caller has issued. */
    void endGroup(Stream stream, Work end) {
        stream.setLast(end);
    }

    /** Work outside a stream's order; the caller adds its predecessors and issues it. */
    Work work(Work.Body body) {
        return new Work(scheduler, guarded(body));
    }

    /** A point outside a stream's order; the caller adds its predecessors and issues it. */
    Work point() {
        return Work.marker(scheduler);
    }

    /** Issues work that makes a stream wait for a point of another stream. */
    void await(Stream stream, Work point) {
        if (point.isDone()) {
            return;
        }
        Work work = Work.marker(scheduler);
        work.follow(point);
        order(stream, work);
        work.issue();
    }

    /** Makes everything issued to the context from now on wait for a point, as cuCtxWaitEvent does. */
    void awaitAll(Work point) {
        await(legacy, point);
        for (Stream stream : streams) {
            await(stream, point);
        }
        greens.forEach(green -> green.awaitAll(point));
    }

    /**
     * Wraps a body: if it throws, the context fails but the work completes, because later work would otherwise hang.
     */
    private Work.Body guarded(Work.Body body) {
        return () -> runGuarded(body);
    }

    private void runGuarded(Work.Body body) {
        try {
            body.run();
        } catch (RuntimeException | Error e) {
            poison(CUresult.CUDA_ERROR_LAUNCH_FAILED);
            LOG.log(System.Logger.Level.ERROR, "work in a stream could not be executed", e);
        }
    }

    private Work prepare(Stream stream, Work.Body body) {
        Work work = new Work(scheduler, guarded(body));
        order(stream, work);
        return work;
    }

    private void order(Stream stream, Work work) {
        followStream(stream, work);
        stream.setLast(work);
    }

    private void followStream(Stream stream, Work work) {
        work.follow(stream.last());
        if (stream == legacy) {
            for (Stream other : streams) {
                if (other.blocking) {
                    work.follow(other.last());
                }
            }
            retiredBlocking.forEach(work::follow);
        } else if (stream.blocking) {
            work.follow(legacy.last());
        }
    }

    /** Whether work issued to a stream now has no predecessors: {@link #followStream} would add none. */
    private boolean isClear(Stream stream) {
        return isIdle(stream) && (!stream.blocking || legacy.last() == null);
    }

    /** Whether work issued now has no predecessors in the whole context. */
    private boolean isClear() {
        if (legacy.last() != null) {
            return false;
        }
        for (Stream stream : streams) {
            if (stream.last() != null) {
                return false;
            }
        }
        retired.removeIf(Work::isDone);
        return retired.isEmpty() && greens.stream().allMatch(Context::isClear);
    }

    /** Whether all work issued to a stream is done. For the default stream, the blocking streams count as well. */
    boolean isIdle(Stream stream) {
        if (stream.last() != null) {
            return false;
        }
        if (stream == legacy) {
            for (Stream other : streams) {
                if (other.blocking && other.last() != null) {
                    return false;
                }
            }
            retiredBlocking.removeIf(Work::isDone);
            return retiredBlocking.isEmpty();
        }
        return true;
    }
}
