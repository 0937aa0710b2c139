package io.hawser.simulator.engine;

import io.hawser.shm.turns.TurnPage;
import io.hawser.turns.Seat;
import java.util.List;
import org.HdrHistogram.Histogram;

/**
 * A session with its worker and its guest. Like a real worker, it launches kernels into a window while it has a permit.
 * It rings when it wants to launch and when its work is done. A test can make it misbehave.
 */
public final class Tenant implements Seat {
    private static final long SLEEPS_AFTER_NS = 1_000_000;
    private static final long HOUR_NS = 3_600_000_000_000L;
    private static final double NEGLIGIBLE_NS = 1e-3;

    final int number; // in the calendar
    final List<SimulatedGpu> gpus;
    private final Simulation simulation;
    private final String vgpu;
    private final int weight;
    private final Work work;
    private final Work.Round round = new Work.Round();
    private final long joinedNs;
    private long leftNs = Long.MAX_VALUE;

    private int permit = TurnPage.WAIT;
    private int state = TurnPage.IDLE;
    private boolean isRunning; // launched work is not done
    private boolean toppedUp; // kernels are launched as others end
    private double doneNs; // of the round's kernels
    private double limitNs; // of the launched kernels; infinite while an endless round is topped up
    private double switchLeftNs;
    private double rate;
    private long settledNs;
    private boolean isAsleep; // its guest sleeps
    private long wakesNs; // when the guest has more to launch
    private long awakeNs; // when its worker has woken up
    private double ranNs;
    private long waitsSinceNs = -1;
    private final Histogram waits = new Histogram(HOUR_NS, 2);
    private long longestWaitNs;
    private boolean hasTurn;
    private boolean usesTurn;
    private long turns;
    private long lostTurns;
    private boolean isLiar;
    private boolean hangs;
    private boolean stops;
    boolean isDirty; // its permit has changed

    Tenant(Simulation simulation, int number, String vgpu, int weight, List<SimulatedGpu> gpus, Work work) {
        this.simulation = simulation;
        this.number = number;
        this.vgpu = vgpu;
        this.weight = weight;
        this.gpus = gpus;
        this.work = work;
        joinedNs = simulation.nowNs();
        settledNs = joinedNs;
        startRound(0);
    }

    /** Name of its vGPU. */
    public String vgpu() {
        return vgpu;
    }

    /** Weight of its vGPU when it joined. */
    public int weight() {
        return weight;
    }

    /** When it joined. */
    public long joinedNs() {
        return joinedNs;
    }

    /** When it left; {@code Long.MAX_VALUE} if it did not. */
    public long leftNs() {
        return leftNs;
    }

    void leave() {
        settle();
        isRunning = false;
        waitsSinceNs = -1;
        leftNs = simulation.nowNs();
    }

    /** Numbers of its GPUs, from 0. */
    public List<Integer> gpus() {
        return gpus.stream().map(gpu -> gpu.index).toList();
    }

    /** GPU time that the tenant has had, in nanoseconds. */
    public double ranNs() {
        return ranNs;
    }

    /** The longest time for which the tenant wanted to launch and had nothing in flight, the present one included. */
    public long longestWaitNs() {
        return waitsSinceNs < 0 ? longestWaitNs : Math.max(longestWaitNs, simulation.nowNs() - waitsSinceNs);
    }

    /** All ended waits, also those of length 0. */
    public Histogram waits() {
        return waits;
    }

    /** Turns that the tenant has had, the present one included. */
    public long turns() {
        return turns;
    }

    /** Ended turns in which the tenant launched nothing. */
    public long lostTurns() {
        return lostTurns;
    }

    /** The last permit. */
    public int permit() {
        return permit;
    }

    /** Makes the worker report IDLE and launch without permits. Call it before the simulation runs on. */
    public Tenant lies() {
        isLiar = true;
        simulation.touch(this);
        return this;
    }

    /** From now on, the worker's kernels never end and its state never changes. */
    public void hang() {
        hangs = true;
        simulation.touch(this);
    }

    /** Stops further launches. Running kernels complete. */
    public void stop() {
        stops = true;
        simulation.touch(this);
    }

    /** Launches again. */
    public void resume() {
        stops = false;
        simulation.touch(this);
    }

    @Override
    public int state() {
        return isLiar ? TurnPage.IDLE : state;
    }

