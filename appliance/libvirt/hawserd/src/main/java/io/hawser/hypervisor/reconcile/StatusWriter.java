package io.hawser.hypervisor.reconcile;

import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.Scope;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.VgpuStatus;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;

/** Writes statuses into the metadata of running domains, in threads of its own: libvirt may block the call. */
final class StatusWriter {
    private final Hypervisor hypervisor;
    private final ExecutorService threads;
    /** The latest status of each domain that a thread writes for. */
    private final Map<UUID, Optional<VgpuStatus>> latest = new ConcurrentHashMap<>();

    StatusWriter(Hypervisor hypervisor, ExecutorService threads) {
        this.hypervisor = hypervisor;
        this.threads = threads;
    }

    /**
     * Writes a domain's status, one thread at a time for a domain. A later status replaces one that waits.
     *
     * @param name of the domain, for the log.
     * @param status null removes the status from the metadata.
     */
    void write(UUID domain, String name, VgpuStatus status) {
        if (latest.put(domain, Optional.ofNullable(status)) == null) {
            threads.execute(() -> writeAll(domain, name));
        } // otherwise the writing thread writes this status next
    }

    private void writeAll(UUID domain, String name) {
        Optional<VgpuStatus> next;
        do {
            next = latest.get(domain);
            set(domain, name, next);
        } while (!latest.remove(domain, next));
    }

    private void set(UUID domain, String name, Optional<VgpuStatus> status) {
        try {
            hypervisor.setMetadata(domain, VgpuStatus.NAMESPACE, VgpuStatus.PREFIX,
                status.map(known -> DomainXml.element("status", known.attributes())).orElse(null), Scope.LIVE);
        } catch (HypervisorException e) {
            // The next pass finds a missing status and writes it again; a domain that is gone has none.
            if (e.reason() == HypervisorException.Reason.REFUSED) {
                Log.warn(name, "its status cannot be written: " + e.getMessage());
            }
        } catch (RuntimeException e) {
            Log.fault(name, e);
        }
    }
}
