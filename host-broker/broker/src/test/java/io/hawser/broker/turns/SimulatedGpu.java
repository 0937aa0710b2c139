package io.hawser.broker.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.List;

/**
 * A GPU and its workers in simulated time. Kernels of different workers that are there at once share the GPU evenly, as
 * the driver slices time; those of one worker run one after the other. Workers behave as real ones do, with a window of
 * launches, unless a test makes one misbehave.
 */
final class SimulatedGpu {
    private static final long STEP_NS = 10_000;
    private static final long SLEEPS_AFTER_NS = 1_000_000;

    final TurnQueue queue;
    private final List<Tenant> tenants = new ArrayList<>();
    private long nowNs = 1;
    private long dueNs;
    private boolean rung;
    private boolean leavesEqual;
    private long switchNs;
    private long wakeUpNs;
    private long guestWakesNs;
    private Tenant switchedTo;
    private double switchLeftNs;
    private int grants;
    private int announced;

    SimulatedGpu(TurnRules rules) {
        queue = new TurnQueue(rules, () -> leavesEqual);
    }

    /** A worker with one guest. */
    final class Tenant implements Seat {
        private final long kernelNs;
        private final int window;
        private final long thinkNs;
        private int permit;
        private int state = TurnPage.IDLE;
        private long inFlight;
        private double leftNs; // of the first in flight
        private boolean isAsleep; // its guest
        private long wakesNs; // when the guest has more to launch
        private long awakeNs; // when its worker has woken up
        private double ranNs;
        private long longestWaitNs;
        private long waitsSinceNs = -1;
        private int pauses;
        private int longEvery = Integer.MAX_VALUE; // so many pauses
        private long longNs;
        private boolean isLiar;
        private boolean hangs;
        private boolean stops;

        private Tenant(long kernelNs, int window, long thinkNs) {
            this.kernelNs = kernelNs;
            this.window = window;
            this.thinkNs = thinkNs;
        }

        @Override
        public int state() {
            return isLiar ? TurnPage.IDLE : state;
        }

        @Override
        public void permit(int told) {
            grants += TurnPage.isWait(permit) && !TurnPage.isWait(told) ? 1 : 0;
            announced += permit == TurnPage.NEXT && !TurnPage.isWait(told) ? 1 : 0;
            if (permit == TurnPage.WAIT && told != TurnPage.WAIT) {
                awakeNs = nowNs + wakeUpNs;
            }
            permit = told;
        }

        int permit() {
            return permit;
        }

        /** Has a longer pause now and then. */
        Tenant pausesFor(long ns, int every) {
            longNs = ns;
            longEvery = every;
            return this;
        }

        /** Says that it has nothing, and launches whenever it likes. */
        Tenant lies() {
            isLiar = true;
            return this;
        }

        /** Its work never ends from now on, and it says nothing more. */
        void hang() {
            hangs = true;
        }

        /** Wants nothing more, when what runs is done. */
        void stop() {
            stops = true;
        }

        void resume() {
            stops = false;
        }

        /** GPU time that it has had. */
        double ranNs() {
            return ranNs;
        }

        long longestWaitNs() {
            return longestWaitNs;
        }

        /** Leaves at once, with all that runs. */
        void kill() {
            tenants.remove(this);
            queue.leave(this, nowNs);
            rung = true;
        }

        private boolean hasWork() {
            return !stops && nowNs >= wakesNs;
        }

        private void launch() {
            boolean may = isLiar || !TurnPage.isWait(permit) && nowNs >= awakeNs;
            while (may && hasWork() && inFlight < window) {
                inFlight++;
                if (leftNs <= 0) {
                    leftNs = kernelNs;
                }
                isAsleep |= waitsSinceNs >= 0 && nowNs - waitsSinceNs > SLEEPS_AFTER_NS;
                state = TurnPage.BUSY;
            }
            if (!may && hasWork() && inFlight == 0 && state != TurnPage.WANTS) {
                state = TurnPage.WANTS;
                rung = true;
            }
            if (hasWork() && inFlight == 0) {
                waitsSinceNs = waitsSinceNs < 0 ? nowNs : waitsSinceNs;
            } else {
                longestWaitNs = waitsSinceNs < 0 ? longestWaitNs : Math.max(longestWaitNs, nowNs - waitsSinceNs);
                waitsSinceNs = -1;
            }
        }

        private void run(double given) {
            double ns = given - switchTo(this, given);
            ranNs += ns;
            leftNs -= hangs ? 0 : ns;
            if (leftNs > 0) {
                return;
            }
            inFlight--;
            if (inFlight > 0) {
                leftNs += kernelNs;
                return;
            }
            leftNs = 0;
            wakesNs = nowNs + (++pauses % longEvery == 0 ? longNs : thinkNs) + (isAsleep ? guestWakesNs : 0);
            isAsleep = false;
            state = hasWork() && TurnPage.isWait(permit) ? TurnPage.WANTS : TurnPage.IDLE;
            rung |= TurnPage.isWait(permit) || permit == TurnPage.TURN;
        }
    }

    /** A tenant that has kernels without end, with so many in flight. */
    Tenant flood(String vgpu, int weight, long kernelNs, int window) {
        return tenant(vgpu, weight, kernelNs, window, 0);
    }

    /** A tenant that launches one kernel, waits for it, and thinks. */
    Tenant looper(String vgpu, int weight, long kernelNs, long thinkNs) {
        return tenant(vgpu, weight, kernelNs, 1, thinkNs);
    }

    private Tenant tenant(String vgpu, int weight, long kernelNs, int window, long thinkNs) {
        Tenant tenant = new Tenant(kernelNs, window, thinkNs);
        tenants.add(tenant);
        queue.join(tenant, vgpu, weight, nowNs);
        rung = true;
        return tenant;
    }

    /** As on a GPU whose driver slices time. */
    void leaveEqual() {
        leavesEqual = true;
    }

    /**
     * As on a GPU, and a machine, where a turn that passes costs something: by the trace of an H200's turns about 0.15
     * ms in all.
     *
     * @param gpuNs what the GPU takes from one process to another.
     * @param wakeNs what a worker takes to wake up that was not told that it is the next.
     */
    SimulatedGpu costs(long gpuNs, long wakeNs) {
        switchNs = gpuNs;
        wakeUpNs = wakeNs;
        return this;
    }

    /** Guests that have waited for their turn for a millisecond take so long more until they launch again. */
    void guestsWakeIn(long ns) {
        guestWakesNs = ns;
    }

    /** How much of the time goes to the switch from another tenant. */
    private double switchTo(Tenant tenant, double given) {
        if (tenant != switchedTo) {
            switchedTo = tenant;
            switchLeftNs = switchNs;
        }
        double spent = Math.min(switchLeftNs, given);
        switchLeftNs -= spent;
        return spent;
    }

    /** How many turns were announced, of all that began. */
    double announced() {
        return (double) announced / grants;
    }

    /** Gives a vGPU another weight. */
    void weigh(String vgpu, int weight) {
        queue.setWeight(vgpu, weight, nowNs);
    }

    /** Runs for a time. */
    void run(long ns) {
        long end = nowNs + ns;
        while (nowNs < end) {
            tenants.forEach(Tenant::launch);
            if (rung || nowNs >= dueNs) {
                rung = false;
                dueNs = queue.look(nowNs);
                tenants.forEach(Tenant::launch);
            }
            List<Tenant> running = tenants.stream().filter(tenant -> tenant.inFlight > 0).toList();
            nowNs += STEP_NS;
            running.forEach(tenant -> tenant.run((double) STEP_NS / running.size()));
        }
    }
}
