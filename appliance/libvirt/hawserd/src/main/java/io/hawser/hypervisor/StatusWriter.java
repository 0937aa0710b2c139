package io.hawser.hypervisor;

import java.util.concurrent.ExecutorService;

/** Writes statuses into the metadata of running domains; libvirt may let that wait, so not in the thread that looks. */
final class StatusWriter {
    private StatusWriter() {
    }

    /** Writes the last status that was wanted, one at a time for a domain; null removes it. */
    static void write(Hypervisor hypervisor, ExecutorService threads, Tenant tenant, VgpuStatus status) {
        synchronized (tenant) {
            tenant.wanted = status;
            if (tenant.writing) {
                return; // whoever writes looks again
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
            // The next look sees that it is not said, and says it again; a domain that is gone has no status.
            if (e.reason() == HypervisorException.Reason.REFUSED) {
                Log.warn(Reconciler.nameOf(tenant), "its status cannot be written: " + e.getMessage());
            }
        } catch (RuntimeException e) {
            Log.fault(Reconciler.nameOf(tenant), e);
        }
    }
}
