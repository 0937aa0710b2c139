package io.hawser.gpu.software.exec;

import java.util.Arrays;

/**
 * Scratch for one running CTA: shared memory, local memory, saved registers. It is kept by a host thread and reused
 * from CTA to
 * CTA and from kernel to kernel, so that a launch allocates nothing in the steady state. Used by one thread at a time.
 * Fields are package-private for the generated code, which lives in this package.
 */
public final class CtaSlot {
    static final int EXITED = Integer.MIN_VALUE;
    static final int BARRIERS = 16;
    private static final int[] NOTHING = new int[0];
    // Back-edges of loops that touch memory in an ordered way, before the thread lets others run.
    private static final int SPINS = 256;

    final GlobalMemory memory;
    KernelPlan plan;
    KernelLaunch launch;
    int ctaX;
    int ctaY;
    int ctaZ;
    int threads;
    int live;
    /** The thread that runs, for messages. */
    int running;

    int[] shared = NOTHING;
    int[][] local = new int[0][];
    int[] params = NOTHING;
    int[] savedInts = NOTHING;
    long[] savedLongs = new long[0];
    int[] tidX = NOTHING;
    int[] tidY = NOTHING;
    int[] tidZ = NOTHING;
    private int shapeX;
    private int shapeY;

    /** Region a thread goes on with; its complement while it waits; EXITED. */
    int[] next = NOTHING;
    byte[] op = new byte[0];
    int[] mask = NOTHING;
    int[] argA = NOTHING;
    int[] argB = NOTHING;
    int[] argC = NOTHING;
    int[] result = NOTHING;
    int[] resultPredicate = NOTHING;

    final int[] arrived = new int[BARRIERS];
    final int[] expected = new int[BARRIERS];
    final int[] population = new int[BARRIERS];
    final int[] allTrue = new int[BARRIERS];
    private int spins;

    /** A slot for CTAs on this arena. */
    public CtaSlot(GlobalMemory memory) {
        this.memory = memory;
    }

    /** Readies the slot for a CTA, all threads at region 0. */
    void reset(KernelPlan kernel, KernelLaunch of, int x, int y, int z) {
        boolean sameLaunch = launch == of && plan == kernel;
        plan = kernel;
        // Set again below: a slot whose sizing failed sizes itself anew.
        launch = null;
        ctaX = x;
        ctaY = y;
        ctaZ = z;
        if (!sameLaunch) {
            size(of);
        }
        launch = of;
        live = threads;
        Arrays.fill(next, 0, threads, 0);
        Arrays.fill(arrived, 0);
        Arrays.fill(expected, 0);
        Arrays.fill(population, 0);
        Arrays.fill(allTrue, 1);
    }

    private void size(KernelLaunch of) {
        threads = of.blockThreads();
        params = of.params;
        int sharedWords = (plan.sharedBytes() + of.dynamicSharedBytes + 7) / 8 * 2;
        if (shared.length != sharedWords) {
            shared = new int[sharedWords];
        }
        if (next.length < threads) {
            next = new int[threads];
            op = new byte[threads];
            mask = new int[threads];
            argA = new int[threads];
            argB = new int[threads];
            argC = new int[threads];
            result = new int[threads];
            resultPredicate = new int[threads];
            tidX = new int[threads];
            tidY = new int[threads];
            tidZ = new int[threads];
            shapeX = 0;
        }
        if (shapeX != of.blockX || shapeY != of.blockY) {
            shape(of);
        }
        savedInts = savedInts.length < threads * plan.savedInts() ? new int[threads * plan.savedInts()] : savedInts;
        savedLongs = savedLongs.length < threads * plan.savedLongs() ? new long[threads * plan.savedLongs()]
            : savedLongs;
        int localWords = (plan.localBytes() + (plan.recursive() ? of.stackBytes : 0) + 7) / 8 * 2;
        if (local.length < threads) {
            local = Arrays.copyOf(local, threads);
        }
        for (int t = 0; t < threads; t++) {
            if (local[t] == null || local[t].length < localWords) {
                local[t] = localWords == 0 ? NOTHING : new int[localWords];
            }
        }
    }

    private void shape(KernelLaunch of) {
        shapeX = of.blockX;
        shapeY = of.blockY;
        // All of the arrays: they may be longer than this block, and the next block may have the same shape.
        for (int t = 0; t < tidX.length; t++) {
            tidX[t] = t % shapeX;
            tidY[t] = t / shapeX % shapeY;
            tidZ[t] = t / shapeX / shapeY;
        }
    }

    // Below: called by generated code.

    /** Notes what thread t waits for. */
    static void suspend(CtaSlot c, int t, int op, int mask, int a, int b, int argC) {
        c.op[t] = (byte) op;
        c.mask[t] = mask;
        c.argA[t] = a;
        c.argB[t] = b;
        c.argC[t] = argC;
    }

    /** Notes that thread t waits at a barrier. */
    static void barrier(CtaSlot c, int t, int barrier, int count, int predicate) {
        arrive(c, barrier, count);
        c.op[t] = 0;
        c.argA[t] = barrier;
        c.population[barrier] += predicate;
        c.allTrue[barrier] &= predicate;
    }

    /** bar.arrive: counts a thread that does not wait. */
    static void arrive(CtaSlot c, int barrier, int count) {
        if (barrier < 0 || barrier >= BARRIERS || count < 0) {
            throw new DeviceFault(DeviceFault.LAUNCH_FAILED,
                "barrier must be from 0 to 15, its count positive: barrier=" + barrier + " count=" + count);
        }
        c.arrived[barrier]++;
        c.expected[barrier] = count;
    }

    /** Notes that thread t lets the others run. */
    static void giveWay(CtaSlot c, int t) {
        c.op[t] = 1;
        c.spins = SPINS;
    }

    /** Whether a thread that spins has had its share. */
    static int spun(CtaSlot c) {
        return --c.spins >>> 31;
    }

    /** Notes that a thread has ended; gives what its region returns. */
    static int exit(CtaSlot c) {
        c.live--;
        return EXITED;
    }

    /** Called now and then by loops: ends a cancelled launch. Gives the iterations until the next call. */
    static int poll(CtaSlot c) {
        if (c.launch.cancelled) {
            throw new DeviceFault(DeviceFault.CANCELLED, "launch was cancelled");
        }
        return 1 << 16;
    }

    /** The frame of a callee, or a fault when the stack is used up. */
    static int frame(CtaSlot c, int t, int frame, int bytes) {
        if ((frame + bytes + 3) / 4 > c.local[t].length) {
            throw new DeviceFault(DeviceFault.LAUNCH_FAILED, "calls must fit the stack limit: stackBytes="
                + c.launch.stackBytes);
        }
        return frame;
    }
}
