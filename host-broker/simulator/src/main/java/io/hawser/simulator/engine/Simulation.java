package io.hawser.simulator.engine;

import io.hawser.turns.TurnGroups;
import io.hawser.turns.TurnRecorder;
import io.hawser.turns.TurnRules;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;

/**
 * GPUs and tenants in simulated time, under the scheduler of the broker. Time advances from one event to the next:
 * kernels that need no decision cost nothing. The same calls give the same results. One thread.
 */
public final class Simulation {
    private static final long START_NS = 1;

    private final TurnGroups groups;
    private final Costs costs;
    private final List<SimulatedGpu> gpus = new ArrayList<>();
    private final List<Tenant> byNumber = new ArrayList<>(); // null for a GPU and for one that has left
    private final Calendar calendar = new Calendar();
    private final List<Tenant> dirty = new ArrayList<>();
    private final List<SimulatedGpu> looks = new ArrayList<>();
    private final PriorityQueue<Act> acts = new PriorityQueue<>();
    private long nowNs = START_NS;
    private boolean leavesEqual;
    private long grants;
    private long announced;
    private int actCount;

    private record Act(long timeNs, int order, Runnable action) implements Comparable<Act> {
        @Override
        public int compareTo(Act other) {
            return timeNs != other.timeNs ? Long.compare(timeNs, other.timeNs) : Integer.compare(order, other.order);
        }
    }

    /**
     * Starts without tenants, at time 1 ns.
     *
     * @param gpus their number, 1 or more.
     * @param recorder of the scheduler's decisions; null for none.
     */
    public Simulation(TurnRules rules, Costs costs, int gpus, TurnRecorder recorder) {
        this.costs = costs;
        groups = new TurnGroups(rules, () -> leavesEqual, recorder);
        for (int i = 0; i < gpus; i++) {
            this.gpus.add(new SimulatedGpu(i));
            byNumber.add(null);
            calendar.add(); // the GPU's number is its index
        }
    }

    /**
     * Adds a session at the present time.
     *
     * @param vgpu whose turn it shares with other sessions of the same name.
     * @param weight of the vGPU, 1 or more.
     * @param onGpus numbers of its GPUs from 0, at least one; its kernels run on all of them at once.
     */
    public Tenant add(String vgpu, int weight, List<Integer> onGpus, Work work) {
        List<SimulatedGpu> its = onGpus.stream().map(gpus::get).toList();
        Tenant tenant = new Tenant(this, calendar.add(), vgpu, weight, its, work);
        byNumber.add(tenant);
        its.forEach(gpu -> gpu.tenants.add(tenant));
        groups.join(tenant, vgpu, weight, its.stream().map(gpu -> "gpu-" + gpu.index).toList(), nowNs);
        touch(tenant);
        lookSoon(its);
        return tenant;
    }

    /** Removes a tenant and its running kernels at once. */
    public void remove(Tenant tenant) {
        for (SimulatedGpu gpu : tenant.gpus) {
            gpu.tenants.remove(tenant);
            if (tenant.isRunning()) {
                gpu.end(tenant);
            }
        }
        tenant.leave();
        byNumber.set(tenant.number, null);
        calendar.set(tenant.number, Calendar.NEVER);
        groups.leave(tenant, nowNs);
        gpus.forEach(gpu -> lookSoon(List.of(gpu))); // queues may have been divided
    }

    /** Changes a vGPU's weight. */
    public void setWeight(String vgpu, int weight) {
        groups.setWeight(vgpu, weight, nowNs);
        lookSoon(gpus);
    }

    /** Leaves vGPUs of equal weight to the driver's time slicing. */
    public void leaveEqual() {
        leavesEqual = true;
        lookSoon(gpus);
    }

    /** Calls an action at a time; those for the same time in the order of these calls. */
    public void at(long timeNs, Runnable action) {
        acts.add(new Act(timeNs, actCount++, action));
    }

    /** The present time in nanoseconds. */
    public long nowNs() {
        return nowNs;
    }

    /** The share of begun turns that the scheduler had announced; NaN before the first. */
    public double announcedShare() {
        return (double) announced / grants;
    }

    /** Present tenants, in the order in which they joined. */
    public List<Tenant> tenants() {
        return byNumber.stream().filter(tenant -> tenant != null).toList();
    }

    /** Advances the time. */
    public void run(long ns) {
        long endNs = nowNs + ns;
        serve();
        while (true) {
            long actNs = acts.isEmpty() ? Calendar.NEVER : acts.peek().timeNs();
            long nextNs = Math.min(calendar.firstTimeNs(), actNs);
            if (nextNs >= endNs) {
                break;
            }
            nowNs = Math.max(nowNs, nextNs);
            while (!acts.isEmpty() && acts.peek().timeNs() <= nowNs) {
                acts.poll().action().run();
            }
            while (calendar.firstTimeNs() <= nowNs) {
                int number = calendar.first();
                calendar.set(number, Calendar.NEVER);
                if (number < gpus.size()) {
                    lookSoon(gpus.get(number));
                } else {
                    advance(byNumber.get(number));
                }
            }
            serve();
        }
        nowNs = endNs;
        for (Tenant tenant : byNumber) {
            if (tenant != null) {
                tenant.settle();
            }
        }
    }

    /** Looks at queues, and advances tenants with new permits, until nothing more happens at this time. */
    private void serve() {
        while (!dirty.isEmpty() || !looks.isEmpty()) {
            for (int i = 0; i < dirty.size(); i++) {
                Tenant tenant = dirty.get(i);
                tenant.isDirty = false;
                if (byNumber.get(tenant.number) != null) {
                    advance(tenant);
                }
            }
            dirty.clear();
            if (!looks.isEmpty()) {
                look(looks.removeLast());
            }
        }
    }

    private void look(SimulatedGpu gpu) {
        gpu.isLookDue = false;
        if (gpu.tenants.isEmpty()) {
            calendar.set(gpu.index, Calendar.NEVER);
            return;
        }
        long dueNs = groups.look(gpu.tenants.getFirst(), nowNs);
        calendar.set(gpu.index, Math.max(dueNs, nowNs + 1));
    }

    private void advance(Tenant tenant) {
        if (tenant.advance()) {
            lookSoon(tenant.gpus.getFirst());
        }
        calendar.set(tenant.number, tenant.nextNs());
    }

    private void lookSoon(List<SimulatedGpu> at) {
        at.forEach(this::lookSoon);
    }

    private void lookSoon(SimulatedGpu gpu) {
        if (!gpu.isLookDue) {
            gpu.isLookDue = true;
            looks.add(gpu);
        }
    }

    /** Advances a tenant before the time goes on. */
    void touch(Tenant tenant) {
        if (!tenant.isDirty) {
            tenant.isDirty = true;
            dirty.add(tenant);
        }
    }

    /** Sets the rate and the next time of a tenant after a change on one of its GPUs. */
    void changeRate(Tenant tenant) {
        int most = 1;
        for (int i = 0; i < tenant.gpus.size(); i++) {
            most = Math.max(most, tenant.gpus.get(i).running());
        }
        tenant.setRate(costs.rate(most));
        calendar.set(tenant.number, tenant.nextNs());
    }

    Costs costs() {
        return costs;
    }

    void countGrant(boolean wasAnnounced) {
        grants++;
        announced += wasAnnounced ? 1 : 0;
    }
}
