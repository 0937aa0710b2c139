package io.hawser.broker.turns;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.os.EventPoll;
import io.hawser.turns.TurnGroups;
import io.hawser.turns.TurnRecorder;
import io.hawser.turns.TurnRules;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jboss.logging.Logger;

/**
 * Gives turns on all GPUs. A thread reads the workers' pages when a worker rings or a time is over. It sleeps while no
 * GPU has two vGPUs that want it. On a machine with many processors it polls the pages for a short time before it
 * sleeps, while turns pass quickly. Any thread may call the methods; none waits.
 */
public final class TurnScheduler implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(TurnScheduler.class);
    private static final int SPINNING_CPUS = 8;
    /** How long the thread polls after a change: a few times the cost of a sleep and a wake-up. */
    private static final long SPIN_NS = 200_000;
    /** Interval of reads for a worker that does not ring, or whose bell is muted. */
    private static final long LOOK_NS = 10_000_000;

    private static final long FAILURE_PAUSE_NS = 1_000_000_000;

    private final TurnGroups groups; // thread only
    private final boolean spins;
    private final Thread thread;
    private final EventFd wakeUp;
    private final Queue<Runnable> commands = new ConcurrentLinkedQueue<>();
    private final EventPoll poll = new EventPoll();
    private final Set<TurnTicket> tickets = new LinkedHashSet<>(); // thread only, as the next two
    private List<TurnTicket> watched = List.of();
    private boolean isChanged = true;
    private volatile boolean closed;

    /**
     * Starts the thread.
     *
     * @param leavesEqual whether the driver alone divides the time between vGPUs of equal weight; called often, on this
     *     thread.
     * @param recorder called on this thread; null for none.
     */
    public TurnScheduler(TurnRules rules, BooleanSupplier leavesEqual, TurnRecorder recorder) throws IOException {
        groups = new TurnGroups(rules, leavesEqual, recorder);
        spins = Runtime.getRuntime().availableProcessors() >= SPINNING_CPUS;
        wakeUp = EventFd.create();
        thread = new Thread(this::run, "hawser-turns");
        thread.setDaemon(true);
        thread.start();
    }

    /** A worker's place in the turns. */
    public final class Place {
        private final TurnTicket ticket;

        private Place(TurnTicket ticket) {
            this.ticket = ticket;
        }

        /** Descriptor of the page, for the worker; the scheduler owns it. */
        public int pageDescriptor() {
            return ticket.pageDescriptor();
        }

        /** Descriptor of the bell, for the worker; the scheduler owns it. */
        public int bellDescriptor() {
            return ticket.bell.fd();
        }

        /** Starts the worker's turns, after it got both descriptors. */
        public void begin() {
            execute(() -> join(ticket));
        }

        /** Releases the place, after the worker's exit or its failure to take the place. Call once. */
        public void end() {
            execute(() -> leave(ticket));
        }
    }

    /**
     * Makes a place for a worker.
     *
     * @param vgpu whose turn the worker shares.
     * @param weight of the vGPU from now on, 1 or more.
     * @param gpus UUIDs of the session's GPUs; sessions that share any of them take turns.
     * @throws IOException if memory or descriptors are exhausted.
     */
    public Place place(String vgpu, int weight, List<String> gpus) throws IOException {
        return new Place(new TurnTicket(vgpu, weight, gpus));
    }

    /** Sets the weight of a vGPU. */
    public void setWeight(String vgpu, int weight) {
        execute(() -> groups.setWeight(vgpu, weight, System.nanoTime()));
    }

    /**
     * Time charged to a vGPU, since it joined, while others shared its GPUs.
     *
     * @return completes with nanoseconds.
     */
    public CompletableFuture<Long> chargedNs(String vgpu) {
        CompletableFuture<Long> answer = new CompletableFuture<>();
        execute(() -> answer.complete(groups.chargedNs(vgpu)));
        return answer;
    }

    private void execute(Runnable command) {
        commands.add(command);
        try {
            wakeUp.signal();
        } catch (IOException e) {
            throw new IllegalStateException("the broker must be able to signal its own event", e);
        }
    }

    private void join(TurnTicket ticket) {
        tickets.add(ticket);
        groups.join(ticket, ticket.vgpu, ticket.weight, ticket.gpus, System.nanoTime());
        isChanged = true;
    }

    private void leave(TurnTicket ticket) {
        tickets.remove(ticket);
        groups.leave(ticket, System.nanoTime());
        isChanged = true;
        ticket.close();
    }

    private void run() {
        while (!closed) {
            try {
                turn();
            } catch (IOException | RuntimeException e) {
                LOG.error("the turns failed; all present sessions may now launch at any time", e);
                groups.abandon(System.nanoTime());
                LockSupport.parkNanos(FAILURE_PAUSE_NS); // a repeated failure must not fill the log
            }
        }
        tickets.forEach(TurnTicket::close);
        wakeUp.close();
    }

    private void turn() throws IOException {
        for (Runnable command = commands.poll(); command != null; command = commands.poll()) {
            command.run();
        }
        long startNs = System.nanoTime();
        long now = startNs;
        long due = groups.poll(now);
        while (spins && due < Long.MAX_VALUE && commands.isEmpty() && (now - startNs < SPIN_NS || groups.isPassing())) {
            Thread.onSpinWait();
            now = System.nanoTime();
            due = groups.poll(now);
        }
        if (!commands.isEmpty()) {
            return;
        }
        due = Math.min(due, groups.pollCopies(now));
        if (isChanged) {
            watchAll(now);
        }
        long waitNs = due == Long.MAX_VALUE ? -1 : Math.clamp(due - System.nanoTime(), 0, LOOK_NS);
        if (waitNs < 0 && watched.contains(null)) {
            waitNs = LOOK_NS;
        }
        if (poll.await(waitNs)) {
            readBells();
        }
        if (watched.contains(null)) {
            isChanged = true; // the bell's mute may have ended
        }
    }

    private void watchAll(long nowNs) {
        List<EventFd> events = new ArrayList<>(List.of(wakeUp));
        List<TurnTicket> audible = new ArrayList<>();
        for (TurnTicket ticket : tickets) {
            boolean isMuted = ticket.isMuted(nowNs);
            audible.add(isMuted ? null : ticket);
            events.add(isMuted ? null : ticket.bell);
        }
        watched = audible;
        poll.watch(events);
        isChanged = false;
    }

    private void readBells() throws IOException {
        if (poll.isReady(0)) {
            wakeUp.poll(0);
        }
        long now = System.nanoTime();
        for (int i = 0; i < watched.size(); i++) {
            TurnTicket ticket = watched.get(i);
            if (ticket != null && poll.isReady(i + 1) && !ticket.acceptRing(now)) {
                LOG.warnf("a worker of vGPU %s rings too often, ignoring its bell for up to a second", ticket.vgpu);
                isChanged = true;
            }
        }
    }

    /** Ends the thread; the remaining workers may launch at any time. */
    @Override
    public void close() {
        closed = true;
        execute(() -> {});
        try {
            thread.join(1000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
