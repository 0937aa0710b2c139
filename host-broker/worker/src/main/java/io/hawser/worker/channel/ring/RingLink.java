package io.hawser.worker.channel.ring;

import io.hawser.shm.ring.Patience;
import io.hawser.shm.ring.RingCorruptException;
import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.Spin;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.channel.Link;
import io.hawser.worker.channel.LinkPosition;
import io.hawser.worker.channel.RecordCutter;
import io.hawser.worker.channel.RecordHandler;
import io.hawser.worker.memory.StagingPool.Staging;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * The link to a guest over a pair of rings. The session thread copies the guest's bytes from the ring to private memory
 * in batches, and serves them there. It spins while the guest sends often, and sleeps otherwise.
 */
public class RingLink implements Link {
    private static final Logger LOG = System.getLogger(RingLink.class.getName());

    private static final int BATCH_BYTES = 64 * 1024;
    private static final long LOW_WATER_BYTES = 1 << 20;
    private static final long LINGER_MS = 1000;

    private final GuestRings rings;
    private final RingReader ring;
    private final ReplyQueue replies;
    private final RingSleep sleep;
    private final MemorySegment batch = Arena.ofAuto().allocate(BATCH_BYTES, RecordLayout.ALIGNMENT_BYTES);
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
    private final PriorityQueue<Timer> timers = new PriorityQueue<>(Comparator.comparingLong(Timer::atNs));
    private final CountDownLatch closedLatch = new CountDownLatch(1);
    private final Spin spin = new Spin();
    private final Patience patience = new Patience();
    private final Thread thread;
    private volatile boolean stopping;

    private RecordHandler handler;
    private RecordCutter cutter;
    private boolean reading; // between open() and the end of the session or of the guest
    private boolean paused;
    private boolean halted;
    private boolean leaving;
    private boolean closed;

    private record Timer(long atNs, Runnable task) {}

    /**
     * Prepares the session thread, which {@link #start} starts.
     *
     * @param rings the rings and their guest; the caller frees their memory after {@link #shutdown}.
     */
    protected RingLink(GuestRings rings) {
        this.rings = rings;
        ring = rings.commands();
        replies = new ReplyQueue(rings);
        sleep = rings.sleep();
        thread = Thread.ofPlatform().daemon().name("session").unstarted(this::run);
    }

    /** Starts the session thread. Call it once, when the object is complete. */
    protected final void start() {
        thread.start();
    }

    private void run() {
        try {
            while (!stopping || !tasks.isEmpty()) {
                if (!runOnce()) {
                    idle();
                }
            }
        } finally {
            setPolled(false); // after a warm-up the device may serve another session
            closedLatch.countDown();
        }
    }

    /** Performs all pending work once; returns false when there was none. */
    private boolean runOnce() {
        try {
            rings.progress();
            return runTasks() | receive() | send() | poll();
        } catch (InternalError e) {
            memoryGone(e);
            return true;
        } catch (RuntimeException e) { // a defect must not leave a worker without its session thread
            LOG.log(Level.ERROR, "the session's link failed", e);
            boolean first = !closed;
            close();
            if (first && handler != null) {
                handler.gone("internal error: " + e);
            }
            return true;
        }
    }

    /** The JVM throws InternalError when mapped memory no longer exists: the guest has truncated its region's file. */
    private void memoryGone(InternalError error) {
        LOG.log(Level.WARNING, "the region cannot be used any more: {0}", error.getMessage());
        boolean first = !closed;
        close();
        if (first && handler != null) {
            handler.gone("the region's memory is gone");
        }
    }

