package io.hawser.broker.swap;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * The swappable vGPUs of one GPU: some have their memory there, and the others are out. A vGPU on the GPU has room for
 * all memory that it may reserve. One that is out needs only the memory that cannot move. Waiting vGPUs come in the
 * order of their first wait, and nobody overtakes. For them the vGPU leaves that has been idle longest. If none is
 * idle, the vGPU leaves that has been there longest for its share. A vGPU that has just come stays for a while. Times
 * are in nanoseconds and never go back. Event loop only.
 */
final class Residency {
    /** How long a vGPU that could not leave is not asked again. */
    static final long RETRY_NS = 2_000_000_000L;

    /** A session. It gets orders to move. */
    interface Seat {
        /** Its memory must leave the GPU; {@link Residency#left} follows. */
        void leave();

        /** Its memory can come back; {@link Residency#entered} follows. */
        void enter();
    }

    private enum Place { IN, LEAVING, OUT, ENTERING }

    private static final class Member {
        private final Tenant tenant;
        private final Seat seat;
        private Place place;
        private long outBytes;

        Member(Tenant tenant, Seat seat, Place place) {
            this.tenant = tenant;
            this.seat = seat;
            this.place = place;
        }
    }

    private static final class Tenant {
        private final String vgpu;
        private final List<Member> members = new ArrayList<>();
        private final LongSupplier heldBytes;
        private long quotaBytes;
        private int share;
        private boolean isIn; // it has its room, also while it leaves
        private boolean isLeaving;
        private long sinceNs; // in, or out
        private long activeNs;
        private long waitsNs = -1; // since when it waits; -1: it does not
        private long retryNs = Long.MIN_VALUE;
        private String stays = "";

        Tenant(String vgpu, LongSupplier heldBytes) {
            this.vgpu = vgpu;
            this.heldBytes = heldBytes;
        }

        /** Memory of the GPU that it needs where it is. */
        long neededBytes() {
            return isIn ? quotaBytes : Math.min(quotaBytes, heldBytes.getAsLong());
        }

        boolean isMoving() {
            return members.stream().anyMatch(member -> member.place == Place.LEAVING
                || member.place == Place.ENTERING);
        }

        /** Time on the GPU, as it counts beside others. */
        double weighed(long nowNs) {
            return (double) (nowNs - sinceNs) / share;
        }
    }

    /** The waits and departures of a vGPU. The caller keeps them over all sessions of the vGPU. */
    static final class Totals {
        private long swaps;
        private long waitedNs;

        long swaps() {
            return swaps;
        }

        long waitedNs() {
            return waitedNs;
        }
    }

    private final SwapRules rules;
    private final LongSupplier roomBytes;
    private final Map<String, Tenant> tenants = new LinkedHashMap<>();
    private final Map<Seat, Member> members = new LinkedHashMap<>();
    private final Map<String, Totals> totals;

    /**
     * Starts without vGPUs.
     *
     * @param roomBytes memory of the GPU for swappable vGPUs together.
     * @param totals by vGPU; gets an entry for each that joins.
     */
    Residency(SwapRules rules, LongSupplier roomBytes, Map<String, Totals> totals) {
        this.rules = rules;
        this.roomBytes = roomBytes;
        this.totals = totals;
    }

    /**
     * Adds a session.
     *
     * @param quotaBytes memory that its vGPU reserves.
     * @param share its vGPU's compute share, 1 or more.
     * @param heldBytes memory that the vGPU's sessions hold on the GPU now.
     * @return whether its memory begins on the GPU; if not, the session asks by {@link #want}.
     */
    boolean join(Seat seat, String vgpu, long quotaBytes, int share, LongSupplier heldBytes, long nowNs) {
        Tenant tenant = tenants.computeIfAbsent(vgpu, name -> new Tenant(name, heldBytes));
        totals.computeIfAbsent(vgpu, name -> new Totals());
        tenant.quotaBytes = quotaBytes;
        tenant.share = share;
        if (tenant.members.isEmpty() && nobodyWaits() && freeBytes() >= quotaBytes) {
            tenant.isIn = true;
            tenant.sinceNs = nowNs;
        }
        tenant.activeNs = nowNs;
        Member member = new Member(tenant, seat, tenant.isIn && !tenant.isLeaving ? Place.IN : Place.OUT);
        tenant.members.add(member);
        members.put(seat, member);
        return member.place == Place.IN;
    }