    @Override
    public void setPermit(int sent) {
        if (TurnPage.isWait(permit) && !TurnPage.isWait(sent)) {
            simulation.countGrant(permit == TurnPage.NEXT);
        }
        if (permit == TurnPage.WAIT && sent != TurnPage.WAIT) {
            awakeNs = simulation.nowNs() + simulation.costs().wakeUpNs();
        }
        if (sent == TurnPage.TURN && !hasTurn) {
            hasTurn = true;
            usesTurn = isRunning;
            turns++;
        } else if (hasTurn && sent != TurnPage.TURN && sent != TurnPage.OPEN) {
            hasTurn = false; // OPEN only says that nobody waits now
            lostTurns += usesTurn ? 0 : 1;
        }
        permit = sent;
        simulation.touch(this);
    }

    private void startRound(long lateNs) {
        work.next(round);
        doneNs = 0;
        wakesNs = round.pauseNs() == Calendar.NEVER ? Calendar.NEVER
            : simulation.nowNs() + round.pauseNs() + lateNs;
    }

    private boolean hasWork(long nowNs) {
        return !stops && nowNs >= wakesNs;
    }

    private boolean mayLaunch(long nowNs) {
        return isLiar || !TurnPage.isWait(permit) && nowNs >= awakeNs;
    }

    boolean isRunning() {
        return isRunning;
    }

    /** The GPU begins to run this tenant's kernels behind another's. */
    void paySwitch() {
        switchLeftNs = simulation.costs().switchNs();
    }

    /** Another number of tenants runs on one of the GPUs. */
    void rateChanges() {
        simulation.changeRate(this);
    }

    /** Sets the part of the GPUs' time that the tenant has from now on. */
    void setRate(double newRate) {
        settle();
        rate = newRate;
    }

    /** Counts the work up to now. */
    void settle() {
        long nowNs = simulation.nowNs();
        if (isRunning) {
            double given = (nowNs - settledNs) * rate;
            double switched = Math.min(switchLeftNs, given);
            switchLeftNs -= switched;
            ranNs += given - switched;
            doneNs += hangs ? 0 : given - switched;
        }
        settledNs = nowNs;
    }

    /**
     * Launches and ends work that is due.
     *
     * @return whether the worker rings.
     */
    boolean advance() {
        long nowNs = simulation.nowNs();
        boolean rings = false;
        settle();
        if (isRunning && doneNs >= limitNs - NEGLIGIBLE_NS) {
            rings = end(nowNs);
        }
        boolean topsUp = mayLaunch(nowNs) && hasWork(nowNs);
        if (isRunning && topsUp != toppedUp) {
            limitNs = topsUp ? round.totalNs() : round.launchedNs(doneNs);
        }
        toppedUp = topsUp;
        if (!isRunning && hasWork(nowNs)) {
            if (topsUp) {
                launch(nowNs);
            } else if (state != TurnPage.WANTS) {
                state = TurnPage.WANTS;
                rings = true;
            }
        }
        if (!isRunning && hasWork(nowNs)) {
            waitsSinceNs = waitsSinceNs < 0 ? nowNs : waitsSinceNs;
        } else {
            waitsSinceNs = -1;
        }
        return rings;
    }

    private void launch(long nowNs) {
        long waitedNs = waitsSinceNs < 0 ? 0 : nowNs - waitsSinceNs;
        waits.recordValue(Math.min(waitedNs, HOUR_NS));
        longestWaitNs = Math.max(longestWaitNs, waitedNs);
        isAsleep |= waitedNs > SLEEPS_AFTER_NS;
        limitNs = round.totalNs();
        isRunning = true;
        usesTurn = true;
        state = TurnPage.BUSY;
        gpus.forEach(gpu -> gpu.start(this));
    }

    private boolean end(long nowNs) {
        isRunning = false;
        gpus.forEach(gpu -> gpu.end(this));
        if (doneNs >= round.totalNs() - NEGLIGIBLE_NS) {
            startRound(isAsleep ? simulation.costs().guestWakeUpNs() : 0);
            isAsleep = false;
        }
        state = hasWork(nowNs) && TurnPage.isWait(permit) ? TurnPage.WANTS : TurnPage.IDLE;
        return TurnPage.isWait(permit) || permit == TurnPage.TURN;
    }

    /** When {@link #advance} has something to do next, if nothing changes. */
    long nextNs() {
        long nowNs = simulation.nowNs();
        long next = Calendar.NEVER;
        if (isRunning && !hangs && limitNs < Double.POSITIVE_INFINITY) {
            next = nowNs + Math.max(1, (long) Math.ceil((switchLeftNs + limitNs - doneNs) / rate));
        }
        if (!isRunning && !stops && wakesNs > nowNs) {
            next = Math.min(next, wakesNs);
        }
        if (awakeNs > nowNs && !TurnPage.isWait(permit)) {
            next = Math.min(next, awakeNs);
        }
        return next;
    }
}
