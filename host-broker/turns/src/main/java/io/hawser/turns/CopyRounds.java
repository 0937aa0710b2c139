package io.hawser.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;

/**
 * The copies between host and device of the vGPUs in one queue of turns. While several of them copy, each worker gets
 * a limit in proportion to its vGPU's weight: the bytes of a round. The driver serves the processes' copies in turn,
 * and passes on when a process has none left. With one round in flight each, their bytes are as their weights, and the
 * link to the host never idles. A vGPU that copies alone, or little, is not limited.
 *
 * <p>Sleeps while nobody copies: the first copy rings. Then it reads the workers' counters at each {@link #TICK_NS}.
 * The caller supplies the time, in nanoseconds, which never goes back. One thread.
 */
final class CopyRounds {
    /** A round of the vGPU with the largest weight: 0.3 ms on a link of 54 GB/s, below the driver's time slice. */
    static final int LARGEST_KIB = 16 * 1024;
    /** The least round: shorter copies would use the link badly. */
    static final int LEAST_KIB = 256;
    private static final double NS_A_SECOND = 1e9;
    /** Interval of readings while somebody copies. */
    static final long TICK_NS = 20_000_000;
    /** After this time without copies the workers must ring again. */
    static final long QUIET_NS = 200_000_000;

    /** An unlimited worker that copies less than this, in bytes per second, leaves enough of the link to the others. */
    private static final long MUCH = 2_000_000_000;
    /** A limited worker still wants more if it copies so many rounds between two readings. */
    private static final int ROUNDS = 2;

    private static final class Copier {
        private final TurnMember member;
        private int copied;
        private boolean isActive; // it copies much, or all that its limit allows
        private int told = Integer.MIN_VALUE; // nothing

        Copier(TurnMember member) {
            this.member = member;
            copied = member.copied();
        }

        /** Takes a reading. Returns whether the worker has copied since the last one. */
        boolean read(long tookNs) {
            int now = member.copied();
            long bytes = (now - copied & 0xffff_ffffL) * TurnPage.COPIED_UNIT_BYTES;
            copied = now;
            double much = (double) MUCH * tookNs / NS_A_SECOND;
            isActive = bytes >= (told > 0 ? Math.min(much, ROUNDS * 1024.0 * told) : much);
            return bytes > 0;
        }

        void tell(int copies) {
            if (copies != told) {
                told = copies;
                member.setCopies(copies);
            }
        }
    }

    private final BooleanSupplier leavesEqual;
    private final List<Copier> copiers = new ArrayList<>();
    private boolean isTicking;
    private long readNs; // time of the last reading
    private long copiedNs; // when somebody was last seen to have copied
    private long dueNs = Long.MAX_VALUE;

    /**
     * Starts without workers.
     *
     * @param leavesEqual whether the driver alone divides the link between vGPUs of equal weight.
     */
    CopyRounds(BooleanSupplier leavesEqual) {
        this.leavesEqual = leavesEqual;
    }

    /** Adds a worker; the caller then calls {@link #poll}. */
    void join(TurnMember member) {
        copiers.add(new Copier(member));
        dueNs = Long.MIN_VALUE;
    }

    /** Removes a worker; the caller then calls {@link #poll}. */
    void leave(TurnMember member) {
        copiers.removeIf(copier -> copier.member == member);
        dueNs = Long.MIN_VALUE;
    }

    /**
     * Reads the workers' counters and sets their limits, if it is time or somebody has begun to copy.
     *
     * @return latest time of the next call; {@code Long.MAX_VALUE}: when a worker rings, joins or leaves, or a weight
     *     changes.
     */
    long poll(long nowNs) {
        if (isTicking && nowNs < dueNs) {
            return dueNs;
        }
        if (needsNoLimits()) {
            isTicking = false;
            tellAll(TurnPage.UNCOUNTED);
            dueNs = Long.MAX_VALUE;
            return dueNs;
        }
        boolean isBegin = !isTicking;
        for (Copier copier : copiers) {
            if (copier.read(nowNs - readNs)) {
                copiedNs = nowNs;
                isTicking = true;
            }
        }
        readNs = nowNs;
        isTicking &= nowNs - copiedNs <= QUIET_NS;
        dueNs = isTicking ? nowNs + TICK_NS : Long.MAX_VALUE;
        if (!isTicking) {
            tellAll(TurnPage.REPORTED);
        } else if (isBegin) {
            tellAll(TurnPage.COUNTED);
        } else {
            limit();
        }
        return dueNs;
    }

    private boolean needsNoLimits() {
        boolean isOneVgpu = true;
        boolean isEqual = leavesEqual.getAsBoolean();
        for (int i = 1; i < copiers.size(); i++) {
            isOneVgpu &= copiers.get(i).member.vgpu.equals(copiers.getFirst().member.vgpu);
            isEqual &= copiers.get(i).member.weight == copiers.getFirst().member.weight;
        }
        return isOneVgpu || isEqual;
    }

    private void tellAll(int copies) {
        copiers.forEach(copier -> copier.tell(copies));
    }

    private void limit() {
        Map<String, Integer> sessions = new HashMap<>(); // that copy, by vGPU
        int largest = 1;
        for (Copier copier : copiers) {
            if (copier.isActive) {
                sessions.merge(copier.member.vgpu, 1, Integer::sum);
                largest = Math.max(largest, copier.member.weight);
            }
        }
        for (Copier copier : copiers) {
            Integer sharing = sessions.get(copier.member.vgpu);
            copier.tell(sharing == null || sessions.size() < 2 ? TurnPage.COUNTED
                : Math.max(LEAST_KIB, (int) ((long) LARGEST_KIB * copier.member.weight / largest / sharing)));
        }
    }
}
