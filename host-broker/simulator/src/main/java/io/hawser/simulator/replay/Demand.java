package io.hawser.simulator.replay;

import io.hawser.shm.turns.TurnPage;
import io.hawser.simulator.engine.Work;
import io.hawser.simulator.report.SharePlot;
import io.hawser.simulator.report.ShareSeries;
import io.hawser.simulator.report.TenantResult;
import java.util.Arrays;
import java.util.List;
import org.HdrHistogram.Histogram;

/**
 * What a recorded session wanted from its GPUs: pauses and work. Work is the time in which it was busy, divided by the
 * number of sessions that were busy on the GPU at once. A worker does not ring when it begins, so the scheduler sees
 * that later: the work is taken to have begun in the middle between the two looks, and at most 0.2 ms earlier.
 */
public final class Demand {
    private static final long HOUR_NS = 3_600_000_000_000L;
    private static final double IN_FLIGHT_NS = 500_000; // without a recorded end of a turn: the worker's target
    private static final double LEAST_IN_FLIGHT_NS = 10_000;
    private static final double LEAST_WORK_NS = 1000;
    private static final long MOST_UNSEEN_NS = 200_000;

    final String vgpu;
    final int weight;
    final List<Integer> gpus;
    final long joinedNs;
    private long leftNs = Long.MAX_VALUE;
    private int state = TurnPage.IDLE;
    private long seenNs; // last look
    private long unseenNs; // work before the look that saw it
    private double rate; // part of the GPU's time while busy
    private long settledNs;
    private long idleSinceNs;
    private double roundNs;
    private double ranNs;
    private long wantsSinceNs = -1;
    private final Histogram waits = new Histogram(HOUR_NS, 2);
    private boolean hasTurn;
    private boolean usesTurn;
    private long turns;
    private long lostTurns;
    private long withdrawnNs = -1; // while its work drains
    private double drainedNs;
    private int drains;
    private long[] pausesNs = new long[16];
    private double[] worksNs = new double[16];
    private int rounds;
    private final ShareSeries.Entry series;
    private final double binNs;

    Demand(String vgpu, int weight, List<Integer> gpus, long nowNs, ShareSeries.Entry series, double binNs) {
        this.vgpu = vgpu;
        this.weight = weight;
        this.gpus = gpus;
        joinedNs = nowNs;
        settledNs = nowNs;
        seenNs = nowNs;
        idleSinceNs = nowNs;
        this.series = series;
        this.binNs = binNs;
    }

    boolean isBusy() {
        return state == TurnPage.BUSY;
    }

    /** Counts the work up to now, and sets the part of the GPU's time that the session has from now on. */
    void settle(long nowNs, double newRate) {
        if (isBusy() && nowNs > settledNs) {
            double ns = (nowNs - settledNs) * rate;
            ranNs += ns;
            roundNs += ns;
            for (double from = settledNs; from < nowNs;) {
                int bin = Math.min(SharePlot.BINS - 1, (int) (from / binNs));
                double to = bin == SharePlot.BINS - 1 ? nowNs : Math.min(nowNs, (bin + 1) * binNs);
                series.add(bin, (to - from) * rate);
                from = Math.max(to, Math.nextUp(from));
            }
        }
        settledNs = nowNs;
        rate = newRate;
    }

    /** The scheduler has read another state; the caller has settled. */
    void changeState(int newState, long nowNs) {
        unseenNs = newState == TurnPage.BUSY ? Math.min((nowNs - seenNs) / 2, MOST_UNSEEN_NS) : 0;
        if (state == TurnPage.IDLE) {
            begin(nowNs - unseenNs - idleSinceNs);
        }
        if (newState == TurnPage.BUSY) {
            waits.recordValue(wantsSinceNs < 0 ? 0 : Math.min(HOUR_NS, nowNs - wantsSinceNs));
            usesTurn = true;
        } else if (isBusy() && withdrawnNs >= 0) {
            drainedNs += nowNs - withdrawnNs;
            drains++;
            withdrawnNs = -1;
        }
        wantsSinceNs = newState == TurnPage.WANTS ? nowNs : -1;
        state = newState;
        if (newState == TurnPage.IDLE) {
            end();
            idleSinceNs = nowNs;
        }
    }

    /** Counts the work before the last change of the state, at the present rate. */
    void creditUnseen() {
        double ns = unseenNs * rate;
        unseenNs = 0;
        ranNs += ns;
        roundNs += ns;
        series.add(Math.min(SharePlot.BINS - 1, (int) (settledNs / binNs)), ns);
    }

    /** The scheduler has read the state. */
    void see(long nowNs) {
        seenNs = nowNs;
    }

    private void begin(long pauseNs) {
        if (rounds == pausesNs.length) {
            pausesNs = Arrays.copyOf(pausesNs, 2 * rounds);
            worksNs = Arrays.copyOf(worksNs, 2 * rounds);
        }
        pausesNs[rounds] = pauseNs;
        roundNs = 0;
    }

    private void end() {
        worksNs[rounds++] = Math.max(LEAST_WORK_NS, roundNs);
    }

    void changePermit(int newPermit, long nowNs) {
        if (newPermit == TurnPage.TURN && !hasTurn) {
            hasTurn = true;
            turns++;
            usesTurn = isBusy();
        } else if (hasTurn && newPermit != TurnPage.TURN && newPermit != TurnPage.OPEN) {
            hasTurn = false;
            lostTurns += usesTurn ? 0 : 1;
        }
        withdrawnNs = TurnPage.isWait(newPermit) && isBusy() ? withdrawnNs < 0 ? nowNs : withdrawnNs : -1;
    }

    /** The session leaves, or the recording ends; the caller has settled. */
    void leave(long nowNs, boolean isEnd) {
        if (state != TurnPage.IDLE) {
            end();
            state = TurnPage.IDLE;
        }
        leftNs = isEnd ? Long.MAX_VALUE : nowNs;
        settledNs = nowNs;
    }

    long leftNs() {
        return leftNs;
    }

    /** The recorded pauses and works, then nothing. At the end of a turn, as much is in flight as was recorded. */
    Work work() {
        double kernelNs = drains == 0 ? IN_FLIGHT_NS : Math.max(LEAST_IN_FLIGHT_NS, drainedNs / drains);
        int[] next = new int[1];
        return round -> {
            if (next[0] == rounds) {
                round.set(Long.MAX_VALUE, 1, 1, 1);
                return;
            }
            int at = next[0]++;
            long kernels = Math.max(1, Math.round(worksNs[at] / kernelNs));
            round.set(pausesNs[at], worksNs[at] / kernels, kernels, 1);
        };
    }

    TenantResult result(long endNs) {
        long waitsNs = wantsSinceNs < 0 ? 0 : Math.min(endNs, leftNs) - wantsSinceNs;
        return new TenantResult(vgpu, vgpu, weight, gpus, joinedNs, leftNs, ranNs, waits,
            Math.max(waits.getMaxValue(), waitsNs), turns, lostTurns);
    }
}
