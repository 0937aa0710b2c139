package io.hawser.gpu.software.exec;

/** Runs a CTA's threads in turn on the calling thread and resolves the operations that they wait for. */
public final class Scheduler {
    private static final int WARP = 32;

    private Scheduler() {
    }

    /** Prepares a slot for a CTA. */
    public static void begin(KernelPlan plan, KernelLaunch launch, int x, int y, int z, CtaSlot c) {
        try {
            c.reset(plan, launch, x, y, z);
        } catch (OutOfMemoryError e) {
            // Local and shared memory are on the JVM's heap: a kernel may need more memory than the worker has.
            throw new DeviceFault(DeviceFault.OUT_OF_RESOURCES, "a block's shared, local and saved memory must fit the"
                + " worker's heap: kernel=" + plan.name() + " localBytes=" + plan.localBytes() + " threads="
                + launch.blockThreads() + " sharedBytes=" + plan.sharedBytes());
        }
    }

    /**
     * Runs until the CTA ends or all of its threads only spin.
     *
     * @return whether it has ended.
     * @throws DeviceFault with kernel, CTA and thread in the message.
     */
    public static boolean resume(CtaSlot c) {
        try {
            return run(c);
        } catch (DeviceFault e) {
            throw new DeviceFault(e.cuResult(), e.getMessage() + place(c));
        } catch (ArrayIndexOutOfBoundsException e) {
            // The JVM's bounds check serves as the check of shared, local and parameter memory.
            throw new DeviceFault(DeviceFault.ILLEGAL_ADDRESS,
                "access must lie inside the shared, local or parameter memory" + place(c));
        } catch (StackOverflowError e) {
            throw new DeviceFault(DeviceFault.LAUNCH_FAILED, "calls must not nest deeper than the host's stack"
                + place(c));
        }
    }

    private static String place(CtaSlot c) {
        int t = c.running;
        return " [kernel " + c.plan.name() + " cta (" + c.ctaX + "," + c.ctaY + "," + c.ctaZ + ") thread (" + c.tidX[t]
            + "," + c.tidY[t] + "," + c.tidZ[t] + ")]";
    }

    private static boolean run(CtaSlot c) {
        KernelCode code = c.plan.code();
        boolean warpOps = c.plan.warpOps();
        while (true) {
            if (c.launch.cancelled) {
                CtaSlot.poll(c);
            }
            if (warpOps) {
                for (int from = 0; from < c.threads; from += WARP) {
                    int to = Math.min(from + WARP, c.threads);
                    do {
                        runRange(c, code, from, to);
                    } while (WarpOps.resolve(c, from, to));
                }
            } else {
                runRange(c, code, 0, c.threads);
            }
            if (c.live == 0) {
                return true;
            }
            boolean released = releaseBarriers(c, false);
            boolean yielded = releaseYields(c);
            if (!released && !yielded && !releaseBarriers(c, true)) {
                throw deadlock(c);
            }
            if (!released && yielded) {
                return false;
            }
        }
    }

    private static void runRange(CtaSlot c, KernelCode code, int from, int to) {
        int start = from;
        while (true) {
            try {
                code.run(c, start, to);
                return;
            } catch (ThreadExit e) {
                c.next[c.running] = CtaSlot.exit(c);
                start = c.running + 1;
            }
        }
    }

    private static boolean releaseBarriers(CtaSlot c, boolean lastResort) {
        boolean any = false;
        for (int barrier = 0; barrier < CtaSlot.BARRIERS; barrier++) {
            int arrived = c.arrived[barrier];
            if (arrived == 0) {
                continue;
            }
            int expected = c.expected[barrier] == 0 ? c.live : c.expected[barrier];
            // A barrier counts whole warps: exited lanes count as arrived if other lanes of their warp arrive.
            if (arrived >= expected || lastResort && arrived + exitedBeside(c, barrier) >= expected) {
                release(c, barrier);
                any = true;
            }
        }
        return any;
    }

    private static int exitedBeside(CtaSlot c, int barrier) {
        int exited = 0;
        for (int from = 0; from < c.threads; from += WARP) {
            int to = Math.min(from + WARP, c.threads);
            boolean waits = false;
            int gone = 0;
            for (int t = from; t < to; t++) {
                gone += c.next[t] == CtaSlot.EXITED ? 1 : 0;
                waits |= c.next[t] != CtaSlot.EXITED && c.op[t] == 0 && c.argA[t] == barrier;
            }
            exited += waits ? gone : 0;
        }
        return exited;
    }

    private static void release(CtaSlot c, int barrier) {
        int population = c.population[barrier];
        int all = c.allTrue[barrier];
        for (int t = 0; t < c.threads; t++) {
            int waiting = c.next[t];
            if (waiting < 0 && waiting != CtaSlot.EXITED && c.op[t] == 0 && c.argA[t] == barrier) {
                c.next[t] = ~waiting;
                c.result[t] = population;
                c.resultPredicate[t] = all;
            }
        }
        c.arrived[barrier] = 0;
        c.expected[barrier] = 0;
        c.population[barrier] = 0;
        c.allTrue[barrier] = 1;
    }

    private static boolean releaseYields(CtaSlot c) {
        boolean any = false;
        for (int t = 0; t < c.threads; t++) {
            int waiting = c.next[t];
            if (waiting < 0 && waiting != CtaSlot.EXITED && c.op[t] == 1) {
                c.next[t] = ~waiting;
                any = true;
            }
        }
        return any;
    }

    private static DeviceFault deadlock(CtaSlot c) {
        for (int t = 0; t < c.threads; t++) {
            if (c.next[t] != CtaSlot.EXITED) {
                c.running = t;
                Op op = Op.ALL[c.op[t]];
                String what = op == Op.BARRIER ? "barrier " + c.argA[t] + " (arrived " + c.arrived[c.argA[t]] + " of "
                    + (c.expected[c.argA[t]] == 0 ? c.live : c.expected[c.argA[t]]) + ")"
                    : op + " mask 0x" + Integer.toHexString(c.mask[t]);
                return new DeviceFault(DeviceFault.LAUNCH_FAILED,
                    "threads must not wait for threads that never arrive: deadlock, first waiting thread at " + what);
            }
        }
        throw new AssertionError("no thread is alive");
    }
}
