package io.hawser.hypervisor;

import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** The domains of which hawserd has a state. Any thread. */
final class Tenants {
    private final Map<UUID, Tenant> byDomain = new ConcurrentHashMap<>();

    /**
     * The tenant of a domain, made if necessary.
     *
     * @param name empty if the caller does not know it.
     */
    Tenant of(UUID domain, String name) {
        Tenant tenant = byDomain.computeIfAbsent(domain, uuid -> new Tenant(uuid, name));
        if (!name.isEmpty()) {
            tenant.name = name;
        }
        return tenant;
    }

    /**
     * The tenant of a domain, with its steps locked. It stays the domain's tenant until the caller unlocks them.
     *
     * @return null if another step did not end within the limit, or the thread was interrupted.
     */
    Tenant hold(UUID domain, String name, Duration limit) {
        long end = System.nanoTime() + limit.toNanos();
        while (true) {
            Tenant tenant = of(domain, name);
            try {
                if (!tenant.steps.tryLock(end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                    return null;
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return null;
            }
            if (!tenant.forgotten) {
                return tenant;
            }
            tenant.steps.unlock(); // a pass removed this tenant while the thread waited
        }
    }

    /** Removes a tenant whose steps the caller holds. */
    void forget(Tenant tenant) {
        byDomain.remove(tenant.uuid, tenant);
        tenant.forget();
    }

    boolean has(UUID domain) {
        return byDomain.containsKey(domain);
    }

    /** The domains that have a tenant now. */
    Set<UUID> domains() {
        return Set.copyOf(byDomain.keySet());
    }
}