    private boolean nobodyWaits() {
        return tenants.values().stream().allMatch(tenant -> tenant.waitsNs < 0);
    }

    /** Removes a session that has ended. */
    void remove(Seat seat, long nowNs) {
        Member member = members.remove(seat);
        if (member == null) {
            return;
        }
        member.tenant.members.remove(member);
        if (member.tenant.members.isEmpty()) {
            tenants.remove(member.tenant.vgpu);
        } else {
            settle(member.tenant, nowNs);
        }
    }

    /** Changes what a vGPU reserves, and its share. */
    void change(String vgpu, long quotaBytes, int share) {
        Tenant tenant = tenants.get(vgpu);
        if (tenant != null) {
            tenant.quotaBytes = quotaBytes;
            tenant.share = share;
        }
    }

    /** A session has done something. */
    void active(Seat seat, long nowNs) {
        Member member = members.get(seat);
        if (member != null) {
            member.tenant.activeNs = nowNs;
        }
    }

    /** A session whose memory is out wants to go on. */
    void want(Seat seat, long nowNs) {
        Member member = members.get(seat);
        if (member == null || member.place != Place.OUT) {
            return;
        }
        Tenant tenant = member.tenant;
        if (tenant.isIn && !tenant.isLeaving) {
            enter(member);
        } else if (tenant.waitsNs < 0) {
            tenant.waitsNs = nowNs;
        }
    }

    /**
     * A session has answered {@link Seat#leave}.
     *
     * @param bytes its memory that is out now.
     * @param stays why its memory has stayed; empty when it has left.
     */
    void left(Seat seat, long bytes, String stays, long nowNs) {
        Member member = members.get(seat);
        if (member == null) {
            return;
        }
        member.place = stays.isEmpty() ? Place.OUT : Place.IN;
        member.outBytes = stays.isEmpty() ? bytes : 0;
        if (!stays.isEmpty()) {
            member.tenant.stays = stays;
            member.tenant.retryNs = nowNs + RETRY_NS;
        }
        settle(member.tenant, nowNs);
    }

    /** Ends a departure once all sessions have answered. */
    private void settle(Tenant tenant, long nowNs) {
        if (!tenant.isLeaving || tenant.isMoving()) {
            return;
        }
        tenant.isLeaving = false;
        if (tenant.members.stream().anyMatch(member -> member.place == Place.IN)) {
            tenant.waitsNs = -1;
            for (Member member : tenant.members) { // a vGPU is in or out as a whole
                if (member.place == Place.OUT) {
                    enter(member);
                }
            }
            return;
        }
        tenant.isIn = false;
        tenant.sinceNs = nowNs;
        tenant.stays = "";
        totals.get(tenant.vgpu).swaps++;
    }

    private static void enter(Member member) {
        member.place = Place.ENTERING;
        member.seat.enter();
    }

    /**
     * A session has answered {@link Seat#enter}.
     *
     * @param isIn whether all of its memory is back; else it must be told again.
     */
    void entered(Seat seat, boolean isIn) {
        Member member = members.get(seat);
        if (member != null) {
            member.place = isIn ? Place.IN : Place.OUT;
            member.outBytes = isIn ? 0 : member.outBytes;
        }
    }

    private long freeBytes() {
        return roomBytes.getAsLong() - tenants.values().stream().mapToLong(Tenant::neededBytes).sum();
    }

