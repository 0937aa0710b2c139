package io.hawser.hypervisor.libvirt;

import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import java.time.Duration;
import java.util.UUID;
import java.util.function.BooleanSupplier;

/** A running domain whose devices change. */
final class LiveDomain {
    /** Interval of the polls for the guest's action: QEMU sends no event for it. */
    private static final long ASK_AGAIN_MS = 200;

    private LiveDomain() {
    }

    /**
     * Finds a domain that runs.
     *
     * @throws HypervisorException if there is no such domain, or it does not run.
     */
    static DomainView running(Hypervisor hypervisor, UUID domain) {
        DomainView view = hypervisor.domain(domain.toString())
            .orElseThrow(() -> new HypervisorException(Reason.NO_DOMAIN, "there is no domain " + domain));
        if (!view.running()) {
            throw new HypervisorException(Reason.NOT_RUNNING, "domain " + view.name() + " does not run");
        }
        return view;
    }

    /**
     * Polls until the guest has acted.
     *
     * @return false if it has not acted within the time.
     * @throws HypervisorException if this thread is interrupted.
     */
    static boolean await(Duration timeout, BooleanSupplier done) {
        long end = System.nanoTime() + timeout.toNanos();
        while (!done.getAsBoolean()) {
            if (System.nanoTime() - end >= 0) {
                return false;
            }
            try {
                Thread.sleep(ASK_AGAIN_MS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new HypervisorException(Reason.TIMEOUT, "hawserd is stopping", interrupted);
            }
        }
        return true;
    }
}
