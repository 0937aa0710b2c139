package io.hawser.broker.turns;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.os.EventPoll;
import io.hawser.shm.turns.TurnPage;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jboss.logging.Logger;

/**
 * Gives turns on all GPUs: a thread that looks at the workers' pages when one of them rings or a time is over, and
 * sleeps while no GPU has two vGPUs that want it. Where there are processors for that it asks the pages for a little
 * while before it sleeps, as long as turns pass quickly. Methods may be called by any thread; none waits.
 */
public final class TurnScheduler implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(TurnScheduler.class);
    private static final int SPINNING_CPUS = 8;
    /** How long the thread asks after something has changed: what it costs to sleep and be woken, a few times. */
    private static final long SPIN_NS = 200_000;
    /** A worker that forgets to ring, or whose bell is not listened to, is looked at so often. */
    private static final long LOOK_NS = 10_000_000;

    private static final long FAILURE_PAUSE_NS = 1_000_000_000;

    private final TurnRules rules;
    private final BooleanSupplier leavesEqual;
    private final boolean spins;
    private final Thread thread;
    private final EventFd wakeUp;
    private final Queue<Runnable> commands = new ConcurrentLinkedQueue<>();
    private final EventPoll poll = new EventPoll();
    private final Map<TurnTicket, TurnQueue> members = new LinkedHashMap<>(); // this and the next: the thread's
    private final Set<TurnQueue> queues = new HashSet<>();
    private List<TurnTicket> watched = List.of();
    private boolean isChanged = true;
    private volatile boolean closed;

    /**
     * Starts the thread.
     *
     * @param leavesEqual whether vGPUs of one weight are left to the driver; asked on this thread, often.
     */
    public TurnScheduler(TurnRules rules, BooleanSupplier leavesEqual) throws IOException {
        this.rules = rules;
        this.leavesEqual = leavesEqual;
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

        /** Descriptor of the page, for the worker; this still owns it. */
        public int pageDescriptor() {
            return ticket.pageDescriptor();
        }

        /** Descriptor of the bell, for the worker; this still owns it. */
        public int bellDescriptor() {
            return ticket.bell.fd();
        }

        /** The worker has it: it takes part from now on. */
        public void begin() {
            execute(() -> join(ticket));
        }

        /** The worker is gone, or never had it. Once. */
        public void end() {
            execute(() -> leave(ticket));
        }
    }

    /**
     * Makes a place for a worker.
     *
     * @param vgpu whose turn the worker shares.
     * @param weight of the vGPU from now on, 1 or more.
     * @param gpus UUIDs of the session's GPUs: whoever shares one of them takes turns with it.
     * @throws IOException if there is no memory or descriptor for it.
     */
    public Place place(String vgpu, int weight, List<String> gpus) throws IOException {
        return new Place(new TurnTicket(vgpu, weight, gpus));
    }

    /** Gives a vGPU another weight. */
    public void weigh(String vgpu, int weight) {
        execute(() -> {
            long now = System.nanoTime();
            queues.forEach(queue -> queue.weigh(vgpu, weight, now));
        });
    }

    /**
     * Time that a vGPU has been charged for while others had its GPUs as well, since it has come.
     *
     * @return completes with nanoseconds.
     */
    public CompletableFuture<Long> chargedNs(String vgpu) {
        CompletableFuture<Long> answer = new CompletableFuture<>();
        execute(() -> answer.complete(queues.stream().mapToLong(queue -> queue.chargedNs(vgpu)).sum()));
        return answer;
    }

    private void execute(Runnable command) {
        commands.add(command);
        try {
            wakeUp.signal();
        } catch (IOException e) {
            throw new IllegalStateException("the broker's own event can be signalled", e);
        }
    }

    private void join(TurnTicket ticket) {
        long now = System.nanoTime();
        TurnQueue queue = null;
        boolean isJoining = false;
        for (Map.Entry<TurnTicket, TurnQueue> member : members.entrySet()) {
            if (shares(member.getKey(), ticket)) {
                isJoining |= queue != null && queue != member.getValue();
                queue = member.getValue();
            }
        }
        isChanged = true;
        if (isJoining) {
            members.put(ticket, queue);
            regroup(now); // it brings GPUs together that had turns of their own
            return;
        }
        if (queue == null) {
            queue = new TurnQueue(rules, leavesEqual);
            queues.add(queue);
        }
        members.put(ticket, queue);
        queue.join(ticket, ticket.vgpu, ticket.weight, now);
    }

    private static boolean shares(TurnTicket one, TurnTicket other) {
        return one.gpus.stream().anyMatch(other.gpus::contains);
    }

    private void leave(TurnTicket ticket) {
        TurnQueue queue = members.remove(ticket);
        if (queue != null) {
            long now = System.nanoTime();
            queue.leave(ticket, now);
            if (ticket.gpus.size() > 1) {
                regroup(now);
            } else if (members.values().stream().noneMatch(queue::equals)) {
                queues.remove(queue);
            }
        }
        isChanged = true;
        ticket.close();
    }

    /** Makes the queues anew: one for all that share a GPU, be it through others. What each has used is forgotten. */
    private void regroup(long nowNs) {
        queues.clear();
        Map<String, TurnQueue> byGpu = new LinkedHashMap<>();
        Map<TurnQueue, TurnQueue> merged = new LinkedHashMap<>();
        Function<TurnQueue, TurnQueue> root = queue -> {
            TurnQueue at = queue;
            while (merged.containsKey(at)) {
                at = merged.get(at);
            }
            return at;
        };
        for (TurnTicket ticket : members.keySet()) {
            TurnQueue own = new TurnQueue(rules, leavesEqual);
            for (String gpu : ticket.gpus) {
                TurnQueue there = byGpu.get(gpu);
                if (there != null && root.apply(there) != own) {
                    merged.put(root.apply(there), own);
                }
                byGpu.put(gpu, own);
            }
        }
        for (Map.Entry<TurnTicket, TurnQueue> member : members.entrySet()) {
            TurnTicket ticket = member.getKey();
            TurnQueue queue = ticket.gpus.isEmpty() ? new TurnQueue(rules, leavesEqual)
                : root.apply(byGpu.get(ticket.gpus.getFirst()));
            member.setValue(queue);
            queues.add(queue);
            queue.join(ticket, ticket.vgpu, ticket.weight, nowNs);
        }
    }

    private void run() {
        while (!closed) {
            try {
                turn();
            } catch (IOException | RuntimeException e) {
                LOG.error("turns could not be given; all may launch until their sessions end", e);
                members.keySet().forEach(ticket -> ticket.permit(TurnPage.FREE));
                queues.clear();
                members.replaceAll((ticket, queue) -> new TurnQueue(rules, leavesEqual));
                LockSupport.parkNanos(FAILURE_PAUSE_NS); // what fails again is not to fill the log
            }
        }
        members.keySet().forEach(TurnTicket::close);
        wakeUp.close();
    }

    private void turn() throws IOException {
        for (Runnable command = commands.poll(); command != null; command = commands.poll()) {
            command.run();
        }
        long startNs = System.nanoTime();
        long now = startNs;
        long due = look(now);
        while (spins && due < Long.MAX_VALUE && commands.isEmpty() && (now - startNs < SPIN_NS || isPassing())) {
            Thread.onSpinWait();
            now = System.nanoTime();
            due = look(now);
        }
        if (!commands.isEmpty()) {
            return;
        }
        if (isChanged) {
            watchAll(now);
        }
        long waitNs = due == Long.MAX_VALUE ? -1 : Math.clamp(due - System.nanoTime(), 0, LOOK_NS);
        if (waitNs < 0 && watched.contains(null)) {
            waitNs = LOOK_NS;
        }
        if (poll.await(waitNs)) {
            hear();
        }
        if (watched.contains(null)) {
            isChanged = true; // perhaps it is listened to again
        }
    }

    private long look(long nowNs) {
        long due = Long.MAX_VALUE;
        for (TurnQueue queue : queues) {
            due = Math.min(due, queue.look(nowNs));
        }
        return due;
    }

    private boolean isPassing() {
        for (TurnQueue queue : queues) {
            if (queue.isPassing()) {
                return true;
            }
        }
        return false;
    }

    private void watchAll(long nowNs) {
        List<EventFd> events = new ArrayList<>(List.of(wakeUp));
        List<TurnTicket> tickets = new ArrayList<>();
        for (TurnTicket ticket : members.keySet()) {
            boolean isMuted = ticket.isMuted(nowNs);
            tickets.add(isMuted ? null : ticket);
            events.add(isMuted ? null : ticket.bell);
        }
        watched = tickets;
        poll.watch(events);
        isChanged = false;
    }

    private void hear() throws IOException {
        if (poll.isReady(0)) {
            wakeUp.poll(0);
        }
        long now = System.nanoTime();
        for (int i = 0; i < watched.size(); i++) {
            TurnTicket ticket = watched.get(i);
            if (ticket != null && poll.isReady(i + 1) && !ticket.heard(now)) {
                LOG.warnf("a worker of vGPU %s rings too often and is not listened to for a while", ticket.vgpu);
                isChanged = true;
            }
        }
    }

    /** Ends the thread; workers that are left may launch. */
    @Override
    public void close() {
        closed = true;
        execute(() -> { });
        try {
            thread.join(1000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