    /**
     * Lets vGPUs come and go. Call it after each change, and now and then while somebody waits.
     *
     * @return whether somebody waits.
     */
    boolean step(long nowNs) {
        List<Tenant> waiting = tenants.values().stream().filter(tenant -> tenant.waitsNs >= 0)
            .sorted(Comparator.comparingLong(tenant -> tenant.waitsNs)).toList();
        for (Tenant tenant : waiting) {
            long missing = tenant.quotaBytes - tenant.neededBytes() - freeBytes();
            if (tenant.isLeaving || missing > 0) {
                makeRoom(missing, nowNs);
                return true;
            }
            totals.get(tenant.vgpu).waitedNs += nowNs - tenant.waitsNs;
            tenant.waitsNs = -1;
            tenant.isIn = true;
            tenant.sinceNs = nowNs;
            tenant.activeNs = nowNs;
            tenant.members.stream().filter(member -> member.place == Place.OUT).forEach(Residency::enter);
        }
        return false;
    }

    /** Sends vGPUs away until there will be room, as far as that is allowed now. */
    private void makeRoom(long bytes, long nowNs) {
        long missing = bytes - tenants.values().stream().filter(tenant -> tenant.isLeaving)
            .mapToLong(tenant -> tenant.quotaBytes).sum();
        while (missing > 0) {
            Tenant next = next(nowNs);
            if (next == null) {
                return;
            }
            missing -= next.quotaBytes;
            next.isLeaving = true;
            next.members.stream().filter(member -> member.place == Place.IN).toList().forEach(member -> {
                member.place = Place.LEAVING;
                member.seat.leave();
            });
            settle(next, nowNs); // sessions that have left unasked answer no more
        }
    }

    /** The vGPU that leaves next; null while none may. */
    private Tenant next(long nowNs) {
        List<Tenant> able = tenants.values().stream().filter(tenant -> tenant.isIn && !tenant.isLeaving
            && !tenant.isMoving() && nowNs >= tenant.retryNs && nowNs - tenant.sinceNs >= rules.stayNs()).toList();
        return able.stream().filter(tenant -> nowNs - tenant.activeNs >= rules.idleNs())
            .min(Comparator.comparingLong(tenant -> tenant.activeNs))
            .orElseGet(() -> able.stream().filter(tenant -> nowNs - tenant.sinceNs >= turnNs(tenant))
                .max(Comparator.comparingDouble(tenant -> tenant.weighed(nowNs))).orElse(null));
    }

    /** A turn of a busy vGPU, by its share among all that are in or wait. */
    private long turnNs(Tenant tenant) {
        double mean = tenants.values().stream().filter(other -> other.isIn || other.waitsNs >= 0)
            .mapToInt(other -> other.share).average().orElse(tenant.share);
        return (long) (rules.turnNs() * (tenant.share / mean));
    }

    /** Whether a vGPU has its memory on the GPU; true for one without sessions. */
    boolean isIn(String vgpu) {
        Tenant tenant = tenants.get(vgpu);
        return tenant == null || tenant.isIn && !tenant.isLeaving;
    }

    /** Memory of a vGPU that is out. */
    long outBytes(String vgpu) {
        Tenant tenant = tenants.get(vgpu);
        return tenant == null ? 0 : tenant.members.stream().mapToLong(member -> member.outBytes).sum();
    }

    /** Memory of all vGPUs that is out. */
    long outBytes() {
        return members.values().stream().mapToLong(member -> member.outBytes).sum();
    }

    /** Why a vGPU's memory cannot leave, by its last answer; empty if it can. */
    String stays(String vgpu) {
        Tenant tenant = tenants.get(vgpu);
        return tenant == null ? "" : tenant.stays;
    }

    /** How long a vGPU has waited by now for the memory for which it waits. */
    long waitingNs(String vgpu, long nowNs) {
        Tenant tenant = tenants.get(vgpu);
        return tenant == null || tenant.waitsNs < 0 ? 0 : nowNs - tenant.waitsNs;
    }
}
