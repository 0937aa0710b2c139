package io.hawser.gpu.software.device;

import io.hawser.gpu.software.compile.PtxKernel;
import io.hawser.gpu.software.exec.CtaSlot;
import io.hawser.gpu.software.exec.DeviceFault;
import io.hawser.gpu.software.exec.GlobalMemory;
import io.hawser.gpu.software.exec.KernelLaunch;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The device's threads. Ready work gets a thread of its own, because it may block in a host function. That thread runs
 * a kernel's CTAs together with one helper for each further processor. They take CTAs in small batches, so that kernels
 * of several streams share the processors.
 */
final class Scheduler implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(Scheduler.class.getName());
    private static final long CLOSE_TIMEOUT_S = 5;

    private final int processors;
    private final ExecutorService workThreads;
    private final ExecutorService helpers;
    private final ThreadLocal<CtaSlot> slots;
    private final Set<KernelLaunch> running = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    Scheduler(GlobalMemory memory, int processors) {
        this.processors = processors;
        slots = ThreadLocal.withInitial(() -> new CtaSlot(memory));
        workThreads = Executors.newCachedThreadPool(Thread.ofPlatform().daemon().name("gpu-work-", 0).factory());
        helpers = Executors.newFixedThreadPool(processors, Thread.ofPlatform().daemon().name("gpu-core-", 0).factory());
    }

    /** Number of processors that kernels use. */
    int processors() {
        return processors;
    }

    /** Runs ready work. */
    void start(Work work) {
        if (work.isMarker()) {
            work.run();
        } else if (!closed) {
            try {
                workThreads.execute(work::run);
            } catch (RejectedExecutionException e) {
                LOG.log(System.Logger.Level.DEBUG, "the closing device drops work", e);
            }
        }
    }

    /**
     * Runs a whole grid. The calling thread runs CTAs as well.
     *
     * @param most processors that may run it, at least 1. For a small grid a hand-over costs more than it saves.
     * @throws DeviceFault the first fault of any CTA; the other CTAs are cancelled.
     */
    void runGrid(PtxKernel kernel, KernelLaunch launch, long gridX, long gridY, long gridZ, int most) {
        long total = gridX * gridY * gridZ;
        running.add(launch);
        try {
            if (closed) {
                launch.cancel();
            }
            Grid grid = new Grid(kernel, launch, gridX, gridY, total, batch(total));
            int extra = (int) Math.min(most - 1L, (total - 1) / grid.batch);
            for (int i = 0; i < extra; i++) {
                recruit(grid);
            }
            grid.run(slots.get());
            grid.end();
            grid.throwFault();
        } finally {
            running.remove(launch);
        }
    }

    private void recruit(Grid grid) {
        try {
            helpers.execute(() -> grid.help(slots));
        } catch (RejectedExecutionException e) {
            // close() has cancelled the launch meanwhile, so it needs no help.
            LOG.log(System.Logger.Level.DEBUG, "the closing device accepts no helpers", e);
        }
    }

    /**
     * Runs a cooperative grid: all CTAs exist at the same time, and the calling thread runs them in turn.
     */
    void runCooperative(PtxKernel kernel, KernelLaunch launch, int gridX, int gridY, int gridZ, GlobalMemory memory) {
        running.add(launch);
        try {
            if (closed) {
                launch.cancel();
            }
            List<CtaSlot> alive = new ArrayList<>();
            for (int z = 0; z < gridZ; z++) {
                for (int y = 0; y < gridY; y++) {
                    for (int x = 0; x < gridX; x++) {
                        CtaSlot slot = new CtaSlot(memory);
                        kernel.begin(launch, x, y, z, slot);
                        alive.add(slot);
                    }
                }
            }
            while (!alive.isEmpty()) {
                alive.removeIf(kernel::resume);
            }
        } finally {
            running.remove(launch);
        }
    }

    // Many batches keep an uneven grid balanced; few batches keep the counter's cost low.
    private long batch(long total) {
        return Math.max(1, Math.min(64, total / (processors * 16L)));
    }

    /** Cancels running kernels and waits, for a bounded time, until no thread uses the arena any more. */
    @Override
    public void close() {
        closed = true;
        running.forEach(KernelLaunch::cancel);
        workThreads.shutdownNow();
        helpers.shutdown();
        try {
            if (!helpers.awaitTermination(CLOSE_TIMEOUT_S, TimeUnit.SECONDS)
                || !workThreads.awaitTermination(CLOSE_TIMEOUT_S, TimeUnit.SECONDS)) {
                LOG.log(System.Logger.Level.WARNING, "device threads still run after " + CLOSE_TIMEOUT_S + " s");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Whether every thread has ended. */
    boolean isTerminated() {
        return helpers.isTerminated() && workThreads.isTerminated();
    }

    /** The CTAs of one launch, distributed in batches. */
    private static final class Grid {
        private final PtxKernel kernel;
        private final KernelLaunch launch;
        private final long gridX;
        private final long gridY;
        private final long total;
        private final long batch;
        private final AtomicLong next = new AtomicLong();
        private final AtomicReference<Throwable> fault = new AtomicReference<>();
        private int helpersInside;
        private boolean ended;

        Grid(PtxKernel kernel, KernelLaunch launch, long gridX, long gridY, long total, long batch) {
            this.kernel = kernel;
            this.launch = launch;
            this.gridX = gridX;
            this.gridY = gridY;
            this.total = total;
            this.batch = batch;
        }

        void run(CtaSlot slot) {
            try {
                for (long from = next.getAndAdd(batch); from < total; from = next.getAndAdd(batch)) {
                    long to = Math.min(total, from + batch);
                    for (long cta = from; cta < to; cta++) {
                        kernel.runCta(launch, (int) (cta % gridX), (int) (cta / gridX % gridY),
                            (int) (cta / gridX / gridY), slot);
                    }
                }
            } catch (Throwable e) {
                // Catches everything: a fault of the guest's kernel or a defect of ours ends this launch but not the
                // thread.
                if (fault.compareAndSet(null, e)) {
                    next.set(total);
                    launch.cancel();
                }
            }
        }

        /** Runs a helper's part. A helper that other kernels delayed until after the end finds no CTAs. */
        void help(ThreadLocal<CtaSlot> slots) {
            synchronized (this) {
                if (ended) {
                    return;
                }
                helpersInside++;
            }
            try {
                run(slots.get());
            } finally {
                synchronized (this) {
                    helpersInside--;
                    notifyAll();
                }
            }
        }

        /** Waits for the helpers that are running; helpers that start later find no CTAs. */
        synchronized void end() {
            ended = true;
            boolean interrupted = false;
            while (helpersInside > 0) {
                try {
                    wait();
                } catch (InterruptedException e) {
                    // Only close() interrupts, after it has cancelled the launch: the helpers return soon.
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }

        void throwFault() {
            Throwable e = fault.get();
            if (e instanceof DeviceFault deviceFault) {
                throw deviceFault;
            }
            if (e != null) {
                throw new IllegalStateException("kernel " + kernel.name() + " could not be executed", e);
            }
        }
    }
}
