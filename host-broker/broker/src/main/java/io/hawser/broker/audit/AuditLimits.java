package io.hawser.broker.audit;

import io.hawser.broker.machine.LogLimiter;
import io.hawser.broker.model.PeerName;
import io.hawser.broker.model.Printable;
import java.net.InetAddress;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * Limits the entries that are not acts, by identity, or by peer without an identity: first a burst, then one entry a
 * minute. That entry contains the number of entries that were left out before it. Thread-safe.
 */
final class AuditLimits {
    /** Entries of one identity in a burst. */
    static final int BURST = 100;
    /** Time per entry after the burst. */
    static final Duration PACE = Duration.ofMinutes(1);
    /** Identities and peers at a time; stops many addresses from filling the memory. */
    private static final int MAX_METERS = 1024;
    /** Entries of all peers without an identity; stops many addresses from filling the database. */
    private static final int STRANGERS_A_SECOND = 10;

    private final LongSupplier nowNs;
    private final LogLimiter strangers;
    private final Map<String, Meter> meters = new LinkedHashMap<>();
    private final Meter crowd; // left-out entries of peers without a meter, and those beyond a second's limit
    private final List<AuditEntry> due = new ArrayList<>();

    /** The entries that one identity may still add, and the number of entries that were left out. */
    private static final class Meter {
        private final long burstNs;
        private long paidNs; // the entries so far have used up the pace until this time
        private long left;
        private Instant since;
        private AuditEntry last;

        Meter(long now, int burst) {
            burstNs = burst * PACE.toNanos();
            paidNs = now - burstNs;
        }

        boolean allows(long now) {
            paidNs = Math.max(paidNs, now - burstNs);
            if (now - paidNs < PACE.toNanos()) {
                return false;
            }
            paidNs += PACE.toNanos();
            return true;
        }

        boolean isIdle(long now) {
            return left == 0 && now - paidNs >= burstNs;
        }

        void leaveOut(AuditEntry entry, long count) {
            since = left == 0 ? entry.time() : since;
            left += count;
            last = entry;
        }

        AuditEntry takeSummary() {
            String detail = left + " more " + last.outcome() + " since " + since.truncatedTo(ChronoUnit.SECONDS)
                + ", the last: " + (last.detail().isEmpty() ? last.outcome() : last.detail());
            left = 0;
            return new AuditEntry(0, last.time(), last.name(), last.role(), last.peer(), last.action(), last.target(),
                last.outcome(), Printable.text(detail, AuditEntry.MAX_DETAIL_CHARACTERS));
        }
    }

    AuditLimits(LongSupplier nowNs) {
        this.nowNs = nowNs;
        strangers = new LogLimiter(STRANGERS_A_SECOND, nowNs);
        long now = nowNs.getAsLong();
        crowd = new Meter(now, 1);
        crowd.allows(now); // its first summary comes after the first minute
    }

    /** Returns the entry when it may be added; otherwise counts it and returns empty. */
    synchronized Optional<AuditEntry> take(AuditEntry entry) {
        boolean stranger = entry.role().isEmpty();
        long now = nowNs.getAsLong();
        Meter meter = meters.computeIfAbsent(stranger ? "peer " + network(entry.peer())
            : AuditKind.of(entry) + " " + entry.role() + " " + entry.name(), key -> new Meter(now, BURST));
        if (meters.size() > MAX_METERS) {
            dropOne(now, meter);
        }
        // The number of left-out entries comes first.
        if (meter.left > 0 || !meter.allows(now)) {
            meter.leaveOut(entry, 1);
            return Optional.empty();
        }
        if (stranger && !strangers.allows()) {
            crowd.leaveOut(entry, 1);
            return Optional.empty();
        }
        return Optional.of(entry);
    }

    private void dropOne(long now, Meter but) {
        Meter dropped = meters.values().stream().filter(meter -> meter != but && meter.isIdle(now)).findFirst()
            .orElseGet(() -> meters.values().iterator().next());
        meters.values().remove(dropped);
        if (dropped.left > 0) {
            if (dropped.last.role().isEmpty()) {
                crowd.leaveOut(dropped.last, dropped.left);
            } else {
                due.add(dropped.takeSummary());
            }
        }
    }

    /**
     * Takes the summaries of left-out entries, of each identity that may add an entry again.
     *
     * @param all whether to take the summaries of all identities, because the log ends.
     */
    synchronized List<AuditEntry> takeSummaries(boolean all) {
        long now = nowNs.getAsLong();
        List<AuditEntry> taken = new ArrayList<>(due);
        due.clear();
        for (Iterator<Meter> each = meters.values().iterator(); each.hasNext();) {
            Meter meter = each.next();
            if (meter.left > 0 && (meter.allows(now) || all)) {
                taken.add(meter.takeSummary());
            } else if (meter.isIdle(now)) {
                each.remove();
            }
        }
        if (crowd.left > 0 && (crowd.allows(now) || all)) {
            taken.add(crowd.takeSummary());
        }
        return taken;
    }

    private static String network(String peer) {
        try {
            return PeerName.of(InetAddress.ofLiteral(peer)); // a literal: needs no name service
        } catch (IllegalArgumentException e) {
            return peer;
        }
    }
}
