package io.hawser.hypervisor.tenant;

import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/** The reports of passes and operations to commands that wait for a domain. Any thread; only a wait blocks. */
public final class Feedback {
    private Outcome outcome;
    private String progress = "";
    private boolean ended;

    /**
     * The outcome of a pass.
     *
     * @param wish null if there is none, or it is invalid.
     * @param busy whether an operation is in progress whose end brings another pass.
     */
    private record Outcome(Wish wish, VgpuStatus status, boolean busy) {}

    /** A command begins: only later reports count. */
    synchronized void begin() {
        outcome = null;
        progress = "";
    }

    /**
     * Reports the outcome of a pass.
     *
     * @param wish null if there is none, or it is invalid.
     * @param busy whether an operation is in progress whose end brings another pass.
     */
    public synchronized void conclude(Wish wish, VgpuStatus status, boolean busy) {
        outcome = new Outcome(wish, status, busy);
        notifyAll();
    }

    /** Reports the present stage of an operation, a sentence. */
    public synchronized void progress(String sentence) {
        progress = sentence;
        notifyAll();
    }

    /** The domain's tenant has been removed: no further report comes. */
    synchronized void end() {
        ended = true;
        notifyAll();
    }

    /**
     * Waits for the outcome of a wish.
     *
     * @param stages receives the sentence of each stage.
     * @return empty if the tenant has been removed.
     * @throws TimeoutException if no pass has ended within the limit.
     */
    public Optional<VgpuStatus> await(Wish wish, Duration limit, Consumer<String> stages)
        throws TimeoutException, InterruptedException {
        long endNs = System.nanoTime() + limit.toNanos();
        String reported = "";
        while (true) {
            String sentence;
            VgpuStatus status = null;
            synchronized (this) {
                long leftNs = endNs - System.nanoTime();
                if (leftNs <= 0) {
                    throw new TimeoutException("the change did not finish in time: limit=" + limit.toSeconds() + " s");
                }
                if (ended) {
                    return Optional.empty();
                }
                boolean ours = outcome != null && wish.equals(outcome.wish);
                sentence = ours && outcome.busy && progress.isEmpty() ? outcome.status.reason() : progress;
                if (ours && !outcome.busy) {
                    status = outcome.status;
                } else if (sentence.isEmpty() || sentence.equals(reported)) {
                    TimeUnit.NANOSECONDS.timedWait(this, leftNs);
                }
            }
            // Reported before the return, too: the last stage may have ended before this thread saw it.
            if (!sentence.isEmpty() && !sentence.equals(reported)) {
                reported = sentence;
                stages.accept(sentence);
            }
            if (status != null) {
                return Optional.of(status);
            }
        }
    }

    /** Waits for the next report, up to a limit. */
    public synchronized void awaitReport(Duration limit) throws InterruptedException {
        TimeUnit.NANOSECONDS.timedWait(this, limit.toNanos());
    }
}
