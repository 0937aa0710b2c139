package io.hawser.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * The turns on all GPUs: a queue for each GPU, and one queue for GPUs that some session uses together. The caller
 * supplies the time, in nanoseconds, which never goes back. One thread.
 */
public final class TurnGroups {
    private final TurnRules rules;
    private final BooleanSupplier leavesEqual;
    private final TurnRecorder recorder;
    private final Map<Seat, TurnMember> bySeat = new IdentityHashMap<>();
    private final Set<TurnMember> members = new LinkedHashSet<>();
    private Set<TurnQueue> queues = new LinkedHashSet<>();
    private boolean isLeftEqual;
    private int lastNumber;

    /**
     * Starts without workers.
     *
     * @param leavesEqual whether the driver alone divides the time between vGPUs of equal weight, because it gives
     *     their processes equal time; called often.
     * @param recorder null for none.
     */
    public TurnGroups(TurnRules rules, BooleanSupplier leavesEqual, TurnRecorder recorder) {
        this.rules = rules;
        this.recorder = recorder;
        this.leavesEqual = leavesEqual;
    }

    private TurnQueue newQueue() {
        return new TurnQueue(rules, this::leavesEqual, recorder);
    }

    private boolean leavesEqual() {
        boolean isLeft = leavesEqual.getAsBoolean();
        if (isLeft != isLeftEqual) {
            isLeftEqual = isLeft;
            if (recorder != null) {
                recorder.leftEqual(isLeft);
            }
        }
        return isLeft;
    }

    /**
     * Adds a worker, which gets a permit at once; the caller then calls {@link #poll} or {@link #look}.
     *
     * @param seat not added before.
     * @param weight of the vGPU from now on, 1 or more.
     * @param gpus names of the session's GPUs; sessions that share any of them take turns.
     */
    public void join(Seat seat, String vgpu, int weight, List<String> gpus, long nowNs) {
        TurnMember member = new TurnMember(++lastNumber, seat, vgpu, weight, gpus, recorder);
        if (recorder != null) {
            recorder.joined(nowNs, member.number, vgpu, weight, member.gpus);
        }
        TurnQueue queue = null;
        boolean isJoining = false;
        for (TurnMember other : members) {
            if (shares(other, member)) {
                isJoining |= queue != null && queue != other.queue;
                queue = other.queue;
            }
        }
        bySeat.put(seat, member);
        members.add(member);
        setWeightOfMembers(vgpu, weight);
        if (isJoining) {
            regroup(nowNs); // its GPUs had separate turns until now
            return;
        }
        if (queue == null) {
            queue = newQueue();
        }
        queues.add(queue);
        member.queue = queue;
        queue.join(member, nowNs);
    }

    private static boolean shares(TurnMember one, TurnMember other) {
        for (int i = 0; i < one.gpus.size(); i++) {
            if (other.gpus.contains(one.gpus.get(i))) {
                return true;
            }
        }
        return false;
    }

    /** Removes a worker and its running work; nothing for an unknown one. The caller then calls {@link #poll}. */
    public void leave(Seat seat, long nowNs) {
        TurnMember member = bySeat.remove(seat);
        if (member == null) {
            return;
        }
        if (recorder != null) {
            recorder.left(nowNs, member.number);
        }
        members.remove(member);
        member.queue.leave(member, nowNs);
        if (member.gpus.size() > 1) {
            regroup(nowNs);
        } else if (member.queue.isEmpty()) {
            queues.remove(member.queue);
        }
    }

    /** Sets the weight of a vGPU, 1 or more. */
    public void setWeight(String vgpu, int weight, long nowNs) {
        if (recorder != null) {
            recorder.weighed(nowNs, vgpu, weight);
        }
        setWeightOfMembers(vgpu, weight);
        queues.forEach(queue -> queue.setWeight(vgpu, weight, nowNs));
    }

    private void setWeightOfMembers(String vgpu, int weight) {
        members.stream().filter(member -> member.vgpu.equals(vgpu)).forEach(member -> member.weight = weight);
    }

    /**
     * Rebuilds the queues: one for all sessions that share a GPU, directly or through others. Drops the time that each
     * vGPU has used.
     */
    private void regroup(long nowNs) {
        Map<String, Integer> groupByGpu = new LinkedHashMap<>();
        List<TurnMember> all = List.copyOf(members);
        int[] parents = new int[all.size()];
        for (int i = 0; i < parents.length; i++) {
            parents[i] = i;
            for (String gpu : all.get(i).gpus) {
                Integer there = groupByGpu.putIfAbsent(gpu, i);
                if (there != null) {
                    parents[root(parents, i)] = root(parents, there);
                }
            }
        }
        queues = new LinkedHashSet<>();
        TurnQueue[] byGroup = new TurnQueue[parents.length];
        for (int i = 0; i < parents.length; i++) {
            int group = root(parents, i);
            if (byGroup[group] == null) {
                byGroup[group] = newQueue();
                queues.add(byGroup[group]);
            }
            all.get(i).queue = byGroup[group];
            byGroup[group].join(all.get(i), nowNs);
        }
    }

    private static int root(int[] parents, int of) {
        int at = of;
        while (parents[at] != at) {
            at = parents[at];
        }
        return at;
    }

    /**
     * Reads the workers of all queues and grants the turns. Does nothing for a queue without changed states whose time
     * is not over, so a thread may call this all the time.
     *
     * @return latest time of the next call; {@code Long.MAX_VALUE}: when a worker rings.
     */
    public long poll(long nowNs) {
        long dueNs = Long.MAX_VALUE;
        for (TurnQueue queue : queues) {
            dueNs = Math.min(dueNs, queue.poll(nowNs));
        }
        return dueNs;
    }

    /**
     * Reads how much the workers have copied and limits their copies. Also after a call that changes workers or
     * weights.
     *
     * @return latest time of the next call; {@code Long.MAX_VALUE}: when a worker rings.
     */
    public long pollCopies(long nowNs) {
        long dueNs = Long.MAX_VALUE;
        for (TurnQueue queue : queues) {
            dueNs = Math.min(dueNs, queue.copies().poll(nowNs));
        }
        return dueNs;
    }

    /**
     * Reads the workers of the queue that a worker is in, as {@link #poll} after a change.
     *
     * @param seat present.
     * @return latest time of the next call for that queue; {@code Long.MAX_VALUE}: when one of its workers rings.
     */
    public long look(Seat seat, long nowNs) {
        return bySeat.get(seat).queue.look(nowNs);
    }

    /** Whether some turn should change soon, if the workers behave. */
    public boolean isPassing() {
        for (TurnQueue queue : queues) {
            if (queue.isPassing()) {
                return true;
            }
        }
        return false;
    }

    /** Time charged to a vGPU, since it joined, while others shared its GPUs; in nanoseconds. */
    public long chargedNs(String vgpu) {
        return queues.stream().mapToLong(queue -> queue.chargedNs(vgpu)).sum();
    }

    /** Ends the turns of all present workers after a failure: they may launch at any time. */
    public void abandon(long nowNs) {
        if (recorder != null) {
            recorder.abandoned(nowNs);
        }
        queues.clear();
        for (TurnMember member : members) {
            member.queue = newQueue(); // an empty one, which is never read
            member.setPermit(TurnPage.FREE);
            member.setCopies(TurnPage.UNCOUNTED);
        }
    }
}