    private boolean runTasks() {
        boolean any = false;
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            runTask(task);
            any = true;
        }
        if (!timers.isEmpty() && timers.peek().atNs - System.nanoTime() <= 0) {
            runTask(timers.remove().task);
            any = true;
        }
        return any;
    }

    private static void runTask(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException e) {
            LOG.log(Level.ERROR, "a task of the session failed", e);
        }
    }

    private boolean receive() {
        if (!reading || paused || halted) {
            return (reading || leaving) && checkGuest();
        }
        long count;
        try {
            int missing = cutter.missingBytes();
            if (missing > 0) {
                count = ring.takeAvailable(cutter.target(), cutter.targetOffset(), missing);
                releaseRoom(count);
                if (count > 0) {
                    cutter.received((int) count);
                }
            } else {
                count = ring.takeAvailable(batch, 0, BATCH_BYTES);
                releaseRoom(count);
                cutter.accept(batch, 0, count);
            }
        } catch (RingCorruptException e) {
            handler.refuse(e.getMessage());
            return true;
        }
        if (count > 0) {
            handler.drained();
            return true;
        }
        return checkGuest();
    }

    private void releaseRoom(long count) {
        if (count > 0) {
            ring.release();
            rings.released();
            sleep.shortenNaps();
        }
    }

    /**
     * Ends the session if the guest has left, but only after serving all that it sent before. Returns whether there is
     * work.
     */
    private boolean checkGuest() {
        String departure = rings.departure();
        if (departure == null) {
            return false;
        }
        if (!reading) {
            close();
            return true;
        }
        if (!paused && !halted && hasInput()) {
            return true;
        }
        reading = false;
        handler.gone(departure);
        return true;
    }

    private boolean send() {
        if (closed) {
            return false;
        }
        boolean moved = replies.pump();
        if (paused && replies.waitingBytes() <= LOW_WATER_BYTES) {
            paused = false;
            moved = true;
        }
        String failure = replies.takeFailure();
        if (failure != null && handler != null) {
            handler.refuse(failure);
        }
        if (leaving && !replies.isWaiting()) {
            close();
        }
        return moved || failure != null;
    }

    /** Checks for finished work of the session, also after the guest has left. */
    private boolean poll() {
        return handler != null && handler.poll();
    }

    private boolean hasInput() {
        try {
            return ring.available() > 0;
        } catch (RingCorruptException e) {
            return true; // receive() meets the same error again and ends the session
        }
    }

    private boolean hasWork() {
        return rings.progress() || !tasks.isEmpty() || stopping
            || !closed && (reading && !paused && !halted && hasInput() || replies.canPump()
                || (reading || leaving) && rings.departure() != null);
    }

    private void idle() {
        try {
            if (!closed && spin()) {
                return;
            }
            setPolled(false);
            long waitNs = timers.isEmpty() ? Long.MAX_VALUE : timers.peek().atNs - System.nanoTime();
            sleep.prepare(replies.isWaiting());
            if (!hasWork()) {
                sleep.sleep(waitNs);
            }
        } catch (InternalError e) {
            memoryGone(e);
        } catch (IOException | RuntimeException e) {
            LOG.log(Level.ERROR, "the session cannot wait for its guest", e);
            close(); // otherwise each later wait would fail at once, in a busy loop
            if (handler != null) {
                handler.gone("the worker cannot wait for its guest: " + e.getMessage());
            }
        } finally {
            sleep.awake();
            setPolled(true);
        }
    }

    /** Polls for work for a limited time; returns whether there is some. */
    private boolean spin() {
        spin.begin();
        do {
            if (hasWork() || poll()) {
                spin.end(false);
                return true;
            }
        } while (spin.once());
        boolean granted = handler != null && handler.isWorthPolling() && awaitDevice();
        if (!granted) {
            spin.end(true); // otherwise the device ended the wait, which shows nothing about the guest's pace
        }
        return granted;
    }

    private boolean awaitDevice() {
        boolean granted = false;
        patience.begin();
        while (!granted && patience.once() && handler.isWorthPolling()) {
            granted = hasWork() || poll();
        }
        patience.end(granted);
        return granted;
    }

    private void setPolled(boolean polled) {
        if (handler != null) {
            handler.setPolled(polled);
        }
    }

    @Override
    public void execute(Runnable task) {
        if (!thread.isAlive()) {
            throw new RejectedExecutionException("the session thread has ended");
        }
        tasks.add(task);
        sleep.wake();
    }

    /** Whether the session thread has ended, and so uses the rings no more. Any thread. */
    protected final boolean hasEnded() {
        return !thread.isAlive();
    }

    @Override
    public boolean isSessionThread() {
        return Thread.currentThread() == thread;
    }

    @Override
    public void schedule(Runnable task, long delayMs) {
        Timer timer = new Timer(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(delayMs), task);
        if (isSessionThread()) {
            timers.add(timer);
        } else {
            execute(() -> timers.add(timer));
        }
    }

    @Override
    public void open(RecordHandler recordHandler) {
        handler = recordHandler;
        cutter = new RecordCutter(recordHandler);
        reading = true;
    }

    @Override
    public void open(RecordHandler recordHandler, LinkPosition from) {
        open(recordHandler);
        cutter.resume(from);
        handler.drained();
    }

    @Override
    public void halt() {
        halted = true;
        sleep.detach(); // the guest must wake the thread of the worker that goes on
    }

    @Override
    public void proceed() {
        halted = false;
        sleep.attach();
    }

    @Override
    public boolean hasSentAll() {
        return !replies.isWaiting();
    }

    @Override
    public LinkPosition position() {
        return cutter.position(ring.position(), replies.ring().published(),
            replies.ring().head());
    }

    @Override
    public void append(RecordWriter record, int lengthBytes) {
        replies.append(record, lengthBytes);
    }

    @Override
    public void appendData(RecordWriter prefix, int prefixBytes, Staging piece, int bytes, Runnable sent) {
        replies.appendData(prefix, prefixBytes, piece, bytes, sent);
    }

    @Override
    public void flush() {
        replies.flush();
    }

    @Override
    public long unreadBytes() {
        return replies.waitingBytes(); // the ring itself has a fixed size
    }

    @Override
    public void pauseUntilRead() {
        paused = true;
    }

    @Override
    public void discard() {
        reading = false;
        paused = false;
        if (cutter != null) {
            cutter.discard();
        }
    }

    @Override
    public void dropPartial() {
        if (cutter != null) {
            cutter.dropPartial();
        }
    }

    /**
     * The guest can read the ring until it leaves. Records that wait for room in the ring are dropped after one second.
     */
    @Override
    public void leave() {
        leaving = true;
        schedule(this::close, LINGER_MS);
    }

    @Override
    public void close() {
        boolean isFirst = !closed;
        boolean inOrder = leaving;
        closed = true;
        reading = false;
        leaving = false;
        sleep.detach();
        replies.close();
        if (isFirst) {
            rings.closed(inOrder);
        }
        closedLatch.countDown();
    }

    @Override
    public void awaitClosed(long limitMs) {
        try {
            closedLatch.await(limitMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends next
        }
    }

    @Override
    public void shutdown(long limitMs) {
        stopping = true;
        sleep.wake();
        try {
            thread.join(limitMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends next
        }
    }
}
