package io.hawser.gpu.software.exec;

import java.util.Arrays;

/**
 * Scratch memory for one running CTA: shared memory, local memory and saved registers. A host thread keeps it and
 * reuses it for further CTAs and kernels, so that a launch allocates nothing in the steady state. One thread at a time.
 * Fields are package-private for the generated code, which is in this package.
 */
public final class CtaSlot {
    static final int EXITED = Integer.MIN_VALUE;
    static final int BARRIERS = 16;
    private static final int[] NOTHING = new int[0];
    // Back-edges of loops with ordered memory accesses that a thread takes before it lets other threads run.
    private static final int SPINS = 256;

    final GlobalMemory memory;
    KernelPlan plan;
    KernelLaunch launch;
    int ctaX;
    int ctaY;
    int ctaZ;
    int threads;
    int live;
    /** The running thread, for messages. */
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

    /** For each thread: the region that runs next, the region's complement while the thread waits, or EXITED. */
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
    final TextureUnit textureUnit = new TextureUnit();
    private int[] lastErrors = NOTHING; // by thread; of launches by kernels
    private int spins;

    /** Creates a slot for CTAs that use an arena. */
    public CtaSlot(GlobalMemory memory) {
        this.memory = memory;
    }

    /** Prepares the slot for a CTA; all threads begin at region 0. */
    void reset(KernelPlan kernel, KernelLaunch of, int x, int y, int z) {
        boolean sameLaunch = launch == of && plan == kernel;
        plan = kernel;
        // Set again below: after a failed sizing, the next reset repeats the sizing.
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
        lastErrors = NOTHING;
    }

    /** The error that cudaGetLastError() of a thread returns. */
    int lastError(int t) {
        return lastErrors.length == 0 ? 0 : lastErrors[t];
    }

    void setLastError(int t, int error) {
        if (lastErrors.length == 0 && error != 0) {
            lastErrors = new int[threads];
        }
        if (lastErrors.length != 0) {
            lastErrors[t] = error;
        }
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
        // Fills the whole arrays: they may be longer than this block, and the next block may have the same shape.
        for (int t = 0; t < tidX.length; t++) {
            tidX[t] = t % shapeX;
            tidY[t] = t / shapeX % shapeY;
            tidZ[t] = t / shapeX / shapeY;
        }
    }

    // Generated code calls the methods below.

    /** Records the operation that thread t waits for. */
    static void suspend(CtaSlot c, int t, int op, int mask, int a, int b, int argC) {
        c.op[t] = (byte) op;
        c.mask[t] = mask;
        c.argA[t] = a;
        c.argB[t] = b;
        c.argC[t] = argC;
    }

    /** Records that thread t waits at a barrier. */
    static void barrier(CtaSlot c, int t, int barrier, int count, int predicate) {
        arrive(c, barrier, count);
        c.op[t] = 0;
        c.argA[t] = barrier;
        c.population[barrier] += predicate;
        c.allTrue[barrier] &= predicate;
    }

    /** bar.arrive: counts a thread as arrived without making it wait. */
    static void arrive(CtaSlot c, int barrier, int count) {
        if (barrier < 0 || barrier >= BARRIERS || count < 0) {
            throw new DeviceFault(DeviceFault.LAUNCH_FAILED,
                "barrier must be from 0 to 15, its count positive: barrier=" + barrier + " count=" + count);
        }
        c.arrived[barrier]++;
        c.expected[barrier] = count;
    }

    /** Records that thread t lets other threads run. */
    static void giveWay(CtaSlot c, int t) {
        c.op[t] = 1;
        c.spins = SPINS;
    }

    /** Whether a spinning thread has used up its iterations. */
    static int spun(CtaSlot c) {
        return --c.spins >>> 31;
    }

    /** Records that a thread has exited; returns the result of its region. */
    static int exit(CtaSlot c) {
        c.live--;
        return EXITED;
    }

    /** Loops call this at intervals: ends a cancelled launch, and returns the iterations until the next call. */
    static int poll(CtaSlot c) {
        if (c.launch.cancelled) {
            throw new DeviceFault(DeviceFault.CANCELLED, "launch was cancelled");
        }
        return 1 << 16;
    }

    /** The frame of a callee; throws a fault when the stack is full. */
    static int frame(CtaSlot c, int t, int frame, int bytes) {
        if ((frame + bytes + 3) / 4 > c.local[t].length) {
            throw new DeviceFault(DeviceFault.LAUNCH_FAILED, "calls must fit the stack limit: stackBytes="
                + c.launch.stackBytes);
        }
        return frame;
    }
}
