package io.hawser.gpu.software.nccl;

import io.hawser.cuda.generated.nccl.ncclResult_t;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;

/** A rank of a communicator: its links to the others, the order of its steps, and its error. Thread-safe. */
final class Rank {
    private static final System.Logger LOG = System.getLogger(Rank.class.getName());

    private final int number;
    private final List<Link> links; // by rank; null for its own
    private final boolean isLocal;
    private final AtomicInteger error = new AtomicInteger(ncclResult_t.ncclSuccess);
    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    private CompletableFuture<Void> last = CompletableFuture.completedFuture(null);

    /** A step of a rank that other ranks take as well. */
    @FunctionalInterface
    interface Step {
        /** Takes the step; may wait for other ranks. */
        void run() throws IOException;
    }

    /**
     * @param number from 0.
     * @param links to the other ranks.
     * @param isLocal whether all ranks are in this worker.
     */
    Rank(int number, List<Link> links, boolean isLocal) {
        this.number = number;
        this.links = links;
        this.isLocal = isLocal;
    }

    int number() {
        return number;
    }

    int ranks() {
        return links.size();
    }

    boolean isLocal() {
        return isLocal;
    }

    Link link(int rank) {
        return links.get(rank);
    }

    /** The first error, of ncclResult_t. */
    int error() {
        return error.get();
    }

    /** Completes when the rank has ended, by an error or by {@link #end}. */
    CompletableFuture<Void> ended() {
        return ended;
    }

    /**
     * Takes the next place in the order of steps, which is the order of the guest's calls.
     *
     * @return the step, to be run once by any thread, after the earlier ones.
     */
    synchronized Runnable enqueue(Step step) {
        CompletableFuture<Void> before = last;
        CompletableFuture<Void> mine = new CompletableFuture<>();
        last = mine;
        return () -> {
            CompletableFuture.anyOf(before, ended).join();
            try {
                if (!ended.isDone()) {
                    step.run();
                }
            } catch (Link.MismatchException e) {
                fail(ncclResult_t.ncclInvalidUsage, e.getMessage());
            } catch (IOException e) {
                fail(ncclResult_t.ncclRemoteError, e.getMessage());
            } finally {
                mine.complete(null);
            }
        };
    }

    /** The end of the last step so far. */
    synchronized CompletableFuture<Void> steps() {
        return last;
    }

    /** Ends the rank by an error; the other ranks notice it by their links. */
    void fail(int result, String reason) {
        if (!ended.isDone() && error.compareAndSet(ncclResult_t.ncclSuccess, result)) {
            LOG.log(Level.WARNING, "NCCL: rank {0} of {1} has failed: ncclResult={2}: {3}", number, ranks(), result,
                reason);
        }
        end();
    }

    /** Ends the rank: closes its links. Later steps do nothing. */
    void end() {
        ended.complete(null);
        closeLinks();
    }

    void closeLinks() {
        for (Link link : links) {
            if (link != null) {
                link.close();
            }
        }
    }
}
