package io.hawser.hypervisor;

import java.util.concurrent.ExecutorService;

/** Writes statuses into the metadata of running domains, in threads of its own: libvirt may block the call. */
final class StatusWriter {
    private StatusWriter() {
    }

    /** Writes the latest wanted status, one at a time for a domain; null removes it. */
    static void write(Hypervisor hypervisor, ExecutorService threads, Tenant tenant, VgpuStatus status) {
        synchronized (tenant) {
            tenant.wanted = status;
            if (tenant.writing) {
                return; // the writing thread writes this status next
            }
            tenant.writing = true;
        }
        threads.execute(() -> {
            VgpuStatus next = status;
            while (true) {
                set(hypervisor, tenant, next);
                synchronized (tenant) {
                    if (next == tenant.wanted) {
                        tenant.writing = false;
                        return;
                    }
                    next = tenant.wanted;
                }
            }
        });
    }

    private static void set(Hypervisor hypervisor, Tenant tenant, VgpuStatus status) {
        try {
            hypervisor.setMetadata(tenant.uuid, VgpuStatus.NAMESPACE, VgpuStatus.PREFIX,
                status == null ? null : DomainXml.element("status", status.attributes()), Scope.LIVE);
        } catch (HypervisorException e) {
            // The next pass finds a missing status and writes it again; a domain that is gone has none.
            if (e.reason() == HypervisorException.Reason.REFUSED) {
                Log.warn(Reconciler.nameOf(tenant), "its status cannot be written: " + e.getMessage());
            }
        } catch (RuntimeException e) {
            Log.fault(Reconciler.nameOf(tenant), e);
        }
    }
}
