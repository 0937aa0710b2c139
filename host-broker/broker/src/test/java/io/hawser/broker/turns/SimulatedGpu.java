package io.hawser.broker.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.List;

/**
 * A GPU and its workers in simulated time. Concurrent kernels of different workers share the GPU evenly, as under the
 * driver's time slicing. Kernels of one worker run one after the other. Like real workers, these workers launch into a
 * window, unless a test makes one misbehave.
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
        private double leftNs; // the rest of the first kernel in flight
        private boolean isAsleep; // whether its guest sleeps
        private long wakesNs; // when the guest has more to launch
        private long awakeNs; // when its worker has woken up
        private double ranNs;
        private long longestWaitNs;
        private long waitsSinceNs = -1;
        private int pauses;
        private int longEvery = Integer.MAX_VALUE; // every so many pauses, a pause is longer
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
        public void setPermit(int told) {
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

        /** Makes every {@code every}-th pause last {@code ns}. */
        Tenant pausesFor(long ns, int every) {
            longNs = ns;
            longEvery = every;
            return this;
        }

        /** Makes the worker report IDLE and launch without permits. */
        Tenant lies() {
            isLiar = true;
            return this;
        }

        /** From now on, the worker's kernels never end and its state never changes. */
        void hang() {
            hangs = true;
        }

        /** Stops further launches. Running kernels complete. */
        void stop() {
            stops = true;
        }

        void resume() {
            stops = false;
        }

        /** GPU time that the worker has had. */
        double ranNs() {
            return ranNs;
        }

        long longestWaitNs() {
            return longestWaitNs;
        }

        /** Removes the worker and its running kernels at once. */
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

    /** A tenant that always has more kernels, and keeps the given number in flight. */
    Tenant flood(String vgpu, int weight, long kernelNs, int window) {
        return tenant(vgpu, weight, kernelNs, window, 0);
    }

    /** A tenant that launches one kernel, waits for it, and pauses. */
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

    /** Leaves vGPUs of equal shares to the driver's time slicing. */
    void leaveEqual() {
        leavesEqual = true;
    }

    /**
     * Simulates the time that the passing of a turn costs: about 0.15 ms in all, by a trace of an H200's turns.
     *
     * @param gpuNs time of the GPU's switch from one process to another.
     * @param wakeNs time in which a worker wakes up whose turn was not announced.
     */
    SimulatedGpu costs(long gpuNs, long wakeNs) {
        switchNs = gpuNs;
        wakeUpNs = wakeNs;
        return this;
    }

    /** Sets the delay of the next launch for guests that have waited more than a millisecond for their turn. */
    void guestsWakeIn(long ns) {
        guestWakesNs = ns;
    }

    /** The part of the given time that the switch from another tenant takes. */
    private double switchTo(Tenant tenant, double given) {
        if (tenant != switchedTo) {
            switchedTo = tenant;
            switchLeftNs = switchNs;
        }
        double spent = Math.min(switchLeftNs, given);
        switchLeftNs -= spent;
        return spent;
    }

    /** The share of begun turns that the queue had announced. */
    double announced() {
        return (double) announced / grants;
    }

    /** Changes a vGPU's weight. */
    void weigh(String vgpu, int weight) {
        queue.setWeight(vgpu, weight, nowNs);
    }

    /** Advances the simulated time. */
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
