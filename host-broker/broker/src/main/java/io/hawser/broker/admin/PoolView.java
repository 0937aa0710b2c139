package io.hawser.broker.admin;

import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.session.VgpuUsage;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** The pool of this broker for the code above; a broker that is alone has an empty one. Thread-safe. */
public final class PoolView {
    private final Optional<Membership> membership;

    /** Shows the pool of a membership; empty for none. */
    public PoolView(Optional<Membership> membership) {
        this.membership = membership;
    }

    private <T> T of(Function<BrokerPool, T> read, T alone) {
        return membership.map(Membership::pool).map(read).orElse(alone);
    }

    /** Name of this broker in its pool; empty when it is alone. */
    public String name() {
        return of(pool -> pool.me().name(), PeerBroker.NONE);
    }

    /** All brokers by number, with this one; empty when it is alone. */
    public List<PeerBroker> brokers() {
        return of(BrokerPool::brokers, List.of());
    }

    /** Why this broker admits no guests, or only some; empty for no reason. */
    public String problem() {
        return of(BrokerPool::problem, "");
    }

    /** Whether this broker admits some guests in spite of its problem. */
    public boolean admitsSome() {
        return of(BrokerPool::admitsSome, true);
    }

    /** As {@link BrokerPool#elsewhere(Set)}; empty when this broker is alone. */
    public List<VgpuView> elsewhere(Set<String> own) {
        return of(pool -> pool.elsewhere(own), List.of());
    }

    /** A vGPU that another broker has, or none. */
    public Optional<VgpuView> elsewhere(String name) {
        return of(pool -> pool.elsewhere(name), Optional.empty());
    }

    /** Name of the broker that has a vGPU; empty for none, and when this broker is alone. */
    public String brokerOf(String vgpu) {
        return of(pool -> pool.brokerName(vgpu), PeerBroker.NONE);
    }

    /** As {@link BrokerPool#pictures}, by the brokers' names. */
    public Map<String, String> pictures() {
        return of(BrokerPool::picturesByName, Map.of());
    }

    /**
     * Ends a session of another broker.
     *
     * @param shownAt name of the broker that shows the session; empty when none does. It is then asked of the broker
     *     where it has begun, which may have too many to show them.
     * @return empty when that is no other broker.
     */
    public Optional<CompletableFuture<Void>> endSession(long id, Optional<String> shownAt) {
        return membership.flatMap(member -> member.pool().brokers().stream()
            .filter(one -> shownAt.map(name -> name.equals(one.name()))
                .orElse(one.number() == Membership.brokerOfSession(id)))
            .filter(one -> !one.id().equals(member.pool().me().id()))
            .findFirst().map(broker -> member.errands().ask(broker, Errands.Request.endSession(id))));
    }

    /** Removes a silent broker, whose vGPUs others then take; fails with {@link VgpuException}. */
    public CompletableFuture<Void> remove(String broker) {
        return membership.map(member -> member.places().remove(broker)).orElseGet(() -> CompletableFuture.failedFuture(
            new VgpuException(VgpuException.Kind.MISSING, "the broker is alone and has no pool")));
    }

    /**
     * What the sessions of another broker's vGPU have used.
     *
     * @return empty when no other broker that answers has the vGPU.
     */
    public Optional<CompletableFuture<VgpuUsage>> usage(String vgpu) {
        return membership.flatMap(member -> member.pool().holder(vgpu).map(broker -> member.errands().askFor(broker,
            Errands.Request.use(vgpu), VgpuUsage.class)));
    }
}
