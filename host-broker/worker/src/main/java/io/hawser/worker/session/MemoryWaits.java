package io.hawser.worker.session;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Calls that found no memory while guests of the vGPU keep memory that they do not use. Their records are served again
 * when the guests have given that memory back, so a program runs out of memory exactly where the quota ends. A guest
 * that is stopped gives nothing back; a record waits no longer than {@link #LIMIT_MS} for it. Session thread.
 */
final class MemoryWaits {
    private static final long LIMIT_MS = 1000; // a guest looks 20 times in a second
    private static final long INTERVAL_MS = 10;

    private record Waiting(HeldRecords.Held record, long untilNs) {}

    private final MemoryQuota quota;
    private final SharedNames.Later later;
    private final RecordOrder order;
    private final List<Waiting> records = new ArrayList<>();
    private boolean isServing; // a record is served for the last time

    /**
     * Starts without records.
     *
     * @param later runs tasks on the session thread, and then sends their replies.
     */
    MemoryWaits(MemoryQuota quota, SharedNames.Later later, RecordOrder order) {
        this.quota = quota;
        this.later = later;
        this.order = order;
    }

    /** Whether a call that found no memory should wait, and its record be passed to {@link #add}. */
    boolean mustWait() {
        return !isServing && quota.isKept();
    }

    /** Whether no record waits. */
    boolean isEmpty() {
        return records.isEmpty();
    }

    /** Keeps a record until it can be served again. */
    void add(HeldRecords.Held record) {
        quota.want();
        records.add(new Waiting(record, System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LIMIT_MS)));
        if (records.size() == 1) {
            later.schedule(this::check, INTERVAL_MS);
        }
    }

    private void check() {
        long now = System.nanoTime();
        List<Waiting> due = records.stream().filter(each -> !quota.isKept() || each.untilNs - now <= 0).toList();
        records.removeAll(due);
        isServing = true;
        due.forEach(each -> order.serveAgain(each.record));
        isServing = false;
        if (!records.isEmpty()) {
            later.schedule(this::check, INTERVAL_MS);
        }
    }
}
