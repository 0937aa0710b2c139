package io.hawser.broker.admin;

import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.vgpu.VgpuTable;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Objects;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.jboss.logging.Logger;

/** Deletes vGPUs that have expired. It keeps them by their expiry, so that a check costs nothing. Event loop only. */
public final class Expiries implements VgpuTable.Listener {
    private static final Logger LOG = Logger.getLogger(Expiries.class);
    /** Time until the next attempt, when the database has rejected a deletion. */
    private static final Duration RETRY = Duration.ofSeconds(5);

    /** A vGPU, and when it is to be deleted. */
    private record Due(Instant time, String name) {}

    private final Function<String, CompletableFuture<Void>> deletion;
    private final NavigableSet<Due> due = new TreeSet<>(Comparator.comparing(Due::time).thenComparing(Due::name));
    private final Map<String, Due> byName = new HashMap<>();
    private volatile BiConsumer<String, String> listener = (name, failure) -> {};

    /**
     * Starts with the vGPUs of a table.
     *
     * @param deletion deletes an expired vGPU by its name; fails with {@link VgpuException.Kind#CHANGED} when the
     * vGPU has a later expiry by then.
     */
    public Expiries(VgpuTable table, Function<String, CompletableFuture<Void>> deletion) {
        this.deletion = deletion;
        table.list().forEach(view -> changed(null, view));
        table.addListener(this);
    }

    /** Sets the receiver of each expired vGPU's name, with the reason when its deletion failed, else empty. */
    public void setListener(BiConsumer<String, String> to) {
        listener = to;
    }

    @Override
    public void changed(VgpuView before, VgpuView after) {
        String name = (after == null ? before : after).vgpu().name();
        Instant time = after == null ? null : after.vgpu().expires();
        if (before == null || after == null || !Objects.equals(time, before.vgpu().expires())) {
            schedule(name, time);
        }
    }

    private void schedule(String name, Instant time) {
        Due last = time == null ? byName.remove(name) : byName.put(name, new Due(time, name));
        if (last != null) {
            due.remove(last);
        }
        if (time != null) {
            due.add(new Due(time, name));
        }
    }

    /** Begins the deletion of the vGPUs that have expired. Each second. */
    public void check(Instant now) {
        while (!due.isEmpty() && !due.first().time.isAfter(now)) {
            String name = due.first().name;
            schedule(name, now.plus(RETRY)); // the deletion itself removes it
            LOG.infof("vGPU %s has expired", name);
            deletion.apply(name).whenComplete((done, failure) -> report(name, failure));
        }
    }

    private void report(String name, Throwable failure) {
        Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
        if (cause instanceof VgpuException known && (known.kind() == VgpuException.Kind.MISSING
            || known.kind() == VgpuException.Kind.CHANGED)) {
            return; // a client has deleted or renewed it in between
        }
        if (cause != null) {
            LOG.errorf("vGPU %s has expired, but its deletion failed: %s", name, cause.getMessage());
        }
        listener.accept(name, cause == null ? "" : String.valueOf(cause.getMessage()));
    }

    /** Whether a vGPU has expired. */
    static boolean isExpired(Vgpu vgpu, Instant now) {
        return vgpu.expires() != null && !vgpu.expires().isAfter(now);
    }
}
