package io.hawser.broker.swap;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.stream.Stream;

/**
 * The swappable vGPUs of one GPU: some have their memory there, and the others are out. A vGPU on the GPU has room for
 * all memory that it may reserve. One that is out needs only the memory that cannot move. Waiting vGPUs come in the
 * order of their first wait, and nobody overtakes. For them the vGPU leaves that has been idle longest. If none is
 * idle, the vGPU leaves that has been there longest for its share. A vGPU that has just come stays for a while.
 *
 * <p>Two vGPUs can exchange their places. One leaves as far as the host's memory allows, and the other one comes as far
 * as the GPU's memory allows. Each move makes room for the other. The last piece waits until the whole vGPU has room.
 * The comer begins only when the host's memory for those that leave is already allocated, or is used up. So a shortage
 * of the host's memory never stops an exchange in the middle.
 *
 * <p>A session that is out keeps its context on the GPU. When its vGPU has been idle for long, the session leaves
 * wholly ({@link Depth}). Its context's memory is then free for others. With its vGPU's turn, it comes back first.
 *
 * <p>Times are in nanoseconds and never go back. Event loop only.
 */
final class Residency {
    /** How long a vGPU that could not leave is not asked again. */
    static final long RETRY_NS = 2_000_000_000L;
    /** How long a move may be without progress. */
    static final long STUCK_NS = 30_000_000_000L;

    /** A session. It gets orders to move. */
    interface Seat {
        /**
         * Its memory must leave the GPU; {@link Residency#left} follows.
         *
         * @param limitBytes how much may leave; a further call during the move raises it.
         */
        void leave(long limitBytes);

        /**
         * Its memory can come back; {@link Residency#entered} follows.
         *
         * @param limitBytes how much may come; a further call during the move raises it.
         */
        void enter(long limitBytes);

        /** While it is out, it must make no call of the driver; {@link Residency#frozen} follows. */
        void freeze();

        /** Ends {@link #freeze} for a session that stays out. */
        void thaw();

        /** A helper must move its process to the host; {@link Residency#sunk} follows. */
        void sink();

        /** The helper must move its process back; {@link Residency#risen} follows. */
        void rise();
    }

    private enum Place { IN, LEAVING, OUT, ENTERING }

    private static final class Member {
        private final Tenant tenant;
        private final Seat seat;
        private final Depth depth;
        private Place place;
        private long outBytes;
        private boolean isDrained; // on the way out: its work has ended
        private long beganBytes; // out at the begin of its way in
        private long limitBytes; // of its move
        private long progressNs; // when its move last began, went on or was allowed more

        Member(Tenant tenant, Seat seat, Place place) {
            this.tenant = tenant;
            this.seat = seat;
            this.place = place;
            depth = new Depth(seat);
        }

        /** Memory that has come back so far, on the way in. */
        long cameBytes() {
            return place == Place.ENTERING ? beganBytes - outBytes : 0;
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
            return isIn && !(isLeaving && isDrained()) ? quotaBytes : usedBytes();
        }

        long usedBytes() {
            return Math.min(quotaBytes, heldBytes.getAsLong());
        }

        /** Memory that its sessions need in addition on their way back, because they are deep. */
        long givenBytes() {
            return members.stream().mapToLong(member -> member.depth.givenBytes()).sum();
        }

        long outBytes() {
            return members.stream().mapToLong(member -> member.outBytes).sum();
        }

        /** Whether no session allocates memory any more, on the way out. */
        boolean isDrained() {
            return members.stream().allMatch(member -> member.place == Place.OUT || member.isDrained);
        }

        boolean isMoving() {
            return members.stream().anyMatch(member -> member.place == Place.LEAVING || member.place == Place.ENTERING);
        }

        /** Time on the GPU, as it counts beside others. */
        double weighed(long nowNs) {
            return (double) (nowNs - sinceNs) / share;
        }
    }

    /** The waits and departures of a vGPU. The caller keeps them over all sessions of the vGPU. */
    static final class Totals {
        private long swaps;
        private long deepSwaps;
        private long waitedNs;

        long swaps() {
            return swaps;
        }

        long deepSwaps() {
            return deepSwaps;
        }

