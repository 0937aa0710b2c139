package io.hawser.hypervisor.tenant;

import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/** The domains of which hawserd has a state. Any thread. */
public final class Tenants {
    private final Map<UUID, Tenant> byDomain = new ConcurrentHashMap<>();

    /**
     * The tenant of a domain, made if necessary.
     *
     * @param name empty if the caller does not know it.
     */
    public Tenant of(UUID domain, String name) {
        Tenant tenant = byDomain.computeIfAbsent(domain, uuid -> new Tenant(uuid, name));
        if (!name.isEmpty()) {
            tenant.named(name);
        }
        return tenant;
    }

    /**
     * The tenant of a domain, which the caller then holds. It stays the domain's tenant until the caller releases it.
     *
     * @return null if another thread held it for the whole limit, or this thread was interrupted.
     */
    public Tenant hold(UUID domain, String name, Duration limit) {
        long end = System.nanoTime() + limit.toNanos();
        while (true) {
            Tenant tenant = of(domain, name);
            try {
                if (!tenant.hold(Duration.ofNanos(end - System.nanoTime()))) {
                    return null;
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return null;
            }
            if (!tenant.isForgotten()) {
                return tenant;
            }
            tenant.release(); // a pass removed this tenant while the thread waited
        }
    }

    /** Removes a tenant that the caller holds. */
    public void forget(Tenant tenant) {
        byDomain.remove(tenant.uuid(), tenant);
        tenant.forget();
    }

    /** Whether a domain has a tenant now. */
    public boolean has(UUID domain) {
        return byDomain.containsKey(domain);
    }

    /** The domains that have a tenant now. */
    public Set<UUID> domains() {
        return Set.copyOf(byDomain.keySet());
    }
}
