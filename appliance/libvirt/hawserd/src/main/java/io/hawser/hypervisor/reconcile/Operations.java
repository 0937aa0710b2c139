package io.hawser.hypervisor.reconcile;

import io.hawser.hypervisor.domain.Functions;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.Scope;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.tenant.Tenant;
import java.time.Duration;
import java.util.concurrent.ExecutorService;

/**
 * Operations on the device of a running domain, which wait for libvirt and the guest. Each runs in a thread of its own,
 * without the tenant. Another pass follows it.
 */
final class Operations {
    private final Hypervisor hypervisor;
    private final HotPlug hotPlug;
    private final Functions functions;
    private final Passes passes;
    private final ExecutorService threads;

    Operations(Hypervisor hypervisor, HotPlug hotPlug, Functions functions, Passes passes, ExecutorService threads) {
        this.hypervisor = hypervisor;
        this.hotPlug = hotPlug;
        this.functions = functions;
        this.passes = passes;
        this.threads = threads;
    }

    /** Begins to plug the device in. The caller holds the tenant. */
    void plug(Tenant tenant, Wish wish) {
        Duration timeout = tenant.plugTimeout();
        begin(tenant, wish, wish.hasNetwork()
            ? () -> functions.plug(tenant.uuid(), wish, timeout, tenant.feedback()::progress)
            : () -> hotPlug.plug(tenant.uuid(), wish.regionBytes(), timeout, tenant.feedback()::progress));
    }

    /**
     * Begins to remove the device and the domain's status. The caller holds the tenant.
     *
     * @param wish of a device without metadata; null to remove a virtual function.
     */
    void unplug(Tenant tenant, Wish wish) {
        Duration timeout = tenant.plugTimeout();
        begin(tenant, wish, () -> {
            if (wish == null) {
                functions.unplug(tenant.uuid(), timeout, tenant.feedback()::progress);
            } else {
                hotPlug.unplug(tenant.uuid(), timeout, tenant.feedback()::progress);
            }
            hypervisor.setMetadata(tenant.uuid(), VgpuStatus.NAMESPACE, VgpuStatus.PREFIX, null, Scope.LIVE);
        });
    }

    private void begin(Tenant tenant, Wish wish, Runnable operation) {
        tenant.operationBegan();
        threads.execute(() -> {
            String failure = "hawserd has failed; see its log";
            try {
                operation.run();
                failure = "";
            } catch (HypervisorException e) {
                failure = e.getMessage();
            } catch (RuntimeException e) {
                Log.fault(tenant.label(), e);
            } finally {
                end(tenant, wish, failure);
            }
        });
    }

    private void end(Tenant tenant, Wish wish, String failure) {
        tenant.hold();
        if (failure.isEmpty()) {
            tenant.operationSucceeded(System.nanoTime());
        } else {
            tenant.operationFailed(wish, failure, System.nanoTime());
        }
        tenant.release();
        passes.request();
    }
}