        long waitedNs() {
            return waitedNs;
        }
    }

    private final SwapRules rules;
    private final LongSupplier roomBytes;
    private final LongSupplier allocatedBytes;
    private final Map<String, Tenant> tenants = new LinkedHashMap<>();
    private final Map<Seat, Member> members = new LinkedHashMap<>();
    private final Map<String, Totals> totals;

    /**
     * Starts without vGPUs.
     *
     * @param roomBytes memory of the GPU for swappable vGPUs together.
     * @param allocatedBytes memory of the host for swapped sessions that is already allocated.
     * @param totals by vGPU; gets an entry for each that joins.
     */
    Residency(SwapRules rules, LongSupplier roomBytes, LongSupplier allocatedBytes, Map<String, Totals> totals) {
        this.rules = rules;
        this.allocatedBytes = allocatedBytes;
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
            enter(member, Long.MAX_VALUE, nowNs);
        } else if (tenant.waitsNs < 0) {
            tenant.waitsNs = nowNs;
        }
    }

    /**
     * A part of a session has moved.
     *
     * @param bytes what has moved since the order.
     */
    void moved(Seat seat, long bytes, long nowNs) {
        Member member = members.get(seat);
        if (member == null) {
            return;
        }
        member.progressNs = nowNs;
        if (member.place == Place.LEAVING) {
            member.isDrained = true;
            member.outBytes = Math.min(bytes, member.tenant.quotaBytes);
        } else if (member.place == Place.ENTERING) {
            member.outBytes = Math.max(0, member.beganBytes - bytes);
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
        member.outBytes = stays.isEmpty() ? Math.min(bytes, member.tenant.quotaBytes) : 0;
        member.isDrained = false;
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
                    enter(member, Long.MAX_VALUE, nowNs);
                }
            }
            return;
        }
        tenant.isIn = false;
        tenant.sinceNs = nowNs;
        tenant.stays = "";
        totals.get(tenant.vgpu).swaps++;
    }

    private static void enter(Member member, long limitBytes, long nowNs) {
        if (member.place == Place.OUT) {
            member.place = Place.ENTERING;
            member.beganBytes = member.outBytes;
            member.limitBytes = -1;
        }
        if (limitBytes > member.limitBytes) {
            member.limitBytes = limitBytes;
            member.progressNs = nowNs;
            if (member.depth.rise()) {
                member.seat.enter(limitBytes);
            }
        }
    }

    private static void leave(Member member, long limitBytes, long nowNs) {
        if (member.place == Place.IN) {
            member.place = Place.LEAVING;
            member.isDrained = false;
            member.limitBytes = -1;
        }
        if (limitBytes > member.limitBytes) {
            member.limitBytes = limitBytes;
            member.progressNs = nowNs;
            member.seat.leave(limitBytes);
        }
    }

    /**
     * A session has answered {@link Seat#enter}.
     *
     * @param bytes its memory that has come back.
     * @param isIn whether that is all; else it must be told again.
     */
    void entered(Seat seat, long bytes, boolean isIn) {
        Member member = members.get(seat);
        if (member != null) {
            member.outBytes = isIn ? 0 : Math.max(0, member.beganBytes - bytes);
            member.place = isIn ? Place.IN : Place.OUT;
        }
    }

    private long freeBytes() {
        return roomBytes.getAsLong() - tenants.values().stream()
            .mapToLong(tenant -> tenant.neededBytes() - tenant.givenBytes()).sum();
    }

    /**
     * Lets vGPUs come and go. Call it after each change, and now and then while it returns true.
     *
     * @return whether somebody waits or moves.
     */
    boolean step(long nowNs) {
        feed(nowNs);
        List<Tenant> waiting = tenants.values().stream().filter(tenant -> tenant.waitsNs >= 0)
            .sorted(Comparator.comparingLong(tenant -> tenant.waitsNs)).toList();
        for (Tenant tenant : waiting) {
            long missing = tenant.quotaBytes - tenant.neededBytes() + tenant.givenBytes() - freeBytes();
            if (tenant.isLeaving || missing > 0 || !isSafe()) {
                makeRoom(missing, tenant, nowNs);
                advance(tenant, nowNs);
                return true;
            }
            totals.get(tenant.vgpu).waitedNs += nowNs - tenant.waitsNs;
            tenant.waitsNs = -1;
            tenant.isIn = true;
            tenant.sinceNs = nowNs;
            tenant.activeNs = nowNs;
            tenant.members.stream().filter(member -> member.place == Place.OUT || member.place == Place.ENTERING)
                .toList().forEach(member -> enter(member, Long.MAX_VALUE, nowNs));
        }
        return tenants.values().stream().anyMatch(Tenant::isMoving);
    }

    /** Lets sessions whose vGPU has been idle for long leave wholly. Call it now and then. */
    void sink(long nowNs) {
        if (rules.deepNs() == 0) {
            return;
        }
        for (Tenant tenant : tenants.values()) {
            if (!tenant.isIn && tenant.waitsNs < 0 && nowNs - tenant.activeNs >= rules.deepNs()) {
                tenant.members.stream().filter(member -> member.place == Place.OUT)
                    .forEach(member -> member.depth.sink(nowNs));
            }
        }
    }

    /**
     * A session has answered {@link Seat#freeze}.
     *
     * @param stays why it goes on to make calls; empty when it makes none.
     */
    void frozen(Seat seat, String stays, long nowNs) {
        Member member = members.get(seat);
        if (member != null && member.depth.frozen(!stays.isEmpty(), member.tenant.waitsNs >= 0,
            nowNs + rules.deepNs())) {
            enterWhenUp(member, nowNs);
        }
    }

    /**
     * A helper has answered {@link Seat#sink}.
     *
     * @param problem why the process has stayed, unharmed; empty when it has moved.
     * @param freedBytes memory of the GPU that the move has freed, as far as it is known.
     */
    void sunk(Seat seat, String problem, long freedBytes, long nowNs) {
        Member member = members.get(seat);
        if (member != null) {
            totals.get(member.tenant.vgpu).deepSwaps += problem.isEmpty() ? 1 : 0;
            if (member.depth.sunk(problem, freedBytes)) {
                enterWhenUp(member, nowNs);
            }
        }
    }

    /** A helper has moved the session's process back. */
    void risen(Seat seat, long nowNs) {
        Member member = members.get(seat);
        if (member != null && member.depth.risen()) {
            enterWhenUp(member, nowNs);
        }
    }

    private static void enterWhenUp(Member member, long nowNs) {
        if (member.place == Place.ENTERING) {
            member.progressNs = nowNs;
            member.seat.enter(member.limitBytes);
        }
    }

    private Stream<Tenant> leaving() {
        return tenants.values().stream().filter(tenant -> tenant.isLeaving);
    }

    /** Lets one session after the other leave, as far as the host has room. */
    private void feed(long nowNs) {
        leaving().flatMap(tenant -> tenant.members.stream())
            .filter(member -> member.place == Place.LEAVING && member.isDrained).findFirst()
            .ifPresent(member -> leave(member, rules.maxBytes() - (outBytes() - member.outBytes), nowNs));
    }

    /** Whether those that leave will have left, whatever the host's memory is. */
    private boolean isSafe() {
        long used = leaving().mapToLong(Tenant::usedBytes).sum();
        long out = outBytes();
        return leaving().allMatch(tenant -> tenant.isDrained() && (used <= allocatedBytes.getAsLong() - out
            || rules.maxBytes() - out < rules.pieceBytes()));
    }

    /** Lets a vGPU begin to come while others still leave. */
    private void advance(Tenant tenant, long nowNs) {
        Member member = first(tenant);
        if (member == null || tenant.isLeaving || !isSafe()) {
            return;
        }
        // Its last piece waits.
        long limit = member.cameBytes() + Math.min(freeBytes() - tenant.givenBytes(), member.outBytes - 1);
        if (member.place == Place.ENTERING || limit >= rules.pieceBytes()) {
            enter(member, limit, nowNs);
        }
    }

    /** The session of a vGPU that comes while others still leave; null when none has enough memory for that. */
    private Member first(Tenant tenant) {
        return tenant.members.stream().filter(member -> member.place == Place.ENTERING).findFirst()
            .orElseGet(() -> tenant.members.stream()
                .filter(member -> member.place == Place.OUT && member.outBytes > rules.pieceBytes())
                .max(Comparator.comparingLong(member -> member.outBytes)).orElse(null));
    }

    /** Whether a vGPU can leave for another one, by the host's memory. */
    private boolean canLeave(Tenant tenant, Tenant comer) {
        long comes = comer.outBytes();
        long room = rules.maxBytes() - (outBytes() - comes) - leaving().mapToLong(Tenant::usedBytes).sum();
        long used = tenant.usedBytes();
        if (used + comes <= room) {
            return true;
        }
        Member first = first(comer);
        long waits = first == null ? comes : comes - first.outBytes + rules.pieceBytes();
        long free = freeBytes() - comer.givenBytes() + tenant.neededBytes() - used;
        return used + waits <= room && room - comes + free >= 2 * rules.pieceBytes();
    }

    /** Sessions whose move has made no progress for {@link #STUCK_NS}, although it may. */
    List<Seat> stuck(long nowNs) {
        return members.values().stream().filter(member -> nowNs - member.progressNs >= STUCK_NS && mayMove(member)
            || member.depth.isStuck(nowNs)).map(member -> member.seat).toList();
    }

    private boolean mayMove(Member member) {
        return switch (member.place) {
            case IN, OUT -> false;
            case LEAVING -> !member.isDrained || member.limitBytes - member.outBytes >= rules.pieceBytes();
            // A helper that moves the process has its own limit of time.
            case ENTERING -> member.depth.isUp() && member.limitBytes - member.cameBytes() >= rules.pieceBytes();
        };
    }

    /** Sends vGPUs away until there will be room, as far as that is allowed now. */
    private void makeRoom(long bytes, Tenant comer, long nowNs) {
        long missing = bytes - leaving().mapToLong(Tenant::neededBytes).sum();
        while (missing > 0) {
            Tenant next = next(comer, nowNs);
            if (next == null) {
                return;
            }
            missing -= next.quotaBytes;
            next.isLeaving = true;
            next.members.stream().filter(member -> member.place == Place.IN).toList()
                .forEach(member -> leave(member, 0, nowNs)); // until their work has ended
            settle(next, nowNs); // sessions that have left unasked answer no more
        }
    }

    /** The vGPU that leaves next; null while none may. */
    private Tenant next(Tenant comer, long nowNs) {
        List<Tenant> able = tenants.values().stream()
            .filter(tenant -> tenant.isIn && !tenant.isLeaving && !tenant.isMoving() && nowNs >= tenant.retryNs
                && nowNs - tenant.sinceNs >= rules.stayNs() && hasPlace(tenant, comer))
            .toList();
        return able.stream().filter(tenant -> nowNs - tenant.activeNs >= rules.idleNs())
            .min(Comparator.comparingLong(tenant -> tenant.activeNs))
            .orElseGet(() -> able.stream().filter(tenant -> nowNs - tenant.sinceNs >= turnNs(tenant))
                .max(Comparator.comparingDouble(tenant -> tenant.weighed(nowNs))).orElse(null));
    }

    private boolean hasPlace(Tenant tenant, Tenant comer) {
        boolean canLeave = canLeave(tenant, comer);
        if (!canLeave) {
            tenant.stays = "the host's memory for swapped sessions is too small: maxBytes=" + rules.maxBytes()
                + " swappedBytes=" + outBytes() + " usedBytes=" + tenant.usedBytes();
        }
        return canLeave;
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
        return tenant == null ? 0 : tenant.outBytes();
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

    /** Sessions of a vGPU that are deep. */
    int deepSessions(String vgpu) {
        Tenant tenant = tenants.get(vgpu);
        return tenant == null ? 0 : (int) tenant.members.stream().filter(member -> member.depth.isDeep()).count();
    }

    /** Why a session of a vGPU cannot leave its GPU wholly; empty if all can. */
    String deepStays(String vgpu) {
        Tenant tenant = tenants.get(vgpu);
        return tenant == null ? "" : tenant.members.stream().map(member -> member.depth.stays())
            .filter(reason -> !reason.isEmpty()).findFirst().orElse("");
    }
}
