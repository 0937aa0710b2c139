package io.hawser.gpu.software.device;

import io.hawser.cuda.generated.CUresult;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * A context: its streams and the error that ended it, if one did. Issuing methods are called by the decoder's thread
 * only; {@link #error} by any.
 */
final class Context {
    private static final System.Logger LOG = System.getLogger(Context.class.getName());

    // CUDA 13.0 cuda.h: defaults of CU_LIMIT_STACK_SIZE, _PRINTF_FIFO_SIZE, _MALLOC_HEAP_SIZE.
    final long[] limits = {1024, 1 << 20, 8 << 20};

    final long id;
    final int ordinal; // of its device
    final int flags;
    final boolean primary;
    final Stream legacy;
    private final Scheduler scheduler;
    private final Set<Stream> streams = new LinkedHashSet<>();
    private final List<Work> retired = new ArrayList<>();
    private final List<Work> retiredBlocking = new ArrayList<>();
    /** Contexts whose memory it was given access to; all devices are one memory, so that nothing follows from it. */
    private final Set<Context> peers = new HashSet<>();
    private volatile int error;

    Context(long id, int ordinal, int flags, boolean primary, Scheduler scheduler) {
        this.id = id;
        this.ordinal = ordinal;
        this.flags = flags;
        this.primary = primary;
        this.scheduler = scheduler;
        this.legacy = new Stream(0, this, 0, 0, false);
    }

    void add(Stream stream) {
        streams.add(stream);
    }

    /**
     * Removes a destroyed stream. Its unfinished work goes on, and a synchronisation of the context still waits for
     * it.
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

    /** The CUresult that everything in this context answers since a kernel faulted; 0 while it is well. */
    int error() {
        return error;
    }

    void poison(int cuResult) {
        if (error == 0) {
            error = cuResult;
        }
    }

    /**
     * Issues work to a stream: after what the stream holds and, by CUDA's rule of the legacy default stream, after the
     * default stream's work (for a blocking stream) or that of all blocking streams (for the default stream).
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

    /** Issues a point that only marks what came before it in a stream. */
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
        work.follow(legacy.last());
        for (Stream stream : streams) {
            work.follow(stream.last());
        }
        retired.forEach(work::follow);
        work.issueInline();
        return work;
    }

    /** Issues short work that follows a stream's work so far and holds up nothing that comes later. */
    void afterStream(Stream stream, Work.Body body) {
        if (isClear(stream)) {
            runGuarded(body);
            return;
        }
        Work work = Work.report(scheduler, guarded(body));
        followStream(stream, work);
        work.issueInline();
    }

    /** Begins a group of work in a stream: a point that follows what the stream waits for. */
    Work beginGroup(Stream stream) {
        Work work = Work.marker(scheduler);
        followStream(stream, work);
        return work;
    }

    /** Ends a group: what is issued to the stream from now on follows its end, which has been issued. */
    void endGroup(Stream stream, Work end) {
        stream.setLast(end);
    }

    /** Work outside of a stream's order, to be given its predecessors and issued. */
    Work work(Work.Body body) {
        return new Work(scheduler, guarded(body));
    }

    /** A point outside of a stream's order, to be given its predecessors and issued. */
    Work point() {
        return Work.marker(scheduler);
    }

    /** Issues work that makes a stream wait for a point of another. */
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
    }

    /** A defect in the body ends the context: the work must complete all the same, or what follows it would hang. */
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

    /** Whether work that is issued to a stream now has nothing to wait for: {@link #followStream} would follow none. */
    private boolean isClear(Stream stream) {
        return isIdle(stream) && (!stream.blocking || legacy.last() == null);
    }

    /** Whether nothing in the whole context is before work that is issued now. */
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
        return retired.isEmpty();
    }

    /** Whether all work issued to a stream is done. For the default stream that includes the blocking streams. */
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
