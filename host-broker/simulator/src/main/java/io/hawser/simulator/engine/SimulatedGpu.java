package io.hawser.simulator.engine;

import java.util.ArrayList;
import java.util.List;

/**
 * A GPU in simulated time. Kernels of different tenants share it evenly, as under the driver's time slicing. Kernels of
 * one tenant run one after the other.
 */
final class SimulatedGpu {
    final int index;
    final List<Tenant> tenants = new ArrayList<>();
    private final List<Tenant> running = new ArrayList<>();
    boolean isLookDue; // before the time goes on
    private Tenant last; // ran alone at last; null after several at once

    SimulatedGpu(int index) {
        this.index = index;
    }

    int running() {
        return running.size();
    }

    void start(Tenant tenant) {
        running.add(tenant);
        change();
    }

    void end(Tenant tenant) {
        running.remove(tenant);
        change();
    }

    private void change() {
        if (running.size() == 1 && running.getFirst() != last) {
            last = running.getFirst();
            last.settle();
            last.paySwitch();
        } else if (running.size() > 1) {
            last = null;
        }
        for (int i = 0; i < running.size(); i++) {
            running.get(i).rateChanges();
        }
    }
}
